"""The base classes of tasks, and `make_task`, which makes a task from its name."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
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
from lengthwise.validation import Description, check_kind, check_sizes, truncate, validated

MAX_NAMED_LENGTH = 10_000
"""An error message about an illegal length looks for a shorter legal length only up to this length."""

MAX_SYMBOLS = 1 << 32
"""The largest number of symbols in all strings of one length. These symbols take 32 GiB, and are in memory at once."""


class Batch(NamedTuple):
    """A batch of strings or of sequences of vectors, with a target at every supervised position.

    Symbols and classes are ids, with `IGNORE` as target at unsupervised positions. Strings that are shorter than the
    longest string of the batch end in `PAD`, which is unsupervised. For vectors, targets are numbers, with NaN at
    unsupervised positions.
    """

    inputs: Int64[Tensor, "B T"] | Float[Tensor, "B T V"]
    targets: Int64[Tensor, "B T"] | Float[Tensor, "B T"]

    @property
    def supervised(self) -> Bool[Tensor, "B T"]:
        """Return a mask of the supervised positions."""
        return ~self.targets.isnan() if self.targets.is_floating_point() else self.targets != IGNORE

    @property
    def last_supervised(self) -> Int64[Tensor, " B"]:
        """Return the last supervised position of each row, or its last position if no position is supervised."""
        return self.targets.shape[1] - 1 - self.supervised.flip(1).int().argmax(1)


Sample = Callable[[Any, int, int, torch.Generator], Batch]
Solve = Callable[[Any, Tensor], Tensor]
Baseline = Callable[[Any, int], float]
IsOfKind = Callable[[Any, int], bool]


def _checks_draw(sample: Sample) -> Sample:
    """Wrap a method that draws batches, so that its arguments are checked first.

    The wrapper's annotations accept any type. In tests that check annotations at run time, wrong arguments then raise
    the wrapper's errors, not errors about annotations.
    """

    @wraps(sample)
    def checked(self: "Task", batch_size: Any, length: Any, generator: Any) -> Batch:
        check_sizes(batch_size=batch_size)
        self.check_length(length)
        if int(batch_size) * int(length) > MAX_SYMBOLS:
            raise ValueError(
                f"batch_size: expected at most {MAX_SYMBOLS:,} symbols in a batch, got "
                f"{int(batch_size) * int(length):,} ({batch_size:,} strings of length {length:,}); draw shorter or "
                "fewer strings"
            )
        # Without a generator, torch would draw from its global one, and no seed would give the same batch again.
        check_kind("generator", generator, torch.Generator, "a torch.Generator")
        return sample(self, int(batch_size), length, generator)

    return checked


def _checks_ids(solve: Solve) -> Solve:
    """Wrap `solve`, so that its ids are checked first, and prefixes that contain pads get no answer."""

    @wraps(solve)
    def checked(self: "OracleTask", inputs: Any) -> Tensor:
        if not isinstance(inputs, Tensor) or inputs.dtype != torch.int64 or inputs.ndim != 2:
            got = f"{inputs.dtype} {list(inputs.shape)}" if isinstance(inputs, Tensor) else type(inputs).__name__
            raise ValueError(
                f"inputs: expected ids of torch.int64 [B, T], got {got}; make each string with task.encode"
            )
        if not inputs.numel():
            return solve(self, inputs)
        lowest, highest = (int(bound) for bound in inputs.aminmax())
        if lowest < PAD or highest >= len(self.symbols):
            raise ValueError(
                f"inputs: expected ids in 0..{len(self.symbols) - 1} for {self.name}, got "
                f"{lowest if lowest < PAD else highest}; make strings with task.encode"
            )
        if lowest >= 0:
            return solve(self, inputs)
        is_cut = (inputs == PAD).cumsum(1) > 0
        return solve(self, inputs.clamp(min=0)).masked_fill(is_cut, IGNORE)

    return checked


def _checks_length(baseline: Baseline) -> Baseline:
    @wraps(baseline)
    def checked(self: "Task", length: Any) -> float:
        self.check_length(length)
        return baseline(self, length)

    return checked


def _check_whole(length: object) -> None:
    # True and False are rejected separately, because Python counts them among whole numbers.
    if not isinstance(length, Integral) or isinstance(length, bool):
        raise ValueError(f"length: expected a whole number, got {truncate(repr(length))}; give an int such as 40")


def _checks_whole(is_of_kind: IsOfKind) -> IsOfKind:
    @wraps(is_of_kind)
    def checked(self: "Task", length: Any) -> bool:
        _check_whole(length)
        return is_of_kind(self, length)

    return checked


CHECKS: Mapping[str, Callable[..., Any]] = {
    "sample": _checks_draw,
    "sample_all_answers": _checks_draw,
    "solve": _checks_ids,
    "baseline": _checks_length,
    "is_legal_length": _checks_whole,
    "is_balanced_length": _checks_whole,
}
"""The wrappers that check the arguments of a task's methods, by the name of the method."""


