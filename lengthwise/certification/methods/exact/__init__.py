"""Method of proof: merges that float32 computes without error."""
