"""Method of proof: a rule over the grid of two strings."""
