"""Read-outs of a word from an orbit: one linear program for all symbols together, its dual, and the widest margin."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64

Letters = Int64[np.ndarray, " p"]
Orbit = Float[np.ndarray, "p d"]


class Readout(NamedTuple):
    """Weights and bias of logits ``states @ weights.T + bias``. The right logit exceeds all others by at least 1."""

    weights: Float[np.ndarray, "n d"]
    bias: Float[np.ndarray, " n"]


def pairs(letters: Letters) -> tuple[Int64[np.ndarray, " m"], Int64[np.ndarray, " m"]]:
    """Return every pair of a position in the word and a competing symbol, that is, any symbol but the letter there."""
    positions, competitors = np.nonzero(letters[:, None] != np.arange(int(letters.max()) + 1))
    return positions, competitors


def num_entries(num_symbols: int, period: int, dimension: int) -> int:
    """Return the number of entries of `constraints`, for n symbols, period p and dimension d.

    There are (n - 1) p rows, one for each pair of a position and a competing symbol (`pairs`). There are (n - 1)(d + 1)
    columns, one for each unknown.
    """
    return (num_symbols - 1) ** 2 * period * (dimension + 1)


def constraints(letters: Letters, orbit: Orbit) -> Float[np.ndarray, "m k"]:
    """Return the coefficients of (w_(s_i) - w_j).h_i + b_(s_i) - b_j in w and b, as a row for each pair (i, j).

    A pair is a position i, with letter s_i and state h_i, and a competing symbol j. The weights and the bias of symbol
    j are w_j and b_j. Let n be the number of symbols, and d the length of a state. Only differences between symbols
    matter, so the last symbol has w = 0 and b = 0. This leaves k = (n - 1)(d + 1) unknowns.
    """
    positions, competitors = pairs(letters)
    states = np.concatenate([orbit, np.ones((len(orbit), 1))], 1)[positions]
    rows = np.zeros((len(positions), int(letters.max()) + 1, states.shape[1]))
    pair = np.arange(len(positions))
    rows[pair, letters[positions]] = states
    rows[pair, competitors] = -states
    return rows[:, :-1].reshape(len(positions), -1)


def read_out(letters: Letters, orbit: Orbit) -> Readout | None:
    """Return a read-out of the word from its states, by the joint multiclass linear program, or None if none exists.

    Weights are unbounded and every margin is at least 1, so that the solver's tolerances do not decide whether a margin
    is positive. A read-out is checked before it is returned. The result None relies on the solver HiGHS alone, but
    `lengthwise.constructions.memorization.farkas` can verify it.

    Raises:
        RuntimeError: HiGHS does not finish, or rounding leaves no positive margin.

    Example:
        >>> square = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
        >>> read_out(np.array([0, 1, 0, 2]), square) is None, read_out(np.array([0, 1, 0, 1]), square) is None
        (False, True)
    """
    from scipy.optimize import linprog

    rows = constraints(letters, orbit)
    solution = linprog(np.zeros(rows.shape[1]), A_ub=-rows, b_ub=-np.ones(len(rows)), bounds=(None, None))
    # The program is infeasible, so no read-out exists: any read-out could be scaled to margins of at least 1.
    if solution.status == 2:
        return None
    if solution.status != 0:
        raise RuntimeError(
            f"HiGHS: expected a read-out or a proof that there is none, got {solution.message}; take a shorter word"
        )
    return _scaled(letters, orbit, solution.x)


def _scaled(letters: Letters, orbit: Orbit, unknowns: Float[np.ndarray, " k"]) -> Readout:
    """Return the read-out scaled to a smallest margin of 1; raise an error if a margin may be only a rounding error."""
    free = unknowns.reshape(-1, orbit.shape[1] + 1)
    parameters = np.concatenate([free, np.zeros((1, free.shape[1]))])
    # Differences of logits stay the same. With mean 0, the squared differences of pairs sum to n |W|^2 (`_with_norms`).
    parameters = parameters - parameters.mean(0)
    positions, competitors = pairs(letters)
    logits = orbit @ parameters[:, :-1].T + parameters[:, -1]
    margin = (logits[positions, letters[positions]] - logits[positions, competitors]).min()
    if margin <= 1e-12 * np.abs(parameters).max():
        raise RuntimeError(
            f"HiGHS: expected margins of at least 1, got {margin}, because the linear program is badly conditioned; "
            "take a shorter word"
        )
    parameters /= margin
    return Readout(parameters[:, :-1], parameters[:, -1])


def dual_weights(letters: Letters, orbit: Orbit, *, spread: bool) -> Float[np.ndarray, " m"] | None:
    """Return weights >= 0 for `pairs`, not all 0, with which the `constraints` add up to 0, if HiGHS finds them.

    If such weights exist, no read-out exists, by Farkas' lemma. The weights are exact only up to rounding. With
    `spread`, a weight is at least 1 if it is positive in some solution. Without `spread`, the weights are a vertex of
    the polytope of solutions, so few of them are positive. The result is None if HiGHS finds no weights.
    """
    from scipy.optimize import linprog

    rows = constraints(letters, orbit)
    count = len(rows)
    if spread:
        # Each weight has two parts. The first is at most 1 and is maximized, which spreads the weights. The second is
        # the rest.
        solution = linprog(
            np.r_[-np.ones(count), np.zeros(count)],
            A_eq=np.hstack([rows.T, rows.T]),
            b_eq=np.zeros(rows.shape[1]),
            bounds=[(0, 1)] * count + [(0, None)] * count,
        )
        weights = solution.x[:count] + solution.x[count:] if solution.status == 0 else np.zeros(count)
        return weights if weights.max() > 0.5 else None
    solution = linprog(
        np.zeros(count),
        A_eq=np.vstack([rows.T, np.ones(count)]),
        b_eq=np.r_[np.zeros(rows.shape[1]), 1.0],
        method="highs-ds",
    )
    return solution.x if solution.status == 0 else None


class WidestMargin(NamedTuple):
    """The read-out with the smallest known `cost`, the sum of |V_k| over blocks k of the state (`widest_margin`).

    No read-out costs less than `lower_bound`. `programs` counts the linear programs that were solved.
    """

    readout: Readout
    norms: Float[np.ndarray, " f"]
    lower_bound: float
    programs: int

    @property
    def cost(self) -> float:
        """Return sum_k |V_k|, the inverse of the margin for states of norm 1.

        Here V_k are the differences of weights on block k of the state between all pairs of symbols (`widest_margin`).
        For more than two symbols, the inverse of the cost is only a lower bound on the margin.
        """
        return float(self.norms.sum())


MAX_ROUNDS = 200
"""The largest number of cutting-plane rounds; `WidestMargin.lower_bound` shows how close the result is."""

MAX_TOTAL_ENTRIES = 10_000_000
"""The largest number of entries in the constraints of all rounds together. For large programs, this limit reduces the
number of rounds."""

GAP = 1e-6
"""The relative distance between cost and lower bound at which no further round is run."""


def widest_margin(letters: Letters, orbit: Orbit, blocks: list[slice]) -> WidestMargin | None:
    """Return the read-out that tolerates the largest change of states of norm 1, by a group lasso over frequencies.

    Block k of the state may be scaled by r_k, and its weights by 1 / r_k, with sum_k r_k^2 = 1. Let V_k be the
    differences of weights on block k between all pairs of symbols, at margin 1. The best scales are
    r_k^2 = |V_k| / sum_j |V_j|, with Frobenius norms. For two symbols, 1 / sum_k |V_k| is then the distance of the
    nearest state from the region of the other symbol. For more symbols, 1 / sum_k |V_k| is a lower bound on this
    distance. Kelley's cutting planes minimize sum_k |V_k|. Each round is a linear program in which |V_k| >= <G, V_k>
    for a few G of norm 1. The optimum of this program is a lower bound on the minimum. The result is None if the word
    has no read-out.

    Source: second-order cone program of the group lasso, Yuan and Lin (2006).
    Differs from the source: the program has margin constraints instead of a squared loss.
    """
    from scipy.optimize import linprog

    rows = constraints(letters, orbit)
    n = int(letters.max()) + 1
    width = orbit.shape[1] + 1
    count = len(blocks)
    first = read_out(letters, orbit)
    if first is None:
        return None
    best, lower_bound = _with_norms(first, blocks), 0.0
    cuts = [_cuts(first, blocks, width)]
    lower_rows = np.hstack([-rows, np.zeros((len(rows), count))])
    cost = np.r_[np.zeros((n - 1) * width), np.ones(count)]
    free = [(None, None)] * ((n - 1) * width) + [(0, None)] * count
    programs = 1
    for _ in range(max(1, min(MAX_ROUNDS, MAX_TOTAL_ENTRIES // rows.size))):
        programs += 1
        limits = np.concatenate([-np.ones(len(rows)), np.zeros(count * len(cuts))])
        solution = linprog(cost, A_ub=np.vstack([lower_rows, *cuts]), b_ub=limits, bounds=free)
        if solution.status != 0:  # rounding made the program unbounded: keep the best read-out so far
            break
        lower_bound = max(lower_bound, float(solution.fun))
        readout = _scaled(letters, orbit, solution.x[: (n - 1) * width])
        best = min(best, _with_norms(readout, blocks), key=lambda candidate: candidate.cost)
        if best.cost - lower_bound <= GAP * best.cost:
            break
        cuts.append(_cuts(readout, blocks, width))
    return best._replace(lower_bound=min(lower_bound, best.cost), programs=programs)


def _with_norms(readout: Readout, blocks: list[slice]) -> WidestMargin:
    """Return the read-out with the norm |V_k| of each block (`widest_margin`), for weights with mean 0 over symbols.

    The squared differences of all pairs of n such weights add up to n times the sum of their squares.
    """
    n = len(readout.bias)
    norms = np.array([np.sqrt(n) * np.linalg.norm(readout.weights[:, block]) for block in blocks])
    return WidestMargin(readout, norms, lower_bound=0.0, programs=0)


def _cuts(readout: Readout, blocks: list[slice], width: int) -> Float[np.ndarray, "f k"]:
    """Return the cut <G, V_k> - t_k <= 0 for each block k, where G is the read-out's V_k / |V_k| (`widest_margin`).

    The unknowns are the unknowns of `constraints`, and for each block a number t_k that bounds |V_k|.
    """
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
