"""How far an accuracy can be off, given how many strings it was measured on; and a mean, given how many runs."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's 0.975 quantiles for 1, 2, ... degrees of freedom."""


def wilson_interval(num_correct: int, num_strings: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval for a proportion; at `z` standard deviations (default: 95 %).

    Example:
        >>> low, high = wilson_interval(256, 256)
        >>> f"{low:.4f} {high:.4f}"
        '0.9852 1.0000'
    """
    share, spread = num_correct / num_strings, z * z / num_strings
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / num_strings + spread / (4 * num_strings)) / (1 + spread)
    low = 0.0 if num_correct == 0 else max(0.0, centre - half)
    high = 1.0 if num_correct == num_strings else min(1.0, centre + half)
    return low, high


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Student's 95 % interval for the mean that 2 to 10 values were drawn around; NaN for fewer.

    Example:
        >>> low, high = mean_interval([0.7, 0.8, 0.9])
        >>> f"{low:.3f} {high:.3f}"
        '0.552 1.048'
    """
    if len(values) < 2:
        return math.nan, math.nan
    if len(values) - 1 > len(T_QUANTILES):
        raise ValueError(f"values: expected at most {len(T_QUANTILES) + 1}, got {len(values)}; take wilson_interval")
    half = T_QUANTILES[len(values) - 2] * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def accuracy_interval(accuracies: Sequence[float], num_strings: int) -> tuple[float, float]:
    """A 95 % interval for the accuracy that 2 to 10 nets have on average, all measured on the same strings.

    Seeds and strings are drawn independently, so that Student's half-width over nets and Wilson's for the strings add
    as squares do. NaN for fewer nets.

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
