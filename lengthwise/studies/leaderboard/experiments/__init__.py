"""Experiments of the leaderboard."""
