"""The number of steps for which a generator is correct when the entries of W_h are rounded."""

import math
from typing import Literal, NamedTuple, cast, get_args

import numpy as np

from lengthwise.constructions.memorization.frequencies import blocks
from lengthwise.constructions.memorization.generator import Array, LinearGenerator
from lengthwise.constructions.memorization.memorize import Memorization
from lengthwise.validation import check_choice

Precision = Literal["bfloat16", "float16", "float32", "float64"]
PRECISIONS = cast(tuple[Precision, ...], get_args(Precision))

ENUMERATED_STEPS = 2**17
"""The number of steps, from the first one on, whose symbols are computed one by one."""

GRID_POINTS = 20_000
"""The number of later steps, in geometric progression, at which margins are evaluated."""

MAX_DRIFT = 50.0
"""The largest angle by which rounding of W_h may have turned a state, in radians; later steps are not examined."""

MAX_LOG = math.log(np.finfo(np.float64).max)
"""The largest x for which exp(x) does not overflow in float64; exp(-x) is nearly 0."""


def rounded(array: Array, precision: Precision) -> Array:
    """Return numbers rounded to a precision, as float64; ties go to even.

    Example:
        >>> rounded(np.array([0.7071067811865476]), "bfloat16").tolist()
        [0.70703125]
    """
    check_choice("precision", precision, PRECISIONS)
    if precision != "bfloat16":
        return np.asarray(array, np.dtype(precision)).astype(np.float64)
    bits = np.asarray(array, np.float32).view(np.uint32)
    # Just below half a unit, plus the lowest kept bit: ties are rounded to even.
    half = 0x7FFF + ((bits >> 16) & 1)
    nearest: Array = ((bits + half) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)
    return nearest


def with_rounded_hidden(generator: LinearGenerator, precision: Precision) -> LinearGenerator:
    """Return the same generator with rounded entries of W_h; all other arrays and the states stay in float64."""
    return generator._replace(hidden=rounded(generator.hidden, precision))


class Lifetime(NamedTuple):
    """A generator's first step with a wrong symbol, counted from 1; None if all symbols up to step `horizon` are right.

    `horizon` is inf if rounding changes no entry of W_h. In this case, only the rounding of states, which is neglected
    here, can cause a wrong symbol.
    """

    first_wrong: int | None
    horizon: float


def angle_formula(period: int, drift: float) -> float:
    """Return (pi / p) / |drift|: the step at which a plane has drifted by half an edge of the regular p-gon of states.

    In each step, the plane drifts by the angle `drift`. The word has p letters. From this step on, a state has drifted
    along its edge beyond the middle of the edge, and beyond a decision line through this middle. Suppose that the
    generator has one plane, and that the line goes through 0. Then the first wrong symbol comes at the first later step
    whose state drifts toward a corner with a different letter. For 0^h 1^h, such states are at the last letters of runs
    if the plane turns too far. If the plane turns too little, such states are at the first letters of runs. The wait
    for such a state is less than h steps.
    """
    return math.pi / period / abs(drift) if drift else math.inf


def drifts(memorization: Memorization, precision: Precision) -> list[tuple[float, float]]:
    """Return, for each frequency, the error of one step with rounded W_h: an angle, and the logarithm of a factor.

    A block [[c, -s], [s, c]] of the rounded W_h rotates by a slightly wrong angle and also scales. Its eigenvalue is
    c + i s. The errors are as small as a rounding error, so they are computed with 50 digits.

    Example:
        >>> from lengthwise.constructions.memorization.memorize import memorize
        >>> [(f"{angle:.3e}", f"{growth:.3e}") for angle, growth in drifts(memorize("001"), "bfloat16")]
        [('-5.805e-04', '1.006e-03')]
    """
    from mpmath import mp

    hidden, p = rounded(memorization.generator.hidden, precision), memorization.word.period
    rates = []
    with mp.workdps(50):
        for k, block in zip(memorization.frequencies, blocks(memorization.frequencies, p), strict=True):
            c, s = (float(hidden[row, block.start]) for row in (block.start, block.stop - 1))
            turned = mp.mpc(c, s if 2 * k != p else 0) * mp.expjpi(mp.mpf(-2 * k) / p)
            rates.append((float(mp.arg(turned)), float(mp.log(abs(turned)))))
    return rates


