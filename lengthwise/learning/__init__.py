"""Finite machines learned from labeled strings, each with a net that is proved to answer like the machine."""
