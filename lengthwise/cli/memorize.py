"""The command `memorize`: parsing only, as `lengthwise.cli`, which would be too long with it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter


def _count(kind: Any, tokens: Sequence[Any]) -> int:
    """A whole number of at least 1."""
    text = tokens[0].value
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{tokens[0].keyword}: expected a whole number of at least 1, got {text}")
    return int(text)


def memorize(
    word: Annotated[str, Parameter(allow_leading_hyphen=True, help="What is to be repeated indefinitely.")],
    /,
    *,
    rational: Annotated[bool, Parameter(negative=(), help="W_h of rational numbers (integers, in fact).")] = False,
    robust: Annotated[bool, Parameter(negative=(), help="The widest margin of all nets of that dimension.")] = False,
    prove: Annotated[bool, Parameter(negative=(), help="Prove that no smaller dimension will do.")] = False,
    max_dimension: Annotated[
        int | None, Parameter(converter=_count, help="No more dimensions than these; more than needed widen margins.")
    ] = None,
    budget: Annotated[int, Parameter(converter=_count, help="Linear programs, after which bounds are given.")] = 3_000,
    out: Annotated[Path, Parameter(help="The picture, PNG or SVG.")] = Path("memorize.png"),
) -> int:
    """Write down the smallest linear RNN that repeats a word indefinitely, and draw its orbit.

    It has W_x = 0, and no smaller one has, not even with a W_h of another order than the word's period; prove verifies
    that without trust in the linear programs.
    """
    from rich.console import Console

    from lengthwise.constructions.memorization.farkas import refute_below
    from lengthwise.constructions.memorization.memorize import memorize as memorize_word
    from lengthwise.constructions.memorization.rational import memorize_rationally
    from lengthwise.report.charts.memorization import memorization_chart
    from lengthwise.report.charts.pictures import check_picture, write_picture
    from lengthwise.report.tables.memorization import memorization_lines, proof_line

    check_picture(out)
    if rational and robust:
        raise ValueError("--robust: expected none next to --rational, whose integers are never rounded; leave one out")
    if rational:
        found: Any = memorize_rationally(word, max_dimension=max_dimension, budget=budget)
    else:
        found = memorize_word(word, robust=robust, max_dimension=max_dimension, budget=budget)
    console = Console()
    lines = [*memorization_lines(found, console.width)]
    if prove:
        lines.append(proof_line(refute_below(found), found))
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    if found.generator.dimension and write_picture(memorization_chart(found).to_dict(), out):
        console.print(f"wrote {out}", highlight=False, soft_wrap=True, markup=False)
    return 0
