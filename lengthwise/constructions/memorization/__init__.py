"""Linear RNNs that repeat a word indefinitely: constructions, the smallest dimension, proofs, lifetimes."""
