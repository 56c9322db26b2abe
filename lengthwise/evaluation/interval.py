"""How far an accuracy can be off, given how many strings it was measured on."""

import math


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
