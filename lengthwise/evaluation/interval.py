"""How far an accuracy can be off, given how many strings it was measured on; and a mean, given how many runs."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, stdev


@lru_cache(maxsize=4096)  # SciPy takes a millisecond, and most points of a curve are alike
def wilson_interval(num_correct: int, num_strings: int) -> tuple[float, float]:
    """Wilson's 95 % score interval for a proportion.

    Example:
        >>> low, high = wilson_interval(256, 256)
        >>> f"{low:.4f} {high:.4f}"
        '0.9852 1.0000'
    """
    from scipy.stats import binomtest  # here, as importing it takes longer than a command that needs none

    interval = binomtest(num_correct, num_strings).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Student's 95 % interval for the mean that 2 values or more were drawn around; NaN for fewer.

    Example:
        >>> low, high = mean_interval([0.7, 0.8, 0.9])
        >>> f"{low:.3f} {high:.3f}"
        '0.552 1.048'
    """
    if len(values) < 2:
        return math.nan, math.nan
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def accuracy_interval(accuracies: Sequence[float], num_strings: int) -> tuple[float, float]:
    """A 95 % interval for the accuracy that 2 nets or more have on average, all measured on the same strings.

    Seeds and strings are drawn independently, so that the radius of Student's interval over nets and that of Wilson's
    over strings add as squares do. NaN for fewer nets.

    Example:
        >>> low, high = accuracy_interval([0.7, 0.8, 0.9], num_strings=100)
        >>> f"{low:.3f} {high:.3f}"
        '0.540 1.000'
    """
    low, high = mean_interval(accuracies)
    if math.isnan(low):
        return low, high
    mean = fmean(accuracies)
    fewer, more = wilson_interval(round(mean * num_strings), num_strings)
    half = math.hypot((high - low) / 2, (more - fewer) / 2)
    return max(0.0, mean - half), min(1.0, mean + half)
