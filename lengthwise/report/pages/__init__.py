"""Whole pages about runs, analyses, comparisons and experiments."""
