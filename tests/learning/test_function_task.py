"""Tasks of Python functions: the right machine where the bound is right, and sentences for functions that have none."""

import json
import random
import time

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, transducers
from hypothesis import given
from hypothesis import strategies as st

from lengthwise import certify, construct, make_spec, task_from_function
from lengthwise.automata import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.learning import function_task
from lengthwise.report.tables.certificate import certificate_lines
from lengthwise.runs.spec import identity, spec_from_json

pytestmark = checked_strategies


def ends_in_abb(text: str) -> bool:
    return text.endswith("abb")


@given(transducers(symbols=("a", "b"), max_states=6), st.integers(0, 1))
def test_machines_of_the_stated_size_are_recovered(machine: Transducer, extra: int) -> None:
    """The bound counts the states after strings of one symbol or more; -1 becomes no answer."""
    smallest = machine.minimize()
    reached = np.unique(smallest.semiautomaton.table[smallest.semiautomaton.reachable(0)])
    outputs, size = machine.outputs.tolist(), len(reached)
    answers = set(smallest.outputs[reached].tolist()) - {-1}
    table = machine.semiautomaton.table.tolist()

    def f(text: str) -> int | None:
        assert text
        state = machine.start
        for symbol in text:
            state = table[state]["ab".index(symbol)]
        return None if outputs[state] == -1 else outputs[state]

    if len(answers) < 2:
        with pytest.raises(
            ValueError, match=r"^f: expected at least two different answers other than None, got .* calls"
        ):
            task_from_function(f, "ab", max_states=size + extra)
        return
    task = task_from_function(f, "ab", max_states=size + extra)
    assert task.name == "machine"
    assert f"at most {size + extra} state" in task.note
    assert task.transducer.num_states <= size + 1
    for length in range(1, 8):
        strings = all_strings(2, length)
        numbers, expected = task.transducer.run(strings), machine.run(strings)
        named = np.where(numbers == IGNORE, -1, np.array(task.classes, dtype=np.int64)[np.maximum(numbers, 0)])
        np.testing.assert_array_equal(named, expected)
    if size > 1:
        with pytest.raises(
            ValueError, match=f"^f: expected .* of at most {size - 1} states computes, got a function that need"
        ):
            task_from_function(f, "ab", max_states=size - 1)


@pytest.mark.usefixtures("fewer_strings")
def test_a_predicate_is_a_recognition_task_that_a_run_stores_as_data() -> None:
    task = task_from_function(ends_in_abb, "ab")
    assert (task.name, task.title, task.classes, task.transducer.num_states) == ("dfa", "ends_in_abb", ("out", "in"), 4)
    assert all(
        bool(task.solve(task.encode(text)[None])[0, -1]) == ends_in_abb(text) for text in ("abb", "babb", "abba")
    )
    spec = make_spec("dfa", "rnn", {"task": task.model_dump(exclude={"name"})})
    stored = json.loads(json.dumps(spec.to_json()))
    assert spec_from_json(stored).task == task
    assert stored["task"]["note"] == task.note
    plain = make_spec("dfa", "rnn", {"task": task.model_dump(exclude={"name", "title", "note"})})
    assert spec.id == plain.id
    assert "note" not in identity(stored)["task"]
    certificate = certify(construct("rnn", task).model, task)
    assert str(certificate).endswith(f" The task {task.note}.")
    assert ("the task", task.note) in certificate_lines(certificate)


def test_functions_of_words_get_tuples_and_may_leave_strings_without_an_answer() -> None:
    def session(words: tuple[str, ...]) -> str | None:
        is_open = False
        for word in words:
            if (word == "open") == is_open:
                return None
            is_open = word != "close"
        return "open" if is_open else "closed"

    task = task_from_function(session, ["open", "read", "close"], max_states=5)
    assert (task.name, task.title, task.classes) == ("machine", "session", ("closed", "open"))
    answers = task.solve(task.encode("open read close close")[None])[0].tolist()
    assert answers == [1, 1, 0, IGNORE]
    are_even = task_from_function(lambda words: np.bool_(len(words) % 2 == 0), ("GET", "PUT"))
    assert (are_even.name, are_even.symbols, are_even.title) == ("dfa", ("GET", "PUT"), "function")


