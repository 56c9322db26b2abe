"""Approximation of functions on sequences: one looped block quantizes, finds contextual IDs, and looks values up."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64, Shaped
from torch import Tensor

from lengthwise.constructions.looped.bits import MAX_VALUES, make_walks, pass_values, round_to_steps
from lengthwise.constructions.looped.context import ATTENTION, NUMBER, Grid, reduction_unit, selection_units
from lengthwise.constructions.looped.forms import CLOCK, Form, Unit, assemble, impulse, pass_units
from lengthwise.constructions.looped.network import LoopedNetwork
from lengthwise.constructions.looped.quantizer import SHARPNESS, quantizer_parts
from lengthwise.validation import check_function

SequenceFunction = Callable[[Float[Tensor, "B T d"]], Float[Tensor, "B T Y"]]
"""A function on sequences of T tokens in [0, 1]^d that maps permuted tokens to permuted outputs."""

Modulus = Callable[[float], float]
"""A modulus of continuity: a function of a distance d that returns the largest difference of two outputs whose inputs
differ by at most d."""


class LoopedApproximation(NamedTuple):
    """A network that is constant on the cubes of a grid, except for gaps between them.

    The ID of a token is the number of its cell in the grid (`Grid`). All sequences in a cube have the same list of T
    token IDs. If no ID is in this list twice, the network's outputs differ by at most `tolerance` (in each dimension)
    from the function's outputs at the center of the cube.
    """

    network: LoopedNetwork
    grid: Grid
    tolerance: Shaped[np.ndarray, " Y"]


def looped_approximation(
    function: SequenceFunction, num_bins: int, num_tokens: int, token_dim: int = 1, sharpness: int = SHARPNESS
) -> LoopedApproximation:
    r"""Return a looped transformer that approximates a permutation-equivariant function on T tokens in [0, 1]^d.

    The function has to be continuous. Let n be `num_bins`, and let delta = 1 / n be the width of an interval. One block
    is applied at most n + T + 2 n^((T + 1) d) times. For outputs of d dimensions, the block has one head of size 1,
    state dimension 8 d + 4 and width 12 d + 10. These sizes depend on neither n nor T. The loops are:

    - loops 1 ... n - 1: `quantizer`; loop n writes each token's ID into the coordinates that the next loops read;
    - loops n + 1 ... n + T: `extended_contextual_mapping`, which computes each token's contextual ID;
    - then: `stepwise_memory` walks through the values of all IDs, and each token keeps the value of its own ID.

    If no token has an ID, the value of this ID is interpolated between the nearest used IDs. From one ID to the next, a
    carry can change many digits at once. Interpolation spreads this change over n steps. The error is at most

        (T d)^(1/p) (w_token(delta sqrt(d)) + w_contextual(delta sqrt(T d))) + w(delta sqrt(T d)) + O(delta^(d/p))

    in L^p. Here w, w_token and w_contextual are moduli of continuity. They bound the change of a token's output if,
    respectively, all tokens, only this token, or only the other tokens change. The last term comes from cubes with
    equal tokens (`error_bound`). The bound goes to 0 with delta. So in every L^p, looped transformers are dense in the
    continuous permutation-equivariant functions (Corollary 3.8).

    Raises:
        ValueError: there are fewer than 2 intervals, fewer than T different tokens, or more than 2^18 IDs. The
            sharpness is below 1. The function is not permutation-equivariant, not finite, or not of shape [B, T, Y].

    Example:
        >>> from lengthwise.constructions.looped import evaluate_exactly, sizes_of
        >>> def gap_to_others(x):
        ...     return x - x.mean(1, keepdim=True)
        >>> approximation = looped_approximation(gap_to_others, num_bins=4, num_tokens=2)
        >>> sizes_of(approximation.network)._asdict()
        {'state_dim': 12, 'num_heads': 1, 'head_dim': 1, 'width': 22, 'num_loops': 120, 'num_weights': 610}
        >>> [float(y) for y in evaluate_exactly(approximation.network, [[[0.9], [0.1]]]).flatten()]
        [0.375, -0.375]

    Source: Xu and Sato (2024), Theorem 3.7, Corollary 3.8, and the consolidation in Appendix A.2.
    Differs from the source: the network is smaller than state dimension 17 d + 9 and width 49 d + 25 (docs/looped.md
        cites these sizes), because idle sub-networks add nothing, and only the token IDs must be switched on at a
        certain time. A cube is represented by its center. IDs outside the range of used IDs are left out.
    """
    grid = checked_grid(num_bins, num_tokens, token_dim)
    ids, values = used_ids(function, grid)
    plan = round_to_steps(interpolate(ids, values))
    starts, units = _token_ids_in_context(grid, sharpness)
    walks, ready = make_walks(plan), num_bins + num_tokens
    kept, passing = pass_values(walks, CLOCK - ready - (NUMBER - int(ids[0])))
    for walk in walks:
        starts |= walk.starts(delay=ready)
        units += walk.units()
    network = assemble(
        inputs=_inputs(grid),
        starts=starts | kept,
        units=units + passing,
        outputs=plan.outputs(list(kept)),
        num_loops=ready + len(plan.levels) - 1,
        attention=ATTENTION,
    )
    return LoopedApproximation(network, grid, plan.size / 2)


def timed_approximation(
    function: SequenceFunction, num_bins: int, num_tokens: int, token_dim: int = 1, sharpness: int = SHARPNESS
) -> LoopedApproximation:
    """Return a network like `looped_approximation`, but with `timed_memory` as its third step.

    In a cube whose tokens are all different, the output at the center is exact. With delta, w and L^p as in
    `looped_approximation`, the error is at most w(delta sqrt(T d)) + O(delta^(d/p)). The bound does not contain w_token
    and w_contextual. The network has state dimension 3 d + 4 and width 2 d + 11. It has one more loop than the network
    of `looped_approximation`.

    Raises:
        ValueError: for the same reasons as `looped_approximation`.

    Example:
        >>> from lengthwise.constructions.looped import evaluate_exactly
        >>> approximation = timed_approximation(lambda x: x - x.mean(1, keepdim=True), num_bins=4, num_tokens=2)
        >>> [float(y) for y in evaluate_exactly(approximation.network, [[[0.9], [0.1]]]).flatten()]
        [0.375, -0.375]

    Source: Xu and Sato (2024), section 4.1 and Theorem 4.2.
    Differs from the source: the source does not combine the three steps into one network, and gives no number of loops.
    """
    grid = checked_grid(num_bins, num_tokens, token_dim)
    ids, values = used_ids(function, grid)
    starts, units = _token_ids_in_context(grid, sharpness)
    names, ready = [f"y{i}" for i in range(values.shape[1])], num_bins + num_tokens + 1
    remembered = interpolate(ids, values)
    # Factors of 0 keep the outputs at 0 until the IDs are complete.
    table = np.concatenate([np.full((ready - 1, len(names)), 0, dtype=object), remembered])
    network = assemble(
        inputs=_inputs(grid),
        starts=starts | {name: Form({}) for name in names},
        units=units + impulse(CLOCK - ready - (NUMBER - int(ids[0])), dict.fromkeys(names, 1)),
        outputs=[Form.coordinate(name) for name in names],
        num_loops=len(table),
        attention=ATTENTION,
        scales=dict(zip(names, table.T, strict=True)),
    )
    return LoopedApproximation(network, grid, np.zeros(len(names), dtype=object))


def error_bound(
    grid: Grid, *, sequence: Modulus, token: Modulus | None, contextual: Modulus | None, largest: float, p: float = 2
) -> float:
    """Return the bound on the L^p error in Theorem 3.7, or in Theorem 4.2 if `token` and `contextual` are None.

    For a `timed_approximation`, both are None. The arguments `sequence`, `token` and `contextual` are the moduli w,
    w_token and w_contextual of `looped_approximation`. Here delta = 1 / n, and n, T and d are the fields of `grid`. The
    last term of the bound, O(delta^(d/p)), is computed. Cubes with two equal tokens have at most T (T - 1) / 2 delta^d
    of the volume. `largest` is a bound on the p-norm of the error in these cubes. Gaps of the quantizer, which can be
    arbitrarily narrow, are neglected.

    Raises:
        ValueError: `largest` is not a number of at least 0, or p is below 1.

    Example:
        >>> error_bound(Grid(4, 2, 1), sequence=lambda t: t, token=None, contextual=None, largest=0.0)
        0.3535533905932738

    Source: Xu and Sato (2024), Theorems 3.7 and 4.2.
    Differs from the source: the last term is explicit; the source gives only its order.
    """
    if not largest >= 0:
        raise ValueError(
            f"largest: expected a bound of at least 0 on the error's p-norm, got {largest}; give for example 0.1"
        )
    if not p >= 1:
        raise ValueError(f"p: expected at least 1, got {p}; take p >= 1, because no smaller p defines a norm")
    delta, size = 1 / grid.num_bins, grid.num_tokens * grid.token_dim
    bound = sequence(delta * size**0.5) + largest * (comb(grid.num_tokens, 2) * delta**grid.token_dim) ** (1 / p)
    for modulus, distance in ((token, delta * grid.token_dim**0.5), (contextual, delta * size**0.5)):
        bound += 0.0 if modulus is None else size ** (1 / p) * modulus(distance)
    return float(bound)


def loop_budget(grid: Grid) -> int:
    """Return the number of loops r that solves ``1 / n = ((r - T) / 2)^(-1 / ((T+1)d + 1))``.

    Here n, T and d are `num_bins`, `num_tokens` and `token_dim` of the grid.

    Source: Xu and Sato (2024), Theorem 3.7.

    Example:
        >>> loop_budget(Grid(num_bins=5, num_tokens=2, token_dim=1))
        1252
    """
    return int(grid.num_tokens + 2 * grid.num_bins ** ((grid.num_tokens + 1) * grid.token_dim + 1))


def checked_grid(num_bins: int, num_tokens: int, token_dim: int) -> Grid:
    """Return the `Grid` of these sizes; raise a ValueError if it has under `num_tokens` tokens or over 2^18 IDs."""
    grid = Grid(num_bins, num_tokens, token_dim).checked()
    count = 2 * grid.base ** (num_tokens + 1)
    if count > MAX_VALUES:
        raise ValueError(
            f"num_bins: expected at most {MAX_VALUES:,} contextual IDs, got {count:,} = "
            "2 * num_bins ** ((num_tokens + 1) * token_dim); lower num_bins, num_tokens or token_dim"
        )
    return grid


def used_ids(function: SequenceFunction, grid: Grid) -> tuple[Int64[np.ndarray, " N"], Shaped[np.ndarray, "N Y"]]:
    """Return the sorted IDs that `extended_contextual_mapping` gives to tokens, and the function's value for each ID.

    Only sequences in which all tokens are different are considered.
    """
    check_function("function", function)
    tokens = np.array(list(combinations(range(grid.base - 1, -1, -1), grid.num_tokens)))
    values = _at_centers(function, tokens, grid)
    powers = grid.base ** np.arange(grid.num_tokens)[::-1]
    contexts = 2 * (tokens @ powers) - tokens[:, -1] % grid.num_bins
    ids = (2 * tokens * grid.base**grid.num_tokens + contexts[:, None]).ravel()
    order = ids.argsort()
    exact = np.frompyfunc(Fraction, 1, 1)(values.reshape(len(ids), -1))
    return ids[order], exact[order]


def interpolate(ids: Int64[np.ndarray, " N"], values: Shaped[np.ndarray, "N Y"]) -> Shaped[np.ndarray, "K Y"]:
    """Return values of all IDs from the first to the last, by exact linear interpolation between the given IDs."""
    all_ids = np.arange(ids[0], ids[-1] + 1)
    left = np.searchsorted(ids, all_ids, side="right") - 1
    right = np.minimum(left + 1, len(ids) - 1)
    steps, distances = (all_ids - ids[left]).astype(object), np.maximum(ids[right] - ids[left], 1)
    fractions = np.frompyfunc(Fraction, 2, 1)(steps, distances)
    interpolated: np.ndarray = values[left] + fractions[:, None] * (values[right] - values[left])
    return interpolated


def _token_ids_in_context(grid: Grid, sharpness: int) -> tuple[dict[str, Form], list[Unit]]:
    """Return the coordinates and units that compute contextual IDs, which are steps 1 and 2 of the approximation.

    Let n be the number of bins. Before loop n, coordinates `waiting` and `number` are -1. Loop n sets both to twice the
    token's ID. From loop n + T + 1 on, `number` is the contextual ID.
    """
    n, inputs = grid.num_bins, _inputs(grid)
    starts, units = quantizer_parts(n, inputs, sharpness)
    digits = [Form.coordinate(f"bin_{name}") - CLOCK + n for name in inputs]
    starts |= dict.fromkeys(("waiting", "gathered", "number"), Form({}, -1))
    twice = 2 * grid.token(digits)
    units += pass_units(CLOCK - n, [(twice + 1, {"waiting": 1, "number": 1})], bound=2 * grid.base)
    units += [*selection_units(grid, factor=2), reduction_unit(grid, digits[-1], CLOCK - (n + grid.num_tokens - 1))]
    return starts, units


def _inputs(grid: Grid) -> list[str]:
    return [f"x{i}" for i in range(grid.token_dim)]


def _at_centers(function: SequenceFunction, tokens: np.ndarray, grid: Grid) -> np.ndarray:
    """Return the values of a function at the centers of the cubes that have these token IDs."""
    powers = grid.num_bins ** np.arange(grid.token_dim)[::-1]
    centers = torch.from_numpy((tokens[..., None] // powers % grid.num_bins + 0.5) / grid.num_bins)
    with torch.no_grad():
        values = function(centers)
    if values.shape[:2] != centers.shape[:2] or values.ndim != 3 or not bool(values.isfinite().all()):
        raise ValueError(
            f"function: expected finite outputs of shape [{len(centers)}, {grid.num_tokens}, Y], got shape "
            f"{list(values.shape)} with largest absolute value {float(values.abs().max())}; return a finite vector for "
            "each token"
        )
    with torch.no_grad():
        # Two permutations do not prove equivariance, but most functions without it fail.
        permuted = function(centers.roll(1, 1)).roll(-1, 1), function(centers.flip(1)).flip(1)
    if not all(torch.allclose(values, other, rtol=1e-9, atol=1e-9) for other in permuted):
        raise ValueError(
            "function: expected permuted outputs for permuted tokens, got different outputs; give a "
            "permutation-equivariant function"
        )
    return values.numpy()
