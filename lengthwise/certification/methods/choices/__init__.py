"""Method of proof: a recurrence whose state is one of finitely many."""
