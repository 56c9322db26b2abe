"""Trained nets in one self-contained page: type a string, and see the answers of the net, its machine and its task."""