class Task(Description, ABC):
    """A frozen, validated description of a task, which draws strings and answers them.

    A task is its own configuration: `make_task` and the command line set its fields. `length` is the size parameter of
    the task. Unless the task's documentation defines `length` otherwise, it is the number of symbols.
    """

    name: ClassVar[str]
    default_preset: ClassVar[str] = ""
    """The name of the default preset for models on this task; "" means the default preset of each model."""
    named_by: ClassVar[tuple[str, ...]] = ()
    """Names of fields that tables of results show next to the task's name, even if the field has its default value."""
    titled: ClassVar[tuple[str, ...]] = ()
    """Names of fields that the field `title`, if it is set, replaces in tables; the title is not part of a run's id."""

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        """Wrap the methods that `CHECKS` names, so that they check their arguments, also in tasks of other packages."""
        super().__pydantic_init_subclass__(**settings)
        for name, checked in CHECKS.items():
            method = vars(cls).get(name)
            if callable(method) and not getattr(method, "__isabstractmethod__", False):
                setattr(cls, name, checked(method))

    @_checks_whole
    def is_legal_length(self, length: int) -> bool:
        """Return whether strings of this length can be sampled; by default every length of at least 1."""
        return length >= 1

    @_checks_whole
    def is_balanced_length(self, length: int) -> bool:
        """Return whether every class can be the final answer at this length.

        Preset `fast` trains mostly on such lengths. If answers are numbers that grow with the length, it is enough that
        at least two answers are possible.
        """
        return self.is_legal_length(length)

    @abstractmethod
    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw a batch; the same state of `generator` gives the same batch.

        Raises:
            ValueError: the batch size is not a whole number of at least 1, the length is not legal, the batch has more
                than `MAX_SYMBOLS` symbols, or the generator is not a `torch.Generator`. The method of a subclass is
                called after these checks.
        """

    def sample_all_answers(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw a batch for training with supervision "prefix"; by default, this is an ordinary sample."""
        return self.sample(batch_size, length, generator)

    @abstractmethod
    def baseline(self, length: int) -> float:
        """Return the score of the best constant final answer: accuracy, or the error for a `VectorTask`.

        Raises:
            ValueError: the length is not legal. The method of a subclass is called after this check.
        """

    def check_length(self, length: int) -> None:
        """Raise a ValueError if `length` is not legal; the message names the nearest legal lengths."""
        _check_whole(length)
        if length >= 1 and self.is_legal_length(length):
            return
        around = [n for n in range(max(1, length - 3), max(1, length) + 4) if self.is_legal_length(n)]
        # If no length nearby is legal, the message names the longest legal length below this one.
        around = around or list(islice(filter(self.is_legal_length, range(min(length, MAX_NAMED_LENGTH), 0, -1)), 1))
        raise ValueError(f"length: {self.name} has no strings of length {length}; legal lengths near it: {around}")


