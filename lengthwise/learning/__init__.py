"""Finite machines learned from labeled strings, each with a net that is proved to be that machine."""
