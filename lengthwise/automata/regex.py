"""Regular expressions: from a pattern to the smallest automaton of its language."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import NamedTuple, NoReturn

import numpy as np

from lengthwise.automata.dfa import DFA
from lengthwise.automata.semiautomaton import MAX_TRANSITIONS, Semiautomaton, check_characters, explore

MAX_POSITIONS = 2_000
MAX_STATES = 50_000
"""Sets of positions, half a kilobyte each; symbols that the pattern treats alike are enumerated as one."""

MAX_GROUP_DEPTH = 50

SPECIAL = "\\.[](){}|*+?^$"
"""Characters that are symbols only after a backslash."""


_WAYS_OUT = {
    "d": "write [0-9] for the digits",
    "D": "write [^0-9] for all but the digits",
    "w": "write [A-Za-z0-9_] for letters, digits and _",
    "W": "write [^A-Za-z0-9_] for all but letters, digits and _",
    "s": "write the blanks themselves, between [ and ]",
    "S": "write [^ ] with the blanks themselves behind ^",
    **dict.fromkeys("bBAZzG", "leave it out, as the whole string is matched"),
    **dict.fromkeys("nrtfvaexuUN0", "write the character itself"),
    **dict.fromkeys("123456789kg", "write the group again: what it matched is not remembered"),
    **dict.fromkeys("pPhHRX", "write the characters themselves, between [ and ]"),
}
"""What to write for escapes of other dialects."""


@dataclass(frozen=True)
class SymbolSet:
    """One symbol of these, or, for `others`, one of all others."""

    symbols: frozenset[str]
    others: bool = False


@dataclass(frozen=True)
class Concatenation:
    """One part after the other; no part matches the empty string."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True)
class Choice:
    """One of the options."""

    options: "tuple[Node, ...]"


@dataclass(frozen=True)
class Repeat:
    """`minimum` to `maximum` times in a row; any number from `minimum` on where `maximum` is None."""

    inner: "Node"
    minimum: int
    maximum: int | None


Node = SymbolSet | Concatenation | Choice | Repeat

EMPTY = Concatenation(())
"""Matches the empty string alone. The parser keeps it nowhere but as one option of a choice: else repeats of it would
be written out as many times as there are repeats around them, without a symbol that counts."""


def dfa_from_regex(pattern: str, alphabet: Sequence[str] | None = None) -> DFA:
    r"""The smallest DFA that accepts exactly the strings that the whole pattern matches.

    Symbols are single characters. A pattern is made of symbols, ``.`` (any symbol), ``[ab]``, ``[a-c]`` and ``[^ab]``
    (one of these, one of the others), groups ``( )``, alternatives ``|``, and the repetitions ``*``, ``+``, ``?``,
    ``{m}``, ``{m,}`` and ``{m,n}``, one at a time. Nothing at all matches the empty string. ``\`` before one of these
    special characters, or before ``-``, makes it a symbol; blanks are symbols. The whole string is matched: there are
    neither anchors ``^`` and ``$`` nor classes such as ``\d``. `alphabet` says which symbols there are, in the order of
    their ids; by default those that the pattern names, sorted.

    Glushkov's position automaton, made deterministic by sets of positions (bits of an integer) and minimized.

    Raises:
        ValueError: the pattern has an error (the message says where); it has more than 2,000 symbols once its bounds
            are written out; more than 50,000 sets of positions are reached, or so many states that the table of all
            symbols has more than 10,000,000 entries; the alphabet is not made of distinct single characters, or lacks a
            symbol that the pattern names.

    Example:
        >>> ends_in_abb = dfa_from_regex("(a|b)*abb")
        >>> ends_in_abb.num_states
        4
        >>> ends_in_abb.accepts(np.array([[0, 1, 0, 1, 1], [0, 0, 1, 1, 0]]))
        array([ True, False])

    Source: Glushkov, "The abstract theory of automata" (1961).
    Differs from the source: repetitions with bounds are written out first.
    """
    parser = _Parser(pattern)
    node = parser.parse()
    symbols = _checked_alphabet(pattern, parser.named, alphabet)
    positions = _Positions(pattern)
    whole = positions.add(node)
    reads = {symbol: positions.that_read(symbol) for symbol in symbols}
    # Symbols that are read at the same positions lead everywhere to the same states: the first of each kind suffices.
    first_of_kind = {read_at: symbol for symbol, read_at in reversed(reads.items())}
    kinds = [symbol for symbol in symbols if first_of_kind[reads[symbol]] == symbol]
    start = 1 << len(positions.sets)
    seen = {start}

    @lru_cache(maxsize=1)  # all symbols are read from one state in turn
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
                f"pattern: {_quoted(pattern)} needs more than {MAX_STATES:,} states before it is minimized; simplify it"
            )
        return new_positions

    machine, states = explore(kinds, start, step)
    ends = whole.last | (start if whole.nullable else 0)
    smallest = DFA(machine, 0, np.array([bool(state & ends) for state in states])).minimize()
    if smallest.num_states * len(symbols) > MAX_TRANSITIONS:
        raise ValueError(
            f"pattern: {_quoted(pattern)} needs {smallest.num_states:,} states that read {len(symbols):,} symbols, "
            f"more than {MAX_TRANSITIONS:,} transitions; simplify it, or give a smaller alphabet"
        )
    columns = [kinds.index(first_of_kind[reads[symbol]]) for symbol in symbols]
    table = Semiautomaton(smallest.semiautomaton.table[:, columns], symbols)
    return DFA(table, smallest.start, smallest.accepting)


