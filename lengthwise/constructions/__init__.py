"""Constructions: ordinary models whose weights compute a finite machine or repeat a word, without training."""

from typing import TYPE_CHECKING

from lengthwise.registry import lazy_names

__all__ = ["CONSTRUCTIONS", "Construction", "construct"]

if TYPE_CHECKING:
    from lengthwise.constructions.base import CONSTRUCTIONS as CONSTRUCTIONS
    from lengthwise.constructions.base import Construction as Construction
    from lengthwise.constructions.base import construct as construct

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "lengthwise.constructions.base"))
