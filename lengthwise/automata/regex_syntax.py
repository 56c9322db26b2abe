"""The syntax of regular expressions: the parts of an expression, and its parser."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NoReturn

from lengthwise.validation import check_kind

Tokens = Literal["characters", "words"]
"""The kinds of symbols in an expression: single characters, or words with blanks between them."""

MAX_CHARACTERS = 100_000
"""The largest number of characters in a pattern."""

MAX_POSITIONS = 2_000
"""The largest number of symbols in a pattern after its bounded repetitions are expanded."""

MAX_GROUP_DEPTH = 50
"""The largest depth of nested groups. The parser is recursive, so this also protects Python's stack."""

SPECIAL = "\\.[](){}|*+?^$"
"""Characters that mean themselves only after a backslash."""


_WAYS_OUT = {
    "d": "write [0-9] for the digits",
    "D": "write [^0-9] for all but the digits",
    "w": "write [A-Za-z0-9_] for letters, digits and _",
    "W": "write [^A-Za-z0-9_] for all but letters, digits and _",
    "s": "write the blanks themselves, between [ and ]",
    "S": "write [^ ] with the blanks themselves behind ^",
    **{letter: f"leave out \\{letter}, because the whole string is matched" for letter in "bBAZzG"},
    **dict.fromkeys("nrtfvaexuUN0", "write the character itself"),
    **dict.fromkeys("123456789kg", "write the group's pattern again, because patterns do not remember matches"),
    **dict.fromkeys("pPhHRX", "write the characters themselves, between [ and ]"),
}
"""Advice for escapes that exist in other dialects, but not here."""

_WAYS_OUT_OF_WORDS = {
    **_WAYS_OUT,
    **dict.fromkeys("dDwWsSpPhHRXnrtfvaexuUN0", "write the words themselves, between [ and ]"),
    " ": "leave the blank out, because no word contains one",
}
"""Advice as in `_WAYS_OUT`, but for expressions over words, which have no ranges."""


@dataclass(frozen=True)
class SymbolSet:
    """A node that matches one symbol of a set or, with `others`, one symbol outside of the set."""

    symbols: frozenset[str]
    others: bool = False


