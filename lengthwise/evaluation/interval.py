"""Confidence intervals: for accuracies on a number of strings, and for means over runs."""

import math
from collections.abc import Collection, Sequence
from numbers import Integral, Real
from statistics import fmean, stdev

from lengthwise.validation import check_kind, truncate

QUANTILE = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

ROUNDING = 1e-12
"""Differences below this bound count as rounding errors, for example the difference between 0.4 - 0.3 and 0.3 - 0.2.

The bound applies to the standard error of values relative to their mean, and to differences of scores, which are at
most 1.
"""


def wilson_interval(num_correct: int, num_strings: int) -> tuple[float, float]:
    """Return Wilson's 95 % score interval for a proportion: the p with |num_correct/n - p| <= z sqrt(p (1-p) / n).

    Here n is `num_strings`, and z is `QUANTILE`.

    Raises:
        ValueError: `num_strings` is 0, or `num_correct` is not in 0 ... `num_strings`.

    Example:
        >>> low, high = wilson_interval(256, 256)
        >>> f"{low:.4f} {high:.4f}"
        '0.9852 1.0000'

    Source: Newcombe, Two-sided confidence intervals for the single proportion, 1998, method 3. SciPy's `binomtest`
        returns the same numbers, but its import takes longer than most commands.
    """
    _check_counts(num_correct, num_strings, "num_correct", 1)
    share, square = num_correct / num_strings, QUANTILE**2
    denominator = 2 * (num_strings + square)
    center = (2 * num_strings * share + square) / denominator
    half = QUANTILE / denominator * math.sqrt(4 * num_strings * share * (1 - share) + square)
    # At the two ends the formula gives exactly 0 and 1, which rounding would miss.
    low = 0.0 if num_correct == 0 else center - half
    return low, 1.0 if num_correct == num_strings else center + half


def error_bound(num_wrong: int, num_strings: int) -> float:
    """Return the upper bound on an error rate at 95 % confidence: the p with P(Binomial(n, p) <= num_wrong) = 0.05.

    Here n is `num_strings`.

    Raises:
        ValueError: `num_wrong` is not in 0 ... `num_strings`.

    Example: without an error, the bound is about 3 / n (the rule of three).
        >>> [round(error_bound(0, count), 3) for count in (1, 10, 100)]
        [0.95, 0.259, 0.03]

    Source: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial"
        (1934).
    Differs from the source: the bound is one-sided.
    """
    _check_counts(num_wrong, num_strings, "num_wrong", 0)
    if num_wrong == num_strings:
        return 1.0
    from scipy.special import bdtri  # only here: the import is slow

    return float(bdtri(num_wrong, num_strings, 0.05))


