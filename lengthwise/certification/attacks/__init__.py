"""Search for strings that a model answers wrongly, in one family of strings after another."""
