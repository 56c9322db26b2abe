"""Method of proof up to a length: a recurrence whose steps do not enlarge distances."""
