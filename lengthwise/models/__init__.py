"""Models: they map strings of symbols or vectors to logits."""

from typing import TYPE_CHECKING

from lengthwise.registry import lazy_names

__all__ = ["MODELS", "RecurrentModel", "SequenceModel", "make_model"]

if TYPE_CHECKING:
    from lengthwise.models.base import MODELS as MODELS
    from lengthwise.models.base import RecurrentModel as RecurrentModel
    from lengthwise.models.base import SequenceModel as SequenceModel
    from lengthwise.models.base import make_model as make_model

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "lengthwise.models.base"))
