"""Linear RNNs that repeat a word for ever: constructions, the smallest dimension, proofs, and how long they last."""
