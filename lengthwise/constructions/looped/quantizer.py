"""Step 1: maps numbers in [0, 1] to the index of their interval, one threshold in each loop."""

from collections.abc import Sequence

from lengthwise.constructions.looped.forms import CLOCK, Form, Unit, assemble, step
from lengthwise.constructions.looped.network import LoopedNetwork
from lengthwise.validation import check_kind

SHARPNESS = 1 << 10
"""The default sharpness: the width of an interval, relative to the width of the ramp from one result to the next."""

MAX_BINS, MAX_TOKEN_DIM = 1 << 18, 1_000
"""The largest numbers of intervals and of coordinates. An interval takes a loop, and a coordinate takes two rows of a
dense matrix."""


def quantizer(num_bins: int, token_dim: int = 1, sharpness: int = SHARPNESS) -> LoopedNetwork:
    """Return a network that finds intervals: x in [k delta, (k + 1) delta - gap] becomes k; 1 is in the last interval.

    With delta = 1 / num_bins and gap = delta / sharpness, the result is between k and k + 1 in the gap below a
    threshold. Loop t adds a step at the threshold 1 - t delta. The last threshold, after num_bins - 1 loops, is delta.
    The network has two coordinates and two units for each input, and the clock: state 2 d + 1 and width 2 d for d
    inputs.

    Raises:
        ValueError: there are fewer than 2 or more than 2^18 intervals, no inputs or more than 1,000, or the sharpness
            is below 1.

    Example:
        >>> from lengthwise.constructions.looped import sizes_of
        >>> sizes_of(quantizer(num_bins=8, token_dim=3))._asdict()
        {'state_dim': 7, 'num_heads': 0, 'head_dim': 0, 'width': 6, 'num_loops': 7, 'num_weights': 97}

    Source: Xu and Sato (2024), Lemma A.4.
    Differs from the source: the source adds rectangular functions (Proposition A.1), which take four units each.
        Counting thresholds takes two. Thresholds descend, so that every loop after the last adds 1 to all coordinates,
        including an input of 1.
    """
    check_grid(num_bins, token_dim)
    inputs = [f"x{i}" for i in range(token_dim)]
    starts, units = quantizer_parts(num_bins, inputs, sharpness)
    outputs = [Form.coordinate(f"bin_{name}") for name in inputs]
    return assemble(inputs=inputs, starts=starts, units=units, outputs=outputs, num_loops=num_bins - 1)


def quantizer_parts(num_bins: int, inputs: Sequence[str], sharpness: int) -> tuple[dict[str, Form], list[Unit]]:
    """Return coordinates and units; when loop t >= num_bins begins, `bin_x` is x's interval + t - num_bins."""
    check_kind("sharpness", sharpness, int, "a whole number")
    if sharpness < 1:
        raise ValueError(f"sharpness: expected at least 1, got {sharpness}; a gap is delta / sharpness wide")
    starts: dict[str, Form] = {}
    units: list[Unit] = []
    for name in inputs:
        starts |= {name: Form.coordinate(name), f"bin_{name}": Form({})}
        above_threshold = num_bins * Form.coordinate(name) + CLOCK - num_bins
        units += step(sharpness * above_threshold, {f"bin_{name}": 1})
    return starts, units


def check_grid(num_bins: int, token_dim: int) -> None:
    """Raise a ValueError unless the numbers of intervals and coordinates are whole and within their limits."""
    check_kind("num_bins", num_bins, int, "a whole number")
    check_kind("token_dim", token_dim, int, "a whole number")
    if num_bins < 2:
        raise ValueError(
            f"num_bins: expected at least 2 intervals, got {num_bins}; a single interval distinguishes nothing"
        )
    if num_bins > MAX_BINS:
        raise ValueError(
            f"num_bins: expected at most {MAX_BINS:,} intervals, got {num_bins:,}; each interval takes a loop"
        )
    if not 1 <= token_dim <= MAX_TOKEN_DIM:
        raise ValueError(f"token_dim: expected tokens of 1 to {MAX_TOKEN_DIM:,} numbers, got {token_dim:,}")