def named_symbols(pattern: str) -> tuple[str, ...]:
    """The symbols that a pattern names, sorted; errors of the pattern as in `dfa_from_regex`.

    Example:
        >>> named_symbols("(b|[^a])*")
        ('a', 'b')
    """
    parser = _Parser(pattern)
    parser.parse()
    return tuple(sorted(parser.named))


class _Fragment(NamedTuple):
    """Of a part of a pattern: whether it matches nothing at all, and where its strings can begin and end."""

    nullable: bool
    first: int
    last: int


class _Positions:
    """The symbols of a pattern, bounds written out, and which position can follow which; sets of them are integers."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.sets: list[SymbolSet] = []
        self.successors: list[int] = []

    def that_read(self, symbol: str) -> int:
        """The positions at which this symbol can stand."""
        return sum(1 << p for p, known in enumerate(self.sets) if (symbol in known.symbols) != known.others)

    def add(self, node: Node) -> _Fragment:
        """Write out a node behind what is there."""
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
                f"pattern: {_quoted(self.pattern)} has more than {MAX_POSITIONS:,} symbols with its bounds written "
                "out; shorten it or lower the bounds"
            )
        self.sets.append(symbols)
        self.successors.append(0)
        return _Fragment(False, 1 << (len(self.sets) - 1), 1 << (len(self.sets) - 1))

    def _add_repeated(self, node: Repeat) -> _Fragment:
        """m copies, then n - m that may be left out; without an upper bound the last copy follows itself."""
        whole = _Fragment(True, 0, 0)
        copies = max(node.minimum, 1) if node.maximum is None else node.maximum
        for copy in range(copies):
            fragment = self.add(node.inner)
            if node.maximum is None and copy == copies - 1:
                self._joined(fragment, fragment)
            optional = copy >= node.minimum
            whole = self._joined(whole, fragment._replace(nullable=fragment.nullable or optional))
        return whole

    def _joined(self, before: _Fragment, after: _Fragment) -> _Fragment:
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
        raise ValueError(
            f"alphabet: expected at least one symbol, and {_quoted(pattern)} names none; give the alphabet"
        )
    check_characters(symbols)
    if missing := "".join(sorted(named - set(symbols))):
        raise ValueError(
            f"alphabet: {_quoted(pattern)} names {_quoted(missing)}, which {_quoted(''.join(symbols))} lacks; add them"
        )
    return symbols


def _quoted(pattern: str) -> str:
    return repr(pattern) if len(pattern) <= 40 else repr(pattern[:37] + "...")


class _Parser:
    """Recursive descent: alternatives of sequences of repeated atoms; `named` collects the symbols that occur."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.depth = 0
        self.named: set[str] = set()

    def parse(self) -> Node:
        node = self._alternatives()
        if self._next():
            self._reject("a symbol or the end", "open a group before it")
        return node

    def _next(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _take(self, characters: str) -> str:
        """The next character if it is one of these, which is then read, else nothing."""
        character = self._next()
        if not character or character not in characters:
            return ""
        self.position += 1
        return character

    def _reject(self, expected: str, way_out: str) -> NoReturn:
        got = repr(self._next()) if self._next() else "the end"
        raise ValueError(
            f"pattern: expected {expected} at position {self.position + 1} of {_quoted(self.pattern)}, got {got}; "
            f"{way_out}"
        )

    def _alternatives(self) -> Node:
        options = [self._sequence()]
        while self._take("|"):
            option = self._sequence()
            if option != EMPTY or EMPTY not in options:
                options.append(option)
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        parts = []
        while self._next() and self._next() not in "|)":
            part = self._repeated(self._atom())
            if part != EMPTY:
                parts.append(part)
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _repeated(self, atom: Node) -> Node:
        operator = self._take("*+?{")
        if not operator:
            return atom
        bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        node = Repeat(atom, *(self._bounds() if operator == "{" else bounds[operator]))
        if self._next() and self._next() in "*+?{":
            self._reject("one repetition at a time", "put the first into a group")
        return EMPTY if node.inner == EMPTY or node.maximum == 0 else node

    def _bounds(self) -> tuple[int, int | None]:
        minimum = self._number()
        maximum: int | None = minimum
        if self._take(","):
            index = self.position
            maximum = None if self._next() == "}" else self._number()
            if maximum is not None and maximum < minimum:
                self.position = index
                self._reject(f"an upper bound of at least {minimum}", "swap the bounds")
        if not self._take("}"):
            self._reject("}", "give bounds as {2}, {2,} or {2,3}")
        return minimum, maximum

    def _number(self) -> int:
        digits = ""
        while digit := self._take("0123456789"):
            digits += digit
        if not digits:
            self._reject("a number", "give bounds as {2}, {2,} or {2,3}")
        if len(digits.lstrip("0")) > len(str(MAX_POSITIONS)):
            raise ValueError(f"pattern: {_quoted(self.pattern)} has a bound above {MAX_POSITIONS:,}; lower it")
        return int(digits.lstrip("0") or "0")

    def _atom(self) -> Node:
        if self._take("("):
            return self._group()
        if self._take("["):
            return self._symbol_class()
        if self._take("."):
            return SymbolSet(frozenset(), others=True)
        return SymbolSet(frozenset([self._symbol("a symbol or a group")]))

    def _group(self) -> Node:
        self.depth += 1
        if self.depth > MAX_GROUP_DEPTH:
            raise ValueError(
                f"pattern: {_quoted(self.pattern)} nests groups more than {MAX_GROUP_DEPTH} deep; simplify it"
            )
        node = self._alternatives()
        if not self._take(")"):
            self._reject("a closing )", "close the group")
        self.depth -= 1
        return node

    def _symbol_class(self) -> Node:
        others = bool(self._take("^"))
        symbols = self._range("a symbol of the class")
        while not self._take("]"):
            symbols |= self._range("a symbol of the class or its closing ]")
        return SymbolSet(frozenset(symbols), others)

    def _range(self, expected: str) -> set[str]:
        """A symbol, or those from one to another; where nothing is between, a ``-`` is a symbol."""
        start, first = self.position, self._symbol(expected)
        if self._next() != "-" or self.pattern[self.position + 1 : self.position + 2] in ("", "]"):
            return {first}
        self._take("-")
        last = self._symbol("the last symbol of a range")
        if not 0 <= ord(last) - ord(first) < MAX_POSITIONS:
            self.position = start
            self._reject(f"a range that rises, of at most {MAX_POSITIONS:,} symbols", "write \\- for the symbol -")
        symbols = set(map(chr, range(ord(first), ord(last) + 1)))
        self.named |= symbols
        return symbols

    def _symbol(self, expected: str) -> str:
        escaped = self._take("\\")
        symbol = self._next()
        if not symbol:
            self._reject(expected, "complete the pattern")
        if escaped and symbol not in SPECIAL + "-":
            self._reject("a special character after \\", _WAYS_OUT.get(symbol, f"write {symbol} without the \\"))
        if not escaped and symbol in SPECIAL:
            unneeded = "leave it out, as the whole string is matched anyway, or " if symbol in "^$" else ""
            self._reject(expected, f"{unneeded}write \\{symbol} for the symbol")
        self.position += 1
        self.named.add(symbol)
        return symbol
