"""How far an accuracy can be off, given how many strings it was measured on; and a mean, given how many runs."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

QUANTILE = 1.959963984540054
"""Below it lie 97.5 % of the standard normal distribution."""

ROUNDING = 1e-12
"""Values whose mean is known better than this, relative to it, differ by rounding alone: 0.4 - 0.3 and 0.3 - 0.2 do.

Differences of scores, which are 1 at most, are rounding alone below it.
"""


def wilson_interval(num_correct: int, num_strings: int) -> tuple[float, float]:
    """Wilson's 95 % score interval for a proportion: the p with |num_correct/n - p| <= z sqrt(p (1-p) / n).

    Raises:
        ValueError: there is no string, or there are more correct ones than strings.

    Example:
        >>> low, high = wilson_interval(256, 256)
        >>> f"{low:.4f} {high:.4f}"
        '0.9852 1.0000'

    Source: Newcombe, Two-sided confidence intervals for the single proportion, 1998, method 3; SciPy's `binomtest`
    has the same numbers, but importing it takes longer than most commands.
    """
    if not 0 <= num_correct <= num_strings or num_strings == 0:
        raise ValueError(
            f"num_correct: expected 0 to num_strings, of which there is at least 1, got {num_correct} of {num_strings};"
            " count both on the same strings"
        )
    share, square = num_correct / num_strings, QUANTILE**2
    denominator = 2 * (num_strings + square)
    center = (2 * num_strings * share + square) / denominator
    half = QUANTILE / denominator * math.sqrt(4 * num_strings * share * (1 - share) + square)
    low = 0.0 if num_correct == 0 else center - half
    return low, 1.0 if num_correct == num_strings else center + half


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Student's 95 % interval for the mean that 2 values or more were drawn around; NaN for fewer, or infinite ones.

    Example:
        >>> low, high = mean_interval([0.7, 0.8, 0.9])
        >>> f"{low:.3f} {high:.3f}"
        '0.552 1.048'
    """
    if not _have_spread(values):
        return math.nan, math.nan
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def _have_spread(values: Sequence[float]) -> bool:
    """Whether there are two or more, all finite: a model that was measured at no length that counts has a NaN."""
    return len(values) > 1 and all(map(math.isfinite, values))


def correlation_interval(value: float, num_pairs: int) -> tuple[float, float]:
    """Fisher's 95 % interval for Pearson's correlation, by z = artanh(r), of 4 pairs or more; NaN for fewer.

    Example:
        >>> low, high = correlation_interval(0.5, 12)
        >>> f"{low:.3f} {high:.3f}"
        '-0.104 0.834'
    """
    if num_pairs < 4 or not abs(value) < 1:
        return math.nan, math.nan
    half = QUANTILE / math.sqrt(num_pairs - 3)
    return math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half)


def accuracy_interval(accuracies: Sequence[float], num_strings: int) -> tuple[float, float]:
    """A 95 % interval for the accuracy that 2 nets or more have on average, all measured on the same strings.

    Seeds and strings are drawn independently, so that on each side the distance of Student's limit over nets and that
    of Wilson's over strings add as squares do. NaN for fewer nets, or one that was not measured. Of nets that are all
    as accurate only Wilson's is left, which holds for these nets and other strings: they do not say how far apart
    others would be.

    Example:
        >>> low, high = accuracy_interval([0.7, 0.8, 0.9], num_strings=100)
        >>> f"{low:.3f} {high:.3f}"
        '0.536 1.000'
    """
    low, high = mean_interval(accuracies)
    if math.isnan(low):
        return low, high
    mean = fmean(accuracies)
    fewer, more = wilson_interval(round(mean * num_strings), num_strings)
    return max(0.0, mean - math.hypot(mean - low, mean - fewer)), min(1.0, mean + math.hypot(high - mean, more - mean))


def are_equal(values: Sequence[float]) -> bool:
    """Whether 2 values or more are the same up to rounding, so that they do not say how far apart others would be.

    Values that are not finite are not.

    Example:
        >>> are_equal([0.4 - 0.3, 0.3 - 0.2]), are_equal([0.1, 0.2])
        (True, False)
    """
    return _have_spread(values) and stdev(values) / math.sqrt(len(values)) <= ROUNDING * abs(fmean(values))


def without_rounding(gaps: Sequence[float]) -> list[float]:
    """Differences of scores, those that are rounding alone as 0: equal means of accuracies may differ in the last bit.

    Example:
        >>> without_rounding([1e-16, -0.25, 0.0])
        [0.0, -0.25, 0.0]
    """
    return [0.0 if abs(gap) < ROUNDING else gap for gap in gaps]


def difference_from_zero(values: Sequence[float]) -> float:
    """p of Student's two-sided test that the mean which 2 gaps or more were drawn around is 0; NaN for fewer.

    It is NaN, too, for gaps that are all the same, up to rounding, and not 0, as they do not say how far apart others
    would be; and where one is not finite. Gaps that are rounding alone count as 0.

    Example:
        >>> f"{difference_from_zero([1.0, 3.0]):.4f}", difference_from_zero([0.0, 0.0])
        ('0.2952', 1.0)
    """
    if not _have_spread(values):
        return math.nan
    values = without_rounding(values)
    mean, error = fmean(values), stdev(values) / math.sqrt(len(values))
    if are_equal(values):
        return 1.0 if mean == 0 else math.nan
    from scipy.special import stdtr

    return 2 * float(stdtr(len(values) - 1, -abs(mean) / error))


def holm(p_values: Sequence[float]) -> list[float]:
    """p corrected for the number of tests: the smallest of n times n, the next times n - 1, ..., never decreasing.

    Whoever calls those of at most 0.05 different from 0 is wrong about any of them with a probability of at most 5 %.
    NaN stays NaN, and is no test.

    Example:
        >>> holm([0.04, 0.01, math.nan, 0.03])
        [0.06, 0.03, nan, 0.06]

    Source: Holm, "A simple sequentially rejective multiple test procedure" (1979). Differs from the source: in nothing.
    """
    order = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    corrected, highest = [math.nan] * len(p_values), 0.0
    for rank, (p, index) in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p))
        corrected[index] = highest
    return corrected
