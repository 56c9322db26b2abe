"""Functions that are given by examples in the context."""
