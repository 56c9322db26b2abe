"""Method of proof: a recurrence that preserves distances, up to a length."""
