"""The machine of a graph in DOT: rules that decide which nodes are states, and which labels are outputs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.arcs import Arc, machine_of_arcs
from lengthwise.formats.dot_edges import (
    edge_label,
    ends_like_certainty,
    has_output,
    pairs_of_edge,
    pairs_on_two_lines,
    symbols_of_edge,
)
from lengthwise.formats.dot_labels import label_lines, plain_text, quoted, record_fields, split_once
from lengthwise.formats.dot_syntax import Attributes, Edge, Graph
from lengthwise.formats.draft import Draft

_INVISIBLE = ("none", "point", "plaintext", "plain")
"""Shapes of nodes that are not states: an edge without a label leads from them to an initial state."""

_APPEARANCE = ("shape", "style", "color", "fillcolor", "bgcolor", "fontcolor", "fontname", "penwidth", "class")
"""Attributes by which drawings distinguish accepting states from others, besides a second line around them."""

_PLAIN = {("shape", "circle"), ("shape", "ellipse"), ("shape", "oval"), ("style", "solid")}
"""The appearance of states that are drawn without any mark."""


def machine_of_graph(graph: Graph) -> LabeledMachine:
    """Return the machine that a graph describes.

    Raises:
        ValueError: the graph is not a machine, or could be two different machines; the message names the unclear part.
    """
    states = {name: attributes for name, attributes in graph.nodes.items() if not _marks_start(name, attributes)}
    # The order of checks matters: a graph that could be two machines must be rejected before one of them is chosen.
    drawing = _Drawing(graph, states)
    drawing.check_texts()
    starts = drawing.starts()
    edges = drawing.edges()
    accepting = drawing.accepting()
    if not starts and (bold := drawing.initial_of_openfst()) is not None:
        return _openfst_machine(drawing, bold, edges, accepting)
    draft = Draft()
    for name in drawing.known_states():
        draft.add_state(name)
    for edge in edges:
        draft.check_state(edge.source)
        draft.check_state(edge.target)
    outputs = _state_outputs(drawing, are_states_marked=bool(accepting))
    if any(has_output(edge_label(edge)) for edge in edges):
        _check_outputs_on_edges_alone(drawing, outputs, accepting)
        return _mealy(edges, _pairs_of_edges(edges), starts, draft)
    if outputs and accepting:
        got = "an accepting state in a graph with outputs in states"
        drawing.reject(accepting[0], "either accepting states or outputs in states", got, "use one kind")
    if not outputs and not accepting:
        if (pairs := pairs_on_two_lines(edges)) is not None:
            return _mealy(edges, [[pair] for pair in pairs], starts, draft)
        _check_accepts_nothing(drawing, edges)
    elif accepting:
        _check_shapes(drawing, accepting)
    for edge in edges:
        for symbol in symbols_of_edge(edge):
            if symbol:
                draft.add_edge(edge.source, symbol, edge.target)
            else:
                draft.add_empty_edge(edge.source, edge.target)
    if not outputs:
        draft.set_starts(starts)
        return draft.automaton(accepting)
    for name in starts:
        draft.set_start(name)
    return draft.moore(outputs)


class _Drawing(NamedTuple):
    """A graph in DOT, and the nodes that are states, with their attributes."""

    graph: Graph
    states: Mapping[str, Attributes]

    def reject(self, name: str, expected: str, got: str, way_out: str) -> None:
        """Raise a ValueError that names a node and the node's line."""
        line = self.graph.lines[name]
        raise ValueError(f"line {line}: expected {expected}, got {got} (node {quoted(name)}); {way_out}")

    def label(self, name: str) -> str:
        r"""Return the label of a state, with the state's name in place of ``\N``."""
        label = self.graph.nodes[name].get("label", "")
        return re.sub(r"\\(.)", lambda pair: name if pair[1] == "N" else pair[0], label) if "\\" in label else label

    def attribute(self, name: str, key: str) -> str:
        """Return a node's attribute in lowercase, or an empty text if the attribute is not set."""
        return self.graph.nodes[name].get(key, "").lower()

    def edges(self) -> list[Edge]:
        """Return the edges between states, without invisible edges, which only affect the layout."""
        edges = []
        for edge in self.graph.edges:
            is_invisible = "invis" in edge.attributes.get("style", "").lower()
            if is_invisible and edge_label(edge):
                raise ValueError(
                    f"line {edge.line}: expected only visible edges to have labels, got a label on an invisible edge; "
                    "remove the label, or make the edge visible"
                )
            if edge.source not in self.states:
                continue
            if not is_invisible:
                self._check_target(edge)
                edges.append(edge)
        return edges

    def _check_target(self, edge: Edge) -> None:
        if edge.target not in self.states:
            raise ValueError(
                f"line {edge.line}: expected edges between states, got an edge to {edge.target!r}, which marks the "
                f"initial state; remove this edge, or draw {edge.target!r} as a state"
            )

    def starts(self) -> list[str]:
        """Return the initial states, which are the targets of edges from nodes that are not states."""
        starts: dict[str, None] = {}
        for edge in self.graph.edges:
            if edge.source in self.states:
                continue
            self._check_target(edge)
            if edge_label(edge):
                raise ValueError(
                    f"line {edge.line}: expected no label on the edge from {edge.source!r}, which marks the initial "
                    "state, got a label; remove this label"
                )
            starts[edge.target] = None
        return list(starts)

    def check_texts(self) -> None:
        """Raise a ValueError if the graph has a free text, such as a legend, which may explain which states accept."""
        markers = {edge.source for edge in self.graph.edges}
        for name, attributes in self.graph.nodes.items():
            is_text = name not in self.states and self.attribute(name, "shape") in ("none", "plaintext", "plain")
            text = attributes.get("label", "" if name.startswith("__start") else name)
            if is_text and text.strip() and name not in markers and "invis" not in self.attribute(name, "style"):
                self.reject(name, "states and marks of initial states", "a text without an edge", "remove it")

    def accepting(self) -> list[str]:
        """Return the accepting states, which have two lines around them."""
        accepting = []
        for name in self.states:
            shape, lines = self.attribute(name, "shape"), self.attribute(name, "peripheries")
            is_double = shape in ("doublecircle", "doubleoctagon")
            if lines not in ("", "0", "1", "2") or shape == "tripleoctagon" or (is_double and lines not in ("", "2")):
                got = f"shape={shape[:20]} with peripheries={lines[:20]}"
                self.reject(name, "states with one line around them, or two if they accept", got, "use doublecircle")
            if is_double or lines == "2":
                accepting.append(name)
        return accepting

    def known_states(self) -> Iterable[str]:
        """Return the declared states, or all states if no state is declared.

        All states are also returned if only accepting states are declared, and ``node [shape=...]`` gives all other
        states a shape.
        """
        declared = [name for name in self.graph.declared if name in self.states]
        accepting = set(self.accepting())
        are_others_drawn = all(
            "shape" in attributes and name not in accepting
            for name, attributes in self.states.items()
            if name not in self.graph.declared
        )
        return self.states if not declared or (are_others_drawn and accepting.issuperset(declared)) else declared

    def initial_of_openfst(self) -> str | None:
        """Return the initial state in a drawing of ``fstdraw``, or None if the graph does not mark it in this way.

        The initial state is the only bold state of a graph named FST, or of a graph whose other states are solid.
        """
        styles = [self.attribute(name, "style") for name in self.states]
        are_solid = len(styles) > 1 and styles.count("solid") == len(styles) - 1
        if styles.count("bold") != 1 or not (self.graph.name == "FST" or are_solid):
            return None
        return list(self.states)[styles.index("bold")]


