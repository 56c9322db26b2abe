"""Transition monoids: the finitely many maps on states that strings induce."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int64

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.validation import check_kind, check_sizes

MAX_ELEMENTS = 20_000
"""The largest number of elements of a computed monoid."""

MAX_ENTRIES = 50_000_000
"""The largest number of entries in the maps of all elements. The maps take 0.4 GB, and their index another 0.4 GB."""

MAX_TABLED = 4_000
"""The largest size of a monoid whose products are stored in a table, which then takes 0.13 GB."""

NUM_AT_ONCE = 256
"""The number of elements that a step of the search multiplies by all symbols."""


def max_elements(machine: Semiautomaton) -> int:
    """Return the default limit on the number of elements of a machine's transition monoid."""
    return min(MAX_ELEMENTS, max(1, MAX_ENTRIES // machine.num_states))


@dataclass(frozen=True, eq=False)
class TransitionMonoid:
    """The maps on states that strings induce; in a product, the left factor acts first.

    ``maps[m, q]`` is the state to which element m leads from state q. Element 0 is the identity, which belongs to the
    empty string. Elements are numbered in the order of their shortest strings. ``graph[m, v]`` is the product of
    element m and symbol v. `transition_monoid` returns this object.

    For a minimal DFA, this is the syntactic monoid: two strings have the same element if and only if no context
    distinguishes them.
    """

    symbols: tuple[str, ...]
    maps: Int64[np.ndarray, "M Q"]
    graph: Int64[np.ndarray, "M V"]

    @property
    def size(self) -> int:
        """The number of elements of the monoid, M."""
        return len(self.maps)

    @property
    def generators(self) -> Int64[np.ndarray, " V"]:
        """The element of the monoid that belongs to each symbol."""
        return np.asarray(self.graph[0])

    @cached_property
    def semiautomaton(self) -> Semiautomaton:
        """The machine whose state is the element of the string so far; its start is state 0."""
        return Semiautomaton(self.graph, self.symbols)

    @cached_property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The shortest string of each element; if there are several, the first in symbol order."""
        words: list[tuple[str, ...]] = [()]
        for parent, symbol in self._parents:
            words.append((*words[parent], self.symbols[symbol]))
        return tuple(words)

    @cached_property
    def table(self) -> Int64[np.ndarray, "M M"]:
        """``table[a, b]`` is the product of elements a and b.

        Let b' be the element of b's shortest string without its last symbol. Column b is computed from column b', so
        M^2 look-ups suffice, and no maps are compared. The table takes 8 M^2 bytes.
        """
        columns = np.empty((self.size, self.size), dtype=np.int64)
        columns[0] = np.arange(self.size)
        for element, (parent, symbol) in enumerate(self._parents, start=1):
            # By associativity, a (p v) = (a p) v, so the column of p v is the column of p followed by the symbol.
            columns[element] = self.graph[columns[parent], symbol]
        return columns.T

    def products(self, first: Int64[np.ndarray, "*N"], then: Int64[np.ndarray, "*N"]) -> Int64[np.ndarray, "*N"]:
        """Return the products of pairs of elements: ``table[first, then]``.

        A large monoid has no table. Then the elements in `first` are multiplied by the symbols of the shortest strings
        of the elements in `then`, one symbol at a time.
        """
        if self.size <= MAX_TABLED:
            return np.asarray(self.table[first, then])
        product = first
        for symbol in np.moveaxis(self._strings[then], -1, 0):
            product = np.where(symbol < 0, product, self.graph[product, symbol])
        return product

    @cached_property
    def _strings(self) -> Int64[np.ndarray, "M L"]:
        """The shortest string of each element as symbol ids, padded with -1."""
        lengths = np.zeros(self.size, dtype=np.int64)
        for element, (parent, _) in enumerate(self._parents, start=1):
            lengths[element] = lengths[parent] + 1
        strings = np.full((self.size, lengths.max(initial=0)), -1)
        for element, (parent, symbol) in enumerate(self._parents, start=1):
            strings[element] = strings[parent]
            strings[element, lengths[parent]] = symbol
        return strings

    @cached_property
    def _parents(self) -> list[tuple[int, int]]:
        """The parent of each element except the identity, and the symbol that leads from the parent to the element."""
        # Elements are numbered breadth first, so the first entry of an element in the graph belongs to the parent
        # with the shortest string.
        _, first = np.unique(self.graph, return_index=True)
        first_entries = dict(zip(self.graph.ravel()[first].tolist(), first.tolist(), strict=True))
        return [divmod(first_entries[m], len(self.symbols)) for m in range(1, self.size)]

    def element(self, string: Sequence[int]) -> int:
        """Return the element of the monoid that belongs to a string of symbol ids."""
        return int(self.semiautomaton.final_states(np.array([string], dtype=np.int64).reshape(1, -1))[0])

    @property
    def is_group(self) -> bool:
        """True if every element has an inverse. This is the case if and only if every symbol permutes the states."""
        # A finite monoid of permutations is a group, because the inverse of a permutation is one of its powers.
        maps = np.sort(self.maps[self.generators], axis=1)
        return bool((maps == np.arange(self.maps.shape[1])).all())

    @property
    def is_commutative(self) -> bool:
        """True if the order of symbols in a string never matters, which is the case if all generators commute."""
        pairs = self.graph[self.generators]
        return bool((pairs == pairs.T).all())

    @property
    def is_aperiodic(self) -> bool:
        """True if for every x, x^n = x^(n+1) for some n.

        Equivalently, all groups that the monoid contains have a single element.

        A minimal DFA has an aperiodic monoid if and only if its language is star-free (Schützenberger's theorem).
        """
        # If a map of Q states has no cycle of two or more states, every path ends in a fixed point after at most Q - 1
        # steps. So it suffices to test a single n >= Q - 1, which is reached by repeated squaring.
        power = self.maps
        for _ in range((self.maps.shape[1] - 1).bit_length()):
            power = np.take_along_axis(power, power, axis=1)
        return bool((np.take_along_axis(self.maps, power, axis=1) == power).all())


def transition_monoid(machine: Semiautomaton, maximum: int | None = None) -> TransitionMonoid:
    """Return the monoid of all products of the symbols' maps, found by breadth-first search.

    Raises:
        ValueError: the monoid has more than `maximum` elements (default: `max_elements`). A monoid of maps of Q states
            can have up to Q^Q elements.

    Example:
        >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
        >>> monoid = transition_monoid(flip)
        >>> monoid.size, monoid.words, monoid.is_group, monoid.is_aperiodic
        (2, ((), ('b',)), True, False)
    """
    check_kind("machine", machine, Semiautomaton, "a Semiautomaton")
    maximum = max_elements(machine) if maximum is None else maximum
    check_sizes(maximum=maximum)
    # For up to 256 states, one byte per state suffices. The search spends most of its time on hashing these keys.
    by_symbol = machine.table.T.astype(np.min_scalar_type(machine.num_states - 1))
    identity = np.arange(machine.num_states, dtype=by_symbol.dtype)
    keys = [identity.tobytes()]
    number = {keys[0]: 0}
    graph: list[int] = []
    # Every element is a product of generators. So breadth-first search by right multiplication reaches all elements,
    # each first by its shortest string. A step multiplies many elements by all symbols at once.
    while len(graph) < len(keys) * machine.num_symbols:
        begin = len(graph) // machine.num_symbols
        reached = _maps(keys[begin : begin + NUM_AT_ONCE], identity)
        for image in by_symbol[:, reached].swapaxes(0, 1).reshape(-1, machine.num_states):
            key = image.tobytes()
            if key not in number:
                if len(keys) >= maximum:
                    raise ValueError(
                        f"machine: its transition monoid has more than {maximum:,} elements ({machine.num_states} "
                        f"states, {machine.num_symbols} symbols); raise `maximum` or use a smaller machine"
                    )
                number[key] = len(keys)
                keys.append(key)
            graph.append(number[key])
    table = np.array(graph).reshape(-1, machine.num_symbols)
    return TransitionMonoid(machine.symbols, _maps(keys, identity).astype(np.int64), table)


def _maps(keys: Sequence[bytes], identity: np.ndarray) -> np.ndarray:
    """Return the maps on states that are stored in these bytes, one per row, with the dtype of `identity`."""
    return np.frombuffer(b"".join(keys), dtype=identity.dtype).reshape(-1, len(identity))


def bounded_monoid(machine: Semiautomaton, maximum: int | None = None) -> TransitionMonoid | None:
    """Return the `transition_monoid` of a machine, or None if the monoid has more than `maximum` elements."""
    check_kind("machine", machine, Semiautomaton, "a Semiautomaton")
    check_sizes(maximum=max_elements(machine) if maximum is None else maximum)
    try:
        return transition_monoid(machine, maximum)
    except ValueError:
        return None
