"""Modules that torch puts around others, or uses instead of them: what they hold, and how to get it."""

from torch import nn
from torch.nn.utils import parametrize

INNER = ("_orig_mod", "module")
"""Attributes that hold the module within, of `torch.compile` and of parallel and averaged ones."""


def way_to_bare(name: str, part: object) -> str:
    """Return how a user gets the plain module that `name`, a variable, holds; an empty string if it is plain."""
    if not isinstance(part, nn.Module):
        return ""
    inner = next((attribute for attribute in INNER if isinstance(getattr(part, attribute, None), nn.Module)), None)
    # A net of a user's may have an attribute of such a name, and is no container of torch for that.
    if inner is not None and type(part).__module__.startswith("torch."):
        return f"give {name}.{inner}"
    if parametrize.is_parametrized(part):
        weights = list(part.parametrizations)  # type: ignore[arg-type]
        return f"call torch.nn.utils.parametrize.remove_parametrizations({name}, {weights[0]!r})"
    return ""


def check_bare(name: str, part: object) -> None:
    """Raise a ValueError for a module around another one: a certificate names a net by its parts."""
    way_out = way_to_bare(name, part)
    if way_out.startswith("give"):
        raise ValueError(f"{name}: expected a module itself, got one inside of {type(part).__name__}; {way_out}")


def first_line(problem: BaseException) -> str:
    """What a library raised, as a clause of a sentence."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return f"{type(problem).__name__}: {lines[0][:200]}" if lines else type(problem).__name__
