"""Step 1 of `looped_approximation`: maps numbers in [0, 1] to their interval's index, one threshold in each loop."""

from collections.abc import Sequence

from lengthwise.constructions.looped.forms import CLOCK, Form, Unit, assemble, step
from lengthwise.constructions.looped.network import LoopedNetwork
from lengthwise.validation import check_sizes, whole_number

SHARPNESS = 1 << 10
"""The default sharpness: the width of an interval divided by the width of the ramp from one result to the next."""

MAX_BINS, MAX_TOKEN_DIM = 1 << 18, 1_000
"""The largest numbers of intervals and of coordinates. Each interval needs a loop, and each coordinate needs two rows
of a dense matrix."""


def quantizer(num_bins: int, token_dim: int = 1, sharpness: int = SHARPNESS) -> LoopedNetwork:
    """Return a network that finds intervals: x in [k delta, (k + 1) delta - gap] becomes k; 1 is in the last interval.

    Here delta = 1 / num_bins and gap = delta / sharpness. In the gap below a threshold, the result is between k and
    k + 1. Loop t adds a step at the threshold 1 - t delta. The last of the num_bins - 1 loops has threshold delta. For
    each of d inputs, the network has two coordinates and two units. With the clock, the state dimension is 2 d + 1, and
    the width is 2 d.

    Raises:
        ValueError: there are fewer than 2 or more than 2^18 intervals, no inputs or more than 1,000, or the sharpness
            is below 1.

    Example:
        >>> from lengthwise.constructions.looped import sizes_of
        >>> sizes_of(quantizer(num_bins=8, token_dim=3))._asdict()
        {'state_dim': 7, 'num_heads': 0, 'head_dim': 0, 'width': 6, 'num_loops': 7, 'num_weights': 97}

    Source: Xu and Sato (2024), Lemma A.4.
    Differs from the source: the source adds rectangular functions (Proposition A.1), which take four units each. Here,
        thresholds are counted, which takes two units each. Thresholds descend, so that every loop after the last
        threshold adds 1 to all results, also to the result of input 1.
    """
    check_grid(num_bins, token_dim)
    inputs = [f"x{i}" for i in range(token_dim)]
    starts, units = quantizer_parts(num_bins, inputs, sharpness)
    outputs = [Form.coordinate(f"bin_{name}") for name in inputs]
    return assemble(inputs=inputs, starts=starts, units=units, outputs=outputs, num_loops=num_bins - 1)


def quantizer_parts(num_bins: int, inputs: Sequence[str], sharpness: int) -> tuple[dict[str, Form], list[Unit]]:
    """Return the coordinates and the units that compute the result of `quantizer` for each input.

    Let k be the index of the interval of input x. At the beginning of loop t >= num_bins, coordinate `bin_x` is
    k + t - num_bins.
    """
    check_sizes(sharpness=sharpness)  # a gap is delta / sharpness wide
    starts: dict[str, Form] = {}
    units: list[Unit] = []
    for name in inputs:
        starts |= {name: Form.coordinate(name), f"bin_{name}": Form({})}
        above_threshold = num_bins * Form.coordinate(name) + CLOCK - num_bins
        units += step(sharpness * above_threshold, {f"bin_{name}": 1})
    return starts, units


def check_grid(num_bins: int, token_dim: int) -> None:
    """Raise a ValueError unless the numbers of intervals and coordinates are whole and within their limits."""
    whole_number("num_bins", num_bins, 2, MAX_BINS)  # a single interval distinguishes nothing
    whole_number("token_dim", token_dim, 1, MAX_TOKEN_DIM)