def test_given_strings_are_tried() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    with pytest.raises(ValueError, match=r"got False at all [\d,]+ calls; list a string with another answer"):
        task_from_function(lambda text: "hello" in text, letters)
    task = task_from_function(lambda text: "hello" in text, letters, strings=["ohhello"])
    assert task.transducer.num_states == 6
    with pytest.raises(ValueError, match=r"^strings: expected symbols of the alphabet, got ' '; add ' ' to the"):
        task_from_function(ends_in_abb, "ab", strings=["a b"])


def balanced(text: str) -> bool:
    depth = 0
    for symbol in text:
        depth += 1 if symbol == "(" else -1
        if depth < 0:
            return False
    return depth == 0


@pytest.mark.parametrize(
    ("f", "settings", "message"),
    [
        (
            balanced,
            {"max_states": 8},
            r"^f: .* of at most 8 states computes, .*; raise max_states if a larger",
        ),
        (
            balanced,
            {},
            r"^f: .* of at most 20 states computes, .* or label strings with f, and pass them to",
        ),
        (
            lambda text: text[3:] == "",
            {"max_states": 40},
            r"^max_states: expected at most \d\d, .* got 40; lower max_states$",
        ),
        (
            lambda text: text[1] == "(",
            {},
            r"^f: .* got IndexError \(string index out of range\) for '[()]'; return",
        ),
        (lambda text: [text], {}, r"^f: expected a bool, an int, .* answer to '[()]', got \['[()]'\]; convert"),
        (lambda text: 0.5, {}, r"^f: expected a bool, an int, .* got 0.5;"),
        (
            lambda text: len(text) % 2 and "odd",
            {},
            r"^f: expected answers of one type, got 'odd' and 0, the latter",
        ),
        (lambda text: len(text) > 1 or 1, {}, r"^f: expected answers of one type, got 1 and True, the latter for"),
        (
            lambda text: len(text) * 3 + len(text) // 2,
            {"max_states": 9**9},
            r"^f: expected at most 256 different answers",
        ),
        (
            lambda text: random.random() < 0.5,
            {},
            r"^f: expected the same answer to '.*' at each call, got",
        ),
        (
            lambda text: True if text[0] == "(" else None,
            {},
            r"^f: expected at least two different answers other than None, got True or None at all",
        ),
        (
            lambda text: text + "\n",
            {},
            r"^f: expected answers of at most 100 .*, all printable, got '[()]\\n' for",
        ),
        (
            lambda text: "x" * 101,
            {},
            r"^f: expected answers of at most 100 characters, .* got 'x+' for '[()]'; return",
        ),
        (lambda text: 10**9999, {}, r"^f: expected answers of at most 100 characters, .* got a longer number for"),
        ("()", {}, r"^f: expected a function, got '\(\)'; give one"),
        (ends_in_abb, {"max_states": 0}, r"^max_states: expected a whole number from 1 to 1,000,000,000, got 0; give"),
    ],
)
def test_functions_without_a_machine_get_a_sentence(f, settings, message: str, monkeypatch) -> None:
    """The default bound is lowered, because a function without a machine takes seconds up to 100 states."""
    monkeypatch.setattr(function_task, "MAX_STATES", 20)
    began = time.process_time()
    with pytest.raises(ValueError, match=message):
        task_from_function(f, "()", **settings)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("alphabet", "message"),
    [
        ("", "expected at least one symbol, got no symbol"),
        ("aa", "expected distinct single characters, got 'a' twice"),
        (["GET", "P T"], "expected distinct words without blanks, got 'P T'"),
        (3, "expected several texts, got 3"),
    ],
)
def test_alphabets_are_checked(alphabet: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^alphabet: {message}"):
        task_from_function(ends_in_abb, alphabet)


def test_an_answer_that_changes_later_is_noticed() -> None:
    """The first answer to one string differs from all later ones."""
    calls = []

    def f(text: str) -> bool:
        calls.append(text)
        return text.endswith("b") != (text == "abab" and calls.count(text) == 1)

    with pytest.raises(ValueError, match=r"^f: expected the same answer to 'abab' at each call, got False and True;"):
        task_from_function(f, "ab")


def test_calls_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr(function_task, "MAX_CALLS", 1_500)
    with pytest.raises(
        ValueError, match=r"^f: .* whose machine is found within 1,500 calls, got a function that needs more calls"
    ):
        task_from_function(ends_in_abb, "ab")
