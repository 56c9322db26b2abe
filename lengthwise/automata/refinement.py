"""Partition refinement, and comparison of machines. Each has a slow version that defines its results."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64

Pair = tuple[int, int]
Rows = Sequence[Sequence[int]]

FEW_TRANSITIONS = 128
"""The largest number of transitions for which Python is faster than NumPy, whose calls have a fixed cost."""


def coarsest_partition(table: Int64[np.ndarray, "Q V"], labels: Int64[np.ndarray, " Q"]) -> Int64[np.ndarray, " Q"]:
    """Return the block of each state in the coarsest stable partition of the states.

    All states of a block have the same label, and each symbol leads from all of them to the same block. For small
    tables, Moore's rounds run in Python until no block is split. For larger tables of Q states and V symbols, at most
    about log2 Q rounds run in NumPy, on all states at once. If these rounds do not suffice, because only long strings
    distinguish some states, Hopcroft's algorithm finishes the work in O(Q V log Q) steps.

    Example:
        >>> coarsest_partition(np.array([[1], [2], [3], [0]]), np.array([0, 1, 0, 1])).tolist()
        [0, 1, 0, 1]

    Source: Hopcroft, "An n log n algorithm for minimizing states in a finite automaton" (1971).
    Differs from the source: it begins with rounds of Moore's refinement, and symbols that act alike count as one.
    """
    if table.size <= FEW_TRANSITIONS:
        return _partition_of_few(table.tolist(), labels.tolist())
    table = np.unique(table, axis=1)  # symbols that act alike split blocks in the same way
    blocks, num_blocks = numbered(labels), 0
    # By Moore's theorem, two states share a block after k rounds if and only if no string of up to k symbols separates
    # them. A round sorts once for each symbol, so log Q rounds cost little more than Hopcroft's algorithm.
    for _ in range(len(table).bit_length()):
        num_blocks = int(blocks.max()) + 1
        blocks = _moore_round(table, blocks)
        if blocks.max() + 1 == num_blocks:
            return blocks
    return _split_by_smaller_halves(table, blocks)


def coarsest_partition_by_rounds(
    table: Int64[np.ndarray, "Q V"], labels: Int64[np.ndarray, " Q"]
) -> Int64[np.ndarray, " Q"]:
    """Return the blocks of `coarsest_partition`, found by Moore's rounds only.

    With Q states and V symbols, there are at most Q rounds, and each takes O(Q V log Q) steps.
    """
    blocks, num_blocks = numbered(labels), 0
    while num_blocks < blocks.max() + 1:
        num_blocks = int(blocks.max()) + 1
        blocks = _moore_round(table, blocks)
    return blocks


def _partition_of_few(rows: list[list[int]], blocks: list[int]) -> Int64[np.ndarray, " Q"]:
    """Run Moore's rounds in Python, with blocks numbered by their first states."""
    num_before = 0
    num_blocks = len(set(blocks))
    while num_before < num_blocks:
        keys = [(block, *[blocks[state] for state in row]) for block, row in zip(blocks, rows, strict=True)]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        blocks = [numbers[key] for key in keys]
        num_before = num_blocks
        num_blocks = len(numbers)
    return np.array(blocks)


def numbered(labels: Int64[np.ndarray, " Q"]) -> Int64[np.ndarray, " Q"]:
    """Return the labels, renumbered from 0 in increasing order."""
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _moore_round(table: Int64[np.ndarray, "Q V"], blocks: Int64[np.ndarray, " Q"]) -> Int64[np.ndarray, " Q"]:
    """Split blocks so that, for each symbol, all states of a block lead to the same old block."""
    before, num_before = blocks, int(blocks.max()) + 1
    for column in table.T:  # numbering pairs of blocks is many times as fast as finding unique rows
        blocks = numbered(blocks * num_before + before[column])
    return blocks


