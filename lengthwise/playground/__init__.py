"""Trained nets in one self-contained page: type a string, and see what the net, its machine and its task make of it."""
