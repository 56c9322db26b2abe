"""Modules that torch uses to wrap or replace other modules, and hints on how to get the plain module."""

from torch import nn
from torch.nn.utils import parametrize

from lengthwise.validation import type_in_words

INNER = ("_orig_mod", "module")
"""The attributes that contain the inner module: the first in results of `torch.compile`, the second in parallel or
averaged modules."""


def unwrap_hint(name: str, part: object) -> str:
    """Return a hint on how to get the plain module from `part`, or "" if torch neither wrapped nor parametrized it.

    `name` is the variable that contains `part`.
    """
    if not isinstance(part, nn.Module):
        return ""
    inner = next((attribute for attribute in INNER if isinstance(getattr(part, attribute, None), nn.Module)), None)
    # A plain net of a user may also have an attribute of this name, so the class must be torch's.
    if inner is not None and type(part).__module__.startswith("torch."):
        return f"give {name}.{inner}"
    if parametrize.is_parametrized(part):
        weights = list(part.parametrizations)  # type: ignore[arg-type]
        return f"call torch.nn.utils.parametrize.remove_parametrizations({name}, {weights[0]!r})"
    return ""


def check_bare(name: str, part: object) -> None:
    """Raise a ValueError if torch wrapped `part` around another module.

    A certificate identifies a net by the classes of its parts, and a wrapper would hide the class of the inner module.
    """
    way_out = unwrap_hint(name, part)
    if way_out.startswith("give"):
        raise ValueError(f"{name}: expected the plain module, got {type_in_words(part)} around it; {way_out}")


def first_line(problem: BaseException) -> str:
    """Return the type and the first line of a library's exception, as a clause of a sentence."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return f"{type(problem).__name__}: {lines[0][:200]}" if lines else type(problem).__name__
