"""Proofs that two machines over the grid of two strings give the same answer to all pairs of strings.

Both machines pass a class over every edge of the grid, that is, over every side of a cell. An edge is labeled with
these two classes and with the letter of its row or column. A path leads from the lower left corner of a grid to the
upper right corner, by edges upwards and to the right. The first path follows the left border up and the upper border to
the right. Each cell of the grid replaces two edges of a path: its left edge and its upper edge, in this order, become
its lower edge and its right edge. Every path of the grid arises in this way, one cell at a time.

The proof collects the labels of edges that can follow one another in a path: pairs of labels or, if pairs do not
suffice, triples. The proof starts with the borders and closes the set under the replacements. The set contains all
edges that occur, and perhaps edges that never occur. So a fact about all collected edges holds for all strings.

The machines answer all pairs of strings alike under two conditions. First, they have the same `per_row`. Second, on
every lower edge that a cell makes, the classes of both machines have the same entry in `numbers`. Then the answers of
both machines are sums of the same numbers. For edges that occur, the second condition is also necessary. If the
machines agree on the strings before and after one more column, then this column adds the same number to both answers.
Equivalent machines therefore divide their answers between rows and columns in the same way.

Source: ours; the induction follows Masek and Paterson, "A faster algorithm computing string edit distances" (JCSS
20, 1980), on differences of neighbors in the table.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int64

from lengthwise.automata.grid_machine import MAX_CELLS, GridMachine, Ids

MAX_ENUMERATED = 1 << 16
"""All pairs of strings of given lengths are compared only if there are at most this many pairs."""

MAX_LETTERS = 32
"""The largest total length of two enumerated strings, in letters. For alphabets of one letter, this length limits the
search."""

MAX_COLUMNS = 1 << 14
"""The largest number of different columns that a search in a grid of few rows keeps (or rows, if columns are few)."""

MAX_EDGES_FOR_TRIPLES = 1 << 8
"""The largest number of edges for which triples are collected."""

LENGTHS = (10, 16, 20, 24, 28)
"""The lengths, in letters, of the random strings that are compared after the enumerated strings."""

STRINGS_PER_LENGTH = 8_000
"""The number of random pairs of strings of each length."""


Strings = tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]]


class Edges(NamedTuple):
    """The labels of edges in the grid of two strings, and the edges that cells make from other edges.

    An edge is a side of a cell. Its label is the letter of its row or column, then the classes that the first and the
    second machine pass over the edge. Paths lead from the lower left corner of the grid to the upper right corner.
    Classes go down over the edges in `below`, which a path follows to the right. Classes go to the right over the edges
    in `upward`, which a path follows upwards. A cell with left edge m and upper edge n makes the lower edge
    ``made_below[m, n]`` and the right edge ``made_upward[m, n]``. `top` and `left` mark the edges of the borders.
    """

    below: Int64[np.ndarray, "N 3"]
    upward: Int64[np.ndarray, "M 3"]
    made_below: Int64[np.ndarray, "M N"]
    made_upward: Int64[np.ndarray, "M N"]
    top: Bool[np.ndarray, " N"]
    left: Bool[np.ndarray, " M"]

    def select(self, below: Bool[np.ndarray, " N"], upward: Bool[np.ndarray, " M"]) -> "Edges":
        """Return only the edges at which the two masks are True.

        If the masks keep two edges, they must also keep the edges that a cell makes from these two edges.
        """
        cells = np.ix_(upward, below)
        return Edges(
            self.below[below],
            self.upward[upward],
            (np.cumsum(below) - 1)[self.made_below[cells]],
            (np.cumsum(upward) - 1)[self.made_upward[cells]],
            self.top[below],
            self.left[upward],
        )


class Paths(NamedTuple):
    """The `Edges` that paths through the grid of two strings can have.

    `made` marks the edges in `below` that cells make. Only these edges add numbers to answers.
    """

    edges: Edges
    made: Bool[np.ndarray, " N"]

    @property
    def num_pairs(self) -> tuple[int, int]:
        """Two counts of pairs of classes, one class from each machine: pairs passed down, and pairs passed right."""
        below, upward = (len(np.unique(part[:, 1:], axis=0)) for part in self.edges[:2])
        return below, upward


class Difference(NamedTuple):
    """Two strings for which two machines have different answers.

    `is_shortest` is True if the machines give the same answer to each pair of strings with fewer letters in total.
    """

    first: Int64[np.ndarray, " n"]
    second: Int64[np.ndarray, " m"]
    is_shortest: bool


def paths(one: GridMachine, other: GridMachine) -> Paths:
    """Return the `Edges` that can occur in paths through the grid of two strings.

    The search collects pairs of edges that can follow one another in a path. If these pairs do not prove that the
    machines give the same answers, and the machines are small, the search collects triples of edges instead.

    Raises:
        ValueError: the machines read different letters, or have too many classes.
    """
    if one.symbols != other.symbols:
        raise ValueError(
            f"symbols: expected machines over the same letters, got {one.symbols!r} and {other.symbols!r}; build both "
            "with the same symbols in the same order"
        )
    reached = _pairs(_reached(_all_edges(one, other)))
    # Triples exclude more edges than pairs do. But there can be as many triples as the cube of the number of edges, so
    # triples are collected only for small machines.
    if not proves_alike(one, other, reached) and sum(map(len, reached.edges[:2])) <= MAX_EDGES_FOR_TRIPLES:
        return _triples(reached.edges)
    return reached


def proves_alike(one: GridMachine, other: GridMachine, reached: Paths) -> bool:
    """Return whether the edges in `reached` prove that both machines give every pair of strings the same answer."""
    # Answers are the same sums if the numbers agree on all edges that cells make, by induction on the cells of a path.
    _, classes_one, classes_other = reached.edges.below[reached.made].T
    return one.per_row == other.per_row and bool((one.numbers[classes_one] == other.numbers[classes_other]).all())


def _all_edges(one: GridMachine, other: GridMachine) -> Edges:
    size = len(one.symbols)
    shapes = [(size, one.table.shape[axis], other.table.shape[axis]) for axis in (0, 1)]
    if (count := math.prod(map(math.prod, shapes))) > MAX_CELLS:
        raise ValueError(
            f"machine: expected at most {MAX_CELLS:,} entries in the table of the product of both machines, got "
            f"{count:,}; use machines with fewer classes"
        )
    below, upward = (np.indices(shape).reshape(3, -1) for shape in shapes)
    (b, p, p2), (a, q, q2) = below[:, None, :], upward[:, :, None]
    made, made2 = one.table[p, q, a, b], other.table[p2, q2, a, b]
    made_below, made_upward = (
        np.ravel_multi_index((letter + 0 * made[..., 0], made[..., axis], made2[..., axis]), shapes[axis])
        for axis, letter in enumerate((b, a))
    )
    top, left = (p == one.top) & (p2 == other.top), (q == one.left) & (q2 == other.left)
    return Edges(below.T, upward.T, made_below, made_upward, top[0], left[:, 0])


def _reached(edges: Edges) -> Edges:
    """Return the edges that cells can make if any two edges can meet in a cell."""
    # This closure ignores which edges can meet, so it contains all edges that occur. It leaves fewer edges for
    # `_pairs`.
    below, upward = edges.top.copy(), edges.left.copy()
    count = 0
    while count < (count := int(below.sum() + upward.sum())):
        cells = np.ix_(upward, below)
        below[edges.made_below[cells]] = True
        upward[edges.made_upward[cells]] = True
    return edges.select(below, upward)


def _pairs(edges: Edges) -> Paths:
    """Return the edges that paths can have, found by collecting the pairs of edges that can follow one another.

    Rows of arrays stand for the first edge of a pair: upward edges, then edges to the right. After a replacement, all
    edges that can precede the replaced edges can precede the new lower edge. All edges that can follow the replaced
    edges can follow the new right edge.
    """
    num_upward, num_below = edges.made_below.shape
    below = np.vstack([np.ones((num_upward, 1)) * edges.left[:, None] * edges.top, np.outer(edges.top, edges.top)]) > 0
    upward = np.vstack([np.outer(edges.left, edges.left), np.zeros((num_below, num_upward))]) > 0
    made = np.zeros(num_below, dtype=np.bool_)
    count = -1
    while count < (count := int(below.sum() + upward.sum())):
        # The closure ends, because entries only become True, and their number is bounded.
        # This is Masek and Paterson's induction step: a cell replaces `left, upper` in a path by `lower, right`.
        left, upper = below[:num_upward].nonzero()
        lower, right = edges.made_below[left, upper], edges.made_upward[left, upper]
        made[lower] = True
        upward[num_upward + lower, right] = True
        to_lower, to_right = np.zeros((num_upward, num_below)), np.zeros((num_upward, num_below))
        to_lower[left, lower] = to_right[right, upper] = 1
        # Products of 0/1 matrices compose relations: edges that can precede `left` can now precede `lower`, and edges
        # that can follow `upper` can now follow `right`.
        below |= upward @ to_lower > 0
        below[:num_upward] |= to_right @ below[num_upward:] > 0
        upward[:num_upward] |= to_right @ upward[num_upward:] > 0
    return Paths(edges.select(below.any(0) | edges.top, upward.any(0) | edges.left), made[below.any(0) | edges.top])


def _triples(edges: Edges) -> Paths:
    """Return the edges that paths can have, found by collecting the triples of edges that can follow one another.

    Arrays have upward edges first, then edges to the right.

    A cell replaces two edges of a triple, and the third edge stays. The edges that can come before or after the new
    triple are taken from all triples that share two edges with the old triple.
    """
    num_upward, num_below = edges.made_below.shape
    size = num_upward + num_below
    left, top = (np.zeros(size, dtype=np.bool_) for _ in range(2))
    left[:num_upward], top[num_upward:] = edges.left, edges.top
    triples = np.zeros((size, size, size), dtype=np.bool_)
    # The first path follows the left border before the top, so no triple has a top edge before a left edge.
    for x, y, z in ((left, left, left), (left, left, top), (left, top, top), (top, top, top)):
        triples |= x[:, None, None] & y[:, None] & z
    made = np.zeros(num_below, dtype=np.bool_)
    count = -1
    while count < (count := int(triples.sum())):
        earlier, v, h = triples[:, :num_upward, num_upward:].nonzero()
        lower, right = num_upward + edges.made_below[v, h], edges.made_upward[v, h]
        made[lower - num_upward] = True
        triples[earlier, lower, right] = True
        to_lower = np.zeros((size, num_upward, size), dtype=np.float32)
        to_lower[earlier, v, lower] = 1
        v, h, later = triples[:num_upward, num_upward:].nonzero()
        lower, right = num_upward + edges.made_below[v, h], edges.made_upward[v, h]
        triples[lower, right, later] = True
        to_right = np.zeros((num_below, size, size), dtype=np.float32)
        to_right[h, later, right] = 1
        for edge in range(size):
            triples[:, edge] |= triples[:, edge, :num_upward].astype(np.float32) @ to_lower[edge] > 0
            from_right = to_right[:, edge, :num_upward].T @ triples[num_upward:, edge].astype(np.float32)
            triples[:num_upward, edge] |= from_right > 0
    in_paths = triples.any((0, 1)) | left | top
    return Paths(edges.select(in_paths[num_upward:], in_paths[:num_upward]), made[in_paths[num_upward:]])


def difference(one: GridMachine, other: GridMachine) -> Difference | None:
    """Return a pair of strings for which the machines have different answers; None if no such pair exists.

    None is returned only after a proof. Short pairs are enumerated in the order of their total length, so the first
    difference among them is shortest.

    Raises:
        ValueError: the machines read different letters, or neither a proof nor a difference was found.
    """
    if proves_alike(one, other, paths(one, other)):
        return None
    for strings in _all_strings(len(one.symbols)):
        if shortest := _first_difference(one, other, *strings):
            return Difference(*shortest, is_shortest=True)
    for strings in _some_strings(one, other):
        if longer := _first_difference(one, other, *strings):
            return Difference(*_shrunk(one, other, longer), is_shortest=False)
    # Some classes that may meet on an edge have different numbers, but no strings were found that make them meet.
    raise ValueError(
        "machine: expected a proof that both machines give the same answers, or strings with different answers, got "
        "neither; use a machine with fewer classes"
    )


def _all_strings(num_letters: int) -> Iterator[tuple[Ids, Ids]]:
    """Yield all pairs of short strings, in the order of their total number of letters."""
    total = 2
    while num_letters**total <= MAX_ENUMERATED and total <= MAX_LETTERS:
        letters = np.indices((num_letters,) * total).reshape(total, -1).T
        for height in range(1, total):
            yield letters[:, :height], letters[:, height:]
        total += 1


def _some_strings(one: GridMachine, other: GridMachine) -> Iterator[tuple[Ids, Ids]]:
    """Yield strings found by a search in grids of few rows or columns, then random strings of several lengths."""
    size = len(one.symbols)
    # A difference in a grid of few rows or columns may need a special long string. Random strings seldom contain it,
    # but a search can find it.
    for narrow in (1, 2):
        for letters in np.indices((size,) * narrow).reshape(narrow, -1).T:
            for is_first in (True, False):
                if (long := _narrow_difference(one, other, letters, is_first=is_first)) is not None:
                    yield (letters[None], long[None]) if is_first else (long[None], letters[None])
    random = np.random.default_rng(0)
    for length in LENGTHS:
        for num_letters in (2, 2, 2, size):
            yield _related_strings(min(num_letters, size), length, random)


def _related_strings(num_letters: int, length: int, random: np.random.Generator) -> tuple[Ids, Ids]:
    """Draw pairs of random strings; half of the first strings are periodic, and the second strings copy parts of them.

    The copied parts are shifted. Independent random strings would have few long matches, but many tasks on two strings,
    such as distances, depend on matches.
    """
    shape = (STRINGS_PER_LENGTH, length)
    first, second = random.integers(num_letters, size=(2, *shape))
    indices, row = np.arange(length), np.arange(STRINGS_PER_LENGTH)[:, None]
    periodic = np.take_along_axis(first, indices % random.integers(1, 6, size=(len(row), 1)), 1)
    first = np.where(row % 2, periodic, first)
    moved = np.take_along_axis(first, (indices + random.integers(-4, 5, size=(len(row), 1))) % length, 1)
    copied = random.random(shape) < 1.25 * random.random((len(row), 1))  # a fifth of the strings are complete copies
    return first, np.where(copied, moved, second)


def _first_difference(one: GridMachine, other: GridMachine, first: Ids, second: Ids) -> Strings | None:
    """Return two prefixes of these strings with different answers and the fewest letters in total, or None."""
    sums = []
    for machine in (one, other):
        down, _ = machine.messages(first, second)
        sums.append(machine.per_row * np.arange(1, first.shape[1] + 1)[:, None] + machine.numbers[down].cumsum(2))
    wrong = np.argwhere(sums[0] != sums[1])
    if not len(wrong):
        return None
    row, i, j = wrong[wrong[:, 1:].sum(1).argmin()]
    return first[row, : i + 1], second[row, : j + 1]


def _narrow_difference(
    one: GridMachine, other: GridMachine, letters: Int64[np.ndarray, " n"], *, is_first: bool
) -> Int64[np.ndarray, " m"] | None:
    """Return a shortest string that the machines answer differently if it is paired with `letters`, or None.

    `is_first` tells whether `letters` is the first of the two strings. If it is, the grid has few rows, and a column of
    pairs of classes is passed from left to right. Otherwise the grid has few columns, and a row is passed down. The
    search is breadth first over these columns or rows, and stops after `MAX_COLUMNS` different columns or rows.
    """
    size, borders = len(one.symbols), [(one.left, other.left), (one.top, other.top)]
    before, entering = borders if is_first else borders[::-1]
    if one.per_row != other.per_row and not is_first:
        return None
    start = np.tile(np.array(before)[:, None], len(letters))
    reached = {start.tobytes()}
    # A grid of fixed height is a finite automaton. It reads one letter of the long string at a time, and its states are
    # columns of classes. Breadth-first search in the product of both automata finds a shortest string.
    layer: list[tuple[np.ndarray, tuple[int, ...]]] = [(start, ())]
    while layer and len(reached) < MAX_COLUMNS:
        next_layer: list[tuple[np.ndarray, tuple[int, ...]]] = []
        for column, string in layer:
            for letter in range(size):
                crossing = np.array(entering)
                passed = np.empty_like(column)
                differs = False
                for index, other_letter in enumerate(letters):
                    for k, machine in enumerate((one, other)):
                        p, q = (crossing[k], column[k, index]) if is_first else (column[k, index], crossing[k])
                        a, b = (other_letter, letter) if is_first else (letter, other_letter)
                        down, right = machine.table[p, q, a, b]
                        crossing[k], passed[k, index] = (down, right) if is_first else (right, down)
                    down_pair = crossing if is_first else passed[:, index]
                    differs |= one.numbers[down_pair[0]] != other.numbers[down_pair[1]]
                if differs:
                    return np.array([*string, letter])
                if passed.tobytes() not in reached:
                    reached.add(passed.tobytes())
                    next_layer.append((passed, (*string, letter)))
        layer = next_layer
    return None


def _shrunk(one: GridMachine, other: GridMachine, strings: Strings) -> Strings:
    """Remove letters one by one, as long as the machines still answer the remaining strings differently."""
    shorter: Strings | None = strings
    while shorter is not None:
        first, second = shorter
        shorter = None
        for is_first, string in ((True, first), (False, second)):
            if len(string) > 1:
                without = np.array([np.delete(string, index) for index in range(len(string))])
                same = np.tile(second if is_first else first, (len(string), 1))
                shorter = shorter or _first_difference(one, other, *((without, same) if is_first else (same, without)))
    return first, second
