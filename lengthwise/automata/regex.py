"""Regular expressions: computing the smallest automaton for the language of a pattern."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np

from lengthwise.automata.dfa import DFA
from lengthwise.automata.regex_syntax import (
    MAX_POSITIONS,
    PARSERS,
    Choice,
    Concatenation,
    Node,
    Repeat,
    SymbolSet,
    Tokens,
    quoted,
)
from lengthwise.automata.semiautomaton import MAX_TRANSITIONS, Semiautomaton, check_symbols, explore
from lengthwise.validation import check_choice, texts_of

MAX_STATES = 50_000
"""The largest number of sets of positions in the subset construction. Each set takes half a kilobyte."""


def dfa_from_regex(pattern: str, alphabet: Sequence[str] | None = None, tokens: Tokens = "characters") -> DFA:
    r"""Return the smallest DFA that accepts exactly the strings that match the whole pattern.

    Symbols are single characters, unless `tokens` is "words". A pattern consists of

    - symbols, ``.`` (any symbol), ``[ab]`` and ``[a-c]`` (one of these), ``[^ab]`` (one of the other symbols);
    - groups ``( )`` and alternatives ``|``;
    - the repetitions ``*``, ``+``, ``?``, ``{m}``, ``{m,}`` and ``{m,n}``, at most one after each part.

    An empty pattern or part matches the empty string. ``\`` before one of these special characters, or before ``-``,
    makes the character a symbol. Blanks are symbols. The whole string is matched, so anchors ``^`` and ``$`` are not
    supported. Classes such as ``\d`` are not supported either. `alphabet` lists the symbols in the order of their ids.
    By default, it contains the symbols in the pattern, sorted.

    If `tokens` is "words", each run of characters other than blanks and special characters is one symbol, as in
    ``CONNECT (DATA ACK)* CLOSE``. An operator after a word repeats the whole word. Blanks end words and have no other
    meaning. ``[DATA ACK]`` matches one of two words. ``-`` is part of a word, so classes have no ranges.

    The construction is Glushkov's position automaton, which is determinized by sets of positions and then minimized.

    Raises:
        ValueError: the pattern has a syntax error at a position that the message gives. It has more than 100,000
            characters, or more than 2,000 symbols after repetitions are expanded. It needs more than 50,000 states
            before minimization, or more than 10,000,000 transitions. The alphabet is empty, lacks a symbol of the
            pattern, or does not consist of distinct single characters (or words without blanks).

    Example:
        >>> ends_in_abb = dfa_from_regex("(a|b)*abb")
        >>> ends_in_abb.num_states
        4
        >>> ends_in_abb.accepts(np.array([[0, 1, 0, 1, 1], [0, 0, 1, 1, 0]]))
        array([ True, False])
        >>> dfa_from_regex("CONNECT (DATA ACK)* CLOSE", tokens="words").symbols
        ('ACK', 'CLOSE', 'CONNECT', 'DATA')

    Source: Glushkov, "The abstract theory of automata" (1961).
    Differs from the source: bounded repetitions are expanded first.
    """
    check_choice("tokens", tokens, PARSERS)
    parser = PARSERS[tokens](pattern)
    node = parser.parse()
    symbols = _checked_alphabet(pattern, parser.named, alphabet, tokens)
    positions = _Positions(pattern)
    whole = positions.add(node)
    reads = positions.by_symbol(symbols)
    # Symbols that are read at the same positions always lead to the same states, so only one of them is explored.
    first_of_kind = {read_at: symbol for symbol, read_at in reversed(reads.items())}
    kinds = [symbol for symbol in symbols if first_of_kind[reads[symbol]] == symbol]
    smallest = _smallest(positions, whole, {symbol: reads[symbol] for symbol in kinds})
    # The limit is checked again for all symbols, because the exploration did not count symbols that act alike.
    if smallest.num_states * len(symbols) > MAX_TRANSITIONS:
        raise ValueError(
            f"pattern: {quoted(pattern)} needs {smallest.num_states:,} states, each with transitions for "
            f"{len(symbols):,} symbols: more than {MAX_TRANSITIONS:,} transitions in total; simplify the pattern, or "
            "give a smaller alphabet"
        )
    columns = {read_at: kinds.index(symbol) for read_at, symbol in first_of_kind.items()}
    table = smallest.semiautomaton.table[:, [columns[reads[symbol]] for symbol in symbols]]
    return DFA(Semiautomaton(table, symbols), smallest.start, smallest.accepting)


def _smallest(positions: "_Positions", whole: "_Fragment", reads: Mapping[str, int]) -> DFA:
    """Return the smallest automaton over these symbols, by the subset construction on positions and minimization."""
    start = 1 << len(positions.sets)  # the bits of an integer are a set of positions; one more bit is the start
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
                f"pattern: {quoted(positions.pattern)} needs more than {MAX_STATES:,} states before minimization; "
                "simplify the pattern"
            )
        return new_positions

    machine, states = explore(tuple(reads), start, step)
    ends = whole.last | (start if whole.nullable else 0)  # by Glushkov, strings end where the pattern can end
    return DFA(machine, 0, np.array([bool(state & ends) for state in states])).minimize()


def named_symbols(pattern: str, tokens: Tokens = "characters") -> tuple[str, ...]:
    """Return the symbols in a pattern, sorted; errors of the pattern are as in `dfa_from_regex`.

    Example:
        >>> named_symbols("(b|[^a])*")
        ('a', 'b')
    """
    check_choice("tokens", tokens, PARSERS)
    parser = PARSERS[tokens](pattern)
    parser.parse()
    return tuple(sorted(parser.named))


class _Fragment(NamedTuple):
    """Facts about a part of a pattern: whether it matches the empty string, and its first and last positions."""

    nullable: bool
    first: int
    last: int


class _Positions:
    """The positions of symbols in a pattern with expanded repetitions, and the positions that can follow each position.

    A set of positions is an integer whose bits are the positions.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.sets: list[SymbolSet] = []
        self.successors: list[int] = []

    def by_symbol(self, symbols: Sequence[str]) -> dict[str, int]:
        """Return for each symbol the set of positions of the pattern at which the symbol can be read."""
        others = sum(1 << p for p, known in enumerate(self.sets) if known.others)
        reads = dict.fromkeys(symbols, others)
        for p, known in enumerate(self.sets):
            for symbol in known.symbols:
                reads[symbol] ^= 1 << p
        return reads

    def add(self, node: Node) -> _Fragment:
        """Add the symbols of a node of the syntax tree as new positions, after all positions of the pattern so far."""
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
                f"pattern: {quoted(self.pattern)} has more than {MAX_POSITIONS:,} symbols after its repetitions are "
                "expanded; shorten the pattern, or lower the bounds of repetitions"
            )
        self.sets.append(symbols)
        self.successors.append(0)
        return _Fragment(False, 1 << (len(self.sets) - 1), 1 << (len(self.sets) - 1))

    def _add_repeated(self, node: Repeat) -> _Fragment:
        """Add m copies and then n - m optional copies; without an upper bound, the last copy can follow itself."""
        whole = _Fragment(True, 0, 0)
        copies = max(node.minimum, 1) if node.maximum is None else node.maximum
        for copy in range(copies):
            fragment = self.add(node.inner)
            # This is a loop of Glushkov's automaton: the first positions of a part can follow its last positions.
            if node.maximum is None and copy == copies - 1:
                self._joined(fragment, fragment)
            optional = copy >= node.minimum
            whole = self._joined(whole, fragment._replace(nullable=fragment.nullable or optional))
        return whole

    def _joined(self, before: _Fragment, after: _Fragment) -> _Fragment:
        # By Glushkov, exactly the first positions of the second part follow the last positions of the first part.
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


def _checked_alphabet(pattern: str, named: set[str], alphabet: Sequence[str] | None, tokens: Tokens) -> tuple[str, ...]:
    symbols = tuple(sorted(named)) if alphabet is None else texts_of("alphabet", alphabet)
    if not symbols:
        raise ValueError(
            f"alphabet: expected at least one symbol, got none, and pattern {quoted(pattern)} contains none; give an "
            "alphabet"
        )
    check_symbols(symbols, are_words=tokens == "words")
    separator = "" if tokens == "characters" else " "
    if missing := separator.join(sorted(named - set(symbols))):
        raise ValueError(
            f"alphabet: expected the symbols of {quoted(pattern)}, got {quoted(separator.join(symbols))}, without "
            f"{quoted(missing)}; add the missing symbols"
        )
    return symbols
