"""Mermaid, which GitHub and other pages draw from text."""

from lengthwise.automata.drawing import find_sinks, label_rows, note_on_sinks, transitions
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.base import FORMATS, Drawing


@FORMATS.register("mermaid")
class Mermaid(Drawing):
    """Mermaid's `stateDiagram-v2`, which can be written, but not read.

    In an automaton, an arrow leads from each accepting state to the end mark. In other machines, a state's answer
    follows its name.

    Example:
        >>> import numpy as np
        >>> from lengthwise.automata import DFA, Semiautomaton
        >>> from lengthwise.automata.labeled import labeled_dfa
        >>> odd = DFA(Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b")), 0, np.array([False, True]))
        >>> print(Mermaid.write(labeled_dfa(odd)), end="")
        stateDiagram-v2
            [*] --> q0
            q0 --> q0 : a
            q0 --> q1 : b
            q1 --> q1 : a
            q1 --> q0 : b
            q1 --> [*]

    Source: mermaid.js.org, state diagrams.
    """

    suffixes = (".mmd", ".mermaid")
    comment = "%% "

    @staticmethod
    def write(machine: LabeledMachine, *, with_sinks: bool = False) -> str:
        """Return a diagram of the machine.

        All symbols that lead from one state to another share an arrow, whose label has lines of limited width.
        """
        answers = machine.answer_names()
        sinks = [] if with_sinks else find_sinks(machine.machine, machine.classes)
        states = [state for state in range(machine.machine.num_states) if state not in sinks]
        lines = ["stateDiagram-v2", f"    [*] --> q{machine.machine.start}"]
        if not machine.is_automaton:
            lines += [f"    q{state} : {_escaped(answers[state])}" for state in states if answers[state]]
        for (state, target), symbols in transitions(machine.machine, sinks).items():
            label = ",<br/>".join(", ".join(map(_escaped, row)) for row in label_rows(symbols))
            lines.append(f"    q{state} --> q{target} : {label}")
        if machine.is_automaton:
            accepting = (machine.machine.outputs == machine.accepting_class).nonzero()[0]
            lines += [f"    q{state} --> [*]" for state in accepting.tolist()]
        if sinks:
            lines.append(f"    note right of q{machine.machine.start} : {_escaped(note_on_sinks(sinks, answers))}")
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Return a text in which numeric codes replace all characters that may have a meaning in Mermaid."""
    return "".join(c if c.isalnum() or c in "_-. " else f"#{ord(c)};" for c in text)
