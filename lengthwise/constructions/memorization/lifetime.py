"""For how many steps a generator is right when the entries of W_h are rounded."""

import math
from typing import Literal, NamedTuple, cast, get_args

import numpy as np

from lengthwise.constructions.memorization.frequencies import blocks
from lengthwise.constructions.memorization.generator import Array, LinearGenerator
from lengthwise.constructions.memorization.memorize import Memorization

Precision = Literal["bfloat16", "float16", "float32", "float64"]
PRECISIONS = cast(tuple[Precision, ...], get_args(Precision))

EACH = 2**17
"""So many steps are looked at one by one."""

GRID = 20_000
"""Later ones at so many points, each a constant factor after the one before."""

TURNS = 50.0
"""Lifetimes are looked for until the fastest plane has drifted by so many radians."""

LARGEST_POWER = math.log(np.finfo(np.float64).max)
"""float64 holds e to this power, and hardly any number below e to minus this power."""


def rounded(array: Array, precision: Precision) -> Array:
    """The nearest numbers of a precision, in float64; ties go to even.

    Example:
        >>> rounded(np.array([0.7071067811865476]), "bfloat16").tolist()
        [0.70703125]
    """
    if precision != "bfloat16":
        return np.asarray(array, np.dtype(precision)).astype(np.float64)
    bits = np.asarray(array, np.float32).view(np.uint32)
    up = 0x7FFF + ((bits >> 16) & 1)
    truncate: Array = ((bits + up) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)
    return truncate


def with_rounded_hidden(generator: LinearGenerator, precision: Precision) -> LinearGenerator:
    """The same generator, the entries of W_h rounded; everything else, states included, stays in float64."""
    return generator._replace(hidden=rounded(generator.hidden, precision))


class Lifetime(NamedTuple):
    """The first step whose symbol is wrong, counted from 1; None where none was found up to step `looked_to`.

    `looked_to` is inf where rounding changes nothing: wrong steps then come only from what is neglected here, the
    rounding of states.
    """

    first_wrong: int | None
    looked_to: float


def angle_formula(period: int, drift: float) -> float:
    """(pi / p) / |drift|: after so many steps a plane that drifts by an angle each step has lost half an edge.

    From then on a line through 0 that halved an edge is crossed by each state that comes to it: the first wrong symbol
    of a word of one plane and threshold 0 is at the first step from there on whose state has another letter next to it
    on the side to which the plane drifts. Of 0^h 1^h these are the last letters of runs if it turns too far, the first
    ones if too little, so that what is rounded up is less than h.
    """
    return math.pi / period / abs(drift) if drift else math.inf


def drifts(found: Memorization, precision: Precision) -> list[tuple[float, float]]:
    """For each frequency, by what angle and by what power of e its plane is off after one step, W_h rounded.

    Rounded, [[c, -s], [s, c]] is a rotation by another angle and a scaling, whose eigenvalue is c + i s. Differences
    are of the size of a rounding error, so that they are computed with 50 digits.

    Example:
        >>> from lengthwise.constructions.memorization.memorize import memorize
        >>> [(f"{angle:.3e}", f"{growth:.3e}") for angle, growth in drifts(memorize("001"), "bfloat16")]
        [('-5.805e-04', '1.006e-03')]
    """
    from mpmath import mp

    hidden, p = rounded(found.generator.hidden, precision), found.word.period
    rates = []
    with mp.workdps(50):
        for k, block in zip(found.frequencies, blocks(found.frequencies, p), strict=True):
            c, s = (float(hidden[row, block.start]) for row in (block.start, block.stop - 1))
            turned = mp.mpc(c, s if 2 * k != p else 0) * mp.expjpi(mp.mpf(-2 * k) / p)
            rates.append((float(mp.arg(turned)), float(mp.log(abs(turned)))))
    return rates


