r"""Local search after state merging: move a transition, merge or split states, while the description gets shorter.

The description is the machine and the labels that it gets wrong, in bits (`description_length`). The effects of all
single moves are estimated at once. Let e be the noise rate and Y the number of classes. Let c(y, r) be the bits of
label y in state r: -log2(1 - e) if r answers y, else -log2(e / (Y - 1)). Let w[x, r] be the bits of the labels of
prefix x and of its extensions if the machine is in state r after x:

    w[x, r] = c(label of x, r) + sum over symbols v of w[x v, table[r, v]].

Here table[r, v] is the state to which symbol v leads from r. The longest prefixes are computed first. Let (q, v) be the
transition of state q by symbol v. If the target of (q, v) changes from r to r', the bits of the labels change by about

    sum over x of w[x, r'] - w[x, r]

where x are the prefixes whose last transition is their first use of (q, v). This is exact unless a string uses the
transition again later. The effect of a merge of state q into r is estimated in the same way, from the first visits of
q. A split copies a state for the strings that enter it by one transition. Its effect is estimated with the best other
answer and the best other targets of the copy. The moves with the best estimates are then tried, and kept only if the
description length falls.

Source: Stolcke and Omohundro, "Hidden Markov model induction by Bayesian model merging" (NIPS 1992), for merges by
    description length; Rabiner, "A tutorial on hidden Markov models" (1989), for the backward messages, here w.
Differs from the source: the machine is deterministic, so each backward message is the bits of one path; transitions
    also move and states also split.
"""

import math
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from lengthwise.learning.description_length import in_degrees, label_bits, machine_bits
from lengthwise.learning.prefix_tree import Nodes, PrefixTree, Table

MACHINE_WEIGHTS = ((3.0, 1.0), (1.5, 1.0), (1.0,))
"""The factors by which successive searches multiply the machine's bits in the description length.

Each inner tuple is a sequence of searches. The first search begins with the machine of state merging. A large first
factor merges states that state merging left separate.
"""

MAX_MOVES = 40
"""The largest number of transitions that a round of the search tries to change.

A round looks at no more than four times as many merges, and tries some of them.
"""

MAX_FAILURES = 12
"""The number of failed moves that a round of the search tolerates for each kind of move.

A round tries at most this number of splits.
"""

SLACK_BITS = 20.0
"""A merge is tried unless, by an estimate (`rates`), it adds more than this number of bits to the description.

The number is above 0 because estimates are approximate.
"""

MIN_SPLIT_BITS = 3.0
"""A split is tried only if, by an estimate, it saves at least this number of label bits."""

MAX_TRIES = 40
"""The number of random changes in a row, without a shorter description, after which the search ends."""

MIN_SHAKING_SECONDS = 1.0
"""The smallest time for random changes, in CPU seconds, even if the search before them took less time."""

MIN_GAIN = 1e-6
"""A random change is kept if it saves more than this number of bits; a smaller gain may be a rounding error."""

Rates = Float[np.ndarray, "E S"]


class Fitted(NamedTuple):
    """A machine with start state 0, the state that it reaches by each prefix, and the description length (`fit`)."""

    table: Table
    states: Nodes
    outputs: Int64[np.ndarray, " S"]
    num_errors: int
    bits: float


