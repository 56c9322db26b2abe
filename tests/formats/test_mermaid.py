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
    lines = Mermaid.write(machine, with_sinks=True).splitlines()
    assert lines[:2] == ["stateDiagram-v2", f"    [*] --> q{machine.machine.start}"]
    arrows = [match.groups() for line in lines if (match := re.fullmatch(r"    q(\d+) --> q(\d+) : ([abc, ]+)", line))]
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
        "    q0 : a#62;b",
        "    q0 --> q0 : #59;#58;",
    ]


def test_words_are_in_lines_and_a_sink_is_a_note() -> None:
    words = ("CONNECT", "AUTH_OK", "OPEN", "CLOSE")
    table = np.array([[0, 0, 0, 0], [0, 0, 0, 2], [2, 2, 2, 2]])
    machine = Transducer(Semiautomaton(table, words), 1, np.array([1, 1, 0]))
    lines = Mermaid.write(LabeledMachine(machine, ("FAIL", "OK"))).splitlines()
    assert "    q0 --> q0 : CONNECT, AUTH#95;OK,<br/>OPEN, CLOSE".replace("#95;", "_") in lines
    assert not [line for line in lines if "q2" in line and "note" not in line]
    assert lines[-1].startswith("    note right of q1 : Not drawn#58; q2 #40;FAIL#41;.")
