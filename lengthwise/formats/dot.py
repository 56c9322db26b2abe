"""DOT, in the dialect of automata.cs.ru.nl that AALpy and LearnLib write."""

from collections.abc import Sequence

import numpy as np

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.base import FORMATS, ReadableFormat
from lengthwise.formats.dot_edges import ends_like_certainty, pairs_of_label, symbols_of_label
from lengthwise.formats.dot_labels import ENTITY, SUBSTITUTED
from lengthwise.formats.dot_machine import machine_of_graph
from lengthwise.formats.dot_syntax import parse_dot
from lengthwise.formats.limits import check_text


@FORMATS.register("dot")
class DOT(ReadableFormat):
    r"""DOT: ``__start0 -> s0`` marks the initial state, and so does an edge from any node without an outline.

    - Accepting states of an automaton have ``shape=doublecircle`` or two peripheries. An automaton may have several
      initial states. An edge with the label ``ε`` reads nothing.
    - States of a Moore machine have shape record and labels ``{s0|answer}``, or any shape and labels ``s0/answer``. The
      answer may also be on a second line of the label, after the name of the node.
    - Edges of a Mealy machine (`write_mealy`) have labels ``symbol/output``, or ``<symbol<br/>output>`` in HTML. The
      answer to a string is the last output. The empty string, and strings for which an edge is missing, have no answer.
    - A drawing of ``fstdraw`` has a bold initial state, and arcs with labels ``symbol`` or ``symbol:output`` (see
      `ATT`).

    Several symbols of an edge are separated by commas or line breaks outside of brackets: ``a, b`` are two symbols,
    ``ACK(V,V)`` is one. In a label, ``\`` before a special character makes it an ordinary character. A graph declares
    all states or none. A graph may also declare only the accepting states, if ``node [shape=circle]`` or another
    default gives all other states a shape.

    Positions and titles are ignored. Probabilities and weights are rejected. A graph with outputs on states is rejected
    if it also has outputs on edges, or accepting states. Colors and fonts are ignored in a graph that has outputs or
    accepting states. In all other graphs, labels, colors, fonts and shapes that may mean acceptance are rejected.

    Example:
        >>> mealy = DOT.read('digraph { __start0 -> q; q -> q [label="a/x"]; q -> q [label="b/y"] }')
        >>> mealy.classes, mealy.machine.outputs.tolist()
        (('x', 'y'), [-100, 0, 1])

    Source: automata.cs.ru.nl/Syntax/Overview; AALpy, utils/FileHandler.py.
    Differs from the source: symbols and answers that are numbers stay texts.
    """

    suffixes = (".dot",)
    comment = "// "

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """Return a DOT graph of the machine, with a line for each state and a line for each edge."""
        lines = state_lines(machine, "s")
        for state, symbol, target in machine.machine.semiautomaton.edges():
            lines.append(f's{state} -> s{target} [label="{escaped_symbol(symbol)}"];')
        return graph_text(lines, f"s{machine.machine.start}")

    @staticmethod
    def write_mealy(machine: LabeledMachine) -> str:
        """Return a DOT graph of the smallest Mealy machine that answers all nonempty strings like `machine`.

        Raises:
            ValueError: a nonempty string has no answer, or a symbol or an answer cannot be printed.

        Example:
            >>> alternating = DOT.read('digraph { __start0 -> q; q -> q [label="a/x"] }')
            >>> print(DOT.write_mealy(alternating).splitlines()[2].strip())
            s0 -> s0 [label="a/x"];
        """
        smallest, outputs = machine.mealy()
        lines = [f's{q} [label="s{q}", shape=circle];' for q in range(smallest.num_states)]
        for state, (targets, names) in enumerate(zip(smallest.table.tolist(), outputs, strict=True)):
            for symbol, target, output in zip(machine.symbols, targets, names, strict=True):
                if not output:
                    raise ValueError(
                        f"expected an answer on every transition, got none for symbol {symbol!r} from state s{state}; "
                        "write a Moore machine instead, in which a state may have no answer"
                    )
                lines.append(f's{state} -> s{target} [label="{_escaped_pair(symbol, output)}"];')
        return graph_text(lines, "s0")

    @staticmethod
    def read(text: str) -> LabeledMachine:
        """Return the machine that a graph describes."""
        check_text(text)
        return machine_of_graph(parse_dot(text))


def state_lines(machine: LabeledMachine, prefix: str) -> list[str]:
    """Return a line of DOT for each state; a state's name is `prefix` followed by the state's number."""
    if machine.is_automaton:
        shapes = np.where(machine.machine.outputs == machine.accepting_class, "doublecircle", "circle").tolist()
        return [f'{prefix}{q} [label="{prefix}{q}", shape={shape}];' for q, shape in enumerate(shapes)]
    labels = [f"{{{prefix}{q}|{escaped_text(answer)}}}" for q, answer in enumerate(machine.answer_names())]
    return [f'{prefix}{q} [label="{label}", shape=record, style=rounded];' for q, label in enumerate(labels)]


def graph_text(lines: Sequence[str], start: str) -> str:
    """Return a DOT graph with these lines, and with an edge from an empty node to the initial state."""
    inner = [*lines, '__start0 [label="", shape=none];', f"__start0 -> {start};"]
    return "\n".join(["digraph machine {", *(f"    {line}" for line in inner), "}", ""])


def escaped_symbol(text: str) -> str:
    """Return a symbol as a label, with only the escapes that a reader needs to read the same symbol."""
    escaped = escaped_text(text)
    # Take the first form that is read back as the same symbol. Drawings show escapes, so they are a last resort.
    return next(label for label in (escaped, escaped.replace(",", r"\,"), _all_escaped(text)) if _reads_as(label, text))


def _reads_as(label: str, symbol: str) -> bool:
    try:
        return symbols_of_label(label) == (symbol,)
    except ValueError:
        return False


def _escaped_pair(symbol: str, output: str) -> str:
    """Return a symbol and its output as a label, with as few escapes as they need to be read back."""
    label = f"{escaped_symbol(symbol)}/{escaped_text(output)}"
    try:
        is_read = pairs_of_label(label) == ((symbol, output),) and not ends_like_certainty(label)
    except ValueError:
        is_read = False
    return label if is_read else f"{_all_escaped(symbol)}/{_all_escaped(output)}"


def escaped_text(text: str) -> str:
    r"""Return a text as part of a quoted label.

    Raises:
        ValueError: the text contains line breaks or other characters that cannot be printed.
    """
    if not text.isprintable():
        raise ValueError(f"expected symbols and answers that can be printed, got {text!r}; rename it")
    special = '"\\{}|<>/' + " " * (text.strip() != text) + "&" * (ENTITY.search(text) is not None)
    return "".join(f"\\{character}" if character in special else character for character in text)


def _all_escaped(text: str) -> str:
    r"""Return a text with a ``\`` before each character, except letters to which a ``\`` would give a meaning."""
    return "".join(letter if letter in f"nlr{SUBSTITUTED}" else f"\\{letter}" for letter in text)
