"""Constructions: finite machines, and words repeated indefinitely, as the weights of ordinary models.

Names are imported when they are first asked for: words are memorized without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["CONSTRUCTIONS", "Construction", "construct"]

if TYPE_CHECKING:
    from lengthwise.constructions.base import CONSTRUCTIONS as CONSTRUCTIONS
    from lengthwise.constructions.base import Construction as Construction
    from lengthwise.constructions.base import construct as construct


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("lengthwise.constructions.base"), name)
