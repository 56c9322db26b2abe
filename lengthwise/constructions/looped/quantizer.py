"""Step 1: numbers in [0, 1] to the number of their interval, one threshold in every loop."""

from collections.abc import Sequence

from lengthwise.constructions.looped.forms import CLOCK, Form, Unit, assembled, step
from lengthwise.constructions.looped.network import LoopedNetwork

SHARPNESS = 1 << 10
"""A step from 0 to 1 takes a thousandth of an interval, unless told otherwise."""


def quantizer(num_bins: int, token_dim: int = 1, sharpness: int = SHARPNESS) -> LoopedNetwork:
    """The interval of every coordinate: x in [k delta, (k + 1) delta - gap] becomes k; 1 is in the last one.

    delta = 1 / num_bins and gap = delta / sharpness; in a gap below a threshold the result is between k and k + 1. Loop
    t adds a step at the threshold 1 - t delta, so that the last is delta, after num_bins - 1 loops. Two coordinates and
    two units for each input, and the clock.

    Raises:
        ValueError: fewer than 2 intervals, no input, or a sharpness below 1.

    Example:
        >>> from lengthwise.constructions.looped import sizes_of
        >>> sizes_of(quantizer(num_bins=8, token_dim=3))._asdict()
        {'state_dim': 7, 'num_heads': 0, 'head_dim': 0, 'width': 6, 'num_loops': 7, 'num_weights': 97}

    Source: Xu and Sato (2024), Lemma A.4.
    Differs from the source: which adds t times the indicator of interval t in loop t (as recalled, state 5 d and width
        7 d for d inputs); a count of thresholds takes state 2 d + 1 and width 2 d. Thresholds come from above, so that
        after the last loop every further one adds 1 to all coordinates alike, the input 1 included.
    """
    check_grid(num_bins, token_dim)
    inputs = [f"x{i}" for i in range(token_dim)]
    starts, units = quantising(num_bins, inputs, sharpness)
    outputs = [Form.of(f"bin_{name}") for name in inputs]
    return assembled(inputs=inputs, starts=starts, units=units, outputs=outputs, num_loops=num_bins - 1)


def quantising(num_bins: int, inputs: Sequence[str], sharpness: int) -> tuple[dict[str, Form], list[Unit]]:
    """Coordinates and units: at the beginning of loop t >= num_bins, `bin_x` is the interval of x plus t - num_bins."""
    if sharpness < 1:
        raise ValueError(f"sharpness: expected at least 1, got {sharpness}; a gap is delta / sharpness wide")
    starts: dict[str, Form] = {}
    units: list[Unit] = []
    for name in inputs:
        starts |= {name: Form.of(name), f"bin_{name}": Form({})}
        above_threshold = num_bins * Form.of(name) + CLOCK - num_bins
        units += step(sharpness * above_threshold, {f"bin_{name}": 1})
    return starts, units


def check_grid(num_bins: int, token_dim: int) -> None:
    """Raise a ValueError unless there are intervals and coordinates."""
    if num_bins < 2:
        raise ValueError(f"num_bins: expected at least 2 intervals, got {num_bins}; one tells nothing apart")
    if token_dim < 1:
        raise ValueError(f"token_dim: expected tokens of at least 1 number, got {token_dim}")
