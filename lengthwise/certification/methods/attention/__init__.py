"""Method of proof up to a length: bounds on the attention of a transformer."""
