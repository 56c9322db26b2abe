"""DOT, in the dialect of automata.cs.ru.nl that AALpy and LearnLib write."""

import re
from collections.abc import Collection, Mapping

from lengthwise.automata.formats.base import FORMATS, ReadableFormat
from lengthwise.automata.formats.dot_syntax import Graph, label_fields, label_items, parse_dot
from lengthwise.automata.formats.draft import Draft
from lengthwise.automata.labeled import LabeledMachine

_INVISIBLE = ("none", "point", "plaintext", "plain")
"""Shapes of nodes that are no states: an edge without a label leads from them to the initial state."""


@FORMATS.register("dot")
class DOT(ReadableFormat):
    r"""DOT: ``__start0 -> s0`` marks the initial state.

    An automaton has ``shape=doublecircle``, or two peripheries, where it accepts; where only such states are declared,
    and defaults of nodes give the others a shape, these need no declaration. A Moore machine has labels
    ``{s0|answer}`` of shape record; LearnLib's ``s0 / answer`` of all states, where none accepts, are read, too. A
    Mealy machine (`write_mealy`) has edges ``symbol/output``; its answer to a string is the last output, so that
    the empty string has none. An edge of several symbols has commas or line breaks between them, outside of brackets:
    ``a, b`` are two symbols, ``ACK(V,V)`` is one. ``\`` before a character of a label that would mean something else,
    ``/`` of an automaton's symbol for one, makes it a character.

    Example:
        >>> mealy = DOT.read('digraph { __start0 -> q; q -> q [label="a/x"]; q -> q [label="b/y"] }')
        >>> mealy.classes, mealy.machine.outputs.tolist()
        (('x', 'y'), [-100, 0, 1])

    Source: automata.cs.ru.nl/Syntax/Overview; AALpy, utils/FileHandler.py.
    Differs from the source: symbols and answers that are numbers stay texts.
    """

    suffixes = (".dot", ".gv")
    comment = "// "

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """A graph, a line for each state and edge."""
        lines = ["digraph machine {"]
        for state, answer in enumerate(machine.answer_names()):
            if not machine.is_automaton:
                lines.append(f'    s{state} [label="{{s{state}|{_escaped(answer)}}}", shape=record, style=rounded];')
            else:
                accepts = machine.machine.outputs[state] == machine.accepting_class
                lines.append(f'    s{state} [label="s{state}", shape={"doublecircle" if accepts else "circle"}];')
        for state, row in enumerate(machine.machine.semiautomaton.table.tolist()):
            for symbol, target in zip(machine.symbols, row, strict=True):
                lines.append(f'    s{state} -> s{target} [label="{_escaped_symbol(symbol)}"];')
        lines += ['    __start0 [label="", shape=none];', f"    __start0 -> s{machine.machine.start};", "}"]
        return "\n".join(lines) + "\n"

    @staticmethod
    def write_mealy(machine: LabeledMachine) -> str:
        """The smallest Mealy machine that answers all strings but the empty one alike: outputs stand on edges.

        Raises:
            ValueError: a string has no answer.

        Example:
            >>> alternating = DOT.read('digraph { __start0 -> q; q -> q [label="a/x"] }')
            >>> print(DOT.write_mealy(alternating).splitlines()[2].strip())
            s0 -> s0 [label="a/x"];
        """
        smallest, outputs = machine.mealy()
        lines = ["digraph machine {", *(f'    s{q} [label="s{q}", shape=circle];' for q in range(smallest.num_states))]
        for state, (targets, names) in enumerate(zip(smallest.table.tolist(), outputs, strict=True)):
            for symbol, target, output in zip(machine.symbols, targets, names, strict=True):
                if not output:
                    raise ValueError(f"expected an answer to every string, got none after {symbol!r} in a state")
                lines.append(f'    s{state} -> s{target} [label="{_escaped_symbol(symbol)}/{_escaped(output)}"];')
        lines += ['    __start0 [label="", shape=none];', "    __start0 -> s0;", "}"]
        return "\n".join(lines) + "\n"

    @staticmethod
    def read(text: str) -> LabeledMachine:
        """The machine of a graph."""
        graph, draft = parse_dot(text), Draft()
        states = {name: attributes for name, attributes in graph.nodes.items() if not _marks_start(name, attributes)}
        declared = [name for name in graph.declared if name in states]
        for name in states if _are_told_apart_by_defaults(states, declared) else declared:
            draft.add_state(name)
        edges = _edges_of_states(graph, states, draft)
        is_record = any("record" in attributes.get("shape", "").lower() for attributes in states.values())
        accepting = [name for name, attributes in states.items() if _accepts(attributes)]
        is_other = not is_record and not accepting
        if is_other and edges and all(_has_output(label) for _, _, label in edges):
            for source, target, label in edges:
                for symbol, output in _pairs(label):
                    draft.add_edge(source, symbol, target, output)
            return draft.mealy()
        for source, target, label in edges:
            for item in label_items(label):
                draft.add_edge(source, "".join(label_fields(item, None)), target)
        if is_record:
            return draft.moore({name: _moore_answer(name, attributes) for name, attributes in states.items()})
        if is_other and states and all(" / " in attributes.get("label", "") for attributes in states.values()):
            return draft.moore({name: label_fields(states[name]["label"], "/")[1] for name in states})
        if is_other and any(_has_output(label) for _, _, label in edges):
            source, _, label = next(edge for edge in edges if not _has_output(edge[2]))
            raise ValueError(
                f"expected an output on each edge of a Mealy machine, got none on {label!r} from state {source!r}; add "
                "it, or write \\/ for a symbol's /"
            )
        return draft.automaton(accepting)


