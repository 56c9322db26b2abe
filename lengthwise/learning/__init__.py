"""Finite machines from examples: a net is trained on them, read as a machine, and proved to be that machine."""
