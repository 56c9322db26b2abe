"""Experiments: functions that return complete, typed runs and how they are measured."""

from typing import TYPE_CHECKING

from lengthwise.registry import lazy_names

__all__ = ["EXPERIMENTS", "Experiment", "Scale"]

if TYPE_CHECKING:
    from lengthwise.experiments.base import EXPERIMENTS as EXPERIMENTS
    from lengthwise.experiments.base import Experiment as Experiment
    from lengthwise.experiments.base import Scale as Scale

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "lengthwise.experiments.base"))
