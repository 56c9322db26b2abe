"""Presets of Fan et al. (2024)."""
