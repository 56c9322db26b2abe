"""Readers of models: one file for each kind of model."""
