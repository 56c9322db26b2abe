"""Recognition of the language of an automaton that is given as a table."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, model_validator

from lengthwise.automata import DFA
from lengthwise.automata.answers import acceptor_index
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.semiautomaton import check_symbols
from lengthwise.display import listed, printable
from lengthwise.formats.files import read_machine
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.regular.recognition import Alphabet, RecognitionTask, check_language
from lengthwise.validation import truncate

_MACHINE = ("alphabet", "transitions", "accepting")

MAX_GIVEN_STATES, MAX_TRANSITIONS = 2_000, 40_000
"""The largest table, in states and transitions, that is minimized when a task is made. Minimizing the largest table
takes a few seconds."""


MAX_TITLE, MAX_NOTE = 60, 300
"""The longest title and the longest note of a task, in characters."""


def check_title(title: str, note: str) -> None:
    """Raise a ValueError if a title or a note is too long, or has a character that cannot be printed in a line."""
    for field, text, longest in (("title", title, MAX_TITLE), ("note", note, MAX_NOTE)):
        if len(text) > longest or not text.isprintable():
            raise ValueError(
                f"{field}: expected at most {longest} characters that can be printed, got {truncate(repr(text))}; "
                "choose another text"
            )


NO_TEXT: Any = Field("", exclude_if=lambda text: not text)
"""The default of a title and of a note, which run specifications leave out."""


@TASKS.register("dfa")
class DFALanguage(RecognitionTask):
    """Recognition of the strings that a deterministic automaton accepts.

    ``transitions[q]`` lists the next states of state q, one for each symbol of the `alphabet` (characters or words in a
    list, or characters as a text). A string is in the language if it leads from `start` to one of the states in
    `accepting`. The automaton itself answers strings. It also draws strings in the language, strings outside it, and
    near misses. The default is the language of binary numbers divisible by 3.

    The fields are the entries of `DFA.to_json`. For a machine of automata-lib, the task is ``make_task("dfa",
    **dfa_from_automata_lib(machine).to_json())``. A `file` of any format (`lengthwise.formats`) is read into these
    fields when the task is made. The file's name without suffix is the default of `title`; the path is not stored. With
    a file, `accept` may name the answer that accepts. A `note` may state where the automaton comes from.

    Raises:
        ValueError: only some of `alphabet`, `transitions` and `accepting` are given; fields other than `title` and
            `accept` are given together with a file; the file contains no machine that accepts or rejects; the alphabet
            does not consist of distinct characters, or words without blanks; a state lacks a transition; a named state
            does not exist; all strings of one symbol or more are in the language, or no such string is; more than 1,000
            states are needed; or more than 2,000 states or 40,000 transitions are given.

    Example:
        >>> task = DFALanguage(alphabet="ab", transitions=((0, 1), (1, 0)), accepting=(1,))
        >>> task.solve(task.encode("abba")[None]).tolist()
        [[0, 1, 0, 0]]
    """

    alphabet: Alphabet = ("0", "1")
    transitions: tuple[tuple[int, ...], ...] = ((0, 1), (2, 0), (1, 2))
    accepting: tuple[int, ...] = (0,)
    start: int = 0
    file: str | None = Field(default=None, exclude=True)
    accept: str | None = Field(default=None, exclude=True)
    title: str = NO_TEXT
    note: str = NO_TEXT

    titled: ClassVar[tuple[str, ...]] = ("alphabet", "transitions", "accepting", "start", "note")

    @model_validator(mode="before")
    @classmethod
    def _is_whole(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        accept = fields.get("accept")
        if accept is not None and "file" not in fields:
            raise ValueError(
                f"accept: expected no value without a file, got {accept!r}; leave out accept, or give file"
            )
        # A file contains only the machine, so fields that a subclass adds may be given next to it.
        added = cls.model_fields.keys() - DFALanguage.model_fields.keys()
        kept = {name: value for name, value in fields.items() if name in added}
        others = {name: value for name, value in fields.items() if name not in added}
        entries = fields_of_file(others, lambda labeled: _entries(labeled, accept), ("title", "accept"))
        fields = {**entries, **kept}
        missing = [name for name in _MACHINE if name not in fields]
        if 0 < len(missing) < len(_MACHINE):
            raise ValueError(f"{missing[0]}: expected {listed(_MACHINE)} together, got no {missing[0]}; give all three")
        return fields

    @model_validator(mode="after")
    def _can_be_learned(self) -> "DFALanguage":
        check_title(self.title, self.note)
        check_symbols(self.alphabet)
        # This check comes before `language`, which minimizes the table.
        if len(self.transitions) > min(MAX_GIVEN_STATES, MAX_TRANSITIONS // len(self.alphabet or "a")):
            raise ValueError(
                f"transitions: expected at most {MAX_GIVEN_STATES:,} states and {MAX_TRANSITIONS:,} transitions, got "
                f"{len(self.transitions):,} states and {len(self.transitions) * len(self.alphabet):,} transitions; "
                "minimize the automaton"
            )
        check_language(self.language, "transitions")
        return self

    @property
    def language(self) -> DFA:
        """Return the smallest automaton of the language."""
        return _language(self.alphabet, self.transitions, self.accepting, self.start)


def _entries(labeled: LabeledMachine, accept: str | None) -> dict[str, Any]:
    """Return the fields of the automaton in a file; `accept` names the accepting class if it is not clear."""
    if accept is not None:
        labeled = labeled.accepting(accept)
    index = acceptor_index(labeled.classes)
    if index is not None and labeled.accepting_class is None:
        accepts, rejects = labeled.classes[index], labeled.classes[1 - index]
        warnings.warn(
            f"task.file: answer {accepts} is taken for accept, {rejects} for reject; set accept for another choice",
            stacklevel=2,
        )
    return labeled.dfa().to_json()


def fields_of_file(
    fields: Mapping[str, Any],
    entries: Callable[[LabeledMachine], dict[str, Any]],
    allowed: Sequence[str] = ("title",),
) -> Mapping[str, Any]:
    """Return the fields of the machine in the file that `fields` names, and a title; without a file, return `fields`.

    `allowed` are the fields that may be given next to a file.
    """
    file = fields.get("file")
    if file is None:
        return fields
    if not isinstance(file, str):
        raise ValueError(
            f"file: expected the file's path as a text, got {truncate(repr(file))}; give for example 'machine.dot'"
        )
    if others := fields.keys() - {"file", *allowed}:
        raise ValueError(
            f"file: expected no fields but {listed(allowed)} with a file, got {listed(sorted(others))}; leave out "
            f"{listed(sorted(others))}"
        )
    title = fields.get("title", printable(Path(file).stem)[:MAX_TITLE])
    try:
        return {**entries(read_machine(file)), "title": title}
    except ValueError as problem:
        raise ValueError(f"file: {problem}") from None


@lru_cache(maxsize=64)
def _language(
    alphabet: tuple[str, ...], transitions: tuple[tuple[int, ...], ...], accepting: tuple[int, ...], start: int
) -> DFA:
    content = {"alphabet": alphabet, "transitions": transitions, "accepting": accepting, "start": start}
    return DFA.from_json(content).minimize()
