"""Files in which something is added, repeated or renamed are read as before or refused, never as another machine."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from automaton_strategies import checked_strategies, dfas, labeled_machines
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata.labeled import LabeledMachine, labeled_dfa
from lengthwise.formats.base import ReadableFormat
from lengthwise.formats.jflap import JFLAP
from lengthwise.formats.json import JSON
from lengthwise.formats.regex import Regex

pytestmark = [checked_strategies, pytest.mark.unchecked]


def by_name(machine: LabeledMachine) -> str:
    """An automaton as other tools write it, with states by name."""
    dfa = machine.dfa()
    states = [f"q{state}" for state in range(dfa.num_states)]
    rows = [dict(zip(dfa.symbols, (f"q{target}" for target in row), strict=True)) for row in dfa.semiautomaton.table]
    content = {
        "states": states,
        "alphabet": list(dfa.symbols),
        "initial": states[dfa.start],
        "accepting": [name for name, accepts in zip(states, dfa.accepting, strict=True) if accepts],
        "transitions": dict(zip(states, rows, strict=True)),
    }
    return json.dumps(content)


WRITERS: dict[str, tuple[type[ReadableFormat], Callable[[LabeledMachine], str]]] = {
    "json": (JSON, JSON.write),
    "dfa": (JSON, lambda machine: json.dumps(machine.dfa().to_json())),
    "by name": (JSON, by_name),
    "jflap": (JFLAP, JFLAP.write),
    "regex": (Regex, Regex.write),
}


def insert(data: st.DataObject, text: str, pattern: str, additions: list[str]) -> str:
    """Put one of the additions behind a match of the pattern."""
    ends = [match.end() for match in re.finditer(pattern, text)]
    at = data.draw(st.sampled_from(ends)) if ends else len(text)
    return text[:at] + data.draw(st.sampled_from(additions)) + text[at:]


def rename(data: st.DataObject, text: str, pattern: str) -> str:
    """Change the name that a match of the pattern contains as its first group."""
    match = data.draw(st.sampled_from(list(re.finditer(pattern, text))))
    return text[: match.start(1)] + "other" + text[match.end(1) :]


def repeat_json_key(data: st.DataObject, text: str) -> str:
    match = data.draw(st.sampled_from(list(re.finditer(r'("\w+"): ', text))))
    value = data.draw(st.sampled_from(['"q0"', "0", "[]", "[[0, 0]]", '{"a": "q0"}']))
    end = text.index("}", match.start())
    return f"{text[:end]}, {match[1]}: {value}{text[end:]}"


def change_json(data: st.DataObject, text: str) -> str:
    kind = data.draw(st.sampled_from(["repeat", "add", "rename", "cut"]))
    if kind == "repeat":
        return repeat_json_key(data, text)
    if kind == "add":
        return insert(data, text, r"\{", ['"weights": [1], ', '"outputs2": {}, ', '"q99": {}, ', '"": 0, '])
    if kind == "rename":
        return rename(data, text, r'"(\w+)": ')
    return text[: data.draw(st.integers(0, len(text) - 3))]


def change_jflap(data: st.DataObject, text: str) -> str:
    kind = data.draw(st.sampled_from(["repeat", "add", "rename", "attribute", "cut"]))
    if kind == "repeat":
        match = data.draw(
            st.sampled_from(list(re.finditer(r"<(type|initial|final|output|from|to|read)\b[^\n]*", text)))
        )
        value = data.draw(st.sampled_from(["<from>0</from>", "<to>0</to>", "<read>a</read>", "<final/>", match[0]]))
        return text[: match.start()] + value + text[match.start() :]
    if kind == "add":
        return insert(data, text, r"(?<=[^?])>", ["x", "<weight>2</weight>", "<pop/>", '<state id="0"/>'])
    if kind == "rename":
        return rename(data, text, r"<(state|transition|initial|final|read|from|to|output|type)\b")
    if kind == "attribute":
        return insert(data, text, r"<(state|transition|final|read)\b", [' final="1"', ' weight="2"'])
    return text[: data.draw(st.integers(0, len(text) - 3))]


def change_regex(data: st.DataObject, text: str) -> str:
    return text + data.draw(st.sampled_from(["weight: 2\n", "a*\n", "alphabet: xy\n", "# a note\n"]))


CHANGES = {
    "json": change_json,
    "dfa": change_json,
    "by name": change_json,
    "jflap": change_jflap,
    "regex": change_regex,
}


def behavior(machine: LabeledMachine) -> Any:
    """What it answers to strings that are not empty, whatever its states and classes are called in the file."""
    smallest = machine.machine.minimize_nonempty()
    names = LabeledMachine(smallest, machine.classes).answer_names()
    return machine.symbols, smallest.semiautomaton.table.tolist(), names


@pytest.mark.parametrize("kind", WRITERS)
@given(data=st.data())
def test_changed_files_are_read_alike_or_refused(kind: str, data: st.DataObject) -> None:
    reader, writer = WRITERS[kind]
    is_any = kind in ("json", "jflap")
    machine = data.draw(labeled_machines(("a", "b"))) if is_any else labeled_dfa(data.draw(dfas(("a", "b"))))
    try:
        text = writer(machine)
    except ValueError:
        return
    unchanged = reader.read(text)
    changed = CHANGES[kind](data, text)
    try:
        again = reader.read(changed)
    except ValueError:
        return
    assert behavior(again) == behavior(unchanged), changed
