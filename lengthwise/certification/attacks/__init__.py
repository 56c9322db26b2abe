"""Search for strings that a model answers wrongly, family by family of strings."""
