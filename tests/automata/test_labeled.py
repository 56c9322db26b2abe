"""Where two machines differ, against automata-lib and against running them; symbols and answers by name."""

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, moore_machines, oracle
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import DFA, Semiautomaton, Transducer
from lengthwise.automata.answers import REJECT_ACCEPT
from lengthwise.automata.labeled import LabeledMachine, difference, labeled_dfa
from lengthwise.conventions import IGNORE

pytestmark = [checked_strategies, pytest.mark.unchecked]


def drawn(chance: np.random.Generator) -> DFA:
    states = int(chance.integers(1, 6))
    machine = Semiautomaton(chance.integers(states, size=(states, 2)), ("a", "b"))
    return DFA(machine, 0, chance.random(states) < 0.5)


def disguised(dfa: DFA, chance: np.random.Generator) -> LabeledMachine:
    """The same language: states doubled and shuffled, symbols in another order, answers with other names."""
    states = dfa.num_states
    doubled = np.concatenate([dfa.semiautomaton.table] * 2) + states * chance.integers(2, size=(2 * states, 2))
    order = chance.permutation(2 * states)
    table, accepting = np.empty_like(doubled), np.empty(2 * states, dtype=np.int64)
    table[order] = order[doubled]
    accepting[order] = np.concatenate([dfa.accepting] * 2)
    machine = Transducer(Semiautomaton(table[:, ::-1], ("b", "a")), int(order[dfa.start]), 1 - accepting)
    return LabeledMachine(machine, ("Yes", "No"))


def accepts(machine: LabeledMachine, string: tuple[str, ...]) -> bool:
    dfa = machine.dfa()
    return bool(dfa.accepts(np.array([[dfa.symbols.index(symbol) for symbol in string]], dtype=np.int64))[0])


def test_a_thousand_pairs_of_automata_are_compared_as_automata_lib_compares_them() -> None:
    """Half of the pairs are equal by construction."""
    chance = np.random.default_rng(0)
    num_equal = 0
    for pair in range(1_000):
        first = drawn(chance)
        second = disguised(first, chance) if pair % 2 else labeled_dfa(drawn(chance))
        shortest = difference(labeled_dfa(first), second)
        theirs = oracle(first) ^ oracle(second.dfa())
        assert (shortest is None) == theirs.isempty()
        num_equal += shortest is None
        if shortest is not None:
            assert len(shortest.string) == theirs.minimum_word_length()
            answers = [accepts(machine, shortest.string) for machine in (labeled_dfa(first), second)]
            assert shortest.answers == tuple(REJECT_ACCEPT[answer] for answer in answers)
            assert answers[0] != answers[1]
    assert 500 <= num_equal < 750


def names_by_string(machine: LabeledMachine, symbols: tuple[str, ...], length: int) -> list[str]:
    ids = np.array([machine.symbols.index(symbol) for symbol in symbols])
    states = machine.machine.semiautomaton.final_states(ids[all_strings(len(symbols), length)], machine.machine.start)
    return [machine.answer_names()[state] for state in states]


@given(moore_machines(symbols=("a", "b")), moore_machines(symbols=("b", "a")))
def test_the_shortest_string_is_the_one_that_running_finds(first: LabeledMachine, second: LabeledMachine) -> None:
    """The first in symbol order among those that both answer, where there is one among short strings."""
    renamed = LabeledMachine(second.machine, first.classes)
    expected = next(
        (
            ("".join("ab"[v] for v in string), (one, other))
            for length in range(8)
            for string, one, other in zip(
                all_strings(2, length),
                names_by_string(first, ("a", "b"), length),
                names_by_string(renamed, ("a", "b"), length),
                strict=True,
            )
            if one and other and one != other
        ),
        None,
    )
    try:
        shortest = difference(first, renamed)
    except ValueError as problem:
        assert expected is None
        assert "expected two machines that both answer some string, got" in str(problem)  # noqa: PT017
        return
    if expected is not None or shortest is None or len(shortest.string) < 8:
        assert (shortest and ("".join(shortest.string), shortest.answers)) == expected


@given(moore_machines(), st.randoms(use_true_random=False))
def test_aligned_machines_answer_alike(machine: LabeledMachine, random) -> None:
    symbols, classes = list(machine.symbols), [*machine.classes, "another"]
    random.shuffle(symbols)
    random.shuffle(classes)
    aligned = machine.aligned(symbols, classes)
    assert (aligned.symbols, aligned.classes) == (tuple(symbols), tuple(classes))
    for length in range(4):
        assert names_by_string(aligned, machine.symbols, length) == names_by_string(machine, machine.symbols, length)


def constant(answer: int, classes: tuple[str, ...], symbols: tuple[str, ...] = ("a",)) -> LabeledMachine:
    table = np.zeros((1, len(symbols)), dtype=np.int64)
    return LabeledMachine(Transducer(Semiautomaton(table, symbols), 0, np.array([answer])), classes)


