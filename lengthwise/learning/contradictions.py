"""The labels in examples that a machine contradicts."""

from typing import NamedTuple

import numpy as np

from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.learning.baselines import answers_of_machine
from lengthwise.tasks.given.examples import Examples


class Contradiction(NamedTuple):
    """A string, or a prefix of a string, with its label and the machine's different answer."""

    string: str
    label: str
    answer: str


def contradictions_of(machine: Transducer, examples: Examples, separator: str) -> list[Contradiction]:
    """Return the labeled prefixes whose labels the machine contradicts, each prefix once, shortest first."""
    answers = answers_of_machine(machine)(examples)
    wrong = np.flatnonzero((answers != examples.targets) & (examples.targets != IGNORE))
    wrong = wrong[np.unique(examples.prefixes[wrong], return_index=True)[1]]
    rows = np.searchsorted(examples.starts, wrong, "right") - 1
    contradictions = []
    for start, position in zip(examples.starts[rows].tolist(), wrong.tolist(), strict=True):
        text = separator.join(examples.symbols[v] for v in examples.ids[start : position + 1])
        label, answer = int(examples.targets[position]), int(answers[position])
        answered = examples.classes[answer] if answer >= 0 else "none"
        contradictions.append((position - start, Contradiction(text, examples.classes[label], answered)))
    return [one for _, one in sorted(contradictions)]
