"""Method of proof: intervals around the prototypes of a recurrence."""
