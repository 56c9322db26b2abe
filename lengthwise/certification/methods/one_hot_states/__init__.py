"""Method of proof: a block-diagonal recurrence with one-hot columns."""
