"""Presets of Xu and Sato (2024)."""
