"""Reading a word off an orbit: one linear program for all symbols together, its dual, and the widest margin."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64

Letters = Int64[np.ndarray, " p"]
Orbit = Float[np.ndarray, "p d"]


class Readout(NamedTuple):
    """Logits ``states @ weights.T + bias``, in which every letter is ahead of all other symbols by at least 1."""

    weights: Float[np.ndarray, "n d"]
    bias: Float[np.ndarray, " n"]


def pairs(letters: Letters) -> tuple[Int64[np.ndarray, " m"], Int64[np.ndarray, " m"]]:
    """Positions and baselines: every position with every symbol that does not stand there."""
    rivals = np.arange(int(letters.max()) + 1)
    positions, others = np.nonzero(letters[:, None] != rivals)
    return positions, others


def constraints(letters: Letters, orbit: Orbit) -> Float[np.ndarray, "m k"]:
    """A row for each pair (i, j) of position and baseline: (w_(s_i) - w_j).h_i + b_(s_i) - b_j, a function of w, b.

    Only differences of symbols count: the last symbol has w = 0 and b = 0, which leaves k = (n - 1)(d + 1) unknowns.
    """
    positions, rivals = pairs(letters)
    states = np.concatenate([orbit, np.ones((len(orbit), 1))], 1)[positions]
    rows = np.zeros((len(positions), int(letters.max()) + 1, states.shape[1]))
    every = np.arange(len(positions))
    rows[every, letters[positions]] = states
    rows[every, rivals] = -states
    return rows[:, :-1].reshape(len(positions), -1)


def read_out(letters: Letters, orbit: Orbit) -> Readout | None:
    """A read-out of the word from its states, or None where there is none: the joint multiclass linear program.

    Weights are free and every margin is to be at least 1, so that a small margin is no matter of tolerances; what is
    returned has been checked. None is HiGHS's word, which `lengthwise.constructions.memorization.farkas` verifies.

    Example:
        >>> square = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
        >>> read_out(np.array([0, 1, 0, 2]), square) is None, read_out(np.array([0, 1, 0, 1]), square) is None
        (False, True)
    """
    from scipy.optimize import linprog

    rows = constraints(letters, orbit)
    found = linprog(np.zeros(rows.shape[1]), A_ub=-rows, b_ub=-np.ones(len(rows)), bounds=(None, None))
    if found.status == 2:
        return None
    if found.status != 0:
        raise RuntimeError(f"HiGHS: expected a read-out or that there is none, got {found.message}")
    return _scaled(letters, orbit, found.x)


def _scaled(letters: Letters, orbit: Orbit, unknowns: Float[np.ndarray, " k"]) -> Readout:
    """The read-out whose smallest margin is 1; one that is not positive beyond rounding is an error."""
    free = unknowns.reshape(-1, orbit.shape[1] + 1)
    every = np.concatenate([free, np.zeros((1, free.shape[1]))])
    every = every - every.mean(0)
    positions, rivals = pairs(letters)
    logits = orbit @ every[:, :-1].T + every[:, -1]
    minimum = (logits[positions, letters[positions]] - logits[positions, rivals]).min()
    if minimum <= 1e-12 * np.abs(every).max():
        raise RuntimeError(
            f"HiGHS: expected margins of at least 1, got {minimum}; the program is too badly conditioned"
        )
    every /= minimum
    return Readout(every[:, :-1], every[:, -1])


def dual_weights(letters: Letters, orbit: Orbit, *, spread: bool) -> Float[np.ndarray, " m"] | None:
    """Weights >= 0, not all 0, for `pairs`, whose combination of all `constraints` is 0: no read-out exists (Farkas).

    Up to rounding; None where there are none. `spread`: positive wherever any solution is, and then at least 1;
    otherwise on as few pairs as a vertex has.
    """
    from scipy.optimize import linprog

    rows = constraints(letters, orbit)
    count = len(rows)
    if spread:
        found = linprog(
            np.r_[-np.ones(count), np.zeros(count)],
            A_eq=np.hstack([rows.T, rows.T]),
            b_eq=np.zeros(rows.shape[1]),
            bounds=[(0, 1)] * count + [(0, None)] * count,
        )
        weights = found.x[:count] + found.x[count:] if found.status == 0 else np.zeros(count)
        return weights if weights.max() > 0.5 else None
    found = linprog(
        np.zeros(count),
        A_eq=np.vstack([rows.T, np.ones(count)]),
        b_eq=np.r_[np.zeros(rows.shape[1]), 1.0],
        method="highs-ds",
    )
    return found.x if found.status == 0 else None


class Robust(NamedTuple):
    """The read-out that minimizes `cost`, the sum over blocks of |V_k|; no read-out has less than `least`.

    It took so many `programs`.
    """

    readout: Readout
    norms: Float[np.ndarray, " f"]
    minimum: float
    programs: int

    @property
    def cost(self) -> float:
        """sum_k |V_k|, whose inverse is the margin of unit states: exactly for two symbols, at least for more."""
        return float(self.norms.sum())


ROUNDS = 200
"""Cutting planes stop after so many programs; `Robust.least` says how near they are."""

ENTRIES = 10_000_000
"""Or, where programs are large, once their constraints have so many entries in all."""

GAP = 1e-6
"""Or once the cost is known to so small a share."""


def widest_margin(letters: Letters, orbit: Orbit, blocks: list[slice]) -> Robust | None:
    """The read-out that tolerates the largest change of unit states, by a group lasso over frequencies.

    A block of the state may be scaled by r_k and its weights by 1 / r_k, sum_k r_k^2 = 1. With V_k the differences of
    all pairs of symbols on block k at margin 1, the best scales are r_k^2 = |V_k| / sum |V|, and the distance of a
    state from where another symbol is read is then 1 / sum_k |V_k| (Frobenius norms: of two symbols that is the
    distance, of more a lower bound on it). The sum is minimized by Kelley's cutting planes: each round is a linear
    program in which |V_k| >= <G, V_k> stands for a few G of norm 1; its value is a lower bound.

    Source: second-order cone program of the group lasso, Yuan and Lin (2006).
    Differs from the source: constraints of a margin in place of a squared loss.
    """
    from scipy.optimize import linprog

    rows = constraints(letters, orbit)
    n, width, count = int(letters.max()) + 1, orbit.shape[1] + 1, len(blocks)
    found = read_out(letters, orbit)
    if found is None:
        return None
    best, minimum = _with_norms(found, blocks), 0.0
    cuts = [_cuts(found, blocks, width)]
    lower_rows = np.hstack([-rows, np.zeros((len(rows), count))])
    cost = np.r_[np.zeros((n - 1) * width), np.ones(count)]
    free = [(None, None)] * ((n - 1) * width) + [(0, None)] * count
    programs = 1
    for _ in range(max(1, min(ROUNDS, ENTRIES // rows.size))):
        programs += 1
        limits = np.concatenate([-np.ones(len(rows)), np.zeros(count * len(cuts))])
        step = linprog(cost, A_ub=np.vstack([lower_rows, *cuts]), b_ub=limits, bounds=free)
        if step.status != 0:  # unbounded by rounding: what was found stands
            break
        minimum = max(minimum, float(step.fun))
        tried = _scaled(letters, orbit, step.x[: (n - 1) * width])
        here = _with_norms(tried, blocks)
        best = min(best, here, key=lambda candidate: candidate.cost)
        if best.cost - minimum <= GAP * best.cost:
            break
        cuts.append(_cuts(tried, blocks, width))
    return best._replace(minimum=min(minimum, best.cost), programs=programs)


def _with_norms(readout: Readout, blocks: list[slice]) -> Robust:
    """The cost of a read-out; its weights have mean 0 over symbols, so that pairs differ by n times their squares."""
    n = len(readout.bias)
    norms = np.array([np.sqrt(n) * np.linalg.norm(readout.weights[:, block]) for block in blocks])
    return Robust(readout, norms, minimum=0.0, programs=0)


def _cuts(readout: Readout, blocks: list[slice], width: int) -> Float[np.ndarray, "f k"]:
    """<G, V_k> - t_k <= 0 for each block, with G the direction of V_k now, over the unknowns of `constraints` and t."""
    n = len(readout.bias)
    cuts = np.zeros((len(blocks), (n - 1) * width + len(blocks)))
    for index, block in enumerate(blocks):
        weights = readout.weights[:, block]
        norm = np.linalg.norm(weights)
        if norm > 0:
            direction = np.zeros((n, width))
            direction[:, block] = np.sqrt(n) * weights / norm
            cuts[index, : (n - 1) * width] = direction[:-1].ravel()
        cuts[index, (n - 1) * width + index] = -1.0
    return cuts
