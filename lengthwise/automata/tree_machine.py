"""Finite machines that read a string as a tree: they merge C neighbors, level by level, until one class is left."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64

from lengthwise.automata.congruence import GAP, coarse_congruence, quotient
from lengthwise.automata.monoid import TransitionMonoid, transition_monoid
from lengthwise.automata.semiautomaton import Semiautomaton, set_frozen, whole_numbers
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.windows import window_blocks
from lengthwise.conventions import IGNORE, PAD
from lengthwise.display import spelled


@dataclass(frozen=True, eq=False)
class TreeMachine:
    """A bottom-up tree automaton over balanced C-ary trees; RegularGPT reads strings in such trees.

    Pads (positions without a symbol) before a string of T symbols fill it up to C^L positions, for the smallest L >= 1
    with C^L >= T. ``leaves[0]`` is the class of a pad, and ``leaves[1 + v]`` is the class of symbol v. At each level, C
    neighboring parts form a window, which is merged. ``table[k_1, ..., k_C]`` is the class of a window whose parts have
    these classes, oldest first; -1 means unknown. ``outputs`` gives the answer for the class of the whole string.

    The machine of the example answers whether any symbol is 1, with C = 2. The string 0 1 0 0 1 of 5 symbols gets 3
    pads, which have class 0, like the symbol 0:

        pads and symbols   . . . 0 1 0 0 1
        classes, level 0   0 0 0 0 1 0 0 1
        level 1             0   0   1   1
        level 2               0       1
        level 3                   1           outputs[1] = 1

    Raises:
        ValueError: an array has the wrong shape, or contains a class that does not exist.

    Example:
        >>> either = TreeMachine(("0", "1"), np.array([0, 0, 1]), np.array([[0, 1], [1, 1]]), np.array([0, 1]))
        >>> either.answers(np.array([[0, 0, 0], [0, 1, 0]]))
        array([0, 1])
    """

    symbols: tuple[str, ...]
    leaves: Int64[np.ndarray, " V1"]
    table: Int64[np.ndarray, "*K"]
    outputs: Int64[np.ndarray, " K"]

    def __post_init__(self) -> None:
        leaves, table = whole_numbers("leaves", self.leaves), whole_numbers("table", self.table)
        outputs = whole_numbers("outputs", self.outputs)
        count = len(outputs)
        if leaves.shape != (len(self.symbols) + 1,):
            raise ValueError(
                f"leaves: expected a class for the pad and each of {len(self.symbols)} symbols, got shape "
                f"{leaves.shape}; give the class of the pad first"
            )
        if table.ndim < 2 or set(table.shape) != {count}:
            raise ValueError(
                f"table: expected 2 or more axes of {count} classes, one axis for each part of a window, got shape "
                f"{table.shape}; write -1 at unknown entries"
            )
        if min(leaves.min(), table.min() + 1) < 0 or max(leaves.max(), table.max()) >= count:
            raise ValueError(
                f"leaves, table: expected classes in 0..{count - 1}, or -1 for unknown entries of the table, got "
                f"{leaves.min()} to {leaves.max()} in leaves and {table.min()} to {table.max()} in the table; correct "
                "the wrong classes, or give an output for each class"
            )
        set_frozen(self, leaves=leaves, table=table, outputs=outputs)
        object.__setattr__(self, "symbols", tuple(self.symbols))

    @property
    def num_classes(self) -> int:
        """The number K of classes into which the machine sorts strings."""
        return len(self.outputs)

    @property
    def chunk_size(self) -> int:
        """The number C of neighboring parts that form a window and are merged."""
        return self.table.ndim

    def num_levels(self, length: int) -> int:
        """Return the depth of the tree over a string: the smallest L >= 1 with C^L >= length, for chunk size C."""
        levels = 1
        while self.chunk_size**levels < length:
            levels += 1
        return levels

    def check_strings(self, strings: Int64[np.ndarray, "B T"]) -> None:
        """Raise a ValueError unless each string has at least one symbol and contains only symbol ids or `PAD`."""
        if not strings.shape[1] or (strings.size and not PAD <= strings.min() <= strings.max() < len(self.symbols)):
            got = f"ids from {strings.min()} to {strings.max()}" if strings.size else f"shape {strings.shape}"
            raise ValueError(
                f"strings: expected non-empty strings of symbol ids in 0..{len(self.symbols) - 1} or the pad {PAD}, "
                f"got {got}; encode strings over {self.symbols!r}"
            )

    def classes(self, strings: Int64[np.ndarray, "B T"]) -> list[Int64[np.ndarray, "B N"]]:
        """Return the classes of the nodes in each string's tree: an array for each level, from the leaves to the root.

        Nodes over only pads that were added in front of a string are left out.

        Strings may contain `PAD` (no symbol) at any position.

        Raises:
            ValueError: strings are empty, contain unknown symbols, or need an entry that the table does not have.
        """
        self.check_strings(strings)
        nodes, pad = self.leaves[strings - PAD], int(self.leaves[0])
        levels = [nodes]
        for level in range(1, self.num_levels(strings.shape[1]) + 1):
            missing = -nodes.shape[1] % self.chunk_size
            # The pad is merged like the nodes: at level l, its class is the class of C^l pads.
            nodes = np.pad(nodes, ((0, 0), (missing, 0)), constant_values=pad)
            parts = nodes.reshape(len(nodes), -1, self.chunk_size)
            nodes = self.merged(parts)
            if (nodes < 0).any():
                row, index = np.argwhere(nodes < 0)[0]
                raise ValueError(
                    f"table: expected an entry for the classes {parts[row, index].tolist()}, which string {row} needs "
                    f"at level {level}, got none; extract the machine from more strings"
                )
            pad = int(self.merged(np.full(self.chunk_size, pad)))
            levels.append(nodes)
        return levels

    def merged(self, parts: Int64[np.ndarray, "*N C"]) -> Int64[np.ndarray, "*N"]:
        """Return the class of each window, given the classes of its parts, oldest first; -1 if a class is unknown."""
        known = self.table[tuple(np.moveaxis(parts, -1, 0))]
        return np.where((parts >= 0).all(-1), known, -1)

    def final_classes(self, strings: Int64[np.ndarray, "B T"]) -> Int64[np.ndarray, " B"]:
        """Return the class of every whole string; errors are as in `classes`."""
        return np.asarray(self.classes(strings)[-1][:, 0])

    def prefix_classes(self, strings: Int64[np.ndarray, "B T"]) -> Int64[np.ndarray, "B T"]:
        """Return the class of every prefix of every string, each from its own tree; errors are as in `classes`."""
        self.check_strings(strings)
        return np.stack([self.final_classes(strings[:, : length + 1]) for length in range(strings.shape[1])], axis=1)

    def answers(self, strings: Int64[np.ndarray, "B T"]) -> Int64[np.ndarray, " B"]:
        """Return the answer to every whole string; errors are as in `classes`."""
        return np.asarray(self.outputs[self.final_classes(strings)])

    def difference_string(self, transducer: Transducer) -> tuple[str, ...] | None:
        """Return a shortest string that this machine and a transducer answer differently, or None if they agree.

        If there are several shortest strings, the first in symbol order is returned. The search covers all lengths: it
        ends when a level of the trees has the same pairs (class, element of the transducer's monoid) as an earlier
        level. The pairs of one level determine the pairs of the next level, so no new pairs can follow. Strings that
        the transducer answers with `IGNORE` are not compared.

        Raises:
            ValueError: the machines read different symbols; a string needs an entry that the table does not have; or a
                level has too many windows (`lengthwise.automata.windows`).
        """
        if self.symbols != transducer.symbols:
            raise ValueError(
                f"transducer: expected a transducer over the symbols {self.symbols!r}, got {transducer.symbols!r}; "
                "rename the symbols of one machine"
            )
        return _Comparison(self, *_monoid_and_answers(transducer)).run()

    def reduced(self) -> tuple["TreeMachine", Int64[np.ndarray, " K"]]:
        """Return a smaller machine with the same answers, and the new class for each class of this machine.

        Two classes are united if neither their answers nor any context separates them. Then classes that occur in no
        string are left out, and map to -1. Strings have pads only in front. If the table has gaps, the unions that are
        made first can exclude later unions. Therefore, the classes that one string has at different levels are united
        first: these classes are equal if the pad is the identity. Classes are numbered in the order of their first
        strings, by level, length and symbols. On each level, the pad comes first.

        Raises:
            ValueError: a string needs an entry that the table does not have; a level has too many windows.

        Example:
            >>> twice = np.array([[0, 1, 0, 3], [1, 0, 1, 0], [2, 3, 2, 1], [3, 2, 1, 0]])
            >>> machine, new = TreeMachine(("a", "b"), np.array([0, 2, 3]), twice, np.array([0, 1, 0, 1])).reduced()
            >>> machine.table.tolist(), new.tolist()
            ([[0, 1], [1, 0]], [0, 1, 0, 1])
        """
        # The comparison with a machine that never answers collects the levels, and cannot end early.
        levels, supervised = _Comparison(
            self, *_monoid_and_answers(_unanswered_machine(self.symbols))
        ).levels_of_all_strings()
        occurring = list(dict.fromkeys(k for level in levels for k in (level.pad, *level.classes.tolist())))
        order = self._closed(np.array(occurring))
        new = np.full(self.num_classes + 1, GAP)  # the last entry maps a gap, which is -1, to a gap
        new[order] = np.arange(len(order))
        # Known entries suffice to answer every string. So classes may be united if no known entry contradicts the
        # union. The union can fill gaps, but no string needs the filled entries. If no whole string has a class, its
        # output is not needed either.
        table = new[self.table[np.ix_(*[order] * self.chunk_size)]]
        answers, labels = np.unique(self.outputs, return_inverse=True)
        labels = np.where(supervised, labels, GAP)[order]
        blocks = coarse_congruence(table, labels, new[self._pairs_across_levels(levels)].tolist())
        merged, block_labels = quotient(table, labels, blocks)
        first = np.unique(blocks, return_index=True)[1]
        outputs = np.where(block_labels >= 0, answers[block_labels], self.outputs[order[first]])
        # Classes that occur in strings, and their blocks, come first in the order. All others are cut off.
        count = int(blocks[: len(occurring)].max()) + 1
        merged = merged[(slice(count),) * self.chunk_size]
        classes = np.where(new < 0, GAP, blocks[new])
        merged, classes = (np.where(assignment < count, assignment, GAP) for assignment in (merged, classes))
        return TreeMachine(self.symbols, classes[self.leaves], merged, outputs[:count]), classes[:-1]

    def _pairs_across_levels(self, levels: list["_Level"]) -> Int64[np.ndarray, "N 2"]:
        """Return two classes for each string: its class at a level and, with pads in front, at the next level."""
        pairs = []
        for level in levels[:-1]:
            windows = np.full((len(level.classes) + 1, self.chunk_size), level.pad)
            windows[1:, -1] = level.classes
            pairs.append(np.column_stack([windows[:, -1], self.merged(windows)]))
        return np.concatenate(pairs)

    def _closed(self, classes: Int64[np.ndarray, " N"]) -> Int64[np.ndarray, " M"]:
        """Return these classes, and then all other classes that known merges of these classes produce."""
        while True:
            new_classes = np.setdiff1d(self.table[np.ix_(*[classes] * self.chunk_size)], np.append(classes, GAP))
            if not len(new_classes):
                return classes
            classes = np.concatenate([classes, new_classes])

    def to_json(self) -> dict[str, Any]:
        """Return symbols, leaves, known table entries (parts, then the class) and outputs as plain lists."""
        known = np.argwhere(self.table >= 0)
        entries = np.column_stack([known, self.table[tuple(known.T)]])
        return {
            "symbols": list(self.symbols),
            "chunk_size": self.chunk_size,
            "leaves": self.leaves.tolist(),
            "table": entries.tolist(),
            "outputs": self.outputs.tolist(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TreeMachine":
        """Build a machine from the content that `to_json` returns.

        Raises:
            ValueError: a class does not exist, a window has two entries, or an array has the wrong shape.
        """
        count, chunk_size = len(content["outputs"]), content["chunk_size"]
        entries = np.array(content["table"], dtype=np.int64).reshape(-1, chunk_size + 1)
        if entries.size and not 0 <= entries.min() <= entries.max() < count:
            raise ValueError(
                f"table: expected classes in 0..{count - 1}, got classes from {entries.min()} to {entries.max()}; "
                "correct the wrong classes, or give an output for each class"
            )
        if len(np.unique(entries[:, :-1], axis=0)) < len(entries):
            raise ValueError("table: expected one entry for each window, got several for one window; keep one of these")
        table = np.full((count,) * chunk_size, GAP)
        table[tuple(entries[:, :-1].T)] = entries[:, -1]
        return cls(tuple(content["symbols"]), np.array(content["leaves"]), table, np.array(content["outputs"]))


def tree_machine(transducer: Transducer, chunk_size: int = 2) -> TreeMachine:
    """Return the tree machine whose classes are the elements of the transducer's monoid, with the identity as pad.

    Example:
        >>> from lengthwise.automata import library
        >>> parity = tree_machine(library.parity(), chunk_size=3)
        >>> parity.num_classes, parity.difference_string(library.parity())
        (2, None)
    """
    monoid, answers = _monoid_and_answers(transducer)
    table = np.arange(monoid.size)
    for _ in range(chunk_size - 1):
        # By associativity, the product of C parts may be taken from left to right.
        table = monoid.table[table]
    return TreeMachine(transducer.symbols, np.concatenate([[0], monoid.generators]), table, answers)


def _unanswered_machine(symbols: tuple[str, ...]) -> Transducer:
    """Return the transducer of one state that always answers `IGNORE`."""
    return Transducer(Semiautomaton(np.zeros((1, len(symbols)), dtype=np.int64), symbols), 0, np.array([IGNORE]))


def _monoid_and_answers(transducer: Transducer) -> tuple[TransitionMonoid, Int64[np.ndarray, " M"]]:
    """Return the syntactic monoid, and the answer to the strings of each element."""
    # The monoid of the minimal machine is the syntactic monoid, the smallest monoid whose elements determine answers.
    smallest = transducer.minimize()
    monoid = transition_monoid(smallest.semiautomaton)
    return monoid, smallest.outputs[monoid.maps[:, smallest.start]]


Ids = Int64[np.ndarray, " N"]


class _Level(NamedTuple):
    """A level of trees: the pairs (class, monoid element) of its windows, in the order of each pair's first window.

    Windows are ordered by length and symbols. The first `num_mixed` pairs belong to windows that begin with pads, and
    the others to windows of symbols only. `parts` lists, for each pair, the pairs of the level below that form its
    first window; -1 stands for pads.
    """

    classes: Ids
    elements: Ids
    num_mixed: int
    parts: Int64[np.ndarray, "N C"]
    pad: int


class _Comparison:
    """A comparison of a machine with the answers of a monoid's elements: it visits all pairs (class, element)."""

    def __init__(self, machine: TreeMachine, monoid: TransitionMonoid, expected: Int64[np.ndarray, " M"]) -> None:
        self.machine = machine
        self.monoid = monoid
        self.expected = expected
        self.supervised = np.zeros(machine.num_classes, dtype=bool)  # classes that whole strings may have
        leaves = np.arange(len(machine.symbols))
        self.levels = [
            self._first_of_each(
                machine.leaves[1:], monoid.generators, num_mixed=0, parts=leaves[:, None], pad=int(machine.leaves[0])
            )
        ]

    def run(self) -> tuple[str, ...] | None:
        seen = set()
        # The pairs of a level determine the pairs of the next level, so no new pairs can follow a repeated set.
        while (known := self._known()) not in seen:
            seen.add(known)
            failing = self._climb()
            if failing is not None:
                return tuple(self.machine.symbols[v] for v in self._string(failing, len(self.levels) - 1))
        return None

    def levels_of_all_strings(self) -> tuple[list[_Level], Bool[np.ndarray, " K"]]:
        """Return the levels of the trees over all strings, and for each class whether a whole string has this class."""
        self.run()
        return self.levels, self.supervised

    def _known(self) -> tuple[int, bytes, bytes]:
        level = self.levels[-1]
        codes = level.classes * self.monoid.size + level.elements
        mixed, full = np.sort(codes[: level.num_mixed]), np.sort(codes[level.num_mixed :])
        return level.pad, mixed.tobytes(), full.tobytes()

    def _climb(self) -> Int64[np.ndarray, " C"] | None:
        """Add the next level; return the parts of its first wrongly answered whole string, or None."""
        below, chunk = self.levels[-1], self.machine.chunk_size
        # Windows are in the order of length and symbols, so the first wrong window is a shortest string.
        blocks = window_blocks(below.num_mixed, len(below.classes) - below.num_mixed, chunk)
        parts = np.concatenate(blocks)
        classes, elements = self._merge(below, parts)
        # Above the first level, whole strings have symbols in their second newest part. Shorter strings have lower
        # trees.
        whole = np.arange(len(parts)) >= (len(blocks[0]) if len(self.levels) > 1 else 0)
        self.supervised[classes[whole]] = True
        wrong = np.flatnonzero(whole & self._differs(classes, elements))
        if len(wrong):
            return np.asarray(parts[wrong[0]])
        pad = int(self.machine.merged(np.full(chunk, below.pad)))
        self.levels.append(self._first_of_each(classes, elements, len(parts) - len(blocks[-1]), parts, pad))
        return None

    def _merge(self, below: _Level, parts: Int64[np.ndarray, "N C"]) -> tuple[Ids, Ids]:
        part_classes = np.where(parts < 0, below.pad, below.classes[parts])
        classes = self.machine.merged(part_classes)
        if len(classes) and classes.min() < 0:
            row = int(np.flatnonzero(classes < 0)[0])
            symbols = [self.machine.symbols[v] for v in self._string(parts[row], len(self.levels) - 1)]
            string = spelled(symbols, self.machine.symbols)
            raise ValueError(
                f"table: expected an entry for the classes {part_classes[row].tolist()}, which string {string[:40]!r} "
                "needs, got none; extract the machine from more strings"
            )
        elements = np.zeros(len(parts), dtype=np.int64)
        # Pads are the identity of the monoid, so they leave the product unchanged.
        for column in parts.T:
            elements = np.where(column < 0, elements, self.monoid.products(elements, below.elements[column]))
        return classes, elements

    def _differs(self, classes: Ids, elements: Ids) -> Bool[np.ndarray, " N"]:
        expected = self.expected[elements]
        return np.asarray((expected != IGNORE) & (self.machine.outputs[classes] != expected))

    def _first_of_each(
        self, classes: Ids, elements: Ids, num_mixed: int, parts: Int64[np.ndarray, "N C"], pad: int
    ) -> _Level:
        """Return the first window of every pair; windows with pads and windows without pads are listed separately."""
        codes = classes * self.monoid.size + elements
        kept = [
            start + np.sort(np.unique(part, return_index=True)[1])
            for start, part in ((0, codes[:num_mixed]), (num_mixed, codes[num_mixed:]))
        ]
        rows = np.concatenate(kept)
        return _Level(classes[rows], elements[rows], len(kept[0]), parts[rows], pad)

    def _string(self, parts: Int64[np.ndarray, " C"], below: int) -> list[int]:
        """Return the symbols of a window, given its parts as indices into the pairs of level `below`."""
        if below < 0:
            return [int(parts[0])]
        known = [part for part in parts.tolist() if part >= 0]
        return [symbol for part in known for symbol in self._string(self.levels[below].parts[part], below - 1)]
