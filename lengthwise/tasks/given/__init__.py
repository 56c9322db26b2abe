"""Users' own examples as tasks."""
