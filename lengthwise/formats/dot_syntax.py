"""The syntax of DOT: nodes and edges with their attributes."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from lengthwise.formats.dot_attributes import check_attribute
from lengthwise.formats.dot_labels import html_label
from lengthwise.formats.draft import MAX_EDGES
from lengthwise.validation import quoted

MAX_LABEL = 100_000
"""The largest number of characters in a name or label."""

MAX_NODES = 250_000
"""The largest number of nodes. `MAX_EDGES` limits edges; an edge between two groups counts once per pair of nodes."""

MAX_DEPTH = 100
"""The largest depth of nested subgraphs."""

# Possessive quantifiers (++ and *+) never backtrack, so that no file can make the search quadratic.
_TOKEN = re.compile(
    r"""(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|\#[^\n]*+)*+
    (?:(?P<quoted>"(?:[^"\\]++|\\.)*+")
    |(?P<word>-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)|[A-Za-z_\u0080-\U0010ffff][0-9A-Za-z_\u0080-\U0010ffff]*+)
    |(?P<mark>->|--|[{}\[\];,=:+])
    |(?P<html><)
    |(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
_USUAL_EDGE = re.compile(
    r"""([A-Za-z_]\w{0,63}+)[ ]*+->[ ]*+([A-Za-z_]\w{0,63}+)[ ]*+"""
    r"""\[[ ]*+label[ ]*+=[ ]*+"([^"\\\r\n]{1,64}+)"[ ]*+\][ ]*+;""",
    re.ASCII,
)
"""A pattern of an edge as most tools write edges, on one line, with a label and no other attribute."""

_RAW_BREAK = re.compile(r"\r\n|\n|\r")
_KEYWORDS = frozenset({"graph", "node", "edge", "subgraph"})

_COMPASS = frozenset({"n", "ne", "e", "se", "s", "sw", "w", "nw", "c", "_"})
"""Ports that name the side of a node where an edge ends. Any other port names a field of a label, and is rejected."""

Attributes = dict[str, str]


class Edge(NamedTuple):
    """An edge with its attributes, and the number of its line in the DOT text."""

    source: str
    target: str
    attributes: Attributes
    line: int


@dataclass
class Graph:
    """The nodes and edges of a DOT text, in the order of the text.

    `declared` contains the nodes that have their own statement. `lines` contains the line number at which each node is
    declared or first mentioned.
    """

    name: str = ""
    nodes: dict[str, Attributes] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    declared: dict[str, None] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


def parse_dot(text: str) -> Graph:
    """Return the nodes and edges of a directed graph and its subgraphs.

    Attributes that describe the machine or only affect the drawing are accepted; all other attributes are rejected.

    Raises:
        ValueError: the text is not a directed graph, has an unknown attribute, or exceeds `MAX_NODES`, `MAX_EDGES`,
            `MAX_LABEL` or `MAX_DEPTH`; the message contains the line number.

    Example:
        >>> graph = parse_dot('digraph { node [shape=circle]; a -> b [label="x"] /* one edge */ }')
        >>> graph.nodes["b"], graph.edges
        ({'shape': 'circle'}, [Edge(source='a', target='b', attributes={'label': 'x'}, line=1)])
    """
    return _Parser(text).parse()


class _Group(NamedTuple):
    """The nodes at one end of an edge. `named` contains the nodes that a group lists by name alone."""

    nodes: Iterable[str]
    named: Iterable[str] = ()


class _Parser:
    """A parser of statements, with stacks of the defaults and the nodes of each subgraph.

    `named` contains the nodes that are declared by a statement that consists only of their name.
    """

    def __init__(self, text: str) -> None:
        self.source = text
        self.graph = Graph()
        self.defaults: list[dict[str, Attributes]] = [{"node": {}, "edge": {}}]
        self.members: list[dict[str, None]] = [{}]
        self.pairs: dict[tuple[str, str], str] = {}
        self.named: list[str] = []
        self.index = self.begin = 0
        self.line, self.counted = 1, 0
        self._next()
        self.is_strict = self._is_word("strict")

    def parse(self) -> Graph:
        if self.is_strict:
            self._next()
        if not self._is_word("digraph"):
            self._reject("a directed graph, which begins with digraph")
        self._next()
        if self._is_name():
            self.graph.name = self._name()
        self._take("{")
        while not self._skip("}"):
            self._statement()
        if self.kind != "end":
            self._reject("the end of the file")
        return self.graph

    def _statement(self) -> None:
        if self._skip(";"):
            return
        if self._is_mark("{") or self._is_word("subgraph"):
            self._edges(self._subgraph())
        elif self._take_usual_edge():
            return
        elif not self._is_name():
            self._reject("a statement")
        elif self.kind == "word" and self.text.lower() in _KEYWORDS:
            kind = self.text.lower()
            self._next()
            self.defaults[-1].setdefault(kind, {}).update(self._attributes(kind))
        else:
            self._node_or_edges()

    def _subgraph(self) -> _Group:
        """Read a subgraph and return its nodes."""
        if self._is_word("subgraph"):
            self._next()
            if self._is_name():
                self._name()
        if len(self.defaults) > MAX_DEPTH:
            self._reject(f"at most {MAX_DEPTH} subgraphs inside one another")
        self._take("{")
        self.defaults.append({kind: dict(values) for kind, values in self.defaults[-1].items()})
        self.members.append({})
        num_named = len(self.named)
        while not self._skip("}"):
            self._statement()
        self.defaults.pop()
        nodes = self.members.pop()
        self.members[-1].update(nodes)
        return _Group(nodes, self.named[num_named:])

    def _node_or_edges(self) -> None:
        """Read a node with its attributes, a chain of edges, or an attribute of the graph."""
        line, name = self._line(), self._name()
        if self._skip("="):
            self._check_attribute("graph", name.lower(), self._is_blank_value(), line)
            self._name()
            return
        self._port(name)
        self._add_node(name, line)
        if self._is_mark("->"):
            self._edges(_Group((name,)))
            return
        attributes = self._attributes("node")
        self.graph.nodes[name].update(attributes)
        if not attributes and name not in self.graph.declared:
            self.named.append(name)
        self.graph.declared[name] = None
        self.graph.lines[name] = line

    def _take_usual_edge(self) -> bool:
        """Read an edge with one regular expression if it matches `_USUAL_EDGE`, and return whether it did.

        The result equals the result of `_node_or_edges`, but reading a file takes half the time.
        """
        match = _USUAL_EDGE.match(self.source, self.begin)
        if match is None or match[1].lower() in _KEYWORDS or match[2].lower() in _KEYWORDS:
            return False
        source, target, label = match.groups()
        line = self._line()
        self._add_node(source, line)
        self._add_node(target, line)
        self._add_edge(Edge(source, target, {**self.defaults[-1]["edge"], "label": label}, line))
        self.index = match.end()
        self._next()
        return True

    def _port(self, name: str) -> None:
        while self._skip(":"):
            line, port = self._line(), self._name()
            if port not in _COMPASS:
                raise ValueError(
                    f"line {line}: expected a compass point as the port of node {name!r}, got {port!r}; remove the "
                    'port, or write "..." around a name with a colon'
                )

    def _edges(self, first: _Group) -> None:
        """Read the rest of a chain of edges after its first node or group, if an arrow follows."""
        if not self._is_mark("->"):
            return
        line, chain = self._line(), [first]
        while self._skip("->"):
            if self._is_mark("{") or self._is_word("subgraph"):
                chain.append(self._subgraph())
            else:
                node_line, name = self._line(), self._name()
                self._port(name)
                self._add_node(name, node_line)
                chain.append(_Group((name,)))
        for group in chain:  # a name at an edge is not a declaration, and neither is a name in a group
            for name in group.named:
                self.graph.declared.pop(name, None)
        attributes = {**self.defaults[-1]["edge"], **self._attributes("edge")}
        for sources, targets in pairwise(chain):
            for source in sources.nodes:
                for target in targets.nodes:
                    self._add_edge(Edge(source, target, attributes, line))

    def _add_node(self, name: str, line: int) -> None:
        if name not in self.graph.nodes:
            if len(self.graph.nodes) == MAX_NODES:
                raise ValueError(
                    f"line {line}: expected at most {MAX_NODES:,} nodes, got more nodes; minimize the machine"
                )
            self.graph.nodes[name] = dict(self.defaults[-1]["node"])
            self.graph.lines[name] = line
        self.members[-1][name] = None

    def _add_edge(self, edge: Edge) -> None:
        label = edge.attributes.get("label", "")
        if self.is_strict and self.pairs.setdefault((edge.source, edge.target), label) != label:
            raise ValueError(
                f"line {edge.line}: expected one edge from {edge.source!r} to {edge.target!r} in a strict graph, got "
                "two; remove the word strict"
            )
        if len(self.graph.edges) == MAX_EDGES:
            raise ValueError(
                f"line {edge.line}: expected at most {MAX_EDGES:,} edges, got more edges; minimize the machine"
            )
        self.graph.edges.append(edge)

    def _attributes(self, kind: str) -> Attributes:
        """Read the attributes in brackets, and reject unknown attributes."""
        attributes: Attributes = {}
        while self._skip("["):
            while self._is_name():
                line, key = self._line(), self._name().lower()
                self._take("=")
                is_blank, is_label = self._is_blank_value(), key == "label" and kind != "graph"
                attributes[key] = self._name(is_label=is_label)
                self._check_attribute(kind, key, is_blank, line, attributes[key])
                if not self._skip(","):
                    self._skip(";")
            self._take("]")
        return attributes

    def _is_blank_value(self) -> bool:
        return self.text in ('""', '" "')

    def _check_attribute(self, kind: str, key: str, is_blank: bool, line: int, value: str = "") -> None:
        """Raise a ValueError at an attribute with an unknown meaning, unless its value is empty."""
        if is_blank:
            return
        if kind == "graph" and key == "label" and len(self.defaults) > 1:
            raise ValueError(f"line {line}: expected subgraphs without labels, got a label; remove this label")
        check_attribute(kind, key, value, line)

    def _name(self, *, is_label: bool = False) -> str:
        """Read a name or value; quoted texts may be joined by a +."""
        kind, text = self.kind, self.text
        if kind == "word":
            self._next()
            return text
        if kind == "html":
            line = self._line()
            self._next()
            try:
                return html_label(text) if is_label else text
            except ValueError as problem:
                raise ValueError(f"line {line}: {problem}") from None
        if kind != "quoted":
            self._reject("a name")
        self._next()
        text = _unquoted(text)
        while self._skip("+"):
            if self.kind != "quoted":
                self._reject("a text in quotes")
            text += _unquoted(self.text)
            self._next()
        if len(text) > MAX_LABEL:
            self._reject_length()
        return _RAW_BREAK.sub(r"\\n", text) if is_label else text

    def _next(self) -> None:
        """Move to the next token."""
        match = _TOKEN.match(self.source, self.index)
        if match is None:
            begin = re.compile(r"(?:\s++|//[^\n]*+|\#[^\n]*+)*+").match(self.source, self.index)
            self.begin = begin.end() if begin else self.index
            got = self.source[self.begin]
            way_out = {
                '"': "close this text with a second quote",
                "/": "close this comment, or put the name in quotes",
                "'": "use double quotes instead",
            }.get(got, "put names that have this character in double quotes")
            raise ValueError(
                f"line {self._line()}: expected names, quoted texts and punctuation of DOT, got {got!r}; {way_out}"
            )
        self.kind = match.lastgroup or ""
        self.text = match[match.lastindex or 0]
        self.index = match.end()
        self.begin = self.index - len(self.text)
        if self.kind == "html":
            self.index = self._end_of_html()
            self.text = self.source[self.begin + 1 : self.index - 1]
        if self.index - self.begin > MAX_LABEL:
            self._reject_length()

    def _end_of_html(self) -> int:
        depth = 0
        for bracket in re.finditer("[<>]", self.source[self.begin : self.begin + MAX_LABEL + 2]):
            depth += 1 if bracket[0] == "<" else -1
            if not depth:
                return self.begin + bracket.end()
        if len(self.source) - self.begin > MAX_LABEL:
            self._reject_length()
        raise ValueError(
            f"line {self._line()}: expected a > for each < of a label in HTML, got a < without >; add the >, or write "
            "&lt; for a < of the text"
        )

    def _line(self) -> int:
        """Return the line number of the current token.

        Line breaks are counted from the last requested token on, so that the text is scanned only once.
        """
        self.line += self.source.count("\n", self.counted, self.begin)
        self.counted = self.begin
        return self.line

    def _is_name(self) -> bool:
        return self.kind in ("word", "quoted", "html")

    def _is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text.lower() == word

    def _is_mark(self, mark: str) -> bool:
        return self.text == mark and self.kind == "mark"

    def _skip(self, mark: str) -> bool:
        """Move past a mark if it is the current token, and return whether it was."""
        is_mark = self._is_mark(mark)
        if is_mark:
            self._next()
        return is_mark

    def _take(self, mark: str) -> None:
        if not self._skip(mark):
            self._reject(repr(mark))

    def _reject(self, expected: str) -> None:
        got = quoted(self.text[:40]) if self.text else "the end of the file"
        raise ValueError(f"line {self._line()}: expected {expected}, got {got}; correct this line")

    def _reject_length(self) -> None:
        raise ValueError(
            f"line {self._line()}: expected names and labels of at most {MAX_LABEL:,} characters, got a longer name or "
            "label; shorten it"
        )


def _unquoted(text: str) -> str:
    r"""Return the text of a name in quotes, as Graphviz reads it.

    ``\"`` is a quote, and ``\`` before a line break joins the two lines. Other escapes stay.
    """
    text = text[1:-1]
    if "\\" not in text:
        return text
    return re.sub(r"\\(.)", lambda pair: {'"': '"', "\n": ""}.get(pair[1], pair[0]), text, flags=re.DOTALL)
