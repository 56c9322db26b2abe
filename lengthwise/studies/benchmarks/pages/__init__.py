"""Sections of pages about benchmarks."""
