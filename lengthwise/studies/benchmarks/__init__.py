"""Benchmarks: published protocols for training and measuring a model, with published numbers for comparison."""
