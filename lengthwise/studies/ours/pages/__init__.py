"""Sections of pages of our own."""
