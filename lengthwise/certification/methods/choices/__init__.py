"""Method of proof: a recurrence with finitely many states."""
