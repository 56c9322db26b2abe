"""Models: tokens in, logits out, at any length."""

from lengthwise.models.base import MODELS, Perturbation, SequenceModel, make_model

__all__ = ["MODELS", "Perturbation", "SequenceModel", "make_model"]
