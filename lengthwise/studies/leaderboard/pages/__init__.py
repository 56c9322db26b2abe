"""Sections of pages about the leaderboard's models."""
