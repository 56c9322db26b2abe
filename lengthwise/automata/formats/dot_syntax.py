"""The syntax of DOT: nodes and edges with their attributes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
    |(?P<quoted>"(?:[^"\\]|\\.)*")
    |(?P<word>-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)|[A-Za-z_\u0080-\U0010ffff][0-9A-Za-z_\u0080-\U0010ffff]*)
    |(?P<mark>->|--|[{}\[\];,=:+])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass
class Graph:
    """What a text says: nodes and edges in its order.

    `declared`: the nodes that have a statement of their own.
    """

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    declared: dict[str, None] = field(default_factory=dict)


def parse_dot(text: str) -> Graph:
    """Nodes and edges of a directed graph; those of subgraphs, too.

    Raises:
        ValueError: the text is no directed graph, or has an edge to a group of nodes or a label in HTML.

    Example:
        >>> graph = parse_dot('digraph { node [shape=circle]; a -> b [label="x"] /* one edge */ }')
        >>> graph.nodes["b"], graph.edges
        ({'shape': 'circle'}, [('a', 'b', {'label': 'x'})])
    """
    return _Parser(text).parse()


def label_fields(label: str, separator: str | None) -> list[str]:
    r"""A label without braces around it, split once at the separator, without spaces around its parts.

    What stands after a ``\`` neither separates nor is left out.

    Example:
        >>> label_fields(r"{ s0 | a\|b }", "|"), label_fields(r"a\/b", "/")
        (['s0', 'a|b'], ['a/b'])
    """
    characters: list[tuple[str, bool]] = []
    escapes = iter(label)
    for character in escapes:
        is_escaped = character == "\\"
        characters.append((next(escapes, "\\") if is_escaped else character, is_escaped))
    characters = _stripped(characters)
    if characters[:1] == [("{", False)] and characters[-1:] == [("}", False)]:
        characters = _stripped(characters[1:-1])
    parts = [characters]
    if separator is not None and (separator, False) in characters:
        index = characters.index((separator, False))
        parts = [characters[:index], characters[index + 1 :]]
    return ["".join(character for character, _ in _stripped(part)) for part in parts]


def label_items(label: str) -> list[str]:
    r"""The parts of a label between commas and line breaks (``\n``, ``\l``, ``\r``), with their spaces and escapes.

    Brackets with something between their commas hold one part together. A label of marks alone is one part.

    Raises:
        ValueError: there is nothing between two commas.

    Example:
        >>> label_items(r"a,b\nACK(V,V)"), label_items("(,)"), label_items("(0,1)"), label_items(r"\,")
        (['a', 'b', 'ACK(V,V)'], ['(', ')'], ['(0,1)'], ['\\,'])
    """
    tokens = re.findall(r"\\.|.", label, re.DOTALL)
    if not any(token not in (",", *_BREAKS) and token.strip() for token in tokens):
        return [label]
    parts, index = [""], 0
    while index < len(tokens):
        end = _closing(tokens, index)
        if tokens[index] in (",", *_BREAKS):
            parts.append("")
        else:
            parts[-1] += "".join(tokens[index : end + 1])
        index = end + 1
    if not all(part.strip() for part in parts):
        raise ValueError(f"expected symbols between commas, got none in the label {label!r}; write \\, for a comma")
    return parts


_BREAKS = (r"\n", r"\l", r"\r")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def _closing(tokens: Sequence[str], index: int) -> int:
    """Where the bracket that opens at an index closes; the index itself where none opens, or it holds nothing."""
    if tokens[index] not in _BRACKETS:
        return index
    opening, closing, depth = tokens[index], _BRACKETS[tokens[index]], 0
    for end in range(index, len(tokens)):
        depth += (tokens[end] == opening) - (tokens[end] == closing)
        if not depth:
            inside = "".join(tokens[index + 1 : end]).split(",")
            return end if all(part.strip() for part in inside) else index
    return index


def _stripped(characters: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    kept = [index for index, (character, is_escaped) in enumerate(characters) if is_escaped or not character.isspace()]
    return characters[kept[0] : kept[-1] + 1] if kept else []


class _Token(NamedTuple):
    text: str
    is_name: bool
    line: int


class _Parser:
    """Statement by statement; a stack holds the defaults of nodes and edges in subgraphs."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.index = 0
        self.graph = Graph()
        self.defaults: list[dict[str, dict[str, str]]] = [{"node": {}, "edge": {}}]

    def parse(self) -> Graph:
        if self._is_word("strict"):
            self.index += 1
        if not self._is_word("digraph"):
            self._reject("a directed graph, which begins with digraph")
        self.index += 1
        if self._next().is_name:
            self._name()
        self._take("{")
        while len(self.defaults):
            self._statement()
        if self._next().text:
            self._reject("the end")
        return self.graph

    def _statement(self) -> None:
        token = self._next()
        if not token.is_name:
            if token.text == "}":
                self.defaults.pop()
            elif token.text == "{":
                self.defaults.append({kind: dict(values) for kind, values in self.defaults[-1].items()})
            elif token.text != ";":
                self._reject("a statement")
            self.index += 1
            if token.text == "}" and self._next().text == "->":
                self._reject("edges between single nodes")
        elif self._is_word("subgraph"):
            self.index += 1
            if self._next().is_name:
                self._name()
        elif any(self._is_word(kind) for kind in ("graph", "node", "edge")):
            self.index += 1
            self.defaults[-1].setdefault(token.text.lower(), {}).update(self._attributes())
        else:
            self._nodes()

    def _nodes(self) -> None:
        """A node with its attributes, a chain of edges, or an attribute of the graph, which says nothing here."""
        chain = [self._node()]
        if self._next().text == "=" and not self._next().is_name:
            self.index += 1
            self._name()
            return
        while self._next().text == "->" and not self._next().is_name:
            self.index += 1
            chain.append(self._node())
        attributes = self._attributes()
        for node in chain:
            self.graph.nodes.setdefault(node, dict(self.defaults[-1]["node"]))
        if len(chain) == 1:
            self.graph.nodes[chain[0]].update(attributes)
            self.graph.declared[chain[0]] = None
        for source, target in pairwise(chain):
            self.graph.edges.append((source, target, {**self.defaults[-1]["edge"], **attributes}))

    def _node(self) -> str:
        name = self._name()
        while self._next().text == ":" and not self._next().is_name:  # where edges end at the node
            self.index += 1
            self._name()
        return name

    def _attributes(self) -> dict[str, str]:
        attributes = {}
        while self._next().text == "[" and not self._next().is_name:
            self.index += 1
            while self._next().is_name:
                key = self._name()
                self._take("=")
                attributes[key.lower()] = self._name()
                if self._next().text in (",", ";") and not self._next().is_name:
                    self.index += 1
            self._take("]")
        return attributes

    def _name(self) -> str:
        """A name or value; quoted texts may be joined by a +."""
        token = self._next()
        if not token.is_name:
            self._reject("a name")
        self.index += 1
        text = _unquoted(token.text)
        while token.text.startswith('"') and self._next().text == "+" and not self._next().is_name:
            self.index += 1
            text += _unquoted(self._next().text)
            self.index += 1
        return text

    def _next(self) -> _Token:
        return self.tokens[min(self.index, len(self.tokens) - 1)]

    def _is_word(self, word: str) -> bool:
        return self._next().text.lower() == word

    def _take(self, mark: str) -> None:
        if self._next().text != mark or self._next().is_name:
            self._reject(repr(mark))
        self.index += 1

    def _reject(self, expected: str) -> None:
        token = self._next()
        raise ValueError(f"line {token.line}: expected {expected}, got {token.text[:40] or 'the end'}")


def _tokens(text: str) -> list[_Token]:
    """The names and marks of a text, and an empty one at its end."""
    tokens, index, line = [], 0, 1
    while index < len(text):
        match = _TOKEN.match(text, index)
        if match is None:
            got = "a label in HTML" if text[index] == "<" else repr(text[index])
            raise ValueError(f"line {line}: expected names, quoted texts and marks of DOT, got {got}")
        if match.lastgroup != "skip":
            tokens.append(_Token(match[0], match.lastgroup in ("quoted", "word"), line))
        line += match[0].count("\n")
        index = match.end()
    return [*tokens, _Token("", False, line)]


def _unquoted(text: str) -> str:
    r"""Of a name in quotes the text: ``\"`` is a quote, other escapes stay, as in Graphviz."""
    if not text.startswith('"'):
        return text
    return re.sub(r"\\(.)", lambda pair: {'"': '"', "\n": ""}.get(pair[1], pair[0]), text[1:-1], flags=re.DOTALL)
