"""Notes in a machine's file: its origin, and strings with their answers as a test."""

import json
from collections.abc import Sequence
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from lengthwise.automata.conformance import access_strings
from lengthwise.automata.labeled import LabeledMachine

NUM_TESTS = 20
"""The number of strings with answers in the notes."""

NO_EMPTY_ANSWER = "the answer to the empty string has no meaning"
"""The note in files of nets' machines, and of machines that were learned without a label for the empty string."""


class Notes(NamedTuple):
    """A name for the machine, sentences about it, and strings with their answers (an empty text for no answer)."""

    name: str
    about: tuple[str, ...]
    tests: tuple[tuple[tuple[str, ...], str], ...]

    def lines(self) -> list[str]:
        """Return the notes as lines of printable ASCII."""
        lines = [json.dumps(sentence)[1:-1] for sentence in self.about]
        for string, answer in self.tests:
            text = "".join(string) if all(len(symbol) == 1 for symbol in string) else list(string)
            lines.append(f"{json.dumps(text)} -> {json.dumps(answer or None)}")
        return lines


def notes_on(machine: LabeledMachine, name: str = "machine", about: Sequence[str] = ()) -> Notes:
    """Return notes with twenty strings and their answers.

    The notes begin with a shortest string to each of at most ten states. Random strings of 1, 2, ... symbols follow.

    Example:
        >>> from lengthwise.automata.labeled import labeled_dfa
        >>> from lengthwise.automata.regex import dfa_from_regex
        >>> notes = notes_on(labeled_dfa(dfa_from_regex("(a|b)*abb")))
        >>> len(notes.tests), notes.tests[3]
        (20, (('a', 'b', 'b'), 'accept'))
    """
    # A fixed seed, so that equal machines are written as equal files.
    chance = np.random.default_rng(0)
    # Breadth-first search gives the n-th string at most n symbols, so this limit does not cut off the first ten.
    shortest = access_strings(machine.machine, NUM_TESTS**2).values()
    strings = dict.fromkeys(islice(shortest, NUM_TESTS // 2))
    for length in count(1):
        if len(strings) == NUM_TESTS:
            break
        strings[tuple(chance.integers(len(machine.symbols), size=length).tolist())] = None
    answers = machine.answer_names()
    tests = []
    for string in strings:
        state = machine.machine.semiautomaton.final_states(np.array([string]), machine.machine.start)[0]
        tests.append((tuple(machine.symbols[v] for v in string), answers[state]))
    return Notes(name, tuple(about), tuple(tests))
