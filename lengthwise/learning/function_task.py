"""The task of a Python function: the function's finite machine, which is found by calling the function."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch

from lengthwise.automata.conformance import ConformanceTest, String
from lengthwise.automata.dfa import DFA
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.lstar import learn_by_lstar
from lengthwise.automata.semiautomaton import check_symbols
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.display import printable
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import RegularTask, make_task
from lengthwise.tasks.regular.dfa import MAX_TITLE
from lengthwise.tasks.regular.machine import machine_fields
from lengthwise.validation import check_function, texts_of, truncate, whole_number

MAX_STATES, MAX_ANSWERS = 100, 256
"""The largest number of states of a machine if no bound is given, and the largest number of different answers."""

MAX_ANSWER_LENGTH = 100
"""The largest number of characters of an answer, as a text."""

DEFAULT_SYMBOLS, MAX_SYMBOLS = 500_000, 15_000_000
"""The largest total numbers of symbols in a conformance test: with the default bound on states, and with a given bound.

Calls of a simple function on strings with a million symbols in total take about a second.
"""

MAX_CALLS = 10_000_000
"""The largest number of calls of a function."""

NUM_RANDOM, MAX_RANDOM_LENGTH = 1_000, 60
"""The number and the largest length of random strings, which can find long counterexamples, but prove nothing."""

_WAY_OUT = "label strings with f, and pass them to `learn` or to the task `examples`"
"""The advice in errors about functions that may have no finite machine."""

_UNASKED = IGNORE - 1
"""The answer recorded for the empty string, on which the function is never called. No function returns this answer."""


def task_from_function(
    f: Callable[[Any], Any],
    alphabet: str | Sequence[str],
    *,
    max_states: int | None = None,
    strings: Iterable[str | Sequence[str]] = (),
    title: str | None = None,
) -> RegularTask:
    """Return the task of the finite machine that a function computes.

    If `alphabet` is a text, its characters are the symbols, and `f` gets each string as a text. If `alphabet` is a list
    of symbols, which may be words, `f` gets a tuple of symbols. `f` is never called on the empty string, which nets do
    not read. `f` returns True or False, whole numbers, or texts; None means no answer. If all answers are True or
    False, the task is `dfa`, and otherwise `machine`. A run stores the machine, never the function.

    The machine is found by L* and the W-method. The machine equals `f` on all strings if a machine of at most
    `max_states` states computes `f`, counting only states that nonempty strings reach. The task's `note` states this
    bound and the number of calls. The default bound is the largest bound whose test strings have at most 500,000
    symbols in all. If this bound is not larger than the machine, a bound of one state more than the machine has is
    used. The test strings of this larger bound may have at most 15,000,000 symbols. Each further state multiplies the
    number of test strings by the size of the alphabet, so a smaller `max_states` also means fewer calls of a slow `f`.
    `f` is also called on the given `strings`, which should include strings with rare answers. `title` names the task;
    the default is the name of the function.

    Raises:
        ValueError: more than `max_states` (by default 100) states are needed, so `f` may have no finite machine; the
            bound needs too many calls; `f` raises an error, gives two answers to one string, or returns other values;
            all answers are equal; the alphabet is empty or has a symbol twice; or `strings` contain symbols outside
            the alphabet.

    Example:
        >>> task = task_from_function(lambda text: text.endswith("abb"), "ab", title="ends in abb")
        >>> task.name, task.transducer.num_states, task.note.split(";")[0]
        ('dfa', 4, 'equals the Python function if a machine of at most 14 states computes it')

    Source: Angluin, "Learning regular sets from queries and counterexamples" (1987); Chow, "Testing software design
        modeled by finite-state machines" (1978).
    Differs from the source: `f` is never called on the empty string, and there can be more than two answers.
    """
    check_function("f", f)
    teacher = _Teacher(f, alphabet, max_states)
    name = getattr(f, "__name__", type(f).__name__)
    title = printable(name if name.isidentifier() else "function")[:MAX_TITLE] if title is None else title
    teacher.try_strings(strings)
    learned = learn_by_lstar(
        len(teacher.symbols),
        "Moore",
        teacher.answer,
        lambda hypothesis: teacher.counterexample(hypothesis.transducer(teacher.symbols)),
    )
    machine = learned.transducer(teacher.symbols).minimize_nonempty()
    note = (
        f"equals the Python function if a machine of at most {teacher.bound:,} states computes it; "
        f"{teacher.num_calls:,} calls"
    )
    return teacher.task(machine, title=title, note=note)


class _Teacher:
    """A teacher that answers the queries of L* by calling a function, and counts the calls."""

    def __init__(self, f: Callable[[Any], Any], alphabet: str | Sequence[str], max_states: int | None) -> None:
        self.symbols = texts_of("alphabet", alphabet)
        check_symbols(self.symbols)
        if not self.symbols:
            raise ValueError(
                "alphabet: expected at least one symbol, got no symbol; list the symbols that the function reads"
            )
        self.f, self.is_text = f, isinstance(alphabet, str)
        self.max_states = None if max_states is None else whole_number("max_states", max_states, 1, 10**9)
        self.num_calls = self.bound = 0
        self.kind: type | None = None
        self.labels: dict[bool | int | str, int] = {}
        self.known: dict[String, int] = {(): _UNASKED}
        self.tried: list[tuple[String, int]] = []

    def try_strings(self, strings: Iterable[str | Sequence[str]]) -> None:
        """Call the function on given and random strings; every hypothesis is compared with the function's answers."""
        ids = {symbol: v for v, symbol in enumerate(self.symbols)}
        if not isinstance(strings, Iterable):
            raise ValueError(f"strings: expected a list of strings, got {truncate(repr(strings))}; give a list")
        for string in (texts_of("strings", string) for string in strings):
            if unknown := [symbol for symbol in string if symbol not in ids]:
                got = truncate(repr(unknown[0]))
                raise ValueError(f"strings: expected symbols of the alphabet, got {got}; add {got} to the alphabet")
            if string:
                self._try(tuple(ids[symbol] for symbol in string))
        generator = generator_for(0, "function")
        lengths = torch.randint(1, MAX_RANDOM_LENGTH + 1, (NUM_RANDOM,), generator=generator).sort().values.tolist()
        rows = torch.randint(len(self.symbols), (NUM_RANDOM, MAX_RANDOM_LENGTH), generator=generator).tolist()
        for row, length in zip(rows, lengths, strict=True):  # sorted, so that an error shows a short string
            self._try(tuple(row[:length]))

    def _try(self, string: String) -> None:
        self.tried.append((string, self.call(string)))

    def answer(self, string: String) -> int:
        """Return the id of the function's answer to a string (`call`), and check that two calls give equal answers."""
        if string not in self.known:
            self.known[string] = self.call(string)
            self._check_repeats(string, self.call(string))
        return self.known[string]

    def _check_repeats(self, string: String, answer: int) -> None:
        """Raise a ValueError unless an answer equals the known answer to the string."""
        if answer != (known := self.known[string]):
            names = {number: repr(label) for label, number in self.labels.items()} | {IGNORE: "None"}
            raise ValueError(
                f"f: expected the same answer to {self.quoted(string)} at each call, got {names[known]} and "
                f"{names[answer]}; make the answer depend on the string alone"
            )

    def call(self, string: String) -> int:
        """Call the function on a string, and return the answer's id; ids are given in order of first occurrence."""
        self.num_calls += 1
        if self.num_calls > MAX_CALLS:
            raise ValueError(
                f"f: expected a function whose machine is found within {MAX_CALLS:,} calls, got a function that needs "
                f"more calls; {_WAY_OUT}"
            )
        symbols = [self.symbols[v] for v in string]
        try:
            value = self.f("".join(symbols) if self.is_text else tuple(symbols))
        except Exception as error:
            raise ValueError(
                f"f: expected an answer to every string, got {type(error).__name__} ({truncate(str(error))}) for "
                f"{self.quoted(string)}; return None for strings without an answer"
            ) from error
        if value is None:
            return IGNORE
        return self.labels[value] if type(value) is self.kind and value in self.labels else self._number(value, string)

    def _number(self, value: object, string: String) -> int:
        """Return the id of an answer. A new answer gets the next id, and NumPy's types become Python's types."""
        value = value.item() if isinstance(value, np.generic) else value
        kind = next((kind for kind in (bool, int, str) if isinstance(value, kind)), None)
        if kind is None or value == "":
            raise ValueError(
                f"f: expected a bool, an int, a non-empty text or None as the answer to {self.quoted(string)}, got "
                f"{truncate(repr(value))}; convert other answers with str, and return None instead of an empty text"
            )
        label: bool | int | str = kind(value)  # type: ignore[arg-type]  # one of these types
        # True equals 1, so answers of two types could not be distinguished.
        if kind is not (self.kind or kind):
            raise ValueError(
                f"f: expected answers of one type, got {next(iter(self.labels))!r} and {label!r}, the latter for "
                f"{self.quoted(string)}; return answers of one type"
            )
        self.kind = kind
        # Numbers of over 333 bits have over 100 digits, and Python refuses to print numbers of over 4,300 digits.
        text = "" if kind is int and int(label).bit_length() > 333 else str(label)
        if not text.isprintable() or not 1 <= len(text) <= MAX_ANSWER_LENGTH:
            raise ValueError(
                f"f: expected answers of at most {MAX_ANSWER_LENGTH} characters, all printable, got "
                f"{truncate(repr(text)) if text else 'a longer number'} for {self.quoted(string)}; return shorter texts"
            )
        if label not in self.labels and len(self.labels) == MAX_ANSWERS:
            raise ValueError(
                f"f: expected at most {MAX_ANSWERS} different answers, got more, such as "
                f"{truncate(repr(label))} for {self.quoted(string)}; return fewer different answers"
            )
        return self.labels.setdefault(label, len(self.labels))

    def counterexample(self, machine: Transducer) -> String | None:
        """Return a string that the machine answers wrongly, or None; the strings in `tried` are compared first."""
        rows, outputs = machine.semiautomaton.table.tolist(), machine.outputs.tolist()
        for string, answer in chain(self.tried, self._tested(machine)):
            state = machine.start
            for symbol in string:
                state = rows[state][symbol]
            if outputs[state] != answer:
                # L* makes progress only if its query of this string returns an answer other than the machine's, so the
                # function's answer is kept.
                self.known.setdefault(string, answer)
                for again in (answer, self.call(string)):
                    self._check_repeats(string, again)
                return string
        return None

    def _tested(self, machine: Transducer) -> Iterator[tuple[String, int]]:
        """Yield the W-method's strings with the function's answers.

        At the end, `bound` is set to the number of states of the machines that the strings cover.
        """
        num_states = machine.num_states - 1  # L* adds the start, to which no string returns
        limit = MAX_STATES if self.max_states is None else self.max_states
        if num_states > limit:
            raise ValueError(
                f"f: expected a function that a machine of at most {limit:,} states computes, got a function that "
                f"needs more states; raise max_states if a larger machine computes f, or {_WAY_OUT}"
            )
        test = ConformanceTest(machine)
        # Levels 0 to k cover functions with at most k states more than the hypothesis. Level 0 hardly shows that a
        # function has no finite machine, so level 1 is tested even beyond a given bound.
        second = min(1, test.max_level(MAX_SYMBOLS))
        default = max(test.max_level(DEFAULT_SYMBOLS), second)
        last = default if self.max_states is None else max(limit - num_states, second)
        # Small levels are tested before the limit is checked, because these tests may reveal more states. Then fewer
        # levels are needed.
        for levels in (range(min(2, last + 1)), *([level] for level in range(2, min(default, last) + 1))):
            for string in test.strings(levels):
                yield string, self.call(string)
        if (largest := test.max_level(MAX_SYMBOLS)) < last:
            raise ValueError(
                f"max_states: expected at most {num_states + largest:,}, because a larger bound needs test strings of "
                f"over {MAX_SYMBOLS:,} symbols in all, got {limit:,}; lower max_states"
            )
        for string in chain.from_iterable(test.strings([level]) for level in range(default + 1, last + 1)):
            yield string, self.call(string)
        self.bound = self.max_states or num_states + last

    def task(self, machine: Transducer, *, title: str, note: str) -> RegularTask:
        """Return the task of a machine whose outputs are the ids of answers that `call` returned."""
        if len(self.labels) < 2:
            answers = [*map(repr, self.labels), *(["None"] if IGNORE in self.known.values() else [])]
            raise ValueError(
                f"f: expected at least two different answers other than None, got {' or '.join(answers)} at all "
                f"{self.num_calls:,} calls; list a string with another answer in the argument `strings`"
            )
        order = sorted(self.labels)
        if self.kind is bool and IGNORE not in self.known.values():
            language = DFA(machine.semiautomaton, machine.start, machine.outputs == self.labels[True])
            task = make_task("dfa", **language.to_json(), title=title, note=note)
        else:
            outputs = [IGNORE if y == IGNORE else order.index([*self.labels][y]) for y in machine.outputs.tolist()]
            labeled = LabeledMachine(
                Transducer(machine.semiautomaton, machine.start, np.array(outputs)), tuple(map(str, order))
            )
            task = make_task("machine", **machine_fields(labeled), title=title, note=note)
        assert isinstance(task, RegularTask)
        return task

    def quoted(self, string: String) -> str:
        """Return a string in quotes, as the function gets it."""
        symbols = tuple(self.symbols[v] for v in string)
        return truncate(repr("".join(symbols) if self.is_text else symbols))
