"""Presets of the leaderboard."""