class Repair:
    """The local search on one prefix tree; `weight` multiplies the machine's bits in the description length."""

    def __init__(self, tree: PrefixTree, weight: float = 1.0) -> None:
        self.tree, self.weight = tree, weight
        self.num_labels, self.num_symbols = len(tree.labels), tree.num_symbols
        self._siblings = []
        for level in tree.levels:
            parents = tree.parents[level]
            firsts = np.flatnonzero(np.concatenate([[True], parents[1:] != parents[:-1]]))
            self._siblings.append((level, firsts, parents[firsts]))

    def fit(self, table: Table) -> Fitted:
        """Return the machine with these transitions; each state's answer is the most frequent label in this state.

        The `bits` of the result are the description length, in which the machine's bits are multiplied by `weight`.
        """
        tree, num_states = self.tree, len(table)
        states = tree.states(table)
        counts = tree.label_counts(states, num_states)
        num_errors = self.num_labels - int(counts.max(1).sum())
        degrees = in_degrees(table, tree.are_used(states, num_states), num_states)
        # Every used state but the start is the target of a used transition.
        num_used = int((degrees[1:] > 0).sum()) + 1
        bits = self.weight * machine_bits(num_used, tree.num_classes, degrees)
        bits += label_bits(num_errors, self.num_labels, tree.num_classes)
        return Fitted(table, states, counts.argmax(1), num_errors, bits)

    def without_unused(self, fitted: Fitted) -> Fitted:
        """Return the machine without the states that no example reaches."""
        used = np.unique(fitted.states)
        if len(used) == len(fitted.table):
            return fitted
        numbers = np.zeros(len(fitted.table), np.int64)
        numbers[used] = np.arange(len(used))
        return fitted._replace(
            table=numbers[fitted.table[used]], states=numbers[fitted.states], outputs=fitted.outputs[used]
        )

    def run(self, fitted: Fitted, deadline: float) -> Fitted:
        """Return a machine that no tried move improves, or the best machine so far if the deadline passes."""
        fitted = self.without_unused(fitted)
        while time.process_time() < deadline:
            before = fitted.bits
            moves, merges = self.rates(fitted)
            if self.weight > 1:
                fitted = self.merged(fitted, merges)
            if fitted.bits == before:
                fitted = self.moved(fitted, moves)
            if fitted.bits == before:
                fitted = self.merged(fitted, merges)
            if fitted.bits == before:
                fitted = self.split(fitted)
            if fitted.bits == before:
                break
            fitted = self.without_unused(fitted)
        return fitted

    def _noise(self, fitted: Fitted) -> float:
        return min((fitted.num_errors + 1) / (self.num_labels + 2), 0.5)

    def label_bits_from(self, fitted: Fitted) -> Float[np.ndarray, "M S"]:
        """Return w[x, r]: the bits that the labels of prefix x and its extensions take when x leads to state r."""
        tree, table = self.tree, fitted.table
        noise = self._noise(fitted)
        costs = np.full((tree.num_classes, len(table)), -math.log2(noise / max(1, tree.num_classes - 1)), np.float32)
        costs[fitted.outputs, np.arange(len(table))] = -math.log2(1 - noise)
        bits = np.zeros((tree.num_nodes, len(table)), np.float32)
        bits[tree.labeled] = costs[tree.labels]
        by_symbol = np.ascontiguousarray(table.T)
        for level, firsts, parents in reversed(self._siblings):
            below = np.take_along_axis(bits[level], by_symbol[tree.symbols[level]], 1)
            bits[parents] += np.add.reduceat(below, firsts, 0)
        return bits

    def _are_first(self, keys: Nodes, num_keys: int) -> np.ndarray:
        """Return a mask of the nodes whose key does not occur earlier on the path from the root."""
        tree, words = self.tree, keys // 64
        masks = np.uint64(1) << (keys % 64).astype(np.uint64)
        seen = np.zeros((tree.num_nodes, (num_keys + 63) // 64), np.uint64)
        first = np.zeros(tree.num_nodes, bool)
        for level in tree.levels:
            before = seen[tree.parents[level]]
            rows = np.arange(len(before))
            first[level] = before[rows, words[level]] & masks[level] == 0
            before[rows, words[level]] |= masks[level]
            seen[level] = before
        return first

    def rates(self, fitted: Fitted) -> tuple[Rates, Float[np.ndarray, "S S"]]:
        """Return the approximate label bits that each new target of a transition adds, and that each merge adds.

        The first array has a row for each transition, and a column for each new target. With V symbols, row q V + v is
        about the transition of state q by symbol v. Entry (q, r) of the second array rates the merge of state q into
        state r.
        """
        tree, table = self.tree, fitted.table
        num_states = len(table)
        bits = self.label_bits_from(fitted)
        edges, num_edges = tree.edges(fitted.states), num_states * self.num_symbols
        moves = _sums(bits, edges, np.flatnonzero(self._are_first(edges, num_edges)), num_edges)
        visits = _sums(bits, fitted.states, np.flatnonzero(self._are_first(fitted.states, num_states)), num_states)
        moves -= moves[np.arange(num_edges), table.ravel()][:, None]
        return moves, visits - np.diag(visits)[:, None]

    def moved(self, fitted: Fitted, rates: Rates) -> Fitted:
        """Move single transitions to other states, and keep each move that shortens the description.

        `rates` are estimates of the change in label bits for each transition and each target. Moves that save the most
        bits are tried first.
        """
        num_states, targets = len(fitted.table), fitted.table.ravel()
        used = self.tree.are_used(fitted.states, num_states)
        degrees = in_degrees(fitted.table, used, num_states)
        # A target takes fewer bits to name if more transitions lead to it.
        logs = np.log2(np.maximum(degrees, 0) + 0.5)
        rates = rates + self.weight * (np.log2(np.maximum(degrees[targets] - 0.5, 0.5))[:, None] - logs)
        rates[np.arange(len(rates)), targets] = np.inf
        rates[~used.ravel()] = np.inf
        targets, failures = rates.argmin(1), 0
        best = rates[np.arange(len(rates)), targets]
        for edge in np.argsort(best)[:MAX_MOVES].tolist():
            if best[edge] >= 0 or failures > MAX_FAILURES:
                break
            table = fitted.table.copy()
            table.ravel()[edge] = targets[edge]
            other = self.fit(table)
            fitted, failures = (other, failures) if other.bits < fitted.bits else (fitted, failures + 1)
        return fitted

    def merged(self, fitted: Fitted, rates: Float[np.ndarray, "S S"]) -> Fitted:
        """Merge pairs of states, and keep each merge that shortens the description.

        `rates` are estimates of the change in label bits for each pair. Merges with the smallest estimates are tried
        first.
        """
        num_states, failures = len(rates), 0
        gone: set[int] = set()
        saved = self.weight * self.num_symbols * math.log2(max(2, num_states)) + SLACK_BITS
        order = np.argsort(np.where(np.eye(num_states, dtype=bool), np.inf, rates), axis=None)
        for key in order[: MAX_MOVES * 4].tolist():
            state, into = divmod(key, num_states)
            if rates[state, into] > saved or failures > MAX_FAILURES:
                break
            if state == 0 or state in gone or into in gone:
                continue
            other = self.fit(np.where(fitted.table == state, into, fitted.table))
            if other.bits < fitted.bits:
                fitted = other
                gone.add(state)
            else:
                failures += 1
        return fitted

    def split(self, fitted: Fitted) -> Fitted:
        """Try splits of states (`_splits`); return the machine after the first split that shortens the description."""
        for table in self._splits(fitted):
            if (other := self.fit(table)).bits < fitted.bits:
                return other
        return fitted

    def _splits(self, fitted: Fitted) -> Iterator[Table]:
        """Yield tables in which one transition to a state leads to a new copy of this state, best estimate first."""
        tree, num_symbols = self.tree, self.num_symbols
        table = fitted.table
        num_edges, noise = table.size, self._noise(fitted)
        edges, targets = tree.edges(fitted.states), table.ravel()
        # Each key is a transition into a state, followed by a transition out of it.
        inner = np.flatnonzero(tree.parents > 0)
        keys = edges[tree.parents[inner]] * num_symbols + tree.symbols[inner]
        pairs, numbers = np.unique(keys, return_inverse=True)
        rates = _sums(self.label_bits_from(fitted)[inner], numbers, np.arange(len(inner)), len(pairs))
        entering, leaving = pairs // num_symbols, pairs % num_symbols
        rates -= rates[np.arange(len(pairs)), table[targets[entering], leaving]][:, None]
        best, least = rates.argmin(1), rates.min(1) + math.log2(max(2, len(table))) / 2
        totals = np.bincount(entering, np.minimum(least, 0), num_edges)
        counts = np.zeros((num_edges, tree.num_classes))
        np.add.at(counts, (edges[tree.labeled], tree.labels), 1)
        relabeled = counts.max(1) - counts[np.arange(num_edges), fitted.outputs[targets]]
        totals -= relabeled * math.log2((1 - noise) / noise * max(1, tree.num_classes - 1))
        degrees = in_degrees(table, tree.are_used(fitted.states, len(table)), len(table))
        totals[degrees[targets] < 2] = 0
        for edge in np.argsort(totals)[:MAX_FAILURES].tolist():
            if totals[edge] > -MIN_SPLIT_BITS:
                return
            copied = np.vstack([table, table[targets[edge]]])
            copied.ravel()[edge] = len(table)
            for index in np.flatnonzero((entering == edge) & (least < 0)).tolist():
                copied[len(table), leaving[index]] = best[index]
            yield copied


def _sums(bits: Float[np.ndarray, "M S"], keys: Nodes, nodes: Int64[np.ndarray, " N"], num_keys: int) -> Rates:
    """Return, for each key, the sum of the rows of `bits` over all given nodes that have this key."""
    keys = keys[nodes]
    order = np.argsort(keys, kind="stable")
    nodes, keys = nodes[order], keys[order]
    firsts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else keys
    sums = np.zeros((num_keys, bits.shape[1]))
    if len(keys):
        sums[keys[firsts]] = np.add.reduceat(bits[nodes], firsts, 0)
    return sums


def repair(tree: PrefixTree, table: Table, *, deadline: float) -> Fitted:
    """By local search, improve the machine with these transitions; `deadline` is a time of `time.process_time`.

    The search is repeated from random changes of the best machine. It ends after `MAX_TRIES` changes in a row without a
    shorter description, or at the deadline. It also ends when the changes have taken as long as the search before them,
    but not before `MIN_SHAKING_SECONDS`.
    """
    began = time.process_time()
    search = Repair(tree)
    fitted = search.fit(table)
    for weights in MACHINE_WEIGHTS:
        reached = table
        for weight in weights:
            weighted = Repair(tree, weight)
            reached = weighted.run(weighted.fit(reached), deadline).table
        fitted = min(fitted, search.without_unused(search.fit(reached)), key=lambda one: one.bits)
    now = time.process_time()
    deadline = min(deadline, now + max(MIN_SHAKING_SECONDS, now - began))
    chance, tries = np.random.default_rng(0), 0
    while tries < MAX_TRIES and time.process_time() < deadline:
        other = search.run(search.fit(_shaken(search, fitted, chance)), deadline)
        fitted, tries = (other, 0) if other.bits < fitted.bits - MIN_GAIN else (fitted, tries + 1)
    return fitted


def _shaken(search: Repair, fitted: Fitted, chance: np.random.Generator) -> Table:
    """Return the table after two to four random moves, or after up to three splits, each followed by a random move."""
    table, num_states = fitted.table.copy(), len(fitted.table)
    used = search.tree.are_used(fitted.states, num_states)
    degrees = in_degrees(table, used, num_states)
    edges = np.flatnonzero(used.ravel())
    if chance.random() < 0.5:
        for edge in chance.choice(edges, min(len(edges), int(chance.integers(2, 5))), replace=False).tolist():
            table.ravel()[edge] = chance.integers(num_states)
        return table
    for edge in chance.choice(edges, min(len(edges), int(chance.integers(1, 4))), replace=False).tolist():
        target = int(table.ravel()[edge])
        if target < num_states and degrees[target] > 1:
            table = np.vstack([table, table[target]])
            table.ravel()[edge] = len(table) - 1
            table[-1, chance.integers(table.shape[1])] = chance.integers(num_states)
    return table
