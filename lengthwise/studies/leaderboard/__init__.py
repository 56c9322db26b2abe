"""The leaderboard: many models on many tasks, by one protocol."""
