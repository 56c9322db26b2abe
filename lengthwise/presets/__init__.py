"""Presets: recipes by name, each a file with its source, its training settings and its settings of models."""

from typing import TYPE_CHECKING

from lengthwise.registry import lazy_names

__all__ = ["PRESETS", "Preset"]

if TYPE_CHECKING:
    from lengthwise.presets.base import PRESETS as PRESETS
    from lengthwise.presets.base import Preset as Preset

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "lengthwise.presets.base"))
