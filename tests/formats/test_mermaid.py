"""Mermaid, which is written only."""

import re

import numpy as np
import pytest
from automaton_strategies import checked_strategies, labeled_machines
from hypothesis import given

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.mermaid import Mermaid

pytestmark = [checked_strategies, pytest.mark.unchecked]


@given(labeled_machines(symbols=("a", "b", "c")))
def test_every_transition_is_on_an_arrow(machine: LabeledMachine) -> None:
    lines = Mermaid.write(machine).splitlines()
    assert lines[:2] == ["stateDiagram-v2", f"    [*] --> s{machine.machine.start}"]
    arrows = [match.groups() for line in lines if (match := re.fullmatch(r"    s(\d+) --> s(\d+) : ([abc, ]+)", line))]
    table = np.full_like(machine.machine.semiautomaton.table, -1)
    for source, target, symbols in arrows:
        for symbol in symbols.split(", "):
            table[int(source), "abc".index(symbol)] = int(target)
    assert np.array_equal(table, machine.machine.semiautomaton.table)
    ends = {int(line.split()[0][1:]) for line in lines if line.endswith("--> [*]")}
    answers = machine.answer_names()
    if machine.is_automaton:
        assert ends == {state for state, answer in enumerate(answers) if answer.lower() in ("accept", "yes")}
    else:
        assert not ends
        assert len(lines) == 2 + len(arrows) + sum(map(bool, answers))


def test_characters_of_mermaid_are_numbers() -> None:
    machine = Transducer(Semiautomaton(np.array([[0]]), (";:",)), 0, np.array([0]))
    assert Mermaid.write(LabeledMachine(machine, ("a>b",))).splitlines()[2:] == [
        "    s0 : a#62;b",
        "    s0 --> s0 : #59;#58;",
    ]
