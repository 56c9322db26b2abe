"""Experiments: functions that return complete, typed runs and how they are measured."""

from lengthwise.experiments.base import EXPERIMENTS, Experiment, Scale

__all__ = ["EXPERIMENTS", "Experiment", "Scale"]
