"""Sections of pages of the note on memorization."""