def fastest_formula(memorization: Memorization, precision: Precision) -> float:
    """Return the lifetime that `angle_formula` gives for the plane that drifts fastest, or inf if no plane drifts.

    Example:
        >>> from lengthwise.constructions.memorization.memorize import memorize
        >>> round(fastest_formula(memorize("0000011111"), "bfloat16"))
        252
    """
    fastest = max((abs(angle) for angle, _ in drifts(memorization, precision)), default=0.0)
    return angle_formula(memorization.word.period, fastest)


def predicted_lifetime(memorization: Memorization, precision: Precision) -> Lifetime:
    """Return the first step whose symbol is wrong if entries of W_h are rounded, and states and read-out are exact.

    For each frequency k, `drifts` returns dtheta_k and log(rho_k). After i steps, the plane of k has turned too far by
    i dtheta_k, and has grown by the factor rho_k^i. The first 131,072 steps are enumerated. For later steps, the logit
    margin at each position of the word is treated as a smooth function of i. A grid and bisection find the margin's
    first zero, as long as states neither overflow nor vanish in float64. For one plane and a decision line through 0,
    the result is `angle_formula` plus a wait, which the docstring of `angle_formula` describes.

    Example:
        >>> from lengthwise.constructions.memorization.memorize import memorize
        >>> predicted_lifetime(memorize("00000111"), "bfloat16").first_wrong
        6494
    """
    rates, p = np.array(drifts(memorization, precision)).reshape(-1, 2), memorization.word.period
    if not np.abs(rates).max(initial=0.0):
        return Lifetime(None, math.inf)
    # A rate of 0 sets no limit: its horizon is infinite.
    with np.errstate(divide="ignore"):
        horizon = float((np.array([MAX_DRIFT, MAX_LOG]) / np.abs(rates).max(0)).min())
    margin = _LogitMargin(memorization, rates)
    steps = np.arange(min(ENUMERATED_STEPS, int(horizon)))
    wrong = np.flatnonzero(margin(steps, steps % p) <= 0)
    if len(wrong):
        return Lifetime(int(wrong[0]) + 1, horizon)
    first = [step for j in range(p) if (step := _first_after(margin, j, p, horizon)) is not None]
    return Lifetime(min(first) + 1, horizon) if first else Lifetime(None, horizon)


class _LogitMargin:
    """The correct letter's logit minus the largest other logit, at position j of the word after i steps of drift."""

    def __init__(self, memorization: Memorization, rates: Array) -> None:
        generator, word = memorization.generator, memorization.word
        weights, self.starts = [], []
        for block in blocks(memorization.frequencies, word.period):
            readout = generator.readout[:, block]
            weights.append(readout[:, 0] - 1j * (readout[:, 1] if block.stop - block.start == 2 else 0))
            self.starts.append(generator.first[block.start])
        self.weights, self.bias = np.array(weights), generator.bias
        self.letters, self.period = word.letters, word.period
        self.turns = np.array(memorization.frequencies)
        self.rates = rates[:, 1] + 1j * rates[:, 0]

    def __call__(self, steps: Array, positions: Array) -> Array:
        phases = 2j * np.pi * (positions[:, None] * self.turns % self.period) / self.period
        with np.errstate(over="ignore"):
            states = self.starts * np.exp(phases + steps[:, None] * self.rates)
        logits = (states @ self.weights).real + self.bias
        correct = np.take_along_axis(logits, self.letters[positions][:, None], 1)[:, 0]
        np.put_along_axis(logits, self.letters[positions][:, None], -np.inf, 1)
        margin: Array = correct - logits.max(1)
        return margin


def _first_after(margin: _LogitMargin, position: int, period: int, horizon: float) -> int | None:
    """Return the first step at position j, after the enumerated steps, at which the margin is not positive."""
    if horizon <= ENUMERATED_STEPS:
        return None
    grid = np.geomspace(ENUMERATED_STEPS, horizon, GRID_POINTS)
    (wrong,) = np.nonzero(margin(grid, np.full(GRID_POINTS, position)) <= 0)
    if not len(wrong):
        return None
    low, high = grid[max(0, wrong[0] - 1)], grid[wrong[0]]
    # 60 halvings exhaust the precision of float64.
    for _ in range(60):
        middle = (low + high) / 2
        is_wrong = margin(np.array([middle]), np.array([position]))[0] <= 0
        low, high = (low, middle) if is_wrong else (middle, high)
    return position + period * math.ceil((float(high) - position) / period)
