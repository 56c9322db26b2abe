"""The accuracy of a model at each length, under named protocols."""
