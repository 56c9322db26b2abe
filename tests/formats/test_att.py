"""AT&T's text as OpenFst prints it, and faults in it."""

import numpy as np
import pytest

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats import att
from lengthwise.formats.att import ATT


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
    with pytest.raises(ValueError, match=r"^expected an answer that is not a number, got "):
        ATT.write(numbers)
    with pytest.raises(
        ValueError, match=r"^expected an answer that is not a number, got only numbers such as '1', which"
    ):
        ATT.write(LabeledMachine(machine.machine, ("1", "2")))
    mixed = ATT.read(ATT.write(LabeledMachine(machine.machine, ("1", "x"))))
    assert mixed.classes == ("1", "x")


def test_an_acceptor_that_repeats_its_symbols_is_one() -> None:
    """As `fstprint` prints it without --acceptor, also if all states are final."""
    machine = ATT.read("0 1 a a\n1 1 a a\n1 0 b b\n1\n")
    assert machine.is_automaton
    assert machine.dfa().accepts(np.array([[0, 0], [0, 1], [1, 0]])).tolist() == [True, False, False]
    everything = ATT.read("0 0 a a\n0 0 b b\n0\n")
    assert everything.classes == ("reject", "accept")
    assert everything.dfa().accepts(np.array([[0, 1]])).all()
    last = LabeledMachine(
        Transducer(Semiautomaton(np.array([[0, 1], [0, 1]]), ("a", "b")), 0, np.arange(2)), ("a", "b")
    )
    with pytest.raises(
        ValueError,
        match=r"^expected an answer that differs from the last symbol read, got only equal ones, such as answer 'a'",
    ):
        ATT.write(last)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0 1 a\n1 0 a x\n1\n",
            r"^expected edges that all have 3 words, or all have 4, got edges of 3 and 4 words; write source",
        ),
        (
            "0 1 a b c d\n",
            r"^expected edges that all have 3 words, or all have 4, got edges of 6 words; write source",
        ),
        ("0\n", r"^expected edges that all have 3 words, or all have 4, got no edge; write source"),
        ("0 0 a x 0.5\n0\n", r"^line 1: expected no weight but 0, got 0\.5; leave weights out$"),
        ("0 1 a 0.5\n0 0 b 1\n1 0 a -.25\n1\n", r"^expected outputs, got only numbers such as 0\.5, which are read"),
        (
            "0 1 a 0.5\n1 0 a 2.5\n1\n",
            r"^expected outputs, got only numbers such as 0\.5, which are read as weights; remove the weights",
        ),
        ("0 0 a\n0 inf\n", r"^line 2: expected no weight but 0, got inf; leave weights out$"),
        ("0 0 a x\n0 0 <eps> x\n0\n", r"^line 2: expected a symbol, got <eps>; remove edges that read nothing$"),
        ("0 1 a x\n0 0 a y\n0\n", r"^expected at most one edge .*, got two for state '0' and symbol 'a'; remove one"),
    ],
)
def test_faults_are_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ATT.read(text)


def test_answers_that_no_edge_has_are_no_weights() -> None:
    """The start's answer stands on no edge, as nothing leads there."""
    table = np.array([[1, 2], [1, 2], [2, 1]])
    machine = LabeledMachine(Transducer(Semiautomaton(table, ("a", "b")), 0, np.array([0, 1, 2])), ("x", "0.5", "1"))
    with pytest.raises(
        ValueError, match=r"expected an answer that is not a number, got only numbers such as '0\.5', which"
    ):
        ATT.write(machine)


@pytest.mark.parametrize("weight", ["1e-05", "2.5E+3", "Infinity", "-0.5"])
def test_weights_of_all_forms_are_none_of_its_answers(weight: str) -> None:
    with pytest.raises(ValueError, match="expected outputs, got only numbers such as"):
        ATT.read(f"0 1 a 0.5\n1 0 a {weight}\n0\n1\n")


@pytest.mark.parametrize("nothing", ["<eps>", "<epsilon>", "ε", "@0@", "@_EPSILON_SYMBOL_@"])
def test_what_tools_write_for_no_symbol_is_none(nothing: str) -> None:
    for line in (f"0 1 {nothing}\n1 1 a\n1\n", f"0 1 {nothing} {nothing}\n1 1 a a\n1\n"):
        machine = ATT.read(line)
        assert machine.symbols == ("a",)
        assert machine.answer_to(()) == machine.answer_to(("a",)) == "accept"
    transducer = ATT.read(f"0 1 a x\n1 0 a {nothing}\n0\n1\n")
    assert [transducer.answer_to(("a",) * length) for length in range(4)] == ["", "x", "", "x"]
    with pytest.raises(ValueError, match=r"^line 2: expected a symbol, got <eps>; remove edges that read nothing$"):
        ATT.read(f"0 1 a x\n1 0 {nothing} x\n0\n1\n")
    machine = Transducer(Semiautomaton(np.array([[1], [0]]), (nothing,)), 0, np.array([0, 1]))
    with pytest.raises(
        ValueError, match=r"expected symbols and answers without spaces or a special meaning, got .*; rename it"
    ):
        ATT.write(LabeledMachine(machine, ("reject", "accept")))


