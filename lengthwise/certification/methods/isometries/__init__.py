"""Method of proof up to a length: a recurrence whose steps preserve distances."""
