"""JSON of this package and of others, and faults in it."""

import json
from typing import Any

import numpy as np
import pytest
from automaton_strategies import checked_strategies, dfas, moore_machines, oracle
from hypothesis import given

from lengthwise.automata import DFA
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.formats import json as json_module
from lengthwise.formats.json import JSON

pytestmark = [checked_strategies, pytest.mark.unchecked]


@given(moore_machines())
def test_what_is_written_is_exact(machine: LabeledMachine) -> None:
    again = JSON.read(JSON.write(machine))
    assert again.classes == machine.classes
    assert again.machine.to_json() == machine.machine.to_json()


@given(dfas())
def test_automata_are_read(dfa: DFA) -> None:
    again = JSON.read(json.dumps(dfa.to_json()))
    assert again.dfa().to_json() == dfa.to_json()


@given(dfas())
def test_the_entries_of_automata_lib_are_read(dfa: DFA) -> None:
    machine = oracle(dfa)
    content = {
        "states": sorted(machine.states),
        "input_symbols": sorted(machine.input_symbols),
        "transitions": {state: dict(row) for state, row in machine.transitions.items()},
        "initial_state": machine.initial_state,
        "final_states": sorted(machine.final_states),
    }
    assert JSON.read(json.dumps(content)).dfa().equivalent(dfa)


TRIPLES: dict[str, Any] = {
    "alphabet": ["5c", "10c"],
    "states": ["s0", "s1"],
    "initial_state": "s0",
    "accepting_states": ["s1"],
    "transitions": [["s0", "5c", "s1"], ["s1", "5c", "s0"], ["s0", "10c", "s0"]],
}


def test_the_entries_of_pysimpleautomata_are_read_and_completed() -> None:
    machine = JSON.read(json.dumps(TRIPLES))
    assert machine.symbols == ("5c", "10c")
    assert machine.machine.semiautomaton.table.tolist() == [[1, 0], [0, 2], [2, 2]]
    lists = {**TRIPLES, "initial": ["s0"]}
    del lists["initial_state"]
    assert JSON.read(json.dumps(lists)).machine.to_json() == machine.machine.to_json()


def test_answers_without_names_are_numbers() -> None:
    machine = JSON.read('{"symbols": ["a"], "start": 0, "table": [[1], [0]], "outputs": [2, -100]}')
    assert machine.classes == ("0", "1", "2")
    assert machine.answer_names() == ["2", ""]
    machine = JSON.read('{"symbols": ["a"], "start": 0, "table": [[1], [0]], "outputs": [0, -100]}')
    assert machine.classes == ("0",)


def test_numbers_of_answers_are_bounded_without_names(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"symbols": ["a"], "start": 0, "table": [[0]], "outputs": [2]}'
    monkeypatch.setattr(json_module, "MAX_UNNAMED", 3)
    assert JSON.read(text).classes == ("0", "1", "2")
    monkeypatch.setattr(json_module, "MAX_UNNAMED", 2)
    with pytest.raises(
        ValueError,
        match=r"^outputs: expected answer numbers below 2 in .*, got 2; number the answers from 0, or add 'classes' ",
    ):
        JSON.read(text)
    assert JSON.read(text.replace("}", ', "classes": ["x", "y", "z"]}')).answer_names() == ["z"]


