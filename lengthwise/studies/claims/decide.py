"""The rules by which numbers decide a claim."""

import math
from collections.abc import Sequence

from lengthwise.report.tables.differences import LEVEL
from lengthwise.studies.claims.claim import Verdict

FITS = 0.99
"""The smallest accuracy at the training length with which a net counts as having learned its task there."""

MIN_RUNS = 4
"""The smallest number of runs of each column with which the ranges of the runs can decide a claim."""


def entry_verdict(
    ours: float, limits: tuple[float, float], *, smaller: bool, fails: bool = False, fit: float | None = None
) -> Verdict:
    """Return the verdict on a score; higher scores are better.

    `limits` is a result of `printed_range`, and `fit` is the score at the training length. `smaller` is True if our
    nets are smaller than the paper's nets. If `fails` is True, the paper reports that the net fails, and a low score
    reproduces the claim.

    Example:
        >>> from lengthwise.report.tables.printed import printed_range
        >>> entry_verdict(0.9879, printed_range("100.0 / 89.3"), smaller=True)
        'reproduced'
        >>> entry_verdict(0.7, printed_range("100.0 / 89.3"), smaller=True)
        'not decided'
        >>> entry_verdict(0.2, printed_range("0.27"), smaller=True, fails=True, fit=0.21)
        'not decided'
    """
    low, high = limits
    outside: Verdict = "not decided" if smaller else "contradicted"
    if not fails:
        return "reproduced" if ours >= low else outside
    if ours > high:
        return outside
    fitted = not smaller if fit is None else fit >= FITS
    return "reproduced" if fitted else "not decided"


def effect_verdict(difference: float, corrected: float, *, sign: int, smaller: bool) -> Verdict:
    """Return the verdict on a difference; `corrected` is its corrected p-value, and `sign` is its sign in the paper."""
    if math.isnan(corrected) or corrected > LEVEL:
        return "not decided"
    if difference * sign > 0:
        return "reproduced"
    return "not decided" if smaller else "contradicted"


def contrast_verdict(higher: Sequence[float], lower: Sequence[float], *, chance: float, smaller: bool) -> Verdict:
    """Return the verdict on the runs of two columns; the paper reports that the first is higher.

    If the ranges of the two columns do not overlap, and the higher range is above chance, the claim is decided. But if
    our nets are smaller than the paper's nets (`smaller`), they cannot contradict the claim.

    With fewer than `MIN_RUNS` runs in a column, nothing is decided. If two columns are equally good, their ranges are
    disjoint in a third of all cases with two runs each, and in one of 35 cases with four runs each.
    """
    if min(len(higher), len(lower)) < MIN_RUNS:
        return "not decided"
    if min(higher) > max(lower) and min(higher) > chance:
        return "reproduced"
    if max(higher) < min(lower) and min(lower) > chance:
        return "not decided" if smaller else "contradicted"
    return "not decided"
