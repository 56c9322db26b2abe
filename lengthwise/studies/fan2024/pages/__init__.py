"""Sections of pages of Fan et al. (2024)."""
