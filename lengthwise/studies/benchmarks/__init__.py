"""Benchmarks: published protocols that measure a model of yours next to published numbers."""
