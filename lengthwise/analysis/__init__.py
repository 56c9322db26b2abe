"""Analyses of trained models as plain data: clusters and drift of states, receptive fields of answers, continuity."""
