"""Regular languages and finite-state transductions."""