def _check_counts(count: object, num_strings: object, argument: str, fewest: int) -> None:
    """Raise a ValueError unless both arguments are whole numbers, in order, and there are at least `fewest` strings."""
    for name, value in ((argument, count), ("num_strings", num_strings)):
        check_kind(name, value, Integral, "a whole number")
    if not 0 <= count <= num_strings or num_strings < fewest:  # type: ignore[operator]  # checked above
        raise ValueError(
            f"{argument}: expected a count from 0 to num_strings, which must be at least {fewest}, got {count} of "
            f"{num_strings}; count both on the same strings"
        )


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return Student's 95 % interval for the mean of at least 2 finite values, and NaN for any other values.

    Example:
        >>> low, high = mean_interval([0.7, 0.8, 0.9])
        >>> f"{low:.3f} {high:.3f}"
        '0.552 1.048'
    """
    if not _have_spread(values):
        return math.nan, math.nan
    from scipy.special import stdtrit  # only here: the import is slow, and most commands need no such interval

    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def _have_spread(values: Sequence[float]) -> bool:
    """Return whether there are two or more values, all finite; a value is NaN if no length of a model was measured."""
    check_numbers("values", values)
    return len(values) > 1 and all(map(math.isfinite, values))


def check_numbers(argument: str, values: object) -> None:
    """Raise a ValueError unless an argument consists of real numbers; NaN is also a number."""
    if not isinstance(values, Collection) or not all(isinstance(value, Real) for value in values):
        raise ValueError(f"{argument}: expected numbers, got {truncate(repr(values))}; give a list of them")


def _check_probabilities(argument: str, values: Sequence[float]) -> None:
    """Raise a ValueError unless an argument consists of numbers in [0, 1] or NaN."""
    check_numbers(argument, values)
    for value in values:
        if not (math.isnan(value) or 0 <= value <= 1):
            raise ValueError(f"{argument}: expected numbers in [0, 1] or NaN, got {value}; give probabilities")


def correlation_interval(value: float, num_pairs: int) -> tuple[float, float]:
    """Return Fisher's 95 % interval for Pearson's correlation r of at least 4 pairs, by z = artanh(r).

    The result is NaN for fewer pairs, and if r is -1, 1 or NaN.

    Raises:
        ValueError: r is outside [-1, 1] by more than a rounding error.

    Example:
        >>> low, high = correlation_interval(0.5, 12)
        >>> f"{low:.3f} {high:.3f}"
        '-0.104 0.834'
    """
    check_kind("value", value, Real, "a correlation")
    check_kind("num_pairs", num_pairs, Integral, "a whole number")
    if abs(value) > 1 + ROUNDING:
        raise ValueError(f"value: expected a correlation from -1 to 1, got {value}; compute it from the pairs")
    if num_pairs < 4 or not abs(value) < 1:
        return math.nan, math.nan
    half = QUANTILE / math.sqrt(num_pairs - 3)
    return math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half)


def accuracy_interval(accuracies: Sequence[float], num_strings: int) -> tuple[float, float]:
    """Return a 95 % interval for the mean accuracy of at least 2 nets, which are measured on the same strings.

    Seeds and strings are independent, so their variances add up. Student's interval measures the variation between
    nets, and Wilson's interval the variation between strings. Let a and b be the distances of the two intervals' lower
    ends from the mean. The lower end of the result is sqrt(a^2 + b^2) below the mean, and the upper end is computed
    alike. The result is NaN for fewer nets, or if a net was not measured. If all nets have the same accuracy, only
    Wilson's interval remains. The result then describes only these nets, on other strings, because equal nets do not
    show how much other nets would differ.

    Raises:
        ValueError: a finite accuracy is not in [0, 1], or all accuracies are finite, but there are no strings.

    Example:
        >>> low, high = accuracy_interval([0.7, 0.8, 0.9], num_strings=100)
        >>> f"{low:.3f} {high:.3f}"
        '0.536 1.000'
    """
    check_numbers("accuracies", accuracies)
    _check_probabilities("accuracies", [value for value in accuracies if math.isfinite(value)])
    low, high = mean_interval(accuracies)
    if math.isnan(low):
        return low, high
    mean = fmean(accuracies)
    bottom, top = wilson_interval(round(mean * num_strings), num_strings)
    return max(0.0, mean - math.hypot(mean - low, mean - bottom)), min(1.0, mean + math.hypot(high - mean, top - mean))


def are_equal(values: Sequence[float]) -> bool:
    """Return whether there are at least 2 values, all finite and equal up to rounding.

    Example:
        >>> are_equal([0.4 - 0.3, 0.3 - 0.2]), are_equal([0.1, 0.2])
        (True, False)
    """
    return _have_spread(values) and stdev(values) / math.sqrt(len(values)) <= ROUNDING * abs(fmean(values))


def without_rounding(gaps: Sequence[float]) -> list[float]:
    """Return differences of scores, with 0 for differences that only rounding causes.

    After rounding, two means of accuracies may differ in the last bit, although the exact means are equal.

    Example:
        >>> without_rounding([1e-16, -0.25, 0.0])
        [0.0, -0.25, 0.0]
    """
    return [0.0 if abs(gap) < ROUNDING else gap for gap in gaps]


def difference_from_zero(values: Sequence[float]) -> float:
    """Return the p-value of Student's two-sided test that the mean of at least 2 differences is 0; NaN for fewer.

    The result is also NaN if a difference is not finite, or if all differences are equal up to rounding and not 0.
    Equal differences do not show how much other differences would vary. Differences that only rounding causes count as
    0.

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
    """Return p-values corrected for n tests: the smallest is multiplied by n, the next by n - 1, and so on.

    In this order, a corrected p-value is at least as large as the previous one, and at most 1. If all effects with a
    corrected p of at most 0.05 are called different from 0, the probability that any of these statements is wrong is at
    most 5 %. NaN stays NaN, and does not count as a test.

    Raises:
        ValueError: a number is neither NaN nor in [0, 1].

    Example:
        >>> holm([0.04, 0.01, math.nan, 0.03])
        [0.06, 0.03, nan, 0.06]

    Source: Holm, "A simple sequentially rejective multiple test procedure" (1979).
    Differs from the source: no difference.
    """
    _check_probabilities("p_values", p_values)
    order = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    corrected, highest = [math.nan] * len(p_values), 0.0
    for rank, (p, index) in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p))
        corrected[index] = highest
    return corrected
