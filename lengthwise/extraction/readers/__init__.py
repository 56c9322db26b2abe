"""Readers, one file a kind of model."""
