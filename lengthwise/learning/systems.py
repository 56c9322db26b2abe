"""Machines learned from live systems, which answer strings of symbols that the learner chooses."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from lengthwise.automata.conformance import extended_strings
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.lstar import Hypothesis, String, learn_by_lstar
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.constructions import construct
from lengthwise.constructions.base import Construction
from lengthwise.conventions import IGNORE
from lengthwise.display import counted, spelled
from lengthwise.learning.folder import save_learned
from lengthwise.learning.program import Program
from lengthwise.tasks.base import RegularTask
from lengthwise.tasks.regular.machine import machine_task
from lengthwise.validation import check_function, texts_of, truncate, whole_number

MAX_STATES = 10_000
"""The largest value of `max_states`."""

MAX_STEPS = 1_000_000_000
"""The largest value of `max_steps`."""


class System(Protocol):
    """A live system with a finite memory, such as a device or a server.

    An object with the methods `pre`, `step` and `post`, such as AALpy's `SUL`, is also accepted: `pre` begins a string,
    and `post` ends it.
    """

    def reset(self) -> object:
        """Reset the system to its start state."""

    def step(self, symbol: str, /) -> object:
        """Read one symbol, and return an output; outputs are compared as texts (`str`)."""


class QueryCounts(NamedTuple):
    """The size of a hypothesis in states, and the numbers of strings and symbols that the system read to find it."""

    num_states: int
    num_strings: int
    num_steps: int


@dataclass(frozen=True)
class LearnedSystem:
    """A machine learned from a live system.

    The machine's answer to a string of one symbol or more is the system's last output. `counts.num_states` counts
    states as in a Mealy machine, whose outputs depend on the state and the symbol. `machine` is a Moore machine with
    the same answers; the Moore machine may have more states.

    The outputs prove that the system has at least `counts.num_states` states. The machine is exact if the system has at
    most `max_states` states. The number `max_states` is lower than requested if the allowed steps did not suffice.
    """

    machine: Transducer
    classes: tuple[str, ...]
    counts: QueryCounts
    max_states: int

    def __str__(self) -> str:
        """Return the size of the machine, the number of queries, and the condition under which it is exact."""
        num_states, num_strings, num_steps = self.counts
        size = f"{counted(num_states, 'state')}, {counted(len(self.machine.symbols), 'symbol')}"
        queries = f"{counted(num_strings, 'string')} ({counted(num_steps, 'step')})"
        return f"A Mealy machine of {size}, learned from the answers to {queries}. {self.claim}"

    @property
    def claim(self) -> str:
        """The condition under which the machine is exact, in a sentence."""
        return f"Exact if the system has at most {counted(self.max_states, 'state')}, and its reset is complete."

    def to_json(self) -> dict[str, Any]:
        """Return as plain data the query counts, `max_states`, and the condition under which the machine is exact."""
        return {"counts": self.counts._asdict(), "max_states": self.max_states, "claim": self.claim}

    @property
    def labeled(self) -> LabeledMachine:
        """The machine with the names of its answers."""
        return LabeledMachine(self.machine, self.classes)

    @property
    def task(self) -> RegularTask:
        """The task that the machine solves; models can be trained on this task, and certified for it."""
        return machine_task(self.labeled)

    def compile(self) -> tuple[Construction, Certificate]:
        """Return a net that computes this machine, and the certificate that proves that the net does.

        Raises:
            ValueError: the machine's table (states times symbols) is too large for a net.
        """
        compiled = construct("block-linear-rnn", self.task)
        about = (f"learned from the answers of a system to {counted(self.counts.num_strings, 'string')}",)
        compiled = compiled._replace(source="learned from a system", about=about)
        return compiled, certify(compiled.model, self.task)

    def save(self, folder: str | Path) -> Certificate | None:
        """Write the machine, its net and certificate, and the query counts to a folder; return the certificate.

        The machine is written as JSON, as a Mealy machine in DOT and, if it is small, as a picture. If the machine is
        too large for a net, no net and no certificate are written, and the result is None.
        """
        try:
            net = self.compile()
        except ValueError:
            net = None
        save_learned(Path(folder), self.labeled, {**self.to_json(), "answers_empty": False}, net, mealy=True)
        return None if net is None else net[1]


def learn_system(
    system: object,
    symbols: Iterable[str],
    *,
    max_states: int,
    max_steps: int = 1_000_000,
    report: Callable[[QueryCounts], object] = lambda counts: None,
) -> LearnedSystem:
    """Learn the Mealy machine behind a live system by L*, and test each hypothesis by the W-method.

    `system` is a `System`: an object with `reset()` and `step(symbol)`, or with `pre()`, `step(symbol)` and `post()`.
    Every query is a string that the system reads from its start. Answers are cached, so a string is sent again only as
    a prefix of a longer string. `report` is called with the `QueryCounts` of each hypothesis before its test.

    The machine is exact if the system has at most `max_states` states. With V symbols and a machine of n states, the
    number of test strings grows with V^(`max_states` - n). If more than `max_steps` symbols are needed, the test ends
    early, and covers systems with fewer states.

    Raises:
        ValueError: a symbol contains blanks or occurs twice; the system raises an error, gives different outputs to one
            string, or gives an output without a printable text; its outputs show more than `max_states` states; or
            `max_steps` are not enough for a system as small as the hypothesis.

    Example:
        >>> class Switch:
        ...     def reset(self):
        ...         self.is_on = False
        ...
        ...     def step(self, symbol):
        ...         self.is_on ^= symbol == "press"
        ...         return "on" if self.is_on else "off"
        >>> print(learn_system(Switch(), ["press", "wait"], max_states=3))
        A Mealy machine of 2 states, 2 symbols, learned from the answers to 16 strings (44 steps). Exact if ...

    Source: Angluin (1987) with the counterexamples of Rivest and Schapire (1993), and Chow's W-method (1978).
    Differs from the source: the test of a hypothesis ends early if it needs more than `max_steps` symbols.
    """
    names = texts_of("symbols", symbols)
    _check_symbols(names)
    check_function("report", report)
    max_states = whole_number("max_states", max_states, 1, MAX_STATES)
    queries = _Queries(system, names, whole_number("max_steps", max_steps, 1, MAX_STEPS))
    search = _Search(queries, max_states, report)
    try:
        mealy = learn_by_lstar(len(names), "Mealy", queries.last_answer, search.wrong_string, max_states=max_states)
    except _NoStepsLeft:
        raise ValueError(
            f"max_steps: expected enough steps to learn and test a machine, got {queries.max_steps:,}; raise max_steps"
        ) from None
    machine = _moore(mealy, names).minimize_nonempty()
    counts = QueryCounts(len(mealy.table), queries.num_strings, queries.num_steps)
    return LearnedSystem(machine, tuple(queries.classes), counts, search.num_covered)


def _check_symbols(names: tuple[str, ...]) -> None:
    """Reject symbols that files and nets cannot contain, before the system reads any."""
    if not names or len(set(names)) < len(names) or any(name.split() != [name] for name in names):
        raise ValueError(
            f"symbols: expected one or more different symbols without blanks, got "
            f"{truncate(repr(names))}; give for example ['a', 'b']"
        )


class _NoStepsLeft(Exception):
    """An exception that is raised if a query needs more steps than are left."""


class _Queries:
    """A cache of a system's answers, as ids of classes, to strings of symbol ids.

    The answers are cached in a tree of strings. Node 0 is the empty string, and `_after` maps a node and a symbol to
    the next node.
    """

    def __init__(self, system: Any, symbols: tuple[str, ...], max_steps: int) -> None:
        names = ("pre", "step", "post") if hasattr(system, "pre") else ("reset", "step")
        if not all(callable(getattr(system, name, None)) for name in names):
            raise ValueError(
                "system: expected an object with reset() and step(symbol), or with pre(), step(symbol) and post(), got "
                f"{truncate(repr(system))}; write a class with these methods"
            )
        self._begin: Callable[[], object] = getattr(system, names[0])
        self._step: Callable[[str], object] = system.step
        self._end: Callable[[], object] = system.post if len(names) == 3 else lambda: None
        self._is_program = isinstance(system, Program)
        self._symbols, self.max_steps = symbols, max_steps
        self.classes: dict[str, int] = {}
        self.num_strings = self.num_steps = 0
        self._after: dict[tuple[int, int], int] = {}
        self._outputs = [IGNORE]

    def answers(self, string: String) -> list[int]:
        """Return the system's answers to all nonempty prefixes of a nonempty string."""
        answers, node = list[int](), 0
        for symbol in string:
            if (node, symbol) not in self._after:
                return self._send(string)
            node = self._after[node, symbol]
            answers.append(self._outputs[node])
        return answers

    def last_answer(self, string: String) -> int:
        """Return the system's answer to a nonempty string."""
        return self.answers(string)[-1]

    def _send(self, string: String) -> list[int]:
        if self.num_steps + len(string) > self.max_steps:
            raise _NoStepsLeft
        self.num_strings += 1
        self.num_steps += len(string)
        answers, node = list[int](), 0
        self._begin()
        try:
            for index, symbol in enumerate(string):
                output = self._class_of(self._output(string[: index + 1]))
                known = self._after.setdefault((node, symbol), len(self._outputs))
                if known == len(self._outputs):
                    self._outputs.append(output)
                if output != self._outputs[known]:
                    raise ValueError(self._contradiction(string[: index + 1], self._outputs[known], output))
                answers.append(output)
                node = known
        finally:
            self._end()
        return answers

    def _output(self, string: String) -> object:
        """Let the system read the last symbol of a string, after all other symbols, and return its output."""
        try:
            return self._step(self._symbols[string[-1]])
        except Exception as error:
            if self._is_program:  # the errors of a `Program` already explain the problem
                raise
            names = [self._symbols[symbol] for symbol in string]
            raise ValueError(
                f"system: expected an output to the string {spelled(names, self._symbols)!r}, got "
                f"{type(error).__name__} ({truncate(str(error))}); return an output to every symbol in every state"
            ) from error

    def _class_of(self, output: object) -> int:
        name = str(output)
        if not name or not name.isprintable():
            raise ValueError(
                f"system: expected outputs whose text is printable and not empty, got {truncate(repr(name))}; return "
                "for example 'none'"
            )
        return self.classes.setdefault(name, len(self.classes))

    def _contradiction(self, string: String, first: int, second: int) -> str:
        names, classes = [self._symbols[symbol] for symbol in string], list(self.classes)
        return (
            f"system: expected one output to the string {spelled(names, self._symbols)}, got {classes[first]!r} and "
            f"later {classes[second]!r}; its reset must be complete, and outputs must not depend on chance or time"
        )