def _edges_of_states(graph: Graph, states: Mapping[str, Mapping[str, str]], draft: Draft) -> list[tuple[str, str, str]]:
    """The edges between states, with their labels; those from other nodes say which state is the initial one."""
    edges = []
    for source, target, attributes in graph.edges:
        label = attributes.get("label", "")
        for state in (source, target):
            if state in states:
                draft.check_state(state)
        if target not in states:
            raise ValueError(f"expected edges between states, got one to {target!r}, which marks the initial state")
        if source in states:
            edges.append((source, target, label))
        elif label:
            raise ValueError(f"expected no label on the edge from {source!r}, which marks the initial state, got one")
        else:
            draft.set_start(target)
    return edges


def _marks_start(name: str, attributes: Mapping[str, str]) -> bool:
    """Whether a node is no state."""
    return (
        name.startswith("__start")
        or attributes.get("shape", "").lower() in _INVISIBLE
        or "invis" in attributes.get("style", "").lower()
    )


def _accepts(attributes: Mapping[str, str]) -> bool:
    """Whether a state is drawn with two lines around it."""
    return attributes.get("shape") in ("doublecircle", "doubleoctagon") or attributes.get("peripheries") == "2"


def _are_told_apart_by_defaults(states: Mapping[str, Mapping[str, str]], declared: Collection[str]) -> bool:
    """Whether those that accept are declared, and all others have a shape without being declared; or none is."""
    others = [name for name in states if name not in declared]
    return all(_accepts(states[name]) for name in declared) and all(
        not declared or ("shape" in states[name] and not _accepts(states[name])) for name in others
    )


def _has_output(label: str) -> bool:
    return len(label_fields(label, "/")) == 2


def _pairs(label: str) -> list[tuple[str, str]]:
    """The symbols of a Mealy machine's edge, each with its output: ``a/x, b/y`` has two, and ``a, b/x`` one of both.

    An output may have commas and slashes.
    """
    first = re.match(r"(?:\\.|[^\\/])*", label, re.DOTALL)  # before a slash that is not escaped
    assert first is not None
    has_more = "/" in re.sub(r"\\.", "", label[first.end() + 1 :])
    items = [label_fields(item, "/") for item in (label_items(label) if has_more else ())]
    if items and all(len(item) == 2 and "/" not in item[1] for item in items):
        return [(symbol, output) for symbol, output in items]
    output = label_fields(label, "/")[1]
    return [("".join(label_fields(item, None)), output) for item in label_items(first[0])]


def _moore_answer(name: str, attributes: Mapping[str, str]) -> str:
    fields = label_fields(attributes.get("label", ""), "|")
    if len(fields) != 2:
        raise ValueError(f"expected a label {{state|answer}} of each state, got none of state {name!r}; add it")
    return fields[1]


def _escaped_symbol(text: str) -> str:
    """A symbol as it stands on an edge: commas are escaped where they would separate symbols."""
    escaped = _escaped(text)
    try:
        is_one = label_items(escaped) == [escaped]
    except ValueError:
        is_one = False
    return escaped if is_one else escaped.replace(",", r"\,")


def _escaped(text: str) -> str:
    r"""A text as it stands in a quoted label.

    Raises:
        ValueError: it has line breaks or other characters that are not printed.
    """
    if not text.isprintable():
        raise ValueError(f"expected symbols and answers that can be printed, got {text!r}; rename it")
    special = '"\\{}|<>/' + " " * (text.strip() != text)
    return "".join(f"\\{character}" if character in special else character for character in text)
