"""Representing strings by vectors of zeros and ones. Products of entries give the vector of a concatenation."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int64

from lengthwise.automata.monoid import TransitionMonoid
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE

MAX_CORRECTIONS = 1_000
"""The largest number of rounds of the perceptron rule in the search for a linear read-out."""


class Products(NamedTuple):
    """The rule that computes the vector of a concatenation of C strings from their vectors a_1 ... a_C.

    Product p is ``a_1[reads[p, 0]] * ... * a_C[reads[p, C-1]]``. Entry i of the joined vector is the sum of all
    products p with ``writes[p] = i``. At most one of these products is 1.
    """

    reads: Int64[np.ndarray, "P C"]
    writes: Int64[np.ndarray, " P"]

    def join(self, parts: Int64[np.ndarray, "C E"]) -> Int64[np.ndarray, " E"]:
        """Return the vector of a concatenation of C strings, given the vectors `parts` of these strings."""
        joined = np.zeros(parts.shape[1], dtype=np.int64)
        np.add.at(joined, self.writes, parts[np.arange(len(parts)), self.reads].prod(1))
        return joined


class ReadOut(NamedTuple):
    """A linear read-out of answers from vectors.

    If y is the answer to vector a, entry y of ``weights @ a + offsets`` exceeds all other entries by at least 1.
    """

    weights: Int64[np.ndarray, "Y E"]
    offsets: Int64[np.ndarray, " Y"]


class Representation(NamedTuple):
    """Vectors of E zeros and ones for all strings, and a read-out of answers.

    `leaves` are the vectors of the empty string (first) and of each symbol. `products` gives the vectors of all other
    strings. `read_out` gives the machine's answers, except in states that answer `IGNORE`.
    """

    leaves: Int64[np.ndarray, "V1 E"]
    products: Products
    read_out: ReadOut


def live_states(machine: Transducer) -> Int64[np.ndarray, " N"]:
    """Return all states except one sink, or all states if no state other than the start is a sink.

    If a string leads from a state to the sink that is left out, the state's row in the string's matrix
    (`state_matrices`) has no 1. So the sink needs no entries.
    """
    table = machine.semiautomaton.table
    states = np.arange(machine.num_states)
    sinks = np.flatnonzero((table == states[:, None]).all(1) & (states != machine.start))
    return states[states != sinks[0]] if len(sinks) else states


def state_matrices(machine: Transducer, num_classes: int, chunk_size: int) -> Representation:
    """Represent a string s by the matrix A(s) of its state map: A(s)[q, r] = 1 if s leads from state q to state r.

    Matrices are flattened row by row, so vectors have N^2 entries. Concatenation is multiplication: A(st) = A(s) A(t).
    The N states are the `live_states`.

    Example:
        >>> from lengthwise.automata import library
        >>> state_matrices(library.parity(), num_classes=2, chunk_size=2).leaves.tolist()
        [[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]

    Source: Chi et al. (2023), section 7.2, eq. (2).
    Differs from the source: a sink is left out.
    """
    live = live_states(machine)
    # -1 marks the sink. A row that leads to it has no 1, and stays zero in all products.
    position = np.full(machine.num_states, -1)
    position[live] = np.arange(len(live))
    maps = np.concatenate([np.arange(len(live))[None], position[machine.semiautomaton.table[live]].T])
    weights = np.zeros((num_classes, len(live), len(live)), dtype=np.int64)
    answers = machine.outputs[live]
    supervised = np.flatnonzero(answers != IGNORE)
    # Weight 2 exceeds the sink's offset of 1. So the offset decides exactly when the row of the start has no 1.
    weights[answers[supervised], position[machine.start], supervised] = 2
    offsets = np.zeros(num_classes, dtype=np.int64)
    offsets[[answer for answer in machine.outputs[position < 0].tolist() if answer != IGNORE]] = 1
    return Representation(
        _matrices(maps),
        matrix_products(len(live), chunk_size),
        ReadOut(weights.reshape(num_classes, -1), offsets),
    )


def point_matrices(
    monoid: TransitionMonoid, action: Int64[np.ndarray, "M N"], read_out: ReadOut, chunk_size: int
) -> Representation:
    """Represent a string by the matrix of its map in `action`, a faithful action of the monoid on N points.

    Matrices are flattened row by row, so vectors have N^2 entries. `linear_read_out` computes the read-out.
    """
    leaves = _matrices(action[[0, *monoid.generators]])
    return Representation(leaves, matrix_products(action.shape[1], chunk_size), read_out)


def linear_read_out(
    action: Int64[np.ndarray, "M N"], answers: Int64[np.ndarray, " M"], num_classes: int
) -> ReadOut | None:
    """Return a linear read-out of all answers from the matrices of an action, or None if the search fails."""
    supervised = answers != IGNORE
    weights = separating_weights(_matrices(action[supervised]), answers[supervised], num_classes)
    return None if weights is None else ReadOut(weights, np.zeros(num_classes, dtype=np.int64))


def one_hot_elements(
    monoid: TransitionMonoid, answers: Int64[np.ndarray, " M"], num_classes: int, chunk_size: int
) -> Representation:
    """Represent a string by the one-hot vector of its element in a monoid; vectors have one entry for each element."""
    reads = np.indices((monoid.size,) * chunk_size).reshape(chunk_size, -1)
    joined = reads[0]
    for element in reads[1:]:
        joined = monoid.table[joined, element]
    weights = (answers == np.arange(num_classes)[:, None]).astype(np.int64)
    return Representation(
        np.eye(monoid.size, dtype=np.int64)[[0, *monoid.generators]],
        Products(reads.T, joined),
        ReadOut(weights, np.zeros(num_classes, dtype=np.int64)),
    )


def matrix_products(num_points: int, chunk_size: int) -> Products:
    """Return the `Products` that multiply C matrices of zeros and ones, which have at most one 1 in each row.

    There are N^(C+1) products, one for each path of C steps over N points. The path from i over k, l, ... to j reads
    A_1[i, k], A_2[k, l], ... and writes (A_1 ... A_C)[i, j]. Matrices are flattened row by row, and paths are in the
    order of i, j, k, l, ...

    Example:
        >>> products = matrix_products(num_points=2, chunk_size=2)
        >>> a, b = np.array([1, 0, 1, 0]), np.array([0, 1, 1, 0])
        >>> products.join(np.stack([a, b])).tolist()
        [0, 1, 0, 1]

    Source: Chi et al. (2023), Lemma 1 and its example (appendix D.2), for C = 2.
    Differs from the source: no difference for C = 2; larger C are ours.
    """
    start, end, *between = np.indices((num_points,) * (chunk_size + 1)).reshape(chunk_size + 1, -1)
    stops = [start, *between, end]
    reads = [num_points * row + column for row, column in pairwise(stops)]
    return Products(np.stack(reads, 1), num_points * start + end)


def separating_weights(
    vectors: Int64[np.ndarray, "M E"], answers: Int64[np.ndarray, " M"], num_classes: int
) -> Int64[np.ndarray, "Y E"] | None:
    """Return integers W that separate the answers, or None if the search fails.

    If y is the answer to a vector, entry y of ``W @ vector`` exceeds all other entries by at least 1. Row y of W begins
    as the sum of the vectors with answer y. These sums suffice if all vectors are matrices of different permutations,
    with different answers. Each round then corrects all mistakes at once. For each mistake, the round adds the vector
    to the row of the right answer, and subtracts it from the row with the largest other entry. The search fails if
    mistakes remain after `MAX_CORRECTIONS` rounds.

    Source: the perceptron rule for several classes (Duda and Hart, "Pattern Classification and Scene Analysis", 1973).
    """
    rows = np.arange(len(vectors))
    weights = np.zeros((num_classes, vectors.shape[1]), dtype=np.int64)
    # Matrices of permutations of N points have inner product N with themselves, and at most N - 2 with others.
    np.add.at(weights, answers, vectors)
    for _ in range(MAX_CORRECTIONS):
        # By the perceptron convergence theorem, corrections end if some weights separate the classes.
        scores = vectors @ weights.T
        right = scores[rows, answers]
        scores[rows, answers] = np.iinfo(np.int64).min
        wrong: Bool[np.ndarray, " M"] = scores.max(1, initial=np.iinfo(np.int64).min) >= right
        if not wrong.any():
            return weights
        np.add.at(weights, answers[wrong], vectors[wrong])
        np.subtract.at(weights, scores.argmax(1)[wrong], vectors[wrong])
    return None


def _matrices(maps: Int64[np.ndarray, "*K N"]) -> Int64[np.ndarray, "*K E"]:
    """Return 0/1 matrices of maps of N points, flattened row by row; the row of a point with image -1 is zero."""
    num_points = maps.shape[-1]
    matrices: np.ndarray = maps[..., None] == np.arange(num_points)
    return matrices.astype(np.int64).reshape(*maps.shape[:-1], num_points**2)
