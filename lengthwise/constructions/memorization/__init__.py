"""Linear RNNs that repeat a word indefinitely: closed forms, the smallest dimension, proofs, lifetimes."""
