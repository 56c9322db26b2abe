"""Modules that torch wraps around other modules, or puts into their place, and how a user gets the plain module."""

from torch import nn
from torch.nn.utils import parametrize

INNER = ("_orig_mod", "module")
"""Names of the attribute with the inner module, in results of `torch.compile` and in parallel or averaged modules."""


def unwrap_hint(name: str, part: object) -> str:
    """Return what a user must do to get the plain module from the variable `name`; empty if it is plain already."""
    if not isinstance(part, nn.Module):
        return ""
    inner = next((attribute for attribute in INNER if isinstance(getattr(part, attribute, None), nn.Module)), None)
    # A user's net may have an attribute of such a name and still be plain, so its class must be torch's.
    if inner is not None and type(part).__module__.startswith("torch."):
        return f"give {name}.{inner}"
    if parametrize.is_parametrized(part):
        weights = list(part.parametrizations)  # type: ignore[arg-type]
        return f"call torch.nn.utils.parametrize.remove_parametrizations({name}, {weights[0]!r})"
    return ""


def check_bare(name: str, part: object) -> None:
    """Raise a ValueError for a module around another one, because a certificate names a net by its parts."""
    way_out = unwrap_hint(name, part)
    if way_out.startswith("give"):
        raise ValueError(f"{name}: expected the plain module, got a {type(part).__name__} around it; {way_out}")


def first_line(problem: BaseException) -> str:
    """Return the type and first line of an exception of a library, as a clause of a sentence."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return f"{type(problem).__name__}: {lines[0][:200]}" if lines else type(problem).__name__
