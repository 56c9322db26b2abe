"""Transduction by a machine that is given as a table."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from pydantic import Field, model_validator
from torch import Tensor

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.sampling import StringSampler
from lengthwise.automata.semiautomaton import Semiautomaton, check_symbols
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.tasks.base import TASKS, Batch, RegularTask, make_task
from lengthwise.tasks.regular.dfa import NO_TEXT, check_title, fields_of_file

MAX_TABLE = 100_000
"""The largest number of entries in a machine's table."""

MAX_SQUARED = 256
"""The largest number of states for which a matrix of transitions is made. For 50,000 states, the matrix would take 20
GB."""

MAX_ATTEMPTS = 64
"""The number of times that strings without an answer are replaced by new uniform strings. Strings that have no answer
even then are replaced by draws among the strings with an answer.
"""


@TASKS.register("machine")
class MachineTransduction(RegularTask):
    """The answers of a Moore machine to all prefixes of uniform strings.

    ``table[q]`` lists the next states of state q, one for each symbol of the `alphabet`. ``outputs[q]`` is the index of
    the answer in q among the `answers`, or -100 for no answer. Strings whose answers are all -100 are not drawn. The
    default machine answers whether a string ends in ba.

    The fields are named as in `Transducer.to_json`, except for the names of symbols and answers. A `file` of any format
    (`lengthwise.formats`) is read into these fields when the task is made. Tables, charts and pages name the task by
    its `title`, by default the file's name without its suffix. A `note` may state where the machine comes from.

    Raises:
        ValueError: the file contains no machine, or is given together with fields other than `title`; the table has
            rows of the wrong length, or more than 100,000 entries; a state in the table or an answer in the outputs
            does not exist; a name occurs twice; no string has an answer; or the title or the note is too long.

    Example:
        >>> task = MachineTransduction(alphabet=("a", "b"), table=((0, 1), (0, 1)), outputs=(0, 1), answers=("A", "B"))
        >>> task.solve(task.encode("abba")[None]).tolist()
        [[0, 1, 1, 0]]
    """

    alphabet: tuple[str, ...] = ("a", "b")
    table: tuple[tuple[int, ...], ...] = ((0, 1), (2, 1), (0, 1))
    outputs: tuple[int, ...] = (0, 0, 1)
    answers: tuple[str, ...] = ("no", "yes")
    start: int = 0
    file: str | None = Field(default=None, exclude=True)
    title: str = NO_TEXT
    note: str = NO_TEXT

    titled: ClassVar[tuple[str, ...]] = ("alphabet", "table", "outputs", "answers", "start", "note")

    @model_validator(mode="before")
    @classmethod
    def _read_file(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return fields_of_file(fields, machine_fields)

    @model_validator(mode="after")
    def _is_a_machine(self) -> "MachineTransduction":
        check_title(self.title, self.note)
        check_symbols(self.alphabet)
        if not all(self.answers) or len(set(self.answers)) < len(self.answers):
            raise ValueError(
                f"answers: expected names that are not empty and differ from one another, got {self.answers}; rename "
                "them"
            )
        if any(len(row) != len(self.alphabet) for row in self.table) or len(self.outputs) != len(self.table):
            raise ValueError(
                f"table: expected {len(self.outputs)} rows (one for each output) of {len(self.alphabet)} next states "
                f"(one for each symbol), got {len(self.table)} rows of "
                f"{', '.join(map(str, sorted({len(row) for row in self.table})))} next states; write a row of table "
                "and an output for each state"
            )
        if len(self.table) * len(self.alphabet) > MAX_TABLE:
            raise ValueError(
                f"table: expected at most {MAX_TABLE:,} entries, got {len(self.table) * len(self.alphabet):,}; use "
                "fewer states or symbols"
            )
        outputs = {output for output in self.outputs if output != IGNORE}
        if outputs and not 0 <= min(outputs) <= max(outputs) < len(self.answers):
            raise ValueError(
                f"outputs: expected indices of the {len(self.answers)} answers, from 0, or {IGNORE} for no answer, got "
                f"{outputs}; correct the wrong indices, or add the missing names to answers"
            )
        if (self.transducer.outputs[self._reached] == IGNORE).all():
            raise ValueError("outputs: expected an answer in some state that a string reaches, got none; add an answer")
        return self

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the symbols that the machine reads."""
        return self.alphabet

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the answers."""
        return self.answers

    @property
    def prefix_exchangeable(self) -> bool:  # type: ignore[override]  # depends on the machine
        """Return True if every string has an answer.

        Otherwise, samples without any answer are drawn again. Prefixes of samples may then have another distribution
        than samples of the prefixes' lengths.
        """
        return bool((self.transducer.outputs[self._reached] != IGNORE).all())

    @property
    def transducer(self) -> Transducer:
        """Return the machine itself, which defines the task."""
        return _transducer(self.alphabet, self.table, self.outputs, self.start)

    def is_legal_length(self, length: int) -> bool:
        """Return whether some string of this length has an answer at its end."""
        return length >= 1 and bool(self._possible(length)[self.transducer.outputs != IGNORE].any())

    def is_balanced_length(self, length: int) -> bool:
        """Return whether each answer that occurs can be the answer to a string of this length."""
        outputs = self.transducer.outputs
        occurring = set(outputs[self._reached].ravel().tolist()) - {IGNORE}
        return length >= 1 and occurring <= set(outputs[self._possible(length)].tolist())

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw independent uniform symbols; every prefix that has an answer is supervised."""
        inputs = torch.randint(len(self.symbols), (batch_size, length), generator=generator)
        targets = self.solve(inputs)
        # Rejection is enough, unless answers are rare.
        for attempt in range(MAX_ATTEMPTS + 1):
            unanswered = ~(targets != IGNORE).any(1)
            if not (count := int(unanswered.sum())):
                break
            if attempt < MAX_ATTEMPTS:
                again = torch.randint(len(self.symbols), (count, length), generator=generator)
            else:
                uniforms = torch.rand(count, length, generator=generator, dtype=torch.float64).numpy()
                sampler = _answered_strings(self.transducer)
                again = torch.from_numpy(sampler.sample(uniforms, np.zeros(count, dtype=np.int64)).copy())
            inputs[unanswered] = again
            targets[unanswered] = self.solve(again)
        return Batch(inputs, targets)

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return the machine's answer to each prefix, or `IGNORE` if the prefix has no answer."""
        return torch.from_numpy(self.transducer.run(inputs.numpy())).contiguous()

    def baseline(self, length: int) -> float:
        """Return the probability of the likeliest last answer in the drawn strings."""
        odds = self._odds_of_answers(length)
        return float(odds.max() / odds.sum())

    @property
    def _reached(self) -> Int64[np.ndarray, "R V"]:
        """Return the next states of each reachable state, which are the states that nonempty strings reach."""
        machine = self.transducer
        return np.asarray(machine.semiautomaton.table[machine.semiautomaton.reachable(machine.start)])

    def _possible(self, length: int) -> Bool[np.ndarray, " Q"]:
        """Return which states some string of this length reaches.

        Probabilities are not used, because they may underflow.
        """
        return _row_after(self.transducer, length, _is_positive) > 0

    def _odds_of_answers(self, length: int) -> Float64[np.ndarray, " Y"]:
        """Return the odds of each class as the last answer along a uniform string.

        The odds are scaled so that the likeliest state has odds 1. If most strings have no answer, the probabilities of
        strings with an answer may underflow.
        """
        machine = _with_last_answers(self.transducer, len(self.classes))
        odds, answered = _row_after(machine, length, _scaled), machine.outputs != IGNORE
        return np.bincount(machine.outputs[answered], odds[answered], len(self.classes))


Keep = Callable[[np.ndarray], np.ndarray]
"""A function that scales odds so that they neither vanish nor grow."""


def _row_after_by_definition(machine: Transducer, length: int, keep: Keep) -> Float[np.ndarray, " Q"]:
    """Return the odds of each state after a uniform string, computed symbol by symbol and scaled by `keep`."""
    table, leads_on = machine.semiautomaton.table, _leads_on(machine)
    row = keep(np.arange(len(table)) == machine.start)
    for _ in range(length):
        odds = np.repeat(row / table.shape[1], table.shape[1])
        row = keep(np.bincount(table.ravel(), odds, len(table)) * leads_on)
    return row


@lru_cache(maxsize=64)
def _row_after(machine: Transducer, length: int, keep: Keep) -> Float[np.ndarray, " Q"]:
    """Return the odds of `_row_after_by_definition`, computed by squaring matrices if there are few states."""
    if machine.num_states > MAX_SQUARED:
        return _row_after_by_definition(machine, length, keep)
    step = keep(_transitions(machine))
    power: np.ndarray = np.eye(len(step), dtype=step.dtype)[machine.start]
    while length > 0:
        power = keep(power @ step) if length % 2 else power
        length //= 2
        step = keep(step @ step) if length else step
    return power


def _is_positive(odds: np.ndarray) -> Float[np.ndarray, "*N"]:
    # Products of float32 are fast, and only their signs matter.
    return (odds > 0).astype(np.float32)


def _scaled(odds: np.ndarray) -> Float[np.ndarray, "*N"]:
    return np.asarray(odds / (odds.max() or 1.0))


def machine_task(labeled: LabeledMachine) -> MachineTransduction:
    """Return the `MachineTransduction` task whose answers a labeled machine gives.

    Raises:
        ValueError: symbols are words, and one of them contains a blank; the machine is too large for a task; or no
            string of one symbol or more has an answer.
    """
    task = make_task(MachineTransduction.name, **machine_fields(labeled))
    assert isinstance(task, MachineTransduction)
    return task


def machine_fields(labeled: LabeledMachine) -> dict[str, Any]:
    """Return the fields of the `MachineTransduction` task whose answers a labeled machine gives."""
    machine = labeled.machine
    return {
        "alphabet": machine.symbols,
        "table": tuple(map(tuple, machine.semiautomaton.table.tolist())),
        "outputs": tuple(machine.outputs.tolist()),
        "answers": labeled.classes,
        "start": machine.start,
    }


@lru_cache(maxsize=64)
def _transducer(
    alphabet: tuple[str, ...], table: tuple[tuple[int, ...], ...], outputs: tuple[int, ...], start: int
) -> Transducer:
    return Transducer(Semiautomaton(np.array(table), alphabet), start, np.array(outputs))


@lru_cache(maxsize=64)
def _answered_strings(machine: Transducer) -> StringSampler:
    """Return a sampler of strings with an answered prefix.

    If the machine has Q states, state Q + q of the sampler is state q after the first answered prefix.
    """
    table, answered = machine.semiautomaton.table, machine.outputs != IGNORE
    size = len(table)
    before = table + size * answered[table]
    doubled = Semiautomaton(np.concatenate([before, table + size]), machine.symbols)
    return StringSampler(doubled, np.array([machine.start]), np.arange(2 * size) >= size, np.ones(doubled.table.shape))


@lru_cache(maxsize=64)
def _with_last_answers(machine: Transducer, num_classes: int) -> Transducer:
    """Return a machine that repeats the last answer until the next answer.

    With Y classes, its state q (Y + 1) + y, before minimization, is state q of the given machine after answer y. If y
    is Y, there was no answer.
    """
    if (machine.outputs != IGNORE).all():
        return machine
    table, size = machine.semiautomaton.table[:, None], num_classes + 1
    before = np.arange(size)[None, :, None]
    after = np.where(machine.outputs[table] == IGNORE, before, machine.outputs[table])
    answers = np.where(before < num_classes, before, IGNORE).ravel()
    semiautomaton = Semiautomaton((table * size + after).reshape(-1, table.shape[2]), machine.symbols)
    start = machine.start * size + num_classes
    return Transducer(semiautomaton, start, np.tile(answers, len(table))).minimize()


@lru_cache(maxsize=64)
def _transitions(machine: Transducer) -> Float64[np.ndarray, "Q Q"]:
    """Return the probability of each next state after a uniform symbol; 0 for a state from which no answer follows."""
    num_symbols = len(machine.symbols)
    odds = machine.semiautomaton.transition_matrix(np.full(num_symbols, 1 / num_symbols))
    odds *= _leads_on(machine)
    return odds


@lru_cache(maxsize=64)
def _leads_on(machine: Transducer) -> Bool[np.ndarray, " Q"]:
    """Return the states in or after which a string can get an answer."""
    return machine.semiautomaton.leading_to(machine.outputs != IGNORE)
