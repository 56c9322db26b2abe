"""Fast evaluation of finite machines: tables are small, and each look-up reads several symbols of many strings.

Each method returns the same results as the machine's method of the same name, which defines them. Strings are read in
slabs. A slab contains some positions of some strings of a batch, and fits into a processor's cache.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from jaxtyping import Int64, Integer

from lengthwise.automata.monoid import bounded_monoid
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.conventions import PAD

MAX_SYMBOLS_PER_CHUNK = 1 << 18
"""The approximate number of symbols in a slab of strings, which is small enough for a processor's cache."""

MAX_ENTRIES = 1 << 14
"""The largest number of entries in a table of windows of symbols."""

MAX_ROWS_PER_CHUNK = 4096
"""The largest number of strings in a slab."""

MIN_LOOKUP_STRINGS = 256
"""The smallest number of strings for which reading position by position is faster than composing monoid elements."""

MAX_ELEMENTS = 255
"""The size of the largest monoid whose elements are composed. Elements are bytes, and the table fits into a cache."""


Parts = Integer[np.ndarray, "C *N"] | Sequence[Integer[np.ndarray, "*N"]]


class TreeLookup:
    """Fast versions of `TreeMachine.final_classes` and `prefix_classes`.

    C is the machine's chunk size. At the leaves, a look-up reads a window of C^m leaves, with the largest m for which
    the table has at most `MAX_ENTRIES` entries. Above the leaves, it reads C classes. Each look-up covers the nodes of
    all strings in a slab, a part of the batch that fits into a processor's cache. The tables have one more class, for
    entries that the machine does not know. So only the final classes are tested for unknown entries.

    Example:
        >>> from lengthwise.automata import library
        >>> from lengthwise.automata.tree_machine import tree_machine
        >>> TreeLookup(tree_machine(library.parity())).final_classes(np.array([[0, 1, 0], [1, 1, 0]])).tolist()
        [1, 0]
    """

    def __init__(self, machine: TreeMachine) -> None:
        self.machine = machine
        self.chunk, self.unknown = machine.chunk_size, machine.num_classes
        self.base = self.unknown + 1
        # The smallest integer type keeps tables inside the cache.
        kind = np.min_scalar_type(self.unknown)
        table = np.full((self.base,) * self.chunk, self.unknown, dtype=kind)
        table[(slice(self.unknown),) * self.chunk] = np.where(machine.table < 0, self.unknown, machine.table)
        self.table = table.ravel()
        # windows[m] contains the class of every window of C^m leaves. The digits of the index are the leaves, oldest
        # leaf first.
        self.windows = [machine.leaves.astype(kind)]
        # With a single leaf, there is a single window at every level, so without `count > 1` the loop would not end.
        while (count := len(self.windows[-1])) ** self.chunk <= MAX_ENTRIES and count > 1:
            parts = np.indices((count,) * self.chunk).reshape(self.chunk, -1)
            self.windows.append(self._merged(self.windows[-1][parts]))

    def final_classes(self, strings: Int64[np.ndarray, "B T"]) -> Integer[np.ndarray, " B"]:
        """Return the class of every whole string.

        Raises:
            ValueError: strings are empty, contain unknown symbols, or need an entry that the table does not have.
        """
        self.machine.check_strings(strings)
        return self.final_classes_of_checked(strings)

    def final_classes_of_checked(self, strings: Int64[np.ndarray, "B T"]) -> Integer[np.ndarray, " B"]:
        """Return the classes that `final_classes` returns, for strings that the caller has already checked."""
        batch, length = strings.shape
        levels = self.machine.num_levels(length)
        low = min(levels, max(m for m in range(64) if self.chunk**m <= MAX_SYMBOLS_PER_CHUNK))
        width = self.chunk**low
        rows = max(1, MAX_SYMBOLS_PER_CHUNK // width)
        nodes = np.empty((batch, -(-length // width)), dtype=self.table.dtype)
        for index in range(nodes.shape[1]):
            # Windows are aligned to the end of the string, because pads fill the first window.
            stop = length - (nodes.shape[1] - 1 - index) * width
            for row in range(0, batch, rows):
                slab = strings[row : row + rows, max(0, stop - width) : stop]
                nodes[row : row + rows, index] = self._classes_of_leaves(slab, low)
        pad = self._classes_of_leaves(np.full((1, 1), PAD), low)
        for _ in range(low, levels):
            missing = -nodes.shape[1] % self.chunk
            nodes = np.concatenate([np.broadcast_to(pad, (batch, missing)), nodes], axis=1)
            nodes = self._merged(nodes.reshape(batch, -1, self.chunk).transpose(2, 0, 1))
            pad = self._merged(np.broadcast_to(pad, (self.chunk, 1)))
        return self._known(nodes[:, 0])

    def prefix_classes(self, strings: Int64[np.ndarray, "B T"]) -> Integer[np.ndarray, "B T"]:
        """Return the class of every prefix of every string; errors are as in `final_classes`.

        With chunk size C, the node of level l at position t covers the C^l positions up to t. The class of a prefix is
        read from the level of the root of its own tree. A string of T symbols takes T log_C T look-ups, instead of T
        trees with up to T nodes.
        """
        self.machine.check_strings(strings)
        batch, length = strings.shape
        levels = self.machine.num_levels(length)
        rows = max(1, MAX_SYMBOLS_PER_CHUNK // length)
        classes = np.empty((batch, length), dtype=self.table.dtype)
        for row in range(0, batch, rows):
            nodes, pad = self.windows[0].take(strings[row : row + rows] - PAD), self.windows[0][:1]
            for level in range(levels):
                stride = self.chunk**level
                nodes = self._merged([_delayed(nodes, j * stride, pad) for j in reversed(range(self.chunk))])
                pad = self._merged(np.broadcast_to(pad, (self.chunk, 1)))
                # The prefixes that end at these positions have trees of this depth.
                read = slice(stride if level else 0, stride * self.chunk)
                classes[row : row + rows, read] = nodes[:, read]
        return self._known(classes)

    def _classes_of_leaves(self, symbols: Int64[np.ndarray, "B N"], levels: int) -> Integer[np.ndarray, " B"]:
        """Return the classes of windows of C^levels leaves; a window is a row of `symbols` with pads in front."""
        base, width = len(self.windows[0]), self.chunk**levels
        leaves = np.zeros((len(symbols), width), dtype=np.min_scalar_type(base - 1))
        np.subtract(symbols, PAD, out=leaves[:, width - symbols.shape[1] :], casting="unsafe")
        tabled = min(levels, len(self.windows) - 1)
        codes = _codes(leaves.reshape(-1, self.chunk**tabled).T, base)
        nodes = self.windows[tabled].take(codes)
        for _ in range(tabled, levels):
            nodes = self._merged(nodes.reshape(-1, self.chunk).T)
        return nodes

    def _merged(self, parts: Parts) -> Integer[np.ndarray, "*N"]:
        return np.asarray(self.table.take(_codes(parts, self.base)))

    def _known(self, classes: Integer[np.ndarray, "B *T"]) -> Integer[np.ndarray, "B *T"]:
        if (classes == self.unknown).any():
            row = int(np.argwhere(classes == self.unknown)[0, 0])
            raise ValueError(
                f"table: expected an entry for each window of string {row}, got a window without an entry; extract the "
                "machine from more strings"
            )
        return classes


class StateLookup:
    """Fast versions of `Semiautomaton.run` and `final_states` from one start state.

    A look-up reads several symbols at once, for all strings of a slab (a part of the batch that fits into a processor's
    cache). If there are few strings and the transition monoid is small, `final_states` composes elements of the monoid
    in a tree, in log T rounds.

    Example:
        >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
        >>> StateLookup(flip, start=0).run(np.array([[1, 0, 1, 1]])).tolist()
        [[1, 1, 0, 1]]
    """

    def __init__(self, machine: Semiautomaton, start: int = 0) -> None:
        machine.check_state(start)
        self.machine = machine
        self.start = start
        states, symbols = machine.num_states, machine.num_symbols
        # A look-up needs the state before its window, so the look-ups of a string run one after another. Wider windows
        # need fewer look-ups but larger tables.
        self.width = max(k for k in (1, 2, 4, 8) if k == 1 or states * symbols**k <= MAX_ENTRIES)
        self._visited = {width: self._states_visited(width) for width in {1, self.width}}

    def run(self, strings: Int64[np.ndarray, "B T"]) -> Integer[np.ndarray, "B T"]:
        """Return the state after every symbol of every string.

        Raises:
            ValueError: a symbol id lies outside 0 ... V-1.
        """
        self.machine.check_strings(strings)
        states = np.empty(strings.shape, dtype=self._visited[1].dtype)
        for rows, columns, width, entries in self._entries(strings):
            visited = self._visited[width].take(entries.T, axis=0)
            states[rows, columns] = visited.reshape(len(visited), -1)
        return states

    def final_states(self, strings: Int64[np.ndarray, "B T"]) -> Integer[np.ndarray, " B"]:
        """Return the state at the end of every string; errors are as in `run`."""
        # Composition is associative, so a tree gives the same states as a loop over symbols, with log T NumPy steps.
        self.machine.check_strings(strings)
        if strings.shape[1] and len(strings) < MIN_LOOKUP_STRINGS and self._composition is not None:
            return np.asarray(self._composition.machine.outputs[self._composition.final_classes_of_checked(strings)])
        states = np.full(len(strings), self.start)
        for rows, _, width, entries in self._entries(strings):
            states[rows] = self._visited[width][entries[-1], -1]
        return states

    @cached_property
    def _composition(self) -> TreeLookup | None:
        """The tree machine of the transition monoid, with states as answers, or None if the monoid is too large."""
        monoid = bounded_monoid(self.machine, MAX_ELEMENTS)
        if monoid is None:
            return None
        leaves = np.concatenate([[0], monoid.generators])
        # An element maps each state to the state at the end of its string. So it also gives the end state for this
        # start.
        return TreeLookup(TreeMachine(self.machine.symbols, leaves, monoid.table, monoid.maps[:, self.start]))

    def _states_visited(self, width: int) -> Integer[np.ndarray, "N K"]:
        """Return the states after each symbol of a window; row ``q V^width + c`` is for state q and window code c.

        V is the number of symbols.
        """
        states, symbols = self.machine.num_states, self.machine.num_symbols
        state = np.repeat(np.arange(states), symbols**width)
        visited = []
        for index in reversed(range(width)):
            symbol = np.arange(len(state)) // symbols**index % symbols
            state = self.machine.table[state, symbol]
            visited.append(state)
        return np.stack(visited, axis=1).astype(np.min_scalar_type(states - 1))

    def _entries(
        self, strings: Int64[np.ndarray, "B T"]
    ) -> Iterator[tuple[slice, slice, int, Int64[np.ndarray, "N R"]]]:
        """Yield each slab's rows and columns, the width of its windows, and the table entry of each window in each row.

        Slabs with the same rows follow one another from left to right. In the first slab, windows may have fewer
        symbols.
        """
        batch, length = strings.shape
        symbols, max_rows = self.machine.num_symbols, min(max(batch, 1), MAX_ROWS_PER_CHUNK)
        columns_per_chunk = self.width * max(1, MAX_SYMBOLS_PER_CHUNK // max_rows // self.width)
        first = length % self.width
        slabs = [(1, slice(0, first))] if first else []
        slabs += [
            (self.width, slice(start, min(start + columns_per_chunk, length)))
            for start in range(first, length, columns_per_chunk)
        ]
        for row in range(0, batch, max_rows):
            rows = slice(row, row + max_rows)
            state = np.full(len(strings[rows]), self.start)
            for width, columns in slabs:
                slab = strings[rows, columns].astype(np.min_scalar_type(symbols - 1))
                codes = _codes(slab.reshape(len(slab), -1, width).transpose(2, 1, 0), symbols)
                # This is in int64, because the small type of the table would overflow.
                next_row = self._visited[width][:, -1] * np.int64(symbols**width)
                entries = np.empty(codes.shape, dtype=np.int64)
                position = state * symbols**width
                for code, entry in zip(codes, entries, strict=True):
                    np.add(code, position, out=entry)
                    position = next_row.take(entry)
                state = position // symbols**width
                yield rows, columns, width, entries


def _codes(parts: Parts, base: int) -> Integer[np.ndarray, "*N"]:
    """Return the numbers with these digits, most significant digit first."""
    # The type can represent the largest number with these digits, so the products in place cannot overflow.
    codes: np.ndarray = parts[0].astype(np.min_scalar_type(base ** len(parts) - 1))
    for part in parts[1:]:
        codes *= base
        codes += part
    return codes


def _delayed(
    nodes: Integer[np.ndarray, "B T"], distance: int, pad: Integer[np.ndarray, " _"]
) -> Integer[np.ndarray, "B T"]:
    """Return the nodes at a distance to the left of each position, with pads before the start."""
    distance = min(distance, nodes.shape[1])
    delayed = np.empty_like(nodes)
    delayed[:, :distance] = pad
    delayed[:, distance:] = nodes[:, : nodes.shape[1] - distance]
    return delayed
