"""AT&T's text as OpenFst prints it, and faults in it."""

import numpy as np
import pytest

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.automata.formats.att import ATT
from lengthwise.automata.labeled import LabeledMachine


def test_an_acceptor_begins_with_its_first_line() -> None:
    """States are any words; a final state may have weight 0, and edges that are missing lead to a sink."""
    machine = ATT.read("7 3 a\n3 7 a\n\n3 3 b\n3 0\n")
    assert machine.dfa().accepts(np.array([[0, 1, 1], [0, 0, 0]])).tolist() == [True, True]
    assert not machine.dfa().accepts(np.array([[1], [1]])).any()
    assert machine.machine.num_states == 3


def test_a_transducer_answers_with_its_last_output() -> None:
    """Not in states that are not final, and not with an output that is nothing."""
    machine = ATT.read("0\t1\ta\tx\n0\t0\tb\ty\n1\t0\ta\t<eps>\n1\t2\tb\tz\n2\t2\ta\tx\n2\t2\tb\tx\n0\n1\t0.0\n")
    names = [
        "" if answer < 0 else machine.classes[answer] for answer in machine.machine.run(np.array([[0, 0, 1, 0, 1]]))[0]
    ]
    assert names == ["x", "", "y", "x", ""]
    assert machine.num_unanswered == 2, "the start, which is also where an output is empty; and the last state"


def test_answers_that_would_be_weights_are_not_written() -> None:
    machine = ATT.read("0 1 a x\n1 0 a y\n0\n1\n")
    numbers = LabeledMachine(machine.machine, ("0.5", "2"))
    with pytest.raises(ValueError, match=r"^expected answers that are not read as weights, got "):
        ATT.write(numbers)
    whole = ATT.read(ATT.write(LabeledMachine(machine.machine, ("1", "2"))))
    assert whole.classes == ("1", "2")


def test_an_acceptor_that_repeats_its_symbols_is_one() -> None:
    """As `fstprint` prints it without --acceptor; where all states are final, the answers are the last symbols."""
    machine = ATT.read("0 1 a a\n1 1 a a\n1 0 b b\n1\n")
    assert machine.is_automaton
    assert machine.dfa().accepts(np.array([[0, 0], [0, 1], [1, 0]])).tolist() == [True, False, False]
    last = ATT.read("0 0 a a\n0 0 b b\n0\n")
    assert last.classes == ("a", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0 1 a\n1 0 a x\n1\n",
            r"^expected lines of 3 words each, or of 4, but for final states, got \[3, 4\]; write so",
        ),
        ("0 1 a b c d\n", r"^expected lines of 3 words each, or of 4, but for final states, got \[6\]; write source"),
        ("0\n", r"^expected lines of 3 words each, or of 4, but for final states, got none; write source"),
        ("0 0 a x 0.5\n0\n", r"^line 1: expected no weight but 0, got 0\.5; leave weights out$"),
        ("0 1 a 0.5\n0 0 b 1\n1 0 a -.25\n1\n", r"^expected outputs, got numbers such as 0\.5, which are weights"),
        ("0 1 a 0.5\n1 0 a 2.5\n1\n", r"^expected outputs, got numbers such as 0\.5, which are weights; leave these"),
        ("0 0 a\n0 inf\n", r"^line 2: expected no weight but 0, got inf; leave weights out$"),
        ("0 0 a x\n0 0 <eps> x\n0\n", r"^line 2: expected a symbol, got <eps>; remove edges that read nothing$"),
        ("0 1 a x\n0 0 a y\n0\n", r"^expected one edge of each symbol, got two of 'a' from state '0'; only automata"),
    ],
)
def test_faults_are_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ATT.read(text)


def test_answers_that_no_edge_has_are_no_weights() -> None:
    """The start's answer stands on no edge, as nothing leads there."""
    table = np.array([[1, 2], [1, 2], [2, 1]])
    machine = LabeledMachine(Transducer(Semiautomaton(table, ("a", "b")), 0, np.array([0, 1, 2])), ("x", "0.5", "1"))
    with pytest.raises(ValueError, match=r"expected answers that are not read as weights, got '0\.5'; rename it"):
        ATT.write(machine)


@pytest.mark.parametrize("weight", ["1e-05", "2.5E+3", "Infinity", "-0.5"])
def test_weights_of_all_forms_are_none_of_its_answers(weight: str) -> None:
    with pytest.raises(ValueError, match="expected outputs, got numbers such as"):
        ATT.read(f"0 1 a 0.5\n1 0 a {weight}\n0\n1\n")