class _Search:
    """The test of hypotheses on a system, and the number of states that the test covers."""

    def __init__(self, queries: _Queries, max_states: int, report: Callable[[QueryCounts], object]) -> None:
        self._queries, self._max_states = queries, max_states
        self._report = report
        self.num_covered = 0

    def wrong_string(self, hypothesis: Hypothesis) -> String | None:
        """Return a string to which the hypothesis gives a wrong last answer, or None if the test finds no such string.

        Raises:
            _NoStepsLeft: the steps do not suffice for systems with as many states as the hypothesis.
        """
        queries = self._queries
        num_states, num_symbols = len(hypothesis.table), len(hypothesis.table[0])
        self.num_covered = num_states - 1
        self._report(QueryCounts(num_states, queries.num_strings, queries.num_steps))
        suffixes = hypothesis.separating_suffixes()
        try:
            # Middle strings of lengths 0 and 1 cover systems with as many states as the hypothesis. Each further length
            # covers one more state.
            for length in range(self._max_states - num_states + 2):
                for string in extended_strings(hypothesis.access, suffixes, num_symbols, length):
                    answers, expected = queries.answers(string), hypothesis.mealy_answers(string)
                    if answers != expected:
                        pairs = zip(answers, expected, strict=True)
                        return string[: next(end for end, (own, other) in enumerate(pairs, 1) if own != other)]
                self.num_covered = num_states + length - 1
        except _NoStepsLeft:
            if self.num_covered < num_states:
                raise
        return None


def _moore(mealy: Hypothesis, symbols: tuple[str, ...]) -> Transducer:
    """Return a Moore machine whose state 0 is the start, and whose other states are the edges of a Mealy machine."""
    table = np.array(mealy.table)
    num_states, num_symbols = table.shape
    # The edge from state q with symbol a has number 1 + q V + a.
    edges_from = 1 + np.arange(num_states)[:, None] * num_symbols + np.arange(num_symbols)
    outputs = [row[symbol] for row in mealy.rows for symbol in range(num_symbols)]
    after = np.vstack([edges_from[:1], edges_from[table.ravel()]])
    return Transducer(Semiautomaton(after, symbols), 0, np.array([IGNORE, *outputs]))
