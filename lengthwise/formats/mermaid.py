"""Mermaid, which GitHub and other pages draw from text."""

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.base import FORMATS, Format


@FORMATS.register("mermaid")
class Mermaid(Format):
    """Mermaid's `stateDiagram-v2`, which can be written, but not read.

    Accepting states lead to the end mark. States of other machines have their answers below their names.

    Example:
        >>> import numpy as np
        >>> from lengthwise.automata import DFA, Semiautomaton
        >>> from lengthwise.automata.labeled import labeled_dfa
        >>> odd = DFA(Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b")), 0, np.array([False, True]))
        >>> print(Mermaid.write(labeled_dfa(odd)), end="")
        stateDiagram-v2
            [*] --> s0
            s0 --> s0 : a
            s0 --> s1 : b
            s1 --> s1 : a
            s1 --> s0 : b
            s1 --> [*]

    Source: mermaid.js.org, state diagrams.
    """

    suffixes = (".mmd", ".mermaid")
    comment = "%% "

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """Return a diagram; symbols that lead from one state to another share an arrow."""
        answers = machine.answer_names()
        lines = ["stateDiagram-v2", f"    [*] --> s{machine.machine.start}"]
        if not machine.is_automaton:
            lines += [f"    s{state} : {_escaped(answer)}" for state, answer in enumerate(answers) if answer]
        for state, row in enumerate(machine.machine.semiautomaton.table.tolist()):
            for target in dict.fromkeys(row):
                symbols = (symbol for symbol, other in zip(machine.symbols, row, strict=True) if other == target)
                lines.append(f"    s{state} --> s{target} : {', '.join(map(_escaped, symbols))}")
        if machine.is_automaton:
            accepting = (machine.machine.outputs == machine.accepting_class).nonzero()[0]
            lines += [f"    s{state} --> [*]" for state in accepting.tolist()]
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Return a text in which characters with a meaning in Mermaid are numbers."""
    return "".join(c if c.isalnum() or c in "_-. " else f"#{ord(c)};" for c in text)