@pytest.mark.parametrize(
    ("first", "second", "is_equal"),
    [
        (("reject", "accept"), ("in", "out"), False),
        (("reject", "accept"), ("out", "in"), True),
        (("TRUE", "FALSE"), ("yes", "no"), True),
        (("0", "1"), ("reject", "accept"), True),
        (("0", "1"), ("0", "1", "2"), True),
        (("0", "1"), ("1", "0", "2"), False),
        (("x", "y"), ("x", "z"), True),
    ],
)
def test_answers_are_matched_by_name_or_meaning(
    first: tuple[str, ...], second: tuple[str, ...], is_equal: bool
) -> None:
    """Both machines always give their first answer."""
    shortest = difference(constant(0, first), constant(0, second))
    assert shortest == (None if is_equal else ((), (first[0], second[0])))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            ("a",),
            ("a", "c"),
            r"^machine: expected the same symbols in both machines, got 'c' only in the second machine; rename",
        ),
        (
            ("a", "b"),
            ("a",),
            r"^machine: expected the same symbols in both machines, got 'b' only in the first machine; rename",
        ),
    ],
)
def test_symbols_that_differ_are_named(first: tuple[str, ...], second: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        difference(constant(0, REJECT_ACCEPT, first), constant(0, REJECT_ACCEPT, second))


def test_answers_without_a_common_name_are_refused() -> None:
    message = r"^machine: expected two machines .*, got the answers 'even', 'odd' in one and 'reject', .*; rename"
    with pytest.raises(ValueError, match=message):
        difference(constant(0, ("even", "odd")), constant(0, REJECT_ACCEPT))
    with pytest.raises(ValueError, match=r"^machine: expected only answers among x, y, got z; rename this answer$"):
        constant(0, ("x", "z")).aligned(("a",), ("x", "y"))


def test_the_empty_string_is_left_out() -> None:
    """Of two machines that differ on it alone; its answer is that of no other string."""
    machine = Semiautomaton(np.array([[1], [1]]), ("a",))
    first = labeled_dfa(DFA(machine, 0, np.array([False, True])))
    second = labeled_dfa(DFA(machine, 1, np.array([False, True])))
    assert difference(first, second) == ((), REJECT_ACCEPT)
    assert difference(first, second.without_empty_string()) is None
    assert second.without_empty_string().num_unanswered == 1
    assert not second.num_unanswered


@pytest.mark.parametrize(
    ("outputs", "classes", "message"),
    [
        ([0], ("x", "x"), r"^classes: expected distinct names that are not empty, got \('x', 'x'\); rename them$"),
        ([0], ("x", ""), r"^classes: expected distinct names that are not empty"),
        ([1], ("x",), r"^outputs: expected ids of answers in 0\.\.0 or -100 \(no answer\), got \[1\]; give a name"),
        ([-1], ("x",), r"^outputs: expected ids of answers in 0\.\.0 or -100 \(no answer\), got \[-1\]; give a name"),
    ],
)
def test_names_are_checked(outputs: list[int], classes: tuple[str, ...], message: str) -> None:
    machine = Transducer(Semiautomaton(np.array([[0]]), ("a",)), 0, np.array(outputs))
    with pytest.raises(ValueError, match=message):
        LabeledMachine(machine, classes)


def test_unanswered_states_are_counted() -> None:
    machine = Transducer(Semiautomaton(np.array([[0], [0]]), ("a",)), 0, np.array([0, IGNORE]))
    assert LabeledMachine(machine, ("x",)).num_unanswered == 0, "no string leads there"


@pytest.mark.parametrize(
    ("string", "text"),
    [(("a", "b"), "ab"), (("\\", "'"), "\\'"), (("a", "\x1b"), r"a\x1b"), (("\n", "é"), r"\né"), ((), "")],
)
def test_strings_are_printed_as_they_are_or_with_escapes(string: tuple[str, ...], text: str) -> None:
    """Escapes replace what a terminal would obey; a text without such characters is not changed."""
    assert constant(0, ("x",), ("a", "b", "\\", "'", "\x1b", "\n", "é")).text(string) == text
    assert constant(0, ("x",), ("push", "a")).text(("push", "a")) == "push a"


def test_only_automata_get_more_symbols() -> None:
    """A new symbol leads to a state that rejects, whichever of the two answers comes first."""
    for classes in (("reject", "accept"), ("accept", "reject")):
        machine = constant(classes.index("accept"), classes).with_symbols(("b", "a", "b"))
        assert machine.symbols == ("a", "b")
        answers = {string: machine.answer_to(string) for string in ("", "a", "aa", "b", "ba", "ab")}
        assert answers == {string: "reject" if "b" in string else "accept" for string in answers}
    other = constant(0, ("even", "odd"))
    assert other.with_symbols(("a",)) is other
    with pytest.raises(ValueError, match=r"^alphabet: expected only symbols of the machine, .*, got 'b'; leave this"):
        other.with_symbols(("a", "b"))
