"""Method of proof up to a length: a transformer."""
