"""DOT for pictures: one edge for each pair of states, no rejecting sink, and the same machine when it is read again."""

import numpy as np
import pytest

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.automata.answers import REJECT_ACCEPT
from lengthwise.automata.labeled import LabeledMachine, difference, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.formats.gv import GV

WORDS = ("CONNECT", "AUTH_OK", "AUTH_FAIL", "OPEN", "READ", "WRITE", "CLOSE", "TIMEOUT", "DISCONNECT")


def edges(text: str) -> list[str]:
    return [line for line in text.splitlines() if " -> " in line and "__start0" not in line]


def test_parallel_edges_are_one_with_a_wrapped_label() -> None:
    machine = LabeledMachine(
        Transducer(Semiautomaton(np.array([[1] * 9, [0] * 9]), WORDS), 0, np.array([0, 1])), ("1", "2")
    )
    text = GV.write(machine)
    assert len(edges(text)) == 2
    assert r"CONNECT, AUTH_OK\nAUTH_FAIL, OPEN\nREAD, WRITE" in edges(text)[0]
    again = GV.read(text)
    assert (again.symbols, again.classes, again.machine.num_states) == (WORDS, ("1", "2"), 2)
    assert difference(machine, again) is None


def test_states_are_not_confused_with_answers_that_are_digits() -> None:
    machine = LabeledMachine(
        Transducer(Semiautomaton(np.array([[1, 0], [0, 1]]), ("a", "b")), 0, np.array([1, 0])), ("1", "2")
    )
    assert 'q0 [label="{q0|2}"' in GV.write(machine)


def test_a_rejecting_sink_is_left_out_and_named() -> None:
    machine = labeled_dfa(dfa_from_regex("ab*c"))
    text = GV.write(machine)
    assert "q2" not in text.replace("Not drawn: q2 (reject).", "")
    assert "Not drawn: q2 (reject). All symbols without an arrow lead there" in text
    assert difference(machine, GV.read(text)) is None


def test_a_sink_is_drawn_if_its_answer_would_be_lost_or_a_symbol_leads_nowhere_else() -> None:
    moore = LabeledMachine(
        Transducer(Semiautomaton(np.array([[1, 2], [1, 1], [2, 2]]), ("a", "b")), 0, np.array([0, 1, 2])),
        ("begin", "reject", "end"),
    )
    lost = LabeledMachine(
        Transducer(Semiautomaton(np.array([[0, 1], [1, 1]]), ("a", "b")), 0, np.array([1, 0])), REJECT_ACCEPT
    )
    for machine in (moore, lost):
        text = GV.write(machine)
        assert "Not drawn" not in text
        assert set(GV.read(text).symbols) == {"a", "b"}


@pytest.mark.parametrize("symbols", [("[", "a", "]"), ("a:0.5", "b"), ("1%", "b")])
def test_symbols_whose_joined_label_is_rejected_have_edges_of_their_own(symbols: tuple[str, ...]) -> None:
    """The end of a label may look like a probability, and its parts like brackets."""
    table = np.zeros((1, len(symbols)), dtype=np.int64)
    machine = LabeledMachine(Transducer(Semiautomaton(table, symbols), 0, np.array([0])), ("only",))
    assert set(GV.read(GV.write(machine)).symbols) == set(symbols)


def test_symbols_that_a_joined_label_would_confuse_have_edges_of_their_own() -> None:
    machine = LabeledMachine(
        Transducer(Semiautomaton(np.array([[0, 0, 0]]), ("(", "a", ")")), 0, np.array([0])), ("only",)
    )
    assert set(GV.read(GV.write(machine)).symbols) == {"(", "a", ")"}
