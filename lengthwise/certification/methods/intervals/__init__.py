"""Method of proof: boxes around the classes of a recurrence."""