def _split_by_smaller_halves(
    table: Int64[np.ndarray, "Q V"], blocks: Int64[np.ndarray, " Q"]
) -> Int64[np.ndarray, " Q"]:
    """Refine a partition by Hopcroft's algorithm.

    `states` lists the states block by block, and `at` contains the index of each state in this list.
    """
    num_states, num_symbols = table.shape
    # Hopcroft's time bound holds only if a step visits no edges except the edges into the splitter. So edges are looked
    # up by their targets.
    by_target = np.argsort(table, axis=None, kind="stable")
    edges_into = np.searchsorted(table.ravel()[by_target], np.arange(num_states + 1)).tolist()
    sources, symbols = (by_target // num_symbols).tolist(), (by_target % num_symbols).tolist()
    order = np.argsort(blocks, kind="stable")
    states = order.tolist()
    at = np.argsort(order).tolist()
    block_of = blocks.tolist()
    bounds = np.searchsorted(blocks[order], np.arange(blocks.max() + 2)).tolist()
    first, end = bounds[:-1], bounds[1:]
    # At first, every block must be used, because no block has been a splitter yet.
    waiting = list(range(len(first)))
    while waiting:
        splitter = waiting.pop()
        predecessors = defaultdict(list)
        for state in states[first[splitter] : end[splitter]]:
            for edge in range(edges_into[state], edges_into[state + 1]):
                predecessors[symbols[edge]].append(sources[edge])
        for marked in predecessors.values():
            num_marked: defaultdict[int, int] = defaultdict(int)
            for state in marked:  # move it to the marked states at the front of its block
                block = block_of[state]
                front, index = first[block] + num_marked[block], at[state]
                other = states[front]
                states[front] = state
                states[index] = other
                at[state] = front
                at[other] = index
                num_marked[block] += 1
            for block, count in num_marked.items():
                begin = first[block]
                middle = first[block] + count
                stop = end[block]
                if middle == stop:
                    continue
                # By Hopcroft, the smaller half becomes the new block, and only this block must be added to the waiting
                # blocks. If the old block is still waiting, both halves now wait. If the old block was already used,
                # splitting by the whole block and by one half implies splitting by the other half. A block that is
                # added has at most half the size of the old block, so each state is added at most log2 Q times.
                new = len(first)
                is_front_smaller = 2 * count <= stop - begin
                halves = [(begin, middle), (middle, stop)]
                first_of_new, end_of_new = halves[0] if is_front_smaller else halves[1]
                first[block], end[block] = halves[1] if is_front_smaller else halves[0]
                first.append(first_of_new)
                end.append(end_of_new)
                for state in states[first_of_new:end_of_new]:
                    block_of[state] = new
                waiting.append(new)
    return np.array(block_of)


def first_difference(
    tables: Sequence[Rows], starts: Pair, labels: Rows, *, ignored: int | None = None
) -> list[int] | None:
    """Return a shortest string after which two machines have different labels, or None if labels are always equal.

    If there are several shortest strings, the first in symbol order is returned. A state with the `ignored` label is
    unlabeled and does not differ from any state. If the machines have Q states together, the search visits at most Q
    pairs of states. In addition, it may visit all pairs from which a string leads to an unlabeled state.

    Example:
        >>> ring = lambda size: [[(state + 1) % size] for state in range(size)]
        >>> first_difference([ring(2), ring(3)], (0, 0), [[0, 1], [0, 1, 1]])
        [0, 0]

    Source: Hopcroft and Karp, "A linear algorithm for testing equivalence of finite automata" (1971).
    Differs from the source: pairs are visited in the order of their shortest strings; unlabeled states are allowed.
    """
    # By Hopcroft and Karp, a pair need not be visited if its states are already linked by a chain of visited pairs.
    # Equality of labels is transitive, so a string that separates the pair also separates a pair of the chain, which an
    # earlier string reached. So the first string that separates the starts never passes through a skipped pair.
    # Unlabeled states break transitivity, so states are linked only if all strings from them lead to labels.
    always_labeled = [_always_labeled(table, own, ignored) for table, own in zip(tables, labels, strict=True)]
    offset = len(tables[0])
    parent = list(range(offset + len(tables[1])))

    def root(state: int) -> int:
        while parent[state] != state:
            parent[state] = parent[parent[state]]
            state = parent[state]
        return state

    came_from: dict[Pair, tuple[Pair, int]] = {starts: (starts, -1)}
    order = [starts]
    for pair in order:  # the list grows inside the loop
        p, q = pair
        if _differ(labels[0][p], labels[1][q], ignored):
            return _string_to(pair, came_from)
        for symbol, (r, s) in enumerate(zip(tables[0][p], tables[1][q], strict=True)):
            if (r, s) in came_from:
                continue
            if always_labeled[0][r] and always_labeled[1][s]:
                one, other = root(r), root(offset + s)
                if one == other:
                    continue
                parent[one] = other
            came_from[r, s] = (pair, symbol)
            order.append((r, s))
    return None


def first_difference_of_all_pairs(
    tables: Sequence[Rows], starts: Pair, labels: Rows, *, ignored: int | None = None
) -> list[int] | None:
    """Return the string that `first_difference` returns, found by a search of all pairs of states."""
    came_from: dict[Pair, tuple[Pair, int]] = {starts: (starts, -1)}
    order = [starts]
    for pair in order:  # the list grows inside the loop
        if _differ(labels[0][pair[0]], labels[1][pair[1]], ignored):
            return _string_to(pair, came_from)
        for symbol, after in enumerate(zip(tables[0][pair[0]], tables[1][pair[1]], strict=True)):
            if after not in came_from:
                came_from[after] = (pair, symbol)
                order.append(after)
    return None


def _differ(label: int, other: int, ignored: int | None) -> bool:
    return label != other and ignored not in (label, other)


def _string_to(pair: Pair, came_from: dict[Pair, tuple[Pair, int]]) -> list[int]:
    string = []
    while (step := came_from[pair])[1] >= 0:
        pair, symbol = step
        string.append(symbol)
    return string[::-1]


def _always_labeled(table: Rows, labels: Sequence[int], ignored: int | None) -> list[bool]:
    """Return for each state whether all strings from this state lead to states with labels."""
    always = [True] * len(labels)
    unlabeled = [state for state, label in enumerate(labels) if label == ignored]
    if not unlabeled:
        return always
    predecessors: list[list[int]] = [[] for _ in labels]
    for source, row in enumerate(table):
        for target in set(row):
            predecessors[target].append(source)
    for state in unlabeled:
        always[state] = False
    for state in unlabeled:  # the list grows inside the loop
        for source in predecessors[state]:
            if always[source]:
                always[source] = False
                unlabeled.append(source)
    return always
