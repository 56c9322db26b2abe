"""Computing regular expressions for the languages of automata, by elimination of states."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np

from lengthwise.automata.dfa import DFA
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.regex_syntax import (
    EMPTY,
    MAX_GROUP_DEPTH,
    MAX_POSITIONS,
    SPECIAL,
    Choice,
    Concatenation,
    Node,
    Repeat,
    SymbolSet,
    Tokens,
)
from lengthwise.automata.semiautomaton import check_symbols
from lengthwise.validation import check_kind

MAX_STATES = 200
"""The largest number of states of the smallest automaton. With this number, elimination takes a few seconds."""

Edges = dict[tuple[int, int], Node]
"""The edges between states: for each edge (p, q), the expression of the strings that lead from state p to state q."""


def regex_from_dfa(dfa: DFA) -> str:
    """Return a regular expression of the strings that an automaton accepts, in the syntax of `dfa_from_regex`.

    If a symbol has several characters, the expression is over words (``tokens="words"``).

    States of the smallest automaton are eliminated one after another. At each step, the state whose elimination adds
    the fewest symbols is eliminated. Let R[p, q] be the expression of the strings that lead from p to q. To eliminate
    s, R[p, q] becomes ``R[p, q] | R[p, s] R[s, s]* R[s, q]``. Expressions are simplified at each step. The result is
    parsed again and compared with the automaton.

    Raises:
        ValueError: symbols are words, and one of them contains a blank; the language needs more than 200 states; the
            expression has over 2,000 symbols, nests groups over 50 deep, or is too large for `dfa_from_regex`.

    Example:
        >>> regex_from_dfa(dfa_from_regex("(a|b)*abb"))
        '(b*a)+bb'

    Source: Brzozowski and McCluskey, "Signal flow graph techniques for sequential circuit state diagrams" (1963); the
        order follows Delgado and Morais, "Approximation to the smallest regular expression for a given regular
        language" (2004).
    Differs from the source: simplifications are ours.
    """
    check_kind("dfa", dfa, DFA, "a DFA")
    tokens: Tokens = "characters" if all(len(symbol) == 1 for symbol in dfa.symbols) else "words"
    if tokens == "words":
        check_symbols(dfa.symbols, are_words=True)
    pattern = _pattern(dfa, tokens)
    if _depth(pattern) > MAX_GROUP_DEPTH:
        raise ValueError(
            f"machine: expected an expression with at most {MAX_GROUP_DEPTH} nested groups, got deeper nesting; write "
            "the machine in another format"
        )
    # A bug in a simplification would be hard to see in the expression. This comparison proves that the result is right.
    if not dfa_from_regex(pattern, dfa.symbols, tokens).equivalent(dfa):
        raise AssertionError(f"the expression {pattern!r} and the automaton accept different strings; report this bug")
    return pattern


def _depth(pattern: str) -> int:
    """Return the largest number of groups that are open at the same time."""
    marks = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "", pattern)
    return max(accumulate((mark == "(") - (mark == ")") for mark in marks), default=0)


def _pattern(dfa: DFA, tokens: Tokens) -> str:
    smallest = dfa.minimize()
    if smallest.num_states > MAX_STATES:
        raise ValueError(
            f"machine: expected a language that needs at most {MAX_STATES} states, got {smallest.num_states:,}; write "
            "the machine in another format"
        )
    edges = _edges(smallest)
    first, last = smallest.num_states, smallest.num_states + 1
    states = {state for pair in edges for state in pair} - {first, last}
    while states:
        state = _best(edges, states)
        states.remove(state)
        edges = _eliminated(edges, state)
    if (first, last) not in edges:  # the empty language, for which the syntax has only a class without symbols
        return pattern_text(SymbolSet(frozenset(dfa.symbols), others=True), tokens)
    return pattern_text(edges[first, last], tokens)


def _edges(dfa: DFA) -> Edges:
    """Return the edges between states that reach an accepting state, with a new first state and a new last state."""
    first, last = dfa.num_states, dfa.num_states + 1
    table = dfa.semiautomaton.table
    is_useful = dfa.semiautomaton.leading_to(dfa.accepting)
    edges: Edges = {}
    for p in np.flatnonzero(is_useful).tolist():
        for q in set(table[p].tolist()):
            if is_useful[q]:
                symbols = [symbol for symbol, r in zip(dfa.symbols, table[p], strict=True) if r == q]
                edges[p, q] = SymbolSet(frozenset(symbols))
        if dfa.accepting[p]:
            edges[p, last] = EMPTY
    if is_useful[dfa.start]:
        edges[first, dfa.start] = EMPTY
    return edges


def _best(edges: Edges, states: set[int]) -> int:
    """Return the state whose elimination adds the fewest symbols to all edges together; on ties, the first state."""
    incoming = defaultdict[int, list[int]](list)
    outgoing = defaultdict[int, list[int]](list)
    loops = Counter[int]()
    for (p, q), node in edges.items():
        size = _size(node)
        if p == q:
            loops[p] = size
        else:
            outgoing[p].append(size)
            incoming[q].append(size)

    def num_added(state: int) -> int:
        before, after = incoming[state], outgoing[state]
        # By Delgado and Morais, each incoming label is repeated for every outgoing edge, each outgoing label for every
        # incoming edge, and the loop for every pair of such edges.
        return (
            sum(before) * (len(after) - 1)
            + sum(after) * (len(before) - 1)
            + loops[state] * (len(before) * len(after) - 1)
        )

    # States are sorted, so that equal machines give equal expressions.
    return min(sorted(states), key=num_added)


def _eliminated(edges: Edges, state: int) -> Edges:
    # By Arden's rule, the smallest solution of X = A X | B is A* B, so a loop becomes a star.
    loop = star(edges[state, state]) if (state, state) in edges else EMPTY
    incoming = [(p, node) for (p, q), node in edges.items() if q == state != p]
    outgoing = [(q, node) for (p, q), node in edges.items() if p == state != q]
    others = {pair: node for pair, node in edges.items() if state not in pair}
    for p, before in incoming:
        for q, after in outgoing:
            path = concatenation([before, loop, after])
            others[p, q] = choice([others[p, q], path]) if (p, q) in others else path
            # Each elimination can multiply the size of expressions, so the limit is checked at each step.
            if _size(others[p, q]) > MAX_POSITIONS:
                raise ValueError(
                    f"machine: expected an expression with at most {MAX_POSITIONS:,} symbols, got a longer one; write "
                    "the machine in another format"
                )
    return others


def concatenation(nodes: Iterable[Node]) -> Node:
    """Return the simplified concatenation of several expressions (nodes of a syntax tree).

    Example:
        >>> a, b = (SymbolSet(frozenset(symbol)) for symbol in "ab")
        >>> pattern_text(concatenation([b, a, star(concatenation([b, a])), star(b), b]))
        '(ba)+b+'
    """
    parts: list[Node] = []
    for node in nodes:
        for part in _parts(node):
            parts.append(part)
            while _join_last(parts):
                pass
    return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))


def _join_last(parts: list[Node]) -> bool:
    """Join the last parts into one repetition if possible, as r r* into r+; return whether parts were joined."""
    last = parts[-1]
    if isinstance(last, Repeat) and last.maximum is None:
        before = parts[-2] if len(parts) > 1 else EMPTY
        # r* r* = r* and r* r+ = r+ r* = r+. The same holds if the first r* is r?.
        if isinstance(before, Repeat) and before.inner == last.inner and 0 in (before.minimum, last.minimum):
            parts[-2:] = [Repeat(last.inner, max(before.minimum, last.minimum), None)]
            return True
        inner = _parts(last.inner)
        # r r* = r+
        if last.minimum == 0 and tuple(parts[-1 - len(inner) : -1]) == inner:
            parts[-1 - len(inner) :] = [Repeat(last.inner, 1, None)]
            return True
    for index in range(len(parts) - 1):
        repeated = parts[index]
        if isinstance(repeated, Repeat) and repeated.maximum is None and repeated.minimum == 0:
            # r* r? = r*
            if last == Repeat(repeated.inner, 0, 1) and index == len(parts) - 2:
                parts.pop()
                return True
            inner = _parts(repeated.inner)
            # r* r = r+
            if len(inner) == len(parts) - index - 1 and inner == tuple(parts[index + 1 :]):
                parts[index:] = [Repeat(repeated.inner, 1, None)]
                return True
    return False


def choice(nodes: Iterable[Node]) -> Node:
    """Return the simplified choice between several expressions (nodes of a syntax tree).

    Sets of symbols are united, and common first or last parts are written only once.

    Example:
        >>> a, b = (SymbolSet(frozenset(symbol)) for symbol in "ab")
        >>> pattern_text(choice([concatenation([a, b, star(a)]), concatenation([a, b]), EMPTY, b]))
        '(aba*|b)?'
    """
    options: dict[Node, None] = {}
    symbols: frozenset[str] = frozenset()
    is_optional = False
    for option in (option for node in nodes for option in _options(node)):
        if isinstance(option, SymbolSet):
            symbols |= option.symbols
        elif option == EMPTY:
            is_optional = True
        else:
            options[option] = None
    if symbols:
        options[SymbolSet(symbols)] = None
    # r | r* = r*, and the same holds for r+ and r?, so the single r is redundant.
    repeated = {option.inner: option for option in options if isinstance(option, Repeat)}
    kept = [option for option in options if option not in repeated]
    # r s | r t = r (s | t), and then the same for common last parts.
    for is_last in (False, True):
        kept = _factored(kept, is_last=is_last)
    if not kept:
        return EMPTY
    whole = kept[0] if len(kept) == 1 else Choice(tuple(kept))
    return _optional(whole) if is_optional else whole


def _factored(options: Sequence[Node], *, is_last: bool) -> list[Node]:
    """Return the options after uniting all options that begin (or end) with the same part."""
    groups: dict[Node, list[Node]] = {}
    for option in options:
        groups.setdefault(_parts(option)[-1 if is_last else 0], []).append(option)
    factored = []
    for shared, alike in groups.items():
        if len(alike) == 1:
            factored += alike
        else:
            rest = choice(Concatenation(_parts(node)[:-1] if is_last else _parts(node)[1:]) for node in alike)
            factored.append(concatenation([rest, shared] if is_last else [shared, rest]))
    return factored


def _optional(node: Node) -> Node:
    if _is_nullable(node):
        return node
    return Repeat(node.inner, 0, node.maximum) if isinstance(node, Repeat) else Repeat(node, 0, 1)


def star(node: Node) -> Node:
    """Return the simplified repetition, any number of times, of an expression (a node of a syntax tree).

    Example:
        >>> a, b = (SymbolSet(frozenset(symbol)) for symbol in "ab")
        >>> pattern_text(star(choice([star(a), b])))
        '[ab]*'
    """
    if node == EMPTY:
        return EMPTY
    if isinstance(node, Repeat):
        # (r*)* = (r+)* = (r?)* = r*
        return star(node.inner)
    if isinstance(node, Choice) and any(isinstance(option, Repeat) for option in node.options):
        # (r* | s)* = (r | s)*
        return star(choice(option.inner if isinstance(option, Repeat) else option for option in node.options))
    if isinstance(node, Concatenation) and all(map(_is_nullable, node.parts)):
        # (r s)* = (r | s)* if both r and s match the empty string
        return star(choice(node.parts))
    return Repeat(node, 0, None)


def _parts(node: Node) -> tuple[Node, ...]:
    return node.parts if isinstance(node, Concatenation) else (node,)


def _options(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Concatenation) and len(node.parts) == 1:
        return _options(node.parts[0])
    if isinstance(node, Repeat) and (node.minimum, node.maximum) == (0, 1):
        return (EMPTY, *_options(node.inner))
    return node.options if isinstance(node, Choice) else (node,)


def _is_nullable(node: Node) -> bool:
    if isinstance(node, Repeat):
        return node.minimum == 0 or _is_nullable(node.inner)
    if isinstance(node, Concatenation):
        return all(map(_is_nullable, node.parts))
    return isinstance(node, Choice) and any(map(_is_nullable, node.options))


def _size(node: Node) -> int:
    """Return the number of sets of symbols in a node."""
    if isinstance(node, Repeat):
        return _size(node.inner)
    if isinstance(node, SymbolSet):
        return 1
    return sum(map(_size, node.parts if isinstance(node, Concatenation) else node.options))


def pattern_text(node: Node, tokens: Tokens = "characters") -> str:
    """Return an expression (a node of a syntax tree) as a text in the syntax of `dfa_from_regex`.

    Example:
        >>> either = Choice((SymbolSet(frozenset({"GET", "PUT"})), SymbolSet(frozenset({"a.b"}))))
        >>> pattern_text(Concatenation((either, SymbolSet(frozenset({"OK"})))), "words")
        '([GET PUT] | a\\\\.b) OK'
    """
    separator = "" if tokens == "characters" else " "
    if isinstance(node, Choice):
        return f"{separator}|{separator}".join(pattern_text(option, tokens) for option in node.options)
    if isinstance(node, Concatenation):
        texts = ((part, pattern_text(part, tokens)) for part in node.parts)
        return separator.join(f"({text})" if isinstance(part, Choice) else text for part, text in texts)
    if isinstance(node, Repeat):
        sign = {(0, None): "*", (1, None): "+", (0, 1): "?"}[node.minimum, node.maximum]
        inner = pattern_text(node.inner, tokens)
        return f"{inner}{sign}" if isinstance(node.inner, SymbolSet) else f"({inner}){sign}"
    symbols = sorted(node.symbols)
    if len(symbols) == 1 and not node.others:
        return _escaped(symbols[0])
    # Inside brackets, an unescaped - may mean a range.
    escaped = ["\\-" if symbol == "-" else _escaped(symbol) for symbol in symbols]
    return f"[{'^' if node.others else ''}{separator.join(escaped)}]"


def _escaped(symbol: str) -> str:
    return "".join(f"\\{character}" if character in SPECIAL else character for character in symbol)
