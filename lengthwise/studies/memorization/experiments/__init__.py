"""Experiments of the note on memorization."""
