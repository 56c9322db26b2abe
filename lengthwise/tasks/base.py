"""The contract of a task, and how one is made from its name."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import islice
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE, PAD
from lengthwise.registry import Registry
from lengthwise.validation import Description, truncate, validated

MAX_LOOKED_AT = 10_000
"""The longest length that an error names as the legal one next to a longer one that is not."""


class Batch(NamedTuple):
    """Inputs and a target for every supervised position.

    Symbols and classes are ids, `IGNORE` at unsupervised positions. Strings that are shorter than others of their batch
    end in `PAD`, which is unsupervised. Vectors have numbers as targets, NaN at unsupervised positions.
    """

    inputs: Int64[Tensor, "B T"] | Float[Tensor, "B T V"]
    targets: Int64[Tensor, "B T"] | Float[Tensor, "B T"]

    @property
    def supervised(self) -> Bool[Tensor, "B T"]:
        """The positions that are supervised."""
        return ~self.targets.isnan() if self.targets.is_floating_point() else self.targets != IGNORE

    @property
    def last_supervised(self) -> Int64[Tensor, " B"]:
        """The last supervised position of each row; the last position of a row without any."""
        return self.targets.shape[1] - 1 - self.supervised.flip(1).int().argmax(1)


class Task(Description, ABC):
    """What a model is to answer: a frozen, validated description that draws its own strings and knows the answers.

    A task is its own configuration: its fields are what `make_task` and the command line set.
    `length` is the task's own size parameter; unless a task says otherwise, it is the number of symbols.
    """

    name: ClassVar[str]
    default_preset: ClassVar[str] = ""
    """The recipe of models on this task where none is chosen; "" for each model's own."""
    named_by: ClassVar[tuple[str, ...]] = ()
    """Fields that belong to its name in tables, at their default, too."""
    titled: ClassVar[tuple[str, ...]] = ()
    """Fields that its `title`, if it has one, replaces in tables; the title is not part of a run's id."""

    @abstractmethod
    def is_legal_length(self, length: int) -> bool:
        """Whether strings of this length can be sampled."""

    def is_balanced_length(self, length: int) -> bool:
        """Whether every class can be the final answer at this length; preset `fast` trains mostly on these.

        Where the answers are numbers that grow with the length, it is enough that more than one of them can be.
        """
        return self.is_legal_length(length)

    @abstractmethod
    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw a batch; the same state of `generator` gives the same batch."""

    def sample_all_answers(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw a batch to learn the answers to all prefixes from: a sample, where it does not leave any out."""
        return self.sample(batch_size, length, generator)

    @abstractmethod
    def baseline(self, length: int) -> float:
        """Score of the best constant final answer on samples of this length: accuracy, or error for a `VectorTask`."""

    def check_length(self, length: int) -> None:
        """Raise a ValueError that names the nearest legal lengths unless `length` is legal."""
        if not isinstance(length, Integral) or isinstance(length, bool):
            raise ValueError(f"length: expected a whole number, got {length!r}; give one")
        if length >= 1 and self.is_legal_length(length):
            return
        around = [n for n in range(max(1, length - 3), max(1, length) + 4) if self.is_legal_length(n)]
        around = around or list(islice(filter(self.is_legal_length, range(min(length, MAX_LOOKED_AT), 0, -1)), 1))
        raise ValueError(f"length: {self.name} has no strings of length {length}; legal lengths near it: {around}")


class SymbolTask(Task):
    """A task whose inputs are symbols and whose answers are classes.

    In text, symbols stand one after another, with `separator` between them where they are words.
    """

    @property
    def separator(self) -> str:
        """Nothing where all symbols are characters, else a space."""
        return " " if any(len(symbol) > 1 for symbol in self.symbols) else ""

    @property
    @abstractmethod
    def symbols(self) -> tuple[str, ...]:
        """The input alphabet, in the order of its ids."""

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """The answers, in the order of their ids."""

    def encode(self, text: str | Sequence[str]) -> Int64[Tensor, " T"]:
        """Turn a text of `symbols`, or a list of them, into ids; another symbol is a ValueError that says where.

        Spaces between symbols that are characters are skipped, unless the space is a symbol.
        """
        known = truncate(" ".join(self.symbols))
        read = dict(enumerate(text.split() if self.separator and isinstance(text, str) else text))
        if " " not in self.symbols:
            read = {position: symbol for position, symbol in read.items() if symbol != " "}
        if not read:
            raise ValueError(f"text: {self.name} expected at least one of the symbols {known}, got {text!r}")
        ids = {symbol: index for index, symbol in enumerate(self.symbols)}
        for position, symbol in read.items():
            if symbol not in ids:
                raise ValueError(
                    f"text: {symbol!r} at position {position + 1} is no symbol of {self.name}; use only {known}"
                    + (", with spaces between them" if self.separator else "")
                )
        return torch.tensor([ids[symbol] for symbol in read.values()], dtype=torch.int64)

    def decode(self, ids: Int64[Tensor, " T"]) -> str:
        """Turn ids back into a text, which has nothing for a `PAD`."""
        return self.separator.join(self.symbols[index] for index in ids.tolist() if index != PAD)


class OracleTask(SymbolTask):
    """A symbol task that can answer any string, not only those it draws."""

    @abstractmethod
    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Answer every prefix; `IGNORE` where the prefix is malformed or has no answer."""


class MachineTask(OracleTask):
    """A task that a finite machine of some kind solves, which certificates compare models with."""

    @property
    @abstractmethod
    def reference(self) -> Transducer | GridMachine:
        """That machine: the task's own, written independently of `solve` where there is anything to know but it."""


class RegularTask(MachineTask):
    """A task that a finite machine solves.

    `prefix_exchangeable` says whether the prefix of a sample is distributed as a sample of that length
    (transduction of independent symbols: yes; recognition of balanced samples: no). Only then may one pass over
    a long string stand for the evaluation at every shorter length.
    """

    prefix_exchangeable: ClassVar[bool]

    @property
    @abstractmethod
    def transducer(self) -> Transducer:
        """The task's machine; malformed input leads to a sink that answers IGNORE.

        Written independently of `solve`, unless the machine is all there is to know about the task.
        """

    @property
    def reference(self) -> Transducer:
        """The smallest machine that answers as the transducer does."""
        return self.transducer.minimize()


class VectorTask(Task):
    """In-context regression: inputs are vectors, answers are numbers, `baseline` is a mean squared error.

    Inputs are float32 of shape [B, T, `input_dim`], targets float32 of shape [B, T].
    """

    @property
    @abstractmethod
    def input_dim(self) -> int:
        """The size V of each input vector."""


TASKS: Registry[type[Task]] = Registry("task", "lengthwise.tasks", "lengthwise.text", base=Task, names_folders=True)


def check_is_task(task: object) -> None:
    """Raise a ValueError where something else is given for a task, its name, say."""
    if not isinstance(task, Task):
        raise ValueError(f"task: expected a task, got {str(task)[:40]!r}; make one with lengthwise.make_task")


def make_task(name: str, **fields: Any) -> Task:
    """Make the task registered under `name` with the given fields; problems are one ValueError.

    Example:
        >>> make_task("parity", p=0.3).p
        0.3
    """
    return validated(TASKS[name], fields, path="task")
