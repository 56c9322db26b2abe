"""Whole pages: of a run, an analysis, an experiment."""
