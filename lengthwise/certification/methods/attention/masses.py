"""Bounds on the attention mass of each kind of position, over all strings that lead a machine to a state.

The mass of a kind is the sum of a head's attention weights over all positions of this kind. The weight of a position is
e^s divided by the sum of e^s over all positions, with the position's score s. `Pairs` defines kinds.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.methods.attention.scores import Heads

TERM_SLACK = 1e-9
"""The relative slack of each term in the sum along a path.

A float64 sum of T terms has a far smaller error: at most T 2^-53 times the sum of absolute values.
"""

MIN_WEIGHT = 1e-290
"""The floor of upper bounds on exponentials. An upper bound must not underflow to 0."""

MAX_ROUNDS = 60
"""The largest number of Newton steps for a threshold in `mass_bounds`. They converge fast, so few are needed."""


class Blocks(NamedTuple):
    """Consecutive ranges of lengths: block b contains the lengths ``first[b]`` to ``last[b]``."""

    first: Int64[np.ndarray, " B"]
    last: Int64[np.ndarray, " B"]


class Masses(NamedTuple):
    """Bounds on attention masses.

    The axes are, in order: block of lengths; pair (last symbol, state); head; kind of position. `exists` is False if no
    string with a length in the block ends in the pair. The bounds of the pair then mean nothing.
    """

    low: Float64[np.ndarray, "B P H K"]
    high: Float64[np.ndarray, "B P H K"]
    exists: Bool[np.ndarray, "B P"]


class Pairs(NamedTuple):
    """The pairs (last symbol, state) in which strings may end, and the kind of each position in one layer.

    `kinds[q, v]` is the kind of a position whose symbol v is read in state q. `last` contains, for each pair, the kind
    of the last position of the strings that end in this pair. In the first layer, the kind of a position is its symbol.
    In later layers, it is the pair in which the string up to this position ends.
    """

    machine: Transducer
    symbols: Int64[np.ndarray, " P"]
    states: Int64[np.ndarray, " P"]
    kinds: Int64[np.ndarray, "Q V"]
    last: Int64[np.ndarray, " P"]


class Paths(NamedTuple):
    """The exponentials of a layer's scores along the paths of a machine, for strings that end in each of `pairs`.

    `weights` contains bounds on e^s for scores s. Its axes are, in order: pair; head; kind whose mass is bounded; side;
    kind of the key; distance from the last position. The last entry of the distance's axis is also used for larger
    distances. Without an encoding of positions, this axis has length 1. Side 0 is the mass of the kind, and side 1 is
    the mass of all other kinds. `counts` is True for the kinds of keys that belong to a mass. The weights of these
    kinds are upper bounds on e^s, and all other weights are lower bounds.
    """

    pairs: Pairs
    weights: Float64[np.ndarray, "P H K 2 K T"]
    counts: Bool[np.ndarray, "K 2 K"]


def pairs_of(machine: Transducer, *, is_first: bool) -> Pairs:
    """Return the `Pairs` of a machine, with the kinds of positions in the first layer or in a later layer."""
    semiautomaton = machine.semiautomaton
    table = semiautomaton.table
    symbols = np.broadcast_to(np.arange(table.shape[1]), table.shape)
    # Every pair has a number, and pairs that no string reaches are left out.
    numbers = symbols * len(table) + table
    pairs = np.unique(numbers[semiautomaton.reachable(machine.start)])
    last = pairs // len(table)
    if is_first:
        return Pairs(machine, last, pairs % len(table), symbols, last)
    # Pairs with states that no string reaches have no kind. Any number will do, because no path passes through them.
    kinds = np.minimum(np.searchsorted(pairs, numbers), len(pairs) - 1)
    return Pairs(machine, last, pairs % len(table), kinds, np.arange(len(pairs)))


def paths_of(heads: Heads, pairs: Pairs) -> Paths:
    """Return the `Paths` of a machine, given the scores of all heads."""
    low, high = (np.moveaxis(end.numpy(), 1, 2) for end in (heads.scores.low, heads.scores.high))  # K H K T
    # A common factor of all exponentials of a head changes no mass. The factor is chosen so that the largest
    # exponential is e^0.
    shift = high.max((2, 3), keepdims=True)
    least = np.exp(low - shift)[pairs.last]
    most = np.maximum(np.exp(high - shift), MIN_WEIGHT)[pairs.last]
    own = np.eye(least.shape[2], dtype=np.bool_)
    counts = np.stack([own, ~own], 1)
    weights = np.where(counts[..., None], most[:, :, None, None], least[:, :, None, None])
    return Paths(pairs, weights, counts)


def mass_bounds(paths: Paths, blocks: Blocks) -> Masses:
    """Return bounds on the attention masses of all kinds of positions, for each block of lengths and each pair.

    The mass of a kind is the sum of a head's attention weights over the positions of this kind. A pair is the last
    symbol of a string, and the machine's state after the string.

    The mass of a set of kinds is at most c on a string if the sum of e^s (1[kind counts] - c) over the string's
    positions is at most 0. Here s is a position's score, and 1[kind counts] is 1 if the set contains the position's
    kind, and otherwise 0. The largest sum over all strings is the length of a longest path through the machine. The
    threshold c grows by Newton steps to the largest mass. The longest path for the last c, with slack in each term, has
    a length of at most 0. This proves that no string has a mass above c. If no such c is found, the bound is 1.

    Source: Dinkelbach, "On nonlinear fractional programming" (1967), for the steps.
    Differs from the source: sums are bounded in float64, and the last threshold is a bound, not a root.
    """
    shape = (len(blocks.first), *paths.weights.shape[:4])
    threshold = np.zeros(shape)
    largest, weight = max_path_sums(paths, blocks, threshold)
    exists = np.asarray((largest > -np.inf).any((2, 3, 4)))
    for _ in range(MAX_ROUNDS):
        exceeded = largest > 0
        if not exceeded.any():
            break
        # The new threshold is the mass of the path that exceeds the old threshold most. Without the factor 1 + 1e-9,
        # rounding could leave the threshold just below this mass.
        step = np.divide(largest, weight, out=np.ones(shape), where=exceeded & (weight > 0))
        threshold = np.where(exceeded, np.minimum((threshold + step) * (1 + 1e-9), 1.0), threshold)
        largest, weight = max_path_sums(paths, blocks, threshold)
    threshold = np.where(largest > 0, 1.0, threshold)
    # The mass of a kind is 1 minus the mass of all other kinds, for which c is the threshold of side 1. The difference
    # 1 - c is rounded once, by less than the 1e-15 that is subtracted.
    low = np.maximum(1 - threshold[..., 1] - 1e-15, 0.0)
    return Masses(low, threshold[..., 0], exists)


def max_path_sums(
    paths: Paths, blocks: Blocks, threshold: Float64[np.ndarray, "B P H K 2"]
) -> tuple[Float64[np.ndarray, "B P H K 2"], Float64[np.ndarray, "B P H K 2"]]:
    """Return the largest sums of e^s (1[kind counts] - c) over all paths, and the sum of e^s along each best path.

    The letter s is a position's score, c is the threshold, and 1[kind counts] is 1 or 0 as `Paths.counts` is True or
    False. The largest sums are upper bounds on the exact real sums: each term is enlarged by `TERM_SLACK` of its size.
    If no path exists, the sum is minus infinity. Paths are followed from their last symbol to their first, because
    scores depend on the distance from the last position.
    """
    machine, symbols, states, kinds, last = paths.pairs
    table = machine.semiautomaton.table
    best = np.full(threshold.shape, -np.inf)
    weight_of_best = np.zeros(threshold.shape)
    is_end = states[:, None] == table[:, symbols].T  # P Q
    sums = weights = np.zeros(0)
    for distance in range(int(blocks.last[-1])):
        first_active = int(np.searchsorted(blocks.last, distance + 1))
        column = min(distance, paths.weights.shape[-1] - 1)
        exponentials = paths.weights[..., column]
        terms = exponentials * (paths.counts - threshold[first_active:, ..., None])
        terms += TERM_SLACK * np.abs(terms)
        if distance == 0:
            own = last[:, None, None, None, None]
            term, weight = (
                np.take_along_axis(each, np.broadcast_to(own, (*each.shape[:-1], 1)), -1)
                for each in (terms, np.broadcast_to(exponentials, terms.shape))
            )
            ends = np.where(is_end, 0.0, -np.inf)[:, None, None, None]
            sums, weights = term + ends, weight + np.zeros_like(ends)
        else:
            skip = len(sums) - (len(threshold) - first_active)
            sums, weights = sums[skip:], weights[skip:]
            sums, weights = _extended(sums, weights, terms, exponentials, table, kinds)
        is_recorded = blocks.first[first_active:] <= distance + 1
        length_sum = sums[..., machine.start]
        is_better = (length_sum > best[first_active:]) & is_recorded[:, None, None, None, None]
        best[first_active:][is_better] = length_sum[is_better]
        weight_of_best[first_active:][is_better] = weights[..., machine.start][is_better]
    return best, weight_of_best


def _extended(
    sums: Float64[np.ndarray, "B P H K 2 Q"],
    weights: Float64[np.ndarray, "B P H K 2 Q"],
    terms: Float64[np.ndarray, "B P H K 2 K"],
    exponentials: Float64[np.ndarray, "P H K 2 K"],
    table: Int64[np.ndarray, "Q V"],
    kinds: Int64[np.ndarray, "Q V"],
) -> tuple[Float64[np.ndarray, "B P H K 2 Q"], Float64[np.ndarray, "B P H K 2 Q"]]:
    """Extend paths by one symbol in front; return two sums for the best path from each state.

    The first sum has the terms e^s (1[kind counts] - c) of `max_path_sums`, and is the largest from this state. The
    second sum has the terms e^s of the same path.
    """
    new_sums, new_weights = np.full_like(sums, -np.inf), np.zeros_like(weights)
    for to, kind in zip(table.T, kinds.T, strict=True):
        other = sums[..., to] + terms[..., kind]
        is_better = other > new_sums
        new_sums = np.where(is_better, other, new_sums)
        new_weights = np.where(is_better, weights[..., to] + exponentials[..., kind], new_weights)
    return new_sums, new_weights
