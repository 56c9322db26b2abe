"""The text of AT&T's tools, which OpenFst reads and prints."""

import re
from collections.abc import Sequence

import numpy as np

from lengthwise.automata.formats.base import FORMATS, ReadableFormat
from lengthwise.automata.formats.draft import Draft
from lengthwise.automata.labeled import LabeledMachine

EPSILON = "<eps>"
"""Stands for no symbol or no output."""


@FORMATS.register("att")
class ATT(ReadableFormat):
    r"""AT&T text: a line for each edge, and one with its number alone for each final state.

    The first line begins with the initial state. Edges of an automaton are ``source target symbol``. Those of any other
    machine are ``source target symbol output``: its answer to a string is the last output, and none where that is
    ``<eps>`` or the state is not final. So the empty string has no answer. Where every edge repeats its symbol, also
    one that leads to a state that is not final, it is an automaton, as ``fstprint`` prints one by default.
    Symbols stand for themselves, without a table of numbers.

    Example:
        >>> ATT.read("0 1 a\n1 0 a\n1\n").machine.outputs.tolist()
        [0, 1]

    Source: Allauzen, Riley, Schalkwyk, Skut and Mohri, "OpenFst" (2007).
    Differs from the source: weights other than 0 are rejected, and edges of transducers that read nothing.
    """

    suffixes = (".att", ".txt")

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """The edges of the initial state, those of the others, and the final states."""
        answers, outputs = machine.answer_names(), machine.machine.outputs
        named = [name for name in answers if name]
        on_edges = [answers[state] for state in np.unique(machine.machine.semiautomaton.table) if answers[state]]
        if not machine.is_automaton and _are_weights(on_edges):
            raise ValueError(f"expected answers that are not read as weights, got {on_edges[0]!r}; rename it")
        for name in (*machine.symbols, *named):
            if name.split() != [name] or name == EPSILON:
                raise ValueError(f"expected symbols and answers without spaces, got {name!r}; rename it")
        table = machine.machine.semiautomaton.table.tolist()
        start = machine.machine.start
        lines = []
        for state in (start, *(state for state in range(len(table)) if state != start)):
            for symbol, target in zip(machine.symbols, table[state], strict=True):
                output = "" if machine.is_automaton else f"\t{answers[target] or EPSILON}"
                lines.append(f"{state}\t{target}\t{symbol}{output}")
        if machine.is_automaton:
            lines += [str(state) for state, output in enumerate(outputs) if output == machine.accepting_class]
        else:
            lines += [str(state) for state, answer in enumerate(answers) if answer]
        return "\n".join(lines) + "\n"

    @staticmethod
    def read(text: str) -> LabeledMachine:
        """The machine of the lines."""
        rows = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1) if line.split()]
        widths = {len(words) for _, words in rows} - {1, 2}
        if len(widths) != 1 or not widths <= {3, 4, 5}:
            raise ValueError(
                f"expected lines of 3 words each, or of 4, but for final states, got {sorted(widths) or 'none'}; write "
                "source, target, symbol and, of a transducer, output"
            )
        for number, words in rows:
            if len(words) in (2, 5) and not _is_zero(words[-1]):
                raise ValueError(f"line {number}: expected no weight but 0, got {words[-1]}; leave weights out")
        edges = [words for _, words in rows if len(words) > 2]
        outputs = [words[3] for words in edges if len(words) == 4 and words[3] != EPSILON]
        if _are_weights(outputs):
            raise ValueError(f"expected outputs, got numbers such as {outputs[0]}, which are weights; leave these out")
        final = {words[0] for _, words in rows if len(words) < 3}
        is_automaton = widths == {3} or (
            all(words[2] == words[3] for words in edges)
            and any(words[1] not in final or words[2] == EPSILON for words in edges)
        )
        draft = Draft()
        draft.set_start(rows[0][1][0])
        for number, words in rows:
            if len(words) < 3:
                draft.add_state(words[0])
                continue
            source, target, symbol, *rest = words
            if symbol == EPSILON and is_automaton:
                draft.add_empty_edge(source, target)
                continue
            if symbol == EPSILON:
                raise ValueError(f"line {number}: expected a symbol, got {EPSILON}; remove edges that read nothing")
            has_output = not is_automaton and rest[0] != EPSILON and target in final
            draft.add_edge(source, symbol, target, rest[0] if has_output else "")
        return draft.automaton(final) if is_automaton else draft.mealy()


def _are_weights(words: Sequence[str]) -> bool:
    """Whether all are numbers, and one is written with a point or an exponent, or is infinite."""
    numbers = all(re.fullmatch(r"-?(\d*\.?\d+(e[-+]?\d+)?|Infinity)", word, re.IGNORECASE) for word in words)
    return numbers and any(re.search(r"\.|\de[-+]?\d|infinity", word, re.IGNORECASE) for word in words)


def _is_zero(word: str) -> bool:
    try:
        return float(word) == 0
    except ValueError:
        return False
