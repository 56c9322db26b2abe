"""Sections of pages of Xu and Sato (2024)."""
