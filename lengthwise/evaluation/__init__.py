"""How right a model is, length by length, under named protocols."""
