"""JSON: this package's own format, and the entries that other tools write."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lengthwise.automata.dfa import DFA
from lengthwise.automata.labeled import LabeledMachine, labeled_dfa
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.files import strict_json_loads
from lengthwise.formats.base import FORMATS, ReadableFormat
from lengthwise.formats.draft import Draft
from lengthwise.formats.flexfringe import flexfringe_machine
from lengthwise.formats.limits import check_names, check_table, check_text
from lengthwise.formats.notes import Notes
from lengthwise.validation import truncate

_NOTES = ("about", "tests")

_DECORATIONS = (*_NOTES, "name", "description", "comment")
"""The entries of an object that do not change an automaton's language."""

MAX_UNNAMED = 10_000
"""The bound on answer numbers in a file without answer names, in which every smaller number also becomes an answer."""

_OTHER_NAMES = {
    "states": ("states",),
    "initial": ("initial", "initial_state", "initial_states", "start", "start_state"),
    "accepting": ("accepting", "accepting_states", "final_states", "finals", "final"),
    "alphabet": ("alphabet", "input_symbols", "symbols"),
}
"""Other tools' names for the states, the initial state, the accepting states and the symbols."""


@FORMATS.register("json")
class JSON(ReadableFormat):
    """JSON with the entries of `Transducer.to_json`, and with the names of the answers in the entry `classes`.

    Notes are in `about` and `tests`, which are ignored when reading.

    Three other kinds of objects can also be read. The first contains the entries of `DFA.to_json`, and the second is a
    model of FlexFringe (`flexfringe_machine`). The third has the entries `states`, `alphabet`, `initial`, `accepting`
    and `transitions`, also under the names that PySimpleAutomata and automata-lib use. Its transitions are triples
    (state, symbol, next state), or an object that maps each state and symbol to next states; an empty symbol reads
    nothing. An object that repeats a key or has other entries is rejected.

    Example:
        >>> JSON.read('{"alphabet": ["a"], "transitions": [[1], [0]], "accepting": [1], "start": 0}').classes
        ('reject', 'accept')
    """

    suffixes = (".json",)

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """Return the machine as a JSON object on one line."""
        return json.dumps({"classes": list(machine.classes), **machine.machine.to_json()}) + "\n"

    @classmethod
    def write_annotated(cls, machine: LabeledMachine, notes: Notes) -> str:
        """Return the machine as a JSON object on one line, with notes in separate entries."""
        tests = [{"string": list(string), "answer": answer or None} for string, answer in notes.tests]
        return json.dumps({**json.loads(cls.write(machine)), "about": list(notes.about), "tests": tests}) + "\n"

    @staticmethod
    def read(text: str) -> LabeledMachine:
        """Return the machine that a JSON object describes."""
        check_text(text)
        content = strict_json_loads(text)
        if not isinstance(content, dict):
            raise ValueError(
                f"expected a JSON object, got {type(content).__name__}; write the machine as an object with entries "
                "such as 'symbols' and 'table'"
            )
        try:
            machine = _machine(content)
        except (TypeError, AttributeError, OverflowError) as problem:
            raise ValueError(
                f"expected valid values of the entries of a machine, got others ({problem}); compare the text with a "
                "file that write_machine writes"
            ) from None
        check_names(machine.symbols + machine.classes)
        return machine


def _machine(content: Mapping[str, Any]) -> LabeledMachine:
    if "table" in content:
        return _transducer(content)
    if "nodes" in content:
        return flexfringe_machine(content)
    if "states" not in content and _is_table(content.get("transitions")):
        alphabet = [str(symbol) for symbol in content.get("alphabet", ())]
        return labeled_dfa(DFA.from_json({**content, "alphabet": alphabet}))
    if "transitions" in content:
        return _named(content)
    raise ValueError(f"expected the entry 'table' or 'transitions', got {_listed(content)}; add one of these entries")


def _transducer(content: Mapping[str, Any]) -> LabeledMachine:
    entries = ("symbols", "start", "table", "outputs")
    if set(content) - {"classes", *_NOTES} != set(entries):
        missing = [entry for entry in entries if entry not in content]
        unknown = [entry for entry in content if entry not in (*entries, "classes", *_NOTES)]
        way_out = f"add {missing[0]!r}" if missing else f"remove {truncate(repr(unknown[0]))}"
        raise ValueError(
            f"expected the entries {', '.join(map(repr, entries))} and perhaps 'classes', got {_listed(content)}; "
            f"{way_out}"
        )
    symbols = _names(content["symbols"], "symbols")
    table = content["table"]
    outputs = content["outputs"]
    if not _is_table(table) or {len(row) for row in table} != {len(symbols)}:
        raise ValueError(
            f"table: expected rows of {len(symbols)} state numbers, got other rows; give one row for each state"
        )
    if not _are_numbers([content["start"]]) or not _are_numbers(outputs):
        raise ValueError(
            "start, outputs: expected a state number and answer numbers, got other values; write whole numbers, and "
            f"{IGNORE} for no answer"
        )
    # Without names, every number up to the largest becomes an answer, so a single large number would fill the memory.
    if not content.get("classes") and max([0, *outputs]) >= MAX_UNNAMED:
        raise ValueError(
            f"outputs: expected answer numbers below {MAX_UNNAMED:,} in a file without the entry 'classes', got "
            f"{max(outputs)}; number the answers from 0, or add 'classes' with a name for each number"
        )
    machine = Transducer.from_json({**content, "symbols": symbols})
    named = content.get("classes") or [str(number) for number in range(max([0, *outputs]) + 1)]
    return LabeledMachine(machine, tuple(_names(named, "classes")))