@dataclass(frozen=True)
class Concatenation:
    """A node that matches its parts one after another; without parts, it matches the empty string."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True)
class Choice:
    """A node that matches one of several options."""

    options: "tuple[Node, ...]"


@dataclass(frozen=True)
class Repeat:
    """A node that matches its part `minimum` to `maximum` times in a row. A `maximum` of None means no upper limit."""

    inner: "Node"
    minimum: int
    maximum: int | None


Node = SymbolSet | Concatenation | Choice | Repeat

EMPTY = Concatenation(())
"""The node that matches only the empty string. The parser keeps this node only as an option of a choice. Otherwise,
writing out nested repeats of this node could take very long, because the limit `MAX_POSITIONS` counts symbols, and
this node has none."""


def quoted(pattern: str) -> str:
    """Return a pattern in quotes, or only its beginning if it is long."""
    return repr(pattern) if len(pattern) <= 40 else repr(pattern[:37] + "...")


class Parser:
    """A recursive-descent parser of alternatives, sequences, repetitions and atoms.

    `named` collects the symbols that occur in the pattern.
    """

    ways_out: ClassVar[Mapping[str, str]] = _WAYS_OUT

    def __init__(self, pattern: str) -> None:
        check_kind("pattern", pattern, str, "a text")
        self.pattern = pattern
        self.position = 0
        self.depth = 0
        self.num_atoms = 0
        self.named: set[str] = set()

    def parse(self) -> Node:
        """Return the syntax tree of the whole pattern; a syntax error is a ValueError that gives its position."""
        if len(self.pattern) > MAX_CHARACTERS:
            raise ValueError(f"pattern: {quoted(self.pattern)} has more than {MAX_CHARACTERS:,} characters; shorten it")
        node = self._alternatives()
        if self._next():
            self._reject("a symbol or the end", "open a group before it")
        return node

    @property
    def _here(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _next(self) -> str:
        """Return the next character that is not an ignored blank, or an empty string at the end."""
        return self._here

    def _take(self, characters: str) -> str:
        """Read and return the next character if it is one of `characters`, else return an empty string."""
        character = self._next()
        if not character or character not in characters:
            return ""
        self.position += 1
        return character

    def _reject(self, expected: str, way_out: str) -> NoReturn:
        got = repr(self._here) if self._here else "the end"
        raise ValueError(
            f"pattern: expected {expected} at position {self.position + 1} of {quoted(self.pattern)}, got {got}; "
            f"{way_out}"
        )

    def _alternatives(self) -> Node:
        options = [self._sequence()]
        # One empty option suffices, because a|| and a| match the same strings. Many empty options could make the tree
        # huge.
        has_empty = options == [EMPTY]
        while self._take("|"):
            option = self._sequence()
            if option != EMPTY or not has_empty:
                options.append(option)
            has_empty = has_empty or option == EMPTY
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
            self._reject("one repetition at a time", "put the part with its first repetition into a group")
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
        self._next()
        digits = re.compile("[0-9]*").match(self.pattern, self.position)[0]  # type: ignore[index]  # always matches
        self.position += len(digits)
        if not digits:
            self._reject("a number", "give bounds as {2}, {2,} or {2,3}")
        # The number of digits is checked first, because int() rejects thousands of digits with its own message.
        if len(digits.lstrip("0")) > len(str(MAX_POSITIONS)):
            raise ValueError(
                f"pattern: {quoted(self.pattern)} has a repetition bound above {MAX_POSITIONS:,}; lower it"
            )
        return int(digits.lstrip("0") or "0")

    def _atom(self) -> Node:
        if self._take("("):
            return self._group()
        self.num_atoms += 1
        # Symbols are counted during parsing, so a huge pattern fails before its tree is built.
        if self.num_atoms > MAX_POSITIONS:
            raise ValueError(f"pattern: {quoted(self.pattern)} has more than {MAX_POSITIONS:,} symbols; shorten it")
        if self._take("["):
            return self._symbol_class()
        if self._take("."):
            return SymbolSet(frozenset(), others=True)
        return SymbolSet(frozenset([self._symbol("a symbol or a group")]))

    def _group(self) -> Node:
        # Parsing recurs once for each open group. Without this limit, deep groups would raise a RecursionError.
        self.depth += 1
        if self.depth > MAX_GROUP_DEPTH:
            raise ValueError(
                f"pattern: {quoted(self.pattern)} nests groups more than {MAX_GROUP_DEPTH} deep; simplify the pattern"
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
        """Read a symbol or a range of symbols. A ``-`` at the end of the class is a symbol."""
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
        symbol = self._character(expected)
        self.named.add(symbol)
        return symbol

    def _character(self, expected: str) -> str:
        """Read a character that is part of a symbol, perhaps after a backslash."""
        escaped = self._take("\\")
        character = self._here
        if not character:
            self._reject(expected, "complete the pattern")
        if escaped and character not in SPECIAL + "-":
            self._reject(
                "a special character after \\", self.ways_out.get(character, f"write {character} without the \\")
            )
        if not escaped and character in SPECIAL:
            unneeded = f"leave out {character}, because the whole string is matched, or " if character in "^$" else ""
            self._reject(expected, f"{unneeded}write \\{character} for the symbol")
        self.position += 1
        return character


class WordParser(Parser):
    """A parser of regular expressions over words.

    Blanks end words and have no other meaning. Brackets such as ``[DATA ACK]`` list words and have no ranges.
    """

    ways_out = _WAYS_OUT_OF_WORDS

    def _next(self) -> str:
        while self._here.isspace():
            self.position += 1
        return self._here

    def _symbol(self, expected: str) -> str:
        word = self._character(expected)
        while self._here and not self._here.isspace() and (self._here == "\\" or self._here not in SPECIAL):
            word += self._character(expected)
        self.named.add(word)
        return word

    def _range(self, expected: str) -> set[str]:
        return {self._symbol(expected)}


PARSERS: Mapping[Tokens, type[Parser]] = {"characters": Parser, "words": WordParser}
"""The parser of each kind of expression."""