def _marks_start(name: str, attributes: Mapping[str, str]) -> bool:
    """Return whether a node is not a state, but an invisible node or a mark of the initial state."""
    return (
        name.startswith("__start")
        or attributes.get("shape", "").lower() in _INVISIBLE
        or "invis" in attributes.get("style", "").lower()
    )


def _openfst_machine(drawing: _Drawing, start: str, edges: Sequence[Edge], accepting: Iterable[str]) -> LabeledMachine:
    """Return the machine of a drawing of ``fstdraw``, whose arcs have labels ``symbol`` or ``symbol:output``."""
    for name in drawing.states:
        if split_once(drawing.label(name), "/") is not None:
            got = f"the label {quoted(drawing.label(name))}"
            drawing.reject(name, "final states without weights", got, "remove the weight")
    arcs = []
    for edge in edges:
        label = edge_label(edge)
        symbol, output = split_once(label, ":") or (label, "")
        is_pair = bool(symbol.strip()) and bool(output.strip())
        if (is_pair and ":" in output) or has_output(label):
            raise ValueError(
                f"line {edge.line}: expected symbol or symbol:output, got {quoted(label)}, which may have a weight; "
                "remove weights, and rename symbols with : or /"
            )
        text, answer = (plain_text(symbol), plain_text(output)) if is_pair else (plain_text(label), None)
        arcs.append(Arc(edge.source, edge.target, text, answer, edge.line))
    if len({arc.output is None for arc in arcs}) > 1:
        line = next(arc.line for arc in arcs if arc.output is None)
        raise ValueError(
            f"line {line}: expected symbol:output on every arc or on no arc, got arcs with an output and arcs without; "
            "add the missing outputs, or remove all outputs"
        )
    return machine_of_arcs(start, arcs, dict.fromkeys(accepting))


def _mealy(
    edges: Sequence[Edge], pairs: Sequence[Sequence[tuple[str, str]]], starts: Sequence[str], draft: Draft
) -> LabeledMachine:
    for edge, edge_pairs in zip(edges, pairs, strict=True):
        for symbol, output in edge_pairs:
            draft.add_edge(edge.source, symbol, edge.target, output)
    for name in starts:
        draft.set_start(name)
    return draft.mealy()


