"""DOT for pictures that Graphviz draws from left to right, without the rejecting sinks of automata."""

from collections.abc import Sequence

from lengthwise.automata.drawing import find_sinks, label_rows, note_on_sinks, transitions
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.base import FORMATS, Drawing
from lengthwise.formats.dot import DOT, escaped_symbol, escaped_text, graph_text, state_lines


@FORMATS.register("gv")
class GV(DOT, Drawing):
    r"""DOT for pictures. Files are read in the same way as `DOT` files.

    Symbols that lead from one state to the same next state share an edge with a wrapped label. States are named q0, q1,
    ..., so that they are not confused with answers that are numbers. An automaton's rejecting sinks are omitted, and
    the graph's label lists them. A reader of the file adds a rejecting sink again.

    Example:
        >>> from lengthwise.automata.labeled import labeled_dfa
        >>> from lengthwise.automata.regex import dfa_from_regex
        >>> print("\n".join(GV.write(labeled_dfa(dfa_from_regex("(a|b)*c"))).splitlines()[4:8]))
            q0 [label="q0", shape=circle];
            q1 [label="q1", shape=doublecircle];
            q0 -> q0 [label="a, b"];
            q0 -> q1 [label="c"];
    """

    suffixes = (".gv",)

    @staticmethod
    def write(machine: LabeledMachine, *, with_sinks: bool = False) -> str:
        """Return a DOT graph with a line for each state, and a line for each pair of states that symbols connect."""
        # Readers complete an automaton with a rejecting sink, but cannot know the answer of any other machine's sink.
        omits = machine.is_automaton and not with_sinks
        sinks = find_sinks(machine.machine, machine.classes) if omits else []
        lines = ["rankdir=LR;"]
        if sinks:
            lines += [f'label="{escaped_text(note_on_sinks(sinks, machine.answer_names()))}";', "labelloc=b;"]
        lines += [line for state, line in enumerate(state_lines(machine, "q")) if state not in sinks]
        # Without accepting states or outputs, a reader cannot tell a list of symbols from a symbol and its output.
        has_marks = not machine.is_automaton or bool((machine.machine.outputs == machine.accepting_class).any())
        for (state, target), symbols in transitions(machine.machine, sinks).items():
            labels = _labels(symbols) if has_marks else map(escaped_symbol, symbols)
            lines += [f'q{state} -> q{target} [label="{label}"];' for label in labels]
        return graph_text(lines, f"q{machine.machine.start}")


def _labels(symbols: Sequence[str]) -> list[str]:
    """Return one label of several lines for all symbols, or a label for each symbol if these could not be separated."""
    separate = [escaped_symbol(symbol) for symbol in symbols]
    if len(separate) == 1:
        return separate
    joined = r"\n".join(", ".join(map(escaped_symbol, row)) for row in label_rows(symbols))
    loop = f'digraph {{ __start0 [shape=none]; __start0 -> q; q [shape=doublecircle]; q -> q [label="{joined}"]; }}'
    try:
        is_read = set(DOT.read(loop).symbols) == set(symbols)
    except ValueError:
        is_read = False
    return [joined] if is_read else separate
