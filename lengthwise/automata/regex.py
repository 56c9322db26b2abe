"""Regular expressions: from a pattern to the smallest automaton of its language."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np

from lengthwise.automata.dfa import DFA
from lengthwise.automata.regex_syntax import (
    MAX_POSITIONS,
    Choice,
    Concatenation,
    Node,
    Parser,
    Repeat,
    SymbolSet,
    quoted,
)
from lengthwise.automata.semiautomaton import MAX_TRANSITIONS, Semiautomaton, check_characters, explore

MAX_STATES = 50_000
"""The largest number of sets of positions, half a kilobyte each."""


def dfa_from_regex(pattern: str, alphabet: Sequence[str] | None = None) -> DFA:
    r"""Return the smallest DFA that accepts exactly the strings that match the whole pattern.

    Symbols are single characters. A pattern consists of

    - symbols, ``.`` (any symbol), ``[ab]`` and ``[a-c]`` (one of these), ``[^ab]`` (one of the others);
    - groups ``( )`` and alternatives ``|``;
    - the repetitions ``*``, ``+``, ``?``, ``{m}``, ``{m,}`` and ``{m,n}``, one at a time.

    An empty pattern or part matches the empty string. ``\`` before one of these special characters, or before ``-``,
    makes it a symbol; blanks are symbols. The whole string is matched, so anchors ``^`` and ``$`` do not exist, and
    neither do classes such as ``\d``. `alphabet` lists the symbols in the order of their ids; by default it is the
    symbols that the pattern names, sorted.

    The construction is Glushkov's position automaton, determinized by sets of positions and minimized.

    Raises:
        ValueError: the pattern has an error, whose position the message gives; it has more than 100,000 characters, or
            2,000 symbols once its bounds are written out; it needs more than 50,000 states before it is minimized, or
            10,000,000 transitions; the alphabet does not consist of distinct single characters, or lacks a symbol of
            the pattern.

    Example:
        >>> ends_in_abb = dfa_from_regex("(a|b)*abb")
        >>> ends_in_abb.num_states
        4
        >>> ends_in_abb.accepts(np.array([[0, 1, 0, 1, 1], [0, 0, 1, 1, 0]]))
        array([ True, False])

    Source: Glushkov, "The abstract theory of automata" (1961).
    Differs from the source: repetitions with bounds are written out first.
    """
    parser = Parser(pattern)
    node = parser.parse()
    symbols = _checked_alphabet(pattern, parser.named, alphabet)
    positions = _Positions(pattern)
    whole = positions.add(node)
    reads = positions.by_symbol(symbols)
    # Symbols that are read at the same positions lead to the same states everywhere, so one of each kind is explored.
    first_of_kind = {read_at: symbol for symbol, read_at in reversed(reads.items())}
    kinds = [symbol for symbol in symbols if first_of_kind[reads[symbol]] == symbol]
    smallest = _smallest(positions, whole, {symbol: reads[symbol] for symbol in kinds})
    # Checked again for all symbols, as the exploration saw only one of each kind.
    if smallest.num_states * len(symbols) > MAX_TRANSITIONS:
        raise ValueError(
            f"pattern: {quoted(pattern)} needs {smallest.num_states:,} states that read {len(symbols):,} symbols, "
            f"more than {MAX_TRANSITIONS:,} transitions; simplify it, or give a smaller alphabet"
        )
    columns = {read_at: kinds.index(symbol) for read_at, symbol in first_of_kind.items()}
    table = smallest.semiautomaton.table[:, [columns[reads[symbol]] for symbol in symbols]]
    return DFA(Semiautomaton(table, symbols), smallest.start, smallest.accepting)


def _smallest(positions: "_Positions", whole: "_Fragment", reads: Mapping[str, int]) -> DFA:
    """Return the smallest automaton over these symbols: the subset construction on positions, then minimization."""
    start = 1 << len(positions.sets)  # a set of positions is the bits of an integer; the start is one bit more
    seen = {start}

    @lru_cache(maxsize=1)  # `explore` reads all symbols from one state in turn
    def successors_of(state: int) -> int:
        return (
            whole.first
            if state == start
            else reduce(int.__or__, map(positions.successors.__getitem__, _bits(state)), 0)
        )

    def step(state: int, symbol: str) -> int:
        new_positions = successors_of(state) & reads[symbol]
        seen.add(new_positions)
        if len(seen) > MAX_STATES:
            raise ValueError(
                f"pattern: {quoted(positions.pattern)} needs more than {MAX_STATES:,} states before it is minimized; "
                "simplify it"
            )
        return new_positions

    machine, states = explore(tuple(reads), start, step)
    ends = whole.last | (start if whole.nullable else 0)  # Glushkov: a string ends where the pattern can end
    return DFA(machine, 0, np.array([bool(state & ends) for state in states])).minimize()


def named_symbols(pattern: str) -> tuple[str, ...]:
    """Return the symbols that a pattern names, sorted; errors of the pattern as in `dfa_from_regex`.

    Example:
        >>> named_symbols("(b|[^a])*")
        ('a', 'b')
    """
    parser = Parser(pattern)
    parser.parse()
    return tuple(sorted(parser.named))


class _Fragment(NamedTuple):
    """Properties of a part of a pattern: whether it matches the empty string, and its first and last positions."""

    nullable: bool
    first: int
    last: int


class _Positions:
    """The symbols of a pattern with bounds written out, and the positions that can follow each; sets are integers."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.sets: list[SymbolSet] = []
        self.successors: list[int] = []

    def by_symbol(self, symbols: Sequence[str]) -> dict[str, int]:
        """Return the positions at which each symbol can be read."""
        others = sum(1 << p for p, known in enumerate(self.sets) if known.others)
        reads = dict.fromkeys(symbols, others)
        for p, known in enumerate(self.sets):
            for symbol in known.symbols:
                reads[symbol] ^= 1 << p
        return reads

    def add(self, node: Node) -> _Fragment:
        """Add the positions of a node after all positions so far."""
        if isinstance(node, SymbolSet):
            return self._add_position(node)
        if isinstance(node, Concatenation):
            return reduce(self._joined, map(self.add, node.parts), _Fragment(True, 0, 0))
        if isinstance(node, Choice):
            options = [self.add(option) for option in node.options]
            nullable, first, last = zip(*options, strict=True)
            return _Fragment(any(nullable), reduce(int.__or__, first), reduce(int.__or__, last))
        return self._add_repeated(node)

    def _add_position(self, symbols: SymbolSet) -> _Fragment:
        if len(self.sets) == MAX_POSITIONS:
            raise ValueError(
                f"pattern: {quoted(self.pattern)} has more than {MAX_POSITIONS:,} symbols with its bounds written "
                "out; shorten it or lower the bounds"
            )
        self.sets.append(symbols)
        self.successors.append(0)
        return _Fragment(False, 1 << (len(self.sets) - 1), 1 << (len(self.sets) - 1))

    def _add_repeated(self, node: Repeat) -> _Fragment:
        """Add m copies, then n - m optional ones; without an upper bound, the last copy can follow itself."""
        whole = _Fragment(True, 0, 0)
        copies = max(node.minimum, 1) if node.maximum is None else node.maximum
        for copy in range(copies):
            fragment = self.add(node.inner)
            # A loop of Glushkov's automaton: the first positions of a part follow its last ones.
            if node.maximum is None and copy == copies - 1:
                self._joined(fragment, fragment)
            optional = copy >= node.minimum
            whole = self._joined(whole, fragment._replace(nullable=fragment.nullable or optional))
        return whole

    def _joined(self, before: _Fragment, after: _Fragment) -> _Fragment:
        # Glushkov: the first positions of the second part follow the last positions of the first part, and only these.
        for position in _bits(before.last):
            self.successors[position] |= after.first
        return _Fragment(
            before.nullable and after.nullable,
            before.first | (after.first if before.nullable else 0),
            after.last | (before.last if after.nullable else 0),
        )


def _bits(positions: int) -> Iterator[int]:
    while positions:
        lowest = positions & -positions
        yield lowest.bit_length() - 1
        positions ^= lowest


def _checked_alphabet(pattern: str, named: set[str], alphabet: Sequence[str] | None) -> tuple[str, ...]:
    symbols = tuple(sorted(named)) if alphabet is None else tuple(alphabet)
    if not symbols:
        raise ValueError(f"alphabet: expected at least one symbol, and {quoted(pattern)} names none; give the alphabet")
    check_characters(symbols)
    if missing := "".join(sorted(named - set(symbols))):
        raise ValueError(
            f"alphabet: {quoted(pattern)} names {quoted(missing)}, which {quoted(''.join(symbols))} lacks; add them"
        )
    return symbols