def fastest_formula(found: Memorization, precision: Precision) -> float:
    """`angle_formula` of the plane that drifts fastest; inf where none turns by another angle.

    Example:
        >>> from lengthwise.constructions.memorization.memorize import memorize
        >>> round(fastest_formula(memorize("0000011111"), "bfloat16"))
        252
    """
    return angle_formula(found.word.period, max((abs(angle) for angle, _ in drifts(found, precision)), default=0.0))


def predicted_lifetime(found: Memorization, precision: Precision) -> Lifetime:
    """When W_h with rounded entries first answers a wrong symbol; states and read-out in exact arithmetic.

    After i steps the plane of frequency k has turned by i dtheta_k too far and grown by rho_k^i (`drifts`). For one
    plane and threshold 0 that is `angle_formula`, rounded up as said there. The first
    131,072 steps are looked at one by one; after them margins at each position of the word are smooth functions of i,
    whose first zeros are found on a grid and by bisection, as far as states neither overflow nor vanish in float64.

    Example:
        >>> from lengthwise.constructions.memorization.memorize import memorize
        >>> predicted_lifetime(memorize("00000111"), "bfloat16").first_wrong
        6494
    """
    rates, p = np.array(drifts(found, precision)).reshape(-1, 2), found.word.period
    if not np.abs(rates).max(initial=0.0):
        return Lifetime(None, math.inf)
    with np.errstate(divide="ignore"):
        horizon = float((np.array([TURNS, LARGEST_POWER]) / np.abs(rates).max(0)).min())
    ahead = _Ahead(found, rates)
    steps = np.arange(min(EACH, int(horizon)))
    wrong = np.flatnonzero(ahead(steps, steps % p) <= 0)
    if len(wrong):
        return Lifetime(int(wrong[0]) + 1, horizon)
    first = [step for j in range(p) if (step := _first_after(ahead, j, p, horizon)) is not None]
    return Lifetime(min(first) + 1, horizon) if first else Lifetime(None, horizon)


class _Ahead:
    """How far the right logit is ahead of the next one, at positions j of the word after i steps of drift."""

    def __init__(self, found: Memorization, rates: Array) -> None:
        weights, self.starts = [], []
        for block in blocks(found.frequencies, found.word.period):
            readout = found.generator.readout[:, block]
            weights.append(readout[:, 0] - 1j * (readout[:, 1] if block.stop - block.start == 2 else 0))
            self.starts.append(found.generator.first[block.start])
        self.weights, self.bias = np.array(weights), found.generator.bias
        self.letters, self.period = found.word.letters, found.word.period
        self.turns = np.array(found.frequencies)
        self.rates = rates[:, 1] + 1j * rates[:, 0]

    def __call__(self, steps: Array, positions: Array) -> Array:
        phases = 2j * np.pi * (positions[:, None] * self.turns % self.period) / self.period
        with np.errstate(over="ignore"):
            states = self.starts * np.exp(phases + steps[:, None] * self.rates)
        logits = (states @ self.weights).real + self.bias
        right = np.take_along_axis(logits, self.letters[positions][:, None], 1)[:, 0]
        np.put_along_axis(logits, self.letters[positions][:, None], -np.inf, 1)
        ahead: Array = right - logits.max(1)
        return ahead


def _first_after(ahead: _Ahead, position: int, period: int, horizon: float) -> int | None:
    """The first step at this position, beyond those looked at one by one, at which the letter is not ahead."""
    if horizon <= EACH:
        return None
    grid = np.geomspace(EACH, horizon, GRID)
    (behind,) = np.nonzero(ahead(grid, np.full(GRID, position)) <= 0)
    if not len(behind):
        return None
    low, high = grid[max(0, behind[0] - 1)], grid[behind[0]]
    for _ in range(60):
        middle = (low + high) / 2
        is_behind = ahead(np.array([middle]), np.array([position]))[0] <= 0
        low, high = (low, middle) if is_behind else (middle, high)
    return position + period * math.ceil((float(high) - position) / period)