def _pairs_of_edges(edges: Sequence[Edge]) -> list[Sequence[tuple[str, str]]]:
    """Return the symbols of each edge with their outputs."""
    for edge in edges:
        if not has_output(edge_label(edge)):
            raise ValueError(
                f"line {edge.line}: expected an output on each edge of a Mealy machine, got none on the edge "
                f"{edge_label(edge)!r} from state {edge.source!r}; add an output or, if slashes belong to symbols, "
                "write \\/ for each slash"
            )
    pairs: list[Sequence[tuple[str, str]]] = [pairs_of_edge(edge) for edge in edges]
    if all(ends_like_certainty(edge_label(edge)) for edge in edges):
        label = quoted(edge_label(edges[0]))
        raise ValueError(f"line {edges[0].line}: expected outputs, got probabilities as in {label}; remove them")
    return pairs


def _check_outputs_on_edges_alone(drawing: _Drawing, outputs: Mapping[str, str], accepting: Sequence[str]) -> None:
    """Raise a ValueError if states of a Mealy machine accept, or have labels that may be outputs."""
    expected = "outputs on edges alone"
    if accepting:
        way_out = "use shape circle, or write \\/ on edges if / is part of the symbols"
        drawing.reject(accepting[0], expected, "also an accepting state", way_out)
    seen: set[str] = set()
    for name in drawing.states:
        label = drawing.label(name)
        if name in outputs or split_once(label, "/") is not None or len(label_lines(label)) > 1:
            drawing.reject(
                name,
                expected,
                f"also the label {quoted(label)} of a state",
                "remove either these labels or the outputs on edges",
            )
        if label.strip() and label in seen:
            got = f"the label {quoted(label)} of several states, which may be an output"
            drawing.reject(name, "a different label for each state", got, "rename these states")
        seen.add(label)


def _state_outputs(drawing: _Drawing, *, are_states_marked: bool) -> dict[str, str]:
    """Return the output in each state's label, or an empty result if no label has an output.

    Outputs are the second field of a record, or follow the state's name after a ``/`` or on a second line. A label of
    two parts that does not begin with the node's name is accepted as a name only if accepting states are marked.
    """
    outputs: dict[str, str] = {}
    without = unclear = None
    is_record = any("record" in drawing.attribute(name, "shape") for name in drawing.states)
    for name in drawing.states:
        label = drawing.label(name)
        parts: Sequence[str] = record_fields(label) if is_record else split_once(label, "/") or label_lines(label)
        if is_record and len(parts) != 2:
            raise ValueError(
                f"line {drawing.graph.lines[name]}: expected a label {{state|answer}} for each state, got none for "
                f"state {name!r}; add this label"
            )
        if len(parts) == 2 and (is_record or _names_state(parts[0], name) or " / " in label):
            outputs[name] = plain_text(parts[1])
        elif len(parts) > 1:
            unclear = unclear or name
        else:
            without = without or name
    if outputs and len(outputs) < len(drawing.states):
        name = without or unclear or ""
        drawing.reject(name, "an output in the label of each state", "a label without an output", "add the output")
    if unclear is not None and not are_states_marked:
        got = f"the label {quoted(drawing.label(unclear))}"
        way_out = "write state/output with the node's name, or draw accepting states as doublecircle"
        expected = "a label with the name of the node, or with the name and an output"
        drawing.reject(unclear, expected, got, way_out)
    return outputs


def _names_state(text: str, name: str) -> bool:
    """Return whether a text is the name of a node. Letters before a number are ignored, so 0 is a name of s0."""
    text, name = (re.sub(r"^[a-z_]+(?=[0-9]+$)", "", word.strip().lower()) for word in (text, name))
    return text == name


def _check_accepts_nothing(drawing: _Drawing, edges: Sequence[Edge]) -> None:
    """Raise a ValueError if states may accept in an unknown way, or edges may have outputs.

    No state of the graph is marked as accepting. So a state's label or color may mean that it accepts, and the second
    part of an edge's label may be an output.
    """
    expected = (
        "accepting states (shape doublecircle) or outputs (a/x on edges, {state|output} in states of shape record)"
    )
    for name in drawing.states:
        label = drawing.label(name)
        if label.strip() not in ("", name):
            got = f"only the label {quoted(label)}"
            drawing.reject(name, expected, got, "remove this label, or express its meaning in one of these ways")
        for key in _APPEARANCE:
            value = drawing.attribute(name, key)
            if value and (key, value) not in _PLAIN:
                got = f"only {key}={value[:20]}"
                way_out = f"remove this {key}, or express its meaning in one of these ways"
                drawing.reject(name, expected, got, way_out)
    for edge in edges:
        if len(symbols_of_edge(edge)) > 1:
            raise ValueError(
                f"line {edge.line}: expected {expected}, got only the label {quoted(edge_label(edge))} of several "
                "parts; write a/x if a part is an output, or draw an edge for each symbol"
            )


def _check_shapes(drawing: _Drawing, accepting: Sequence[str]) -> None:
    """Raise a ValueError if rejecting states have different shapes, because a shape may have a meaning."""
    first, kept = "", set(accepting)
    for name in drawing.states:
        shape = drawing.attribute(name, "shape")
        shape = "circle" if shape in ("", "ellipse", "oval") else shape
        if name not in kept and shape != (first := first or shape):
            got = f"the shapes {first[:20]} and {shape[:20]}"
            drawing.reject(name, "rejecting states that look alike", got, "use one shape, and doublecircle to accept")
