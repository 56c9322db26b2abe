"""Functions that the context defines by examples."""