class SymbolTask(Task):
    """A task whose inputs are symbols and whose answers are classes.

    In text, symbols follow one another, with `separator` between them if any symbol has several characters.
    """

    @property
    def max_drawn_length(self) -> int | None:
        """Return the largest length at which the task can draw strings, or None if memory sets no limit."""
        return None

    @property
    def separator(self) -> str:
        """Return an empty string if all symbols are single characters, else a space."""
        return " " if any(len(symbol) > 1 for symbol in self.symbols) else ""

    @property
    @abstractmethod
    def symbols(self) -> tuple[str, ...]:
        """Return the input alphabet, in the order of its ids."""

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """Return the answers, in the order of their ids."""

    def encode(self, text: str | Sequence[str]) -> Int64[Tensor, " T"]:
        """Return the ids of the symbols in a text or list; raise a ValueError for a symbol that is not in `symbols`.

        Spaces between symbols of one character are skipped, unless the space is a symbol.
        """
        if not isinstance(text, Sequence):
            raise ValueError(
                f"text: expected a text or a list of symbols, got {truncate(repr(text))}; give 'ab' or ['a', 'b']"
            )
        known = truncate(" ".join(self.symbols))
        # Positions are kept, because the error message needs them after spaces are dropped.
        read = dict(enumerate(text.split() if self.separator and isinstance(text, str) else text))
        if " " not in self.symbols:
            read = {position: symbol for position, symbol in read.items() if symbol != " "}
        if not read:
            raise ValueError(
                f"text: expected at least one symbol of {self.name}, got {text!r}; give at least one of {known}"
            )
        ids = {symbol: index for index, symbol in enumerate(self.symbols)}
        for position, symbol in read.items():
            if symbol not in ids:
                raise ValueError(
                    f"text: {symbol!r} at position {position + 1} is not a symbol of {self.name}; use only {known}"
                    + (", with spaces between them" if self.separator else "")
                )
        return torch.tensor([ids[symbol] for symbol in read.values()], dtype=torch.int64)

    def decode(self, ids: Int64[Tensor, " T"]) -> str:
        """Return the text of the symbols with these ids, without pads.

        Raises:
            ValueError: the ids are not a tensor [T] of whole numbers, or a number is neither a symbol's id nor a pad.
        """
        is_line = isinstance(ids, Tensor) and ids.ndim == 1 and not ids.is_floating_point()
        if not is_line or (len(ids) and not -1 <= int(ids.min()) <= int(ids.max()) < len(self.symbols)):
            got = truncate(repr(ids.tolist() if isinstance(ids, Tensor) else ids))
            raise ValueError(
                f"ids: expected a tensor [T] of ids of {self.name} from 0 to {len(self.symbols) - 1}, or {PAD} for a "
                f"pad, got {got}; make ids with task.encode"
            )
        return self.separator.join(self.symbols[index] for index in ids.tolist() if index != PAD)


class OracleTask(SymbolTask):
    """A symbol task that can answer any string, not only the strings it draws."""

    @abstractmethod
    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return the answer to every prefix; `IGNORE` if the prefix is malformed, contains a pad or has no answer.

        Raises:
            ValueError: the inputs are not int64 ids [B, T] of symbols or pads. The method of a subclass is called
                after this check, and never gets pads.
        """


class MachineTask(OracleTask):
    """A task with a finite reference machine; certificates compare models with this machine."""

    @property
    @abstractmethod
    def reference(self) -> Transducer | GridMachine:
        """Return the reference machine, written independently of `solve` unless this machine defines the task."""


class RegularTask(MachineTask):
    """A task that a finite machine solves, prefix by prefix.

    `prefix_exchangeable` is True if every prefix of a sample has the same distribution as a sample of the prefix's
    length. The field is True if symbols are independent, and False if half of the strings are drawn from a language. If
    the field is False, one pass over a long string must not replace the evaluations at shorter lengths.
    """

    prefix_exchangeable: ClassVar[bool]

    @property
    @abstractmethod
    def transducer(self) -> Transducer:
        """Return the task's machine, in which malformed input leads to a sink state with the answer IGNORE.

        Unless this machine defines the task, it is written independently of `solve`.
        """

    @property
    def reference(self) -> Transducer:
        """Return the smallest machine that gives the same answers as the transducer."""
        return self.transducer.minimize()


class UniformTask(RegularTask):
    """A regular task whose strings consist of independent uniform symbols, and which answers every prefix."""

    prefix_exchangeable: ClassVar[bool] = True

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw independent uniform symbols; every prefix is supervised."""
        inputs = torch.randint(len(self.symbols), (batch_size, length), generator=generator)
        return Batch(inputs, self.solve(inputs))


class VectorTask(Task):
    """In-context regression: inputs are vectors, answers are numbers, and `baseline` is a mean squared error.

    Inputs are float32 of shape [B, T, `input_dim`], targets float32 of shape [B, T].
    """

    @property
    @abstractmethod
    def input_dim(self) -> int:
        """Return the size V of each input vector."""


TASKS: Registry[type[Task]] = Registry("task", "lengthwise.tasks", "lengthwise.text", base=Task, names_folders=True)


def check_is_task(task: object) -> None:
    """Raise a ValueError for anything but a task, for example for the name of a task."""
    if not isinstance(task, Task):
        raise ValueError(f"task: expected a task, got {str(task)[:40]!r}; make one with lengthwise.make_task")


def make_task(name: str, **fields: Any) -> Task:
    """Make the task registered under `name` with the given fields; all problems are reported in one ValueError.

    Example:
        >>> make_task("parity", p=0.3).p
        0.3
    """
    return validated(TASKS[name], fields, path="task")
