"""Presets of Chi et al. (2023)."""
