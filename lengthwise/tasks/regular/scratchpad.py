"""Scratchpads: a regular task whose strings contain all intermediate answers."""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Int64
from pydantic import BeforeValidator, Field, PlainSerializer, model_validator
from torch import Tensor

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.registry import UnknownName
from lengthwise.tasks.base import TASKS, Batch, RegularTask
from lengthwise.validation import dump_named, validated


def _made(given: object) -> object:
    """Return the task for a name, or for a mapping with its name and fields; return anything else unchanged."""
    fields = {"name": given} if isinstance(given, str) else given
    if not isinstance(fields, Mapping):
        return given
    fields = dict(fields)
    name = fields.pop("name", None)
    try:
        task = validated(TASKS[str(name)], fields)
    except UnknownName as problem:
        raise ValueError(f"name: {problem}") from None
    # A base may itself have a base, and so on.
    except RecursionError:
        raise ValueError(
            "base: expected a task, got bases within bases that are nested too deeply; nest fewer tasks"
        ) from None
    except ValueError as problem:
        raise ValueError("; ".join(str(problem).splitlines())) from None
    if not isinstance(task, RegularTask):
        raise ValueError(f"name: expected a regular task, got {name!r}; choose for example tomita")
    return task


BaseTask = Annotated[
    RegularTask,
    BeforeValidator(_made),
    PlainSerializer(lambda task: dump_named(task.name, task), return_type=dict),
]


@TASKS.register("scratchpad")
class Scratchpad(RegularTask):
    """A task whose strings contain its answers: s_1 =q_1 s_2 =q_2 ... s_T, with answers q_t to s_1 ... s_t.

    The target at s_t is q_t, the answer of the task `base` (a name, or a name and fields). The positions of answers are
    not supervised. `length` counts symbols and answers: 2T - 1 for T symbols of the base task. The symbols are the base
    task's symbols and, for each class, `=` with the name of the class (with _ for spaces). A string with a wrong
    answer, or in which symbols and answers do not alternate, is malformed from there on.

    Samples contain the right answers. With `lengthwise.models.own_answers.OwnAnswers`, a trained model reads strings of
    the base task, and its own answers are inserted.

    Raises:
        ValueError: the base task is unknown, not regular, or leaves a prefix without an answer; a symbol has the name
            of an answer, or contains a space.

    Example:
        >>> task = Scratchpad(base="parity")
        >>> task.symbols
        ('a', 'b', '=0', '=1')
        >>> task.solve(task.encode("a =0 b =1 b")[None]).tolist()
        [[0, -100, 1, -100, 0]]
        >>> task.solve(task.encode("b =0 b")[None]).tolist()
        [[1, -100, -100]]

    Source: Chi et al. (2023), section 2.2; Anil et al., "Exploring length generalization in large language models"
        (NeurIPS 2022); Liu et al., "Transformers learn shortcuts to automata" (ICLR 2023); scratchpads: Nye et al.,
        "Show your work" (2021).
    Differs from the source: the last answer, q_T, is a target only and not part of the string.
    """

    base: BaseTask = Field("parity", validate_default=True)

    @model_validator(mode="after")
    def _fits(self) -> "Scratchpad":
        machine = self.base.transducer
        after_a_symbol = machine.semiautomaton.table[machine.semiautomaton.reachable(machine.start)]
        if (machine.outputs[after_a_symbol] == IGNORE).any():
            raise ValueError(
                "base: expected a task that answers every prefix, because an answer follows each symbol, got "
                f"{self.base.name}, which leaves some prefixes without an answer; choose another task"
            )
        if len(set(self.symbols)) < len(self.symbols) or any(symbol.split() != [symbol] for symbol in self.symbols):
            raise ValueError(
                f"base: expected different names without spaces for all symbols and answers, got {self.symbols}; "
                "rename symbols or answers"
            )
        return self

    @property
    def prefix_exchangeable(self) -> bool:  # type: ignore[override]  # depends on the base task
        """Return whether every prefix of a base task's sample is distributed like a sample of the prefix's length."""
        return self.base.prefix_exchangeable

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the symbols of the base task, then its answers."""
        return (*self.base.symbols, *("=" + "_".join(name.split()) for name in self.base.classes))

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the answers of the base task."""
        return self.base.classes

    @property
    def transducer(self) -> Transducer:
        """Return a machine with a sink, and for each base state one state before a symbol and one before an answer."""
        base = self.base.transducer
        table, num_states = base.semiautomaton.table, base.num_states
        before = np.arange(num_states)
        after = np.arange(num_states) + num_states
        sink = 2 * num_states
        step = np.full((2 * num_states + 1, len(self.symbols)), sink)
        step[before, : len(base.symbols)] = table + num_states
        answered = base.outputs != IGNORE
        step[after[answered], len(base.symbols) + base.outputs[answered]] = before[answered]
        outputs = np.full(2 * num_states + 1, IGNORE)
        outputs[after] = base.outputs
        return Transducer(Semiautomaton(step, self.symbols), base.start, outputs)

    def is_legal_length(self, length: int) -> bool:
        """Return whether the length is 2T - 1 for a legal length T of the base task."""
        return length % 2 == 1 and length >= 1 and self.base.is_legal_length(num_steps(length))

    def is_balanced_length(self, length: int) -> bool:
        """Return whether the number T of symbols is a balanced length of the base task."""
        return self.is_legal_length(length) and self.base.is_balanced_length(num_steps(length))

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw strings of the base task and insert their answers; positions of inserted answers are not supervised."""
        strings = self.base.sample(batch_size, num_steps(length), generator).inputs
        inputs = self.write(strings)
        return Batch(inputs, self.solve(inputs))

    def write(self, strings: Int64[Tensor, "B N"]) -> Int64[Tensor, "B T"]:
        """Return strings of the base task with the right answer after each symbol but the last."""
        answers = self.base.solve(strings) + len(self.base.symbols)
        return torch.stack([strings, answers], 2).flatten(1)[:, :-1].contiguous()

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return the base task's answers at every second symbol, up to the first malformed position."""
        num_symbols = len(self.base.symbols)
        steps, answers = inputs[:, ::2], inputs[:, 1::2]
        # Misplaced answers are replaced by any symbol, because their targets are masked below.
        expected = self.base.solve(steps.clamp(max=num_symbols - 1))
        is_right = torch.empty_like(inputs, dtype=torch.bool)
        is_right[:, ::2] = steps < num_symbols
        is_right[:, 1::2] = answers == expected[:, : answers.shape[1]] + num_symbols
        targets = torch.full_like(inputs, IGNORE)
        targets[:, ::2] = expected
        return targets.masked_fill((~is_right).cumsum(1) > 0, IGNORE)

    def baseline(self, length: int) -> float:
        """Return the base task's baseline at the number of its symbols in a scratchpad of this length."""
        return self.base.baseline(num_steps(length))


def num_steps(length: int) -> int:
    """Return the number T of symbols of the base task in a scratchpad of 2T - 1 symbols."""
    return (length + 1) // 2
