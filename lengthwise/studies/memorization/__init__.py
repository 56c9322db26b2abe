"""Memorizing words with linear RNNs (2023), a note."""
