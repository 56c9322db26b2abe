"""Benchmarks: published protocols, by which a model of yours is measured next to published numbers."""
