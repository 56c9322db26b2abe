"""Regular expressions: from a pattern to the smallest automaton of its language."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from lengthwise.automata.dfa import DFA
from lengthwise.automata.semiautomaton import explore

MOST_STATES = 10_000
MOST_FACTORS = 10_000
DEEPEST_GROUP = 50

SPECIAL = r"\.[](){}|*+?"


class _OneOf(NamedTuple):
    symbols: frozenset[str]


class _Choice(NamedTuple):
    options: "tuple[_Sequence, ...]"


class _Star(NamedTuple):
    inner: "_Sequence"


_Factor = _OneOf | _Choice | _Star
_Sequence = tuple[_Factor, ...]


def dfa_from_regex(pattern: str, alphabet: Sequence[str] | None = None) -> DFA:
    r"""The smallest DFA that accepts exactly the strings that the whole pattern matches.

    Symbols are single characters. A pattern is made of symbols, ``.`` (any symbol), ``[ab]`` and ``[^ab]`` (one of
    these, one of the others), groups ``( )``, alternatives ``|``, and the repetitions ``*``, ``+``, ``?``, ``{m}``,
    ``{m,}`` and ``{m,n}``; ``\`` before a special character makes it a symbol. Nothing at all matches the empty string.
    `alphabet` says which symbols there are, in the order of their ids; by default those that the pattern names, sorted.

    Antimirov's partial derivatives: what remains to be matched after a symbol is a set of sequences of factors, of
    which there are at most one more than the pattern has symbols. The sets are the states.

    Raises:
        ValueError: the pattern has an error (the message says where), names a symbol that the alphabet lacks, or needs
            more than 10,000 states.

    Example:
        >>> ends_in_abb = dfa_from_regex("(a|b)*abb")
        >>> ends_in_abb.num_states
        4
        >>> ends_in_abb.accepts(np.array([[0, 1, 0, 1, 1], [0, 0, 1, 1, 0]]))
        array([ True, False])

    Source: Antimirov, "Partial derivatives of regular expressions and finite automaton constructions" (1996).
    Differs from the source: a sequence is a tuple, so that concatenation is associative by itself; repetitions with
        bounds are written out.
    """
    symbols = _checked_alphabet(pattern, alphabet)
    expression = _Parser(pattern, symbols).parse()
    num_states = 0

    def step(state: frozenset[_Sequence], symbol: str) -> frozenset[_Sequence]:
        nonlocal num_states
        num_states += 1
        if num_states > MOST_STATES * len(symbols):
            raise ValueError(f"pattern: {_shown(pattern)} needs more than {MOST_STATES:,} states; simplify it")
        return frozenset(rest for sequence in state for rest in _derivatives(sequence, symbol))

    machine, meaning = explore(symbols, frozenset([expression]), step)
    accepting = [any(all(_nullable(factor) for factor in sequence) for sequence in state) for state in meaning]
    return DFA(machine, 0, np.array(accepting)).minimise()


def _derivatives(sequence: _Sequence, symbol: str) -> Iterator[_Sequence]:
    """What may remain of the sequence after the symbol."""
    waiting, seen = [sequence], {sequence}
    while waiting:
        current = waiting.pop()
        if not current:
            continue
        factor, rest = current[0], current[1:]
        if isinstance(factor, _OneOf):
            if symbol in factor.symbols:
                yield rest
            continue
        if isinstance(factor, _Star):
            for remaining in _derivatives(factor.inner, symbol):
                yield remaining + current
        begins = [option + rest for option in factor.options] if isinstance(factor, _Choice) else [rest]
        waiting += [begin for begin in begins if begin not in seen]
        seen.update(begins)


def _nullable(factor: _Factor) -> bool:
    """Whether the factor matches the empty string."""
    if isinstance(factor, _Choice):
        return any(all(_nullable(part) for part in option) for option in factor.options)
    return isinstance(factor, _Star)


def _checked_alphabet(pattern: str, alphabet: Sequence[str] | None) -> tuple[str, ...]:
    named = _named_symbols(pattern)
    symbols = tuple(sorted(named)) if alphabet is None else tuple(alphabet)
    if not symbols:
        raise ValueError(f"alphabet: wanted at least one symbol, and {_shown(pattern)} names none; give the alphabet")
    if len(set(symbols)) != len(symbols) or any(len(symbol) != 1 for symbol in symbols):
        raise ValueError(f"alphabet: wanted distinct single characters, got {list(symbols)}; name each symbol once")
    if missing := sorted(named - set(symbols)):
        raise ValueError(
            f"alphabet: {_shown(pattern)} names {missing}, which {''.join(symbols)!r} lacks; add them, or escape what "
            "is meant as a special character"
        )
    return symbols


def _named_symbols(pattern: str) -> set[str]:
    """The symbols that a pattern names: all but special characters, bounds and the ^ that begins a class."""
    named, position = set(), 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            named |= set(pattern[position + 1 : position + 2])
            position += 1
        elif character == "{":
            position = max(position, pattern.find("}", position))
        elif not (character in SPECIAL or (character == "^" and pattern[position - 1 : position] == "[")):
            named.add(character)
        position += 1
    return named


def _shown(pattern: str) -> str:
    return repr(pattern) if len(pattern) <= 40 else repr(pattern[:37] + "...")


class _Parser:
    """Recursive descent: alternatives of sequences of repeated atoms."""

    def __init__(self, pattern: str, symbols: tuple[str, ...]) -> None:
        self.pattern = pattern
        self.symbols = frozenset(symbols)
        self.position = 0
        self.depth = 0
        self.num_factors = 0

    def parse(self) -> _Sequence:
        expression = self._alternatives()
        if self._next():
            self._refuse("an end or a symbol")
        return expression

    def _next(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _take(self, characters: str) -> str:
        """The next character if it is one of these, which is then read, else nothing."""
        character = self._next()
        if not character or character not in characters:
            return ""
        self.position += 1
        return character

    def _refuse(self, wanted: str) -> NoReturn:
        got = repr(self._next()) if self._next() else "the end"
        escape = f" (write \\{self._next()} for the symbol)" if self._next() and self._next() in SPECIAL else ""
        raise ValueError(
            f"pattern: wanted {wanted} at position {self.position + 1} of {_shown(self.pattern)}, got {got}{escape}"
        )

    def _alternatives(self) -> _Sequence:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else (_Choice(tuple(options)),)

    def _sequence(self) -> _Sequence:
        sequence: _Sequence = ()
        while self._next() and self._next() not in "|)":
            sequence += self._repeated(self._atom())
        return sequence

    def _repeated(self, atom: _Sequence) -> _Sequence:
        while operator := self._take("*+?{"):
            if operator == "{":
                least, most = self._bounds()
            else:
                least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[operator]
            copies = max(least, most or 0) + (most is None)
            self.num_factors += copies * len(atom)
            if self.num_factors > MOST_FACTORS:
                raise ValueError(f"pattern: {_shown(self.pattern)} repeats too much; keep bounds small")
            end = (_Star(atom),) if most is None else (_Choice((atom, ())),) * (most - least)
            atom = atom * least + end
        return atom

    def _bounds(self) -> tuple[int, int | None]:
        least = self._number("a number")
        most: int | None = least
        if self._take(","):
            most = self._number("a number or }") if self._next() != "}" else None
        if not self._take("}"):
            self._refuse("}")
        if most is not None and most < least:
            self.position -= 1
            self._refuse(f"an upper bound of at least {least}")
        return least, most

    def _number(self, wanted: str) -> int:
        digits = ""
        while digit := self._take("0123456789"):
            digits += digit
        if not digits:
            self._refuse(wanted)
        if len(digits) > 4:
            raise ValueError(f"pattern: {_shown(self.pattern)} repeats {digits} times; keep bounds below 10,000")
        return int(digits)

    def _atom(self) -> _Sequence:
        self.num_factors += 1
        if self._take("("):
            return self._group()
        if self._take("["):
            return (self._symbol_class(),)
        if self._take("."):
            return (_OneOf(self.symbols),)
        return (_OneOf(frozenset([self._symbol("a symbol or a group", SPECIAL)])),)

    def _group(self) -> _Sequence:
        self.depth += 1
        if self.depth > DEEPEST_GROUP:
            raise ValueError(
                f"pattern: {_shown(self.pattern)} nests groups more than {DEEPEST_GROUP} deep; simplify it"
            )
        inner = self._alternatives()
        if not self._take(")"):
            self._refuse("a closing )")
        self.depth -= 1
        return inner

    def _symbol_class(self) -> _OneOf:
        others = bool(self._take("^"))
        named = {self._symbol("a symbol", SPECIAL)}
        while not self._take("]"):
            named.add(self._symbol("a symbol or ]", SPECIAL))
        return _OneOf(self.symbols - named if others else frozenset(named))

    def _symbol(self, wanted: str, special: str) -> str:
        escaped = self._take("\\")
        symbol = self._next()
        if not symbol or (not escaped and symbol in special):
            self._refuse(wanted)
        self.position += 1
        return symbol
