"""Models: tokens in, logits out, at any length."""

from lengthwise.models.base import MODELS, Perturbation, RecurrentModel, SequenceModel, make_model

__all__ = ["MODELS", "Perturbation", "RecurrentModel", "SequenceModel", "make_model"]
