"""Readers extract a finite machine from a trained net, without access to its task and without a claim about the net."""
