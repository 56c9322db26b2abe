"""Method of proof: a tree model that quantizes its states to codes."""
