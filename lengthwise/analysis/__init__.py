"""Analyses of trained models as plain data: states, what answers depend on, and what depth costs. Nothing is drawn."""
