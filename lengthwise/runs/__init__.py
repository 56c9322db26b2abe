"""Runs: a specification, its id, its folder on disk, and its execution."""
