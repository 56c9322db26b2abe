"""Presets: recipes by name, one file each, with their source, training settings and model settings."""

from typing import TYPE_CHECKING

from lengthwise.registry import lazy_names

__all__ = ["PRESETS", "Preset"]

if TYPE_CHECKING:
    from lengthwise.presets.base import PRESETS as PRESETS
    from lengthwise.presets.base import Preset as Preset

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "lengthwise.presets.base"))
