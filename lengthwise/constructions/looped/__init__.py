"""Looped transformers with explicit weights: the theorems of Xu and Sato (2024), computed exactly."""

from lengthwise.constructions.looped.approximation import (
    LoopedApproximation,
    error_bound,
    looped_approximation,
    timed_approximation,
)
from lengthwise.constructions.looped.bits import bit_sum, stepwise_memory
from lengthwise.constructions.looped.context import contextual_mapping, extended_contextual_mapping
from lengthwise.constructions.looped.memory import timed_memory
from lengthwise.constructions.looped.network import LoopedNetwork, Sizes, evaluate, evaluate_exactly, sizes_of
from lengthwise.constructions.looped.quantizer import quantizer

__all__ = [
    "LoopedApproximation",
    "LoopedNetwork",
    "Sizes",
    "bit_sum",
    "contextual_mapping",
    "error_bound",
    "evaluate",
    "evaluate_exactly",
    "extended_contextual_mapping",
    "looped_approximation",
    "quantizer",
    "sizes_of",
    "stepwise_memory",
    "timed_approximation",
    "timed_memory",
]
