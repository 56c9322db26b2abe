"""The prefix tree of examples as arrays, level by level, and the states that a machine reaches by the prefixes."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int64

from lengthwise.conventions import IGNORE
from lengthwise.tasks.given.examples import Examples

Nodes = Int64[np.ndarray, " M"]
Table = Int64[np.ndarray, "S V"]


@dataclass(frozen=True, eq=False)
class PrefixTree:
    """All prefixes of the examples as nodes: node 0 is the empty prefix, and longer prefixes follow.

    Nodes with the same parent have consecutive numbers. `parents` and `symbols` are -1 for node 0. `visits` counts the
    strings that begin with each prefix. `labeled` lists the nodes with a label, and `labels` their labels. The nodes of
    level d, which are the prefixes of d symbols, are numbered from `bounds[d]` to `bounds[d + 1] - 1`.
    """

    parents: Nodes
    symbols: Nodes
    visits: Nodes
    labeled: Int64[np.ndarray, " L"]
    labels: Int64[np.ndarray, " L"]
    bounds: tuple[int, ...]
    num_symbols: int
    num_classes: int

    @property
    def num_nodes(self) -> int:
        """The number of different prefixes, including the empty prefix."""
        return len(self.parents)

    @property
    def levels(self) -> list[slice]:
        """The range of node numbers at each level of the tree, from level 1 (the prefixes of one symbol) on."""
        return [slice(*ends) for ends in zip(self.bounds[1:-1], self.bounds[2:], strict=True)]

    def states(self, table: Table, start: int = 0) -> Nodes:
        """Return for each prefix the state that a machine with these transitions reaches, in the order of the nodes."""
        states = np.full(self.num_nodes, start)
        for level in self.levels:
            states[level] = table[states[self.parents[level]], self.symbols[level]]
        return states

    def edges(self, states: Nodes) -> Nodes:
        """Return for each prefix the index of its last transition: state * `num_symbols` + symbol.

        The empty prefix (node 0) has no transition, and gets index 0.
        """
        edges: np.ndarray = states[self.parents] * self.num_symbols + self.symbols
        edges[0] = 0
        return edges

    def are_used(self, states: Nodes, num_states: int) -> Bool[np.ndarray, "S V"]:
        """Return a mask of the transitions that the examples take, given the state after each prefix."""
        used = np.zeros(num_states * self.num_symbols, bool)
        used[self.edges(states)[1:]] = True
        return used.reshape(num_states, self.num_symbols)

    def label_counts(self, states: Nodes, num_states: int) -> Int64[np.ndarray, "S Y"]:
        """Return for each state and label how many prefixes have both; `states` contains the state of each prefix."""
        keys = states[self.labeled] * self.num_classes + self.labels
        return np.bincount(keys, minlength=num_states * self.num_classes).reshape(num_states, self.num_classes)


@lru_cache(maxsize=2)
def prefix_tree(examples: Examples) -> PrefixTree:
    """Return the prefix tree of the examples; a prefix that occurs in several strings has one node and one label.

    Example:
        >>> from lengthwise.tasks.given.reading import read_examples
        >>> tree = prefix_tree(read_examples([("ab", "x"), ("aa", "y"), ("b", "x")]))
        >>> tree.parents.tolist(), tree.symbols.tolist(), tree.bounds
        ([-1, 0, 0, 1, 1], [-1, 0, 1, 0, 1], (0, 1, 3, 5))
    """
    # `examples.prefixes` contains numbers in level order: prefixes are sorted by length, then by the number of the
    # prefix without the last symbol.
    nodes = examples.prefixes + 1
    _, first = np.unique(nodes, return_index=True)
    before = np.concatenate([[0], nodes[:-1]])
    before[examples.starts[:-1]] = 0
    lengths = np.arange(len(nodes)) - np.repeat(examples.starts[:-1], examples.lengths) + 1
    counts = np.bincount(lengths[first])
    given = np.flatnonzero(examples.targets != IGNORE)
    labeled, positions = np.unique(nodes[given], return_index=True)
    return PrefixTree(
        np.concatenate([[-1], before[first]]),
        np.concatenate([[-1], examples.ids[first]]),
        np.bincount(np.concatenate([np.zeros(len(examples), np.int64), nodes])),
        labeled,
        examples.targets[given][positions],
        (0, *np.cumsum([1, *counts[1:].tolist()]).tolist()),
        len(examples.symbols),
        len(examples.classes),
    )
