"""Constructions: finite machines as the weights of ordinary models, exact at every length."""

from lengthwise.constructions.base import CONSTRUCTIONS, Construction, construct

__all__ = ["CONSTRUCTIONS", "Construction", "construct"]