OURS: dict[str, Any] = {
    "symbols": ["a"],
    "start": 0,
    "table": [[1], [0]],
    "outputs": [0, 1],
    "classes": ["no", "yes"],
}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], r"^expected a JSON object, got list; write the machine as an object with entries"),
        ({"a": 1}, r"^expected the entry 'table' or 'transitions', got 'a'; add one of these entries$"),
        ({**OURS, "more": 1}, r"^expected the entries .* and perhaps 'classes', got 'symbols', .*; remove 'more'$"),
        ({**OURS, "table": [[1], [0, 1]]}, r"^table: expected rows of 1 state numbers, got other rows"),
        ({**OURS, "table": [[1], [0.5]]}, r"^table: expected rows of 1 state numbers, got other rows"),
        ({**OURS, "table": [1, 0]}, r"^table: expected rows of 1 state numbers, got other rows"),
        (
            {**OURS, "outputs": 0},
            r"^start, outputs: expected a state number and answer numbers, got",
        ),
        ({**OURS, "table": [[1], [2]]}, r"^table: expected next states in 0\.\.1, got 2"),
        ({**OURS, "outputs": [0]}, r"^outputs: expected one entry for each of the 2 states, got shape \(1,\)"),
        (
            {**OURS, "outputs": [0, 2]},
            r"^outputs: expected ids of answers in 0\.\.1 or -100 \(no answer\), got \[0, 2\]; give",
        ),
        (
            {**OURS, "start": True},
            r"^start, outputs: expected a state number and answer numbers, got",
        ),
        ({**OURS, "start": 7}, r"^start: expected a state in 0\.\.1, got 7"),
        ({**OURS, "symbols": [1]}, r"^symbols: expected a list of names, got \[1\]; write strings$"),
        ({**OURS, "classes": ["no", "no"]}, r"^classes: expected distinct names that are not empty, got"),
        ({**TRIPLES, "initial_state": ["s0", "s7"]}, r"^state 's7' is used, but not declared; declare it$"),
        ({**TRIPLES, "initial_state": []}, r"^initial: expected an initial state, got none; name a state$"),
        ({**TRIPLES, "initial_state": "s7"}, r"^state 's7' is used, but not declared; declare it$"),
        ({**TRIPLES, "accepting_states": ["s7"]}, r"^state 's7' is used, but not declared; declare it$"),
        (
            {**TRIPLES, "alphabet": ["5c"]},
            r"^alphabet: expected the symbols of all edges, got an alphabet without '10c'; add this symbol$",
        ),
        ({**TRIPLES, "transitions": [["s0", "5c"]]}, r"^transitions: expected state, symbol and next state, got"),
        (
            {**TRIPLES, "transitions": 7},
            r"^expected valid values of the entries of a machine, got others \(",
        ),
        (
            {**TRIPLES, "initial": "s0"},
            r"^expected the entry 'initial' once, got 'initial' and 'initial_state'; keep",
        ),
        (
            {**TRIPLES, "outputs": {"s0": "x"}},
            r"^expected the entries 'states', 'alphabet', .*, got 'outputs'; leave this entry out if",
        ),
        ({**TRIPLES, "alphabet": ["5c", "10c", 1, "1"]}, r"^alphabet: expected a list of symbols with different names"),
        ({**TRIPLES, "alphabet": {"5c": 1, "10c": 2}}, r"^alphabet: expected a list of symbols with different names"),
        ({key: TRIPLES[key] for key in TRIPLES if key != "states"}, r"^expected the entry 'states', got 'alphabet', "),
        (
            {"alphabet": ["a"], "transitions": [[1], [0]], "accepting": [True, False], "start": 0},
            r"^accepting: expected state numbers, got True; list the numbers of the accepting states$",
        ),
        ({"alphabet": "ab", "transitions": [[0]], "accepting": [], "start": 0}, r"^transitions: expected a next state"),
    ],
)
def test_faults_are_named(content: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JSON.read(json.dumps(content))


def test_a_state_without_a_name_is_one_like_the_others() -> None:
    for name in ("", "start"):
        content = {"states": [name, "q", "r"], "alphabet": ["a"], "initial": ["q", "r"], "accepting": ["q"]}
        machine = JSON.read(json.dumps(content | {"transitions": [[name, "a", "q"]]})).machine
        assert machine.run(np.array([[0]])).tolist() == [[0]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            {"alphabet": ["a"], "transitions": [[1], [0]], "accepting": [1], "start": 0.0},
            "start: expected a state in 0",
        ),
        ({"alphabet": ["a"], "transitions": [[1], [0]], "accepting": [0.5], "start": 0}, "accepting: expected a state"),
        (
            {"symbols": ["a"], "start": 0, "table": [[0]], "outputs": [3_000_000]},
            "outputs: expected answer numbers below 10,000 in a file without the entry 'classes'",
        ),
    ],
)
def test_numbers_that_are_none_of_a_state_are_named(content: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        JSON.read(json.dumps(content))


@pytest.mark.parametrize(
    ("entry", "value"), [("states", "ab"), ("states", [1, "1", 2]), ("accepting", "23"), ("accepting", {"2": True})]
)
def test_texts_are_no_lists_of_states(entry: str, value: object) -> None:
    content = {
        "states": ["2", "3"],
        "alphabet": ["a"],
        "initial": "2",
        "accepting": ["3"],
        "transitions": [["2", "a", "3"]],
    }
    with pytest.raises(ValueError, match=f"{entry}: expected a list of states with different names"):
        JSON.read(json.dumps({**content, entry: value}))


@pytest.mark.parametrize(
    "text",
    [
        '{"states": ["q0", "q1", "q2"], "alphabet": ["a"], "initial": "q0", "accepting": ["q1"], '
        '"transitions": {"q0": {"a": "q1", "a": "q2"}}}',
        '{"alphabet": ["a"], "transitions": [[1], [0]], "accepting": [1], "start": 0, "start": 1}',
        '{"symbols": ["a"], "start": 0, "table": [[1], [0]], "outputs": [0, 1], "table": [[0], [0]]}',
    ],
)
def test_a_key_that_is_repeated_is_named(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"^expected each key of an object once, got '(a|start|table)' twice; keep one"
    ):
        JSON.read(text)


def test_sets_of_next_states_are_read() -> None:
    """As a list; a text in braces is a name, which an automaton of sets gives its states."""
    content: dict[str, Any] = {"states": ["0", "3", "{3}"], "alphabet": ["a"], "initial": ["0", "3"], "accepting": []}
    lists = {**content, "accepting": ["3"], "transitions": {"0": {"a": ["3", "0"]}}}
    assert JSON.read(json.dumps(lists)).dfa().equivalent(dfa_from_regex("a*"))
    text = {**content, "initial": "0", "accepting": ["{3}"], "transitions": {"0": {"a": "{3}"}}}
    assert JSON.read(json.dumps(text)).dfa().equivalent(dfa_from_regex("a"))
    with pytest.raises(ValueError, match=r"^state '\{0, 3\}' is used, but not declared"):
        JSON.read(json.dumps({**text, "transitions": {"0": {"a": "{0, 3}"}}}))