def _named(content: Mapping[str, Any]) -> LabeledMachine:
    """Return the automaton that a JSON object with named states describes."""
    known = {"transitions", *_DECORATIONS, *(name for names in _OTHER_NAMES.values() for name in names)}
    if unknown := [name for name in content if name not in known]:
        raise ValueError(
            "expected the entries 'states', 'alphabet', 'initial', 'accepting' and 'transitions', got "
            f"{unknown[0][:80]!r}; leave this entry out if it does not change which strings are accepted"
        )
    draft = Draft()
    declared = _names_of_all(content, "states")
    for state in declared:
        draft.add_state(state)
    alphabet = _names_of_all(content, "alphabet")
    for symbol in alphabet:
        draft.add_symbol(symbol)
    check_table(len(declared) + 1, len(alphabet))
    known_symbols = set(alphabet)
    # The symbols of edges are checked against the alphabet, because a misspelled symbol would become a new symbol.
    for source, symbol, target in _edges(content["transitions"]):
        draft.check_state(source)
        draft.check_state(target)
        if not symbol:
            draft.add_empty_edge(source, target)
            continue
        if symbol not in known_symbols:
            raise ValueError(
                f"alphabet: expected the symbols of all edges, got an alphabet without {symbol!r}; add this symbol"
            )
        draft.add_edge(source, symbol, target)
    initial = _names_of_states(_entry(content, "initial"))
    if not initial:
        raise ValueError("initial: expected an initial state, got none; name a state")
    draft.set_starts(initial)
    return draft.automaton(set(_names_of_all(content, "accepting")))


def _edges(transitions: Any) -> Iterable[tuple[str, str, str]]:
    if isinstance(transitions, Mapping):
        for source, row in transitions.items():
            for symbol, targets in row.items():
                for target in _names_of_states(targets):
                    yield str(source), str(symbol), target
        return
    for edge in transitions:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 3:
            raise ValueError(
                f"transitions: expected state, symbol and next state, got {str(edge)[:60]}; give all three"
            )
        for target in _names_of_states(edge[2]):
            yield str(edge[0]), str(edge[1]), target


def _names_of_states(states: Any) -> list[str]:
    """Return the names of states, given a list or a single state."""
    return [str(state) for state in (states if isinstance(states, list) else [states])]


def _names_of_all(content: Mapping[str, Any], entry: str) -> list[str]:
    """Return the names in a list of states or symbols; 1 and "1" would get the same name and are rejected."""
    names, what = _entry(content, entry), "symbols" if entry == "alphabet" else "states"
    if not isinstance(names, list) or len(set(map(str, names))) < len(set(map(repr, names))):
        raise ValueError(
            f"{entry}: expected a list of {what} with different names, got {str(names)[:60]}; write a list, and "
            "rename one of two names with the same text, such as 1 and '1'"
        )
    return [str(name) for name in names]


def _entry(content: Mapping[str, Any], name: str) -> Any:
    given = [other for other in _OTHER_NAMES[name] if other in content]
    if not given:
        raise ValueError(f"expected the entry {name!r}, got {_listed(content)}; add {name!r}")
    if len(given) > 1:
        raise ValueError(f"expected the entry {name!r} once, got {given[0]!r} and {given[1]!r}; keep one of them")
    return content[given[0]]


def _listed(content: Mapping[str, Any]) -> str:
    return truncate(", ".join(map(repr, content))) or "none"


def _is_table(content: Any) -> bool:
    """Return whether the content is a list of lists of whole numbers."""
    return isinstance(content, list) and bool(content) and all(_are_numbers(row) for row in content)


def _are_numbers(row: Any) -> bool:
    return isinstance(row, list) and all(type(number) is int and IGNORE <= number < 2**31 for number in row)


def _names(content: Any, what: str) -> list[str]:
    if not isinstance(content, list) or not all(isinstance(name, str) for name in content):
        raise ValueError(f"{what}: expected a list of names, got {str(content)[:60]}; write strings")
    return content
