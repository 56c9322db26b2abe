"""Analyses of trained models as plain data: states, receptive fields of answers, continuity, and the cost of depth."""