def test_a_field_between_tabs_may_be_empty() -> None:
    """As pyfoma prints an edge that reads nothing: it is no weight."""
    machine = ATT.read("0\t1\t\n1\t1\ta\n1\n")
    assert (machine.symbols, machine.answer_to(())) == (("a",), "accept")
    last = ATT.read("0\t1\ta\tx\n1\t0\ta\t\n0\n1\n")
    assert [last.answer_to(("a",) * length) for length in range(3)] == ["", "x", ""]
    with pytest.raises(ValueError, match=r"^line 1: expected a symbol, got <eps>; remove edges that read nothing$"):
        ATT.read("0\t1\t\tx\n1\t1\tb\ty\n1\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\t1\t \n1\t1\ta\n1\n", r"^line 1: expected symbols without spaces, got ' '; rename it$"),
        ("0\t1\ta b\n1\n", r"^line 1: expected symbols without spaces, got 'a b'; rename it$"),
        ("0\t\ta\n1\n", r"^line 1: expected a state, got an empty field; name the state$"),
        (
            "0 1 a\n1\n--\n0 1 b\n1\n",
            r"^line 3: expected one machine, got '--', after which another machine begins; split the file$",
        ),
        ("0 1 a a\n1 1 λ λ\n1\n", r"^line 2: expected symbols, got 'λ', which may mean no symbol; write <eps>"),
        ("0 1 @_IDENTITY_SYMBOL_@ @_IDENTITY_SYMBOL_@\n1\n", r"got '@_IDENTITY_SYMBOL_@', which may mean no symbol"),
        ("0 1 @P.CASE.UP@\n1\n", r"got '@P\.CASE\.UP@', which may mean no symbol"),
        (
            "0 1 a 1\n1 0 b 2\n1\n",
            r"^expected outputs, got only numbers such as 1, which are read as weights; remove the weights",
        ),
        (
            "0 1 a 1,0.5\n1 0 b 2,3\n1\n",
            r"^expected outputs, got only numbers such as 1,0\.5, which are read as weights",
        ),
        ("0 1 1 1\n1\n", r"^expected outputs, got only numbers such as 1, which are read as weights"),
        (
            "0 1 0\n1 1 1\n1\n",
            r"^line 1: expected symbols with names, got the number 0, which may mean no symbol",
        ),
        ("0 0 0 0\n0 0 12 12\n0 1 12 12\n1\n", r"^line 1: expected symbols with names, got the number 0"),
        (f"0 1 {'a' * 1_001}\n1\n", r"^expected symbols and answers of at most 1,000 characters, got 1,001 in 'aaa"),
    ],
)
def test_what_may_mean_two_things_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ATT.read(text)


def test_digits_are_symbols_of_a_complete_machine() -> None:
    """Each state has one edge of 0, as a state of an automaton with edges that read nothing rarely has."""
    machine = ATT.read("0 0 0\n0 1 1\n1 1 0\n1 0 1\n1\n")
    assert machine.symbols == ("0", "1")
    assert machine.dfa().accepts(np.array([[0, 1], [1, 1]])).tolist() == [True, False]


def test_numbers_of_symbols_without_zero_are_names() -> None:
    assert ATT.read("0 1 97 97\n1 1 98 98\n1\n").symbols == ("97", "98")


def test_a_transducer_may_be_partial() -> None:
    machine = ATT.read("0 1 a x\n1 0 b y\n0\n1\n")
    strings = {"a": "x", "ab": "y", "aba": "x", "b": "", "aa": "", "aab": ""}
    assert {text: machine.answer_to(tuple(text)) for text in strings} == strings


def test_weights_of_zero_may_stand_on_some_edges() -> None:
    assert ATT.read("0 1 a a 0\n1 1 b b\n1 0.0\n").symbols == ("a", "b")


def test_lines_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(att, "MAX_LINES", 3)
    with pytest.raises(
        ValueError,
        match=r"^line 5: expected at most 3 edges and final states in the file, got more",
    ):
        ATT.read("0 1 a\n1 0 a\n\n1\n0\n")
