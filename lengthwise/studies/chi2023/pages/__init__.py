"""Sections of pages of Chi et al. (2023)."""
