"""Names of answers: which of two accepts, and how they are renamed."""

import numpy as np
import pytest

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.automata.answers import accepting_index, acceptor_index
from lengthwise.automata.labeled import LabeledMachine, difference, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.conventions import IGNORE

PAIRS = ["ok/fail", "pass/fail", "normal/anomaly", "good/bad", "true/false", "accept/reject", "yes/no", "1/0"]


def machine_of(*classes: str) -> LabeledMachine:
    """It answers a string by its last symbol; the empty string has the first answer."""
    size = len(classes)
    semiautomaton = Semiautomaton(np.tile(np.arange(size), (size, 1)), tuple("abcd"[:size]))
    return LabeledMachine(Transducer(semiautomaton, 0, np.arange(size)), classes)


@pytest.mark.parametrize("pair", PAIRS)
def test_common_labels_say_which_answer_accepts(pair: str) -> None:
    for change in (str.lower, str.upper, str.title):
        accepts, rejects = change(pair).split("/")
        assert acceptor_index((accepts, rejects)) == 0
        assert acceptor_index((rejects, accepts)) == 1
    accepts, rejects = pair.split("/")
    assert machine_of(accepts, rejects).dfa().accepting.tolist() == [True, False]
    assert difference(machine_of(accepts, rejects), labeled_dfa(dfa_from_regex("((a|b)*a)?"))) is None


def test_common_labels_of_logs_are_kept_as_answers_elsewhere() -> None:
    assert accepting_index(("OK", "FAIL")) is None
    assert not machine_of("OK", "FAIL").is_automaton
    assert acceptor_index(("OK", "even")) is None
    assert acceptor_index(("OK", "FAIL", "WARN")) is None


def test_answers_are_renamed_and_merged() -> None:
    machine = machine_of("OK", "FAIL", "WARN")
    assert machine.renamed({"WARN": "OK"}).classes == ("OK", "FAIL")
    assert machine.renamed({"WARN": "OK"}).answer_to("c") == "OK"
    assert machine.accepting("WARN").answer_names() == ["reject", "reject", "accept"]
    partial = LabeledMachine(machine.machine.with_empty_answer(IGNORE), machine.classes)
    assert partial.accepting("OK").answer_to("") == "", "no answer stays none"
    for make in (lambda: machine.accepting("ok"), lambda: machine.renamed({"ok": "x"})):
        with pytest.raises(ValueError, match="answer: expected one of OK, FAIL, WARN, got 'ok'; did you mean 'OK'"):
            make()
