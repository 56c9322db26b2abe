"""Method of proof: a tree that moves its states to codes."""
