"""The base class of problems with a single answer, and how problems are written as strings."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated

import torch
from jaxtyping import Int64
from pydantic import Field, model_validator
from torch import Tensor

from lengthwise.conventions import BAR, IGNORE, NUM_SPECIAL, PAD, SEP
from lengthwise.tasks.base import Batch
from lengthwise.tasks.base_rates import CountedTask

MAX_NUMBERS = 50_000
"""The largest number of integers in a task. Each integer is a symbol or a class, and has weights in a model."""


class SingleAnswerTask(CountedTask):
    """A problem ``part | part | ... <sep>`` with one answer, which is supervised at ``<sep>`` only.

    Every integer is one symbol or class, so `max_length` and the other sizes of a task determine its symbols and
    classes. With `num_range`, the integers are 0 ... num_range - 1. Problems that are shorter than the longest problem
    of their batch end in `PAD`. `length` is the number of items or letters, not of symbols, and at most `max_length`.

    Source: Xu and Sato (arXiv 2410.01405), appendix C.1, and their code.
    Differs from the source: there the answer follows ``<sep>``, and in the code an end symbol follows the answer.
        There, a problem counts as solved if the answer and the end symbol are each the likeliest of all symbols. The
        end symbol carries no information about the problem. Here only the answer is supervised, and it is one of the
        classes.
    """

    max_length: Annotated[int, Field(ge=1, le=1_000)]
    num_range: Annotated[int, Field(ge=1)] | None = None

    @property
    @abstractmethod
    def largest_number(self) -> int:
        """Return the largest integer that can occur in a problem or be its answer."""

    @abstractmethod
    def answer(self, parts: Sequence[Sequence[int]]) -> int | None:
        """Return the answer to the problem of these parts (integers or letter ids); None for a malformed problem."""

    @property
    def shortest_length(self) -> int:
        """Return the length of the shortest problems that are drawn."""
        return 1

    @model_validator(mode="after")
    def _has_problems(self) -> "SingleAnswerTask":
        if self.max_length < self.shortest_length:
            raise ValueError(
                f"max_length: expected at least {self.shortest_length}, the length of the shortest problems that "
                f"{self.name} draws, got {self.max_length}; raise max_length"
            )
        if max(self.num_range or 0, self.largest_number + 1) > MAX_NUMBERS:
            raise ValueError(
                f"num_range: expected at most {MAX_NUMBERS:,} integers, because each is a symbol or a class, "
                f"got {max(self.num_range or 0, self.largest_number + 1):,}; lower the task's sizes, such as max_length"
            )
        if self.num_range is not None and self.num_range <= self.largest_number:
            raise ValueError(
                f"num_range: expected at least {self.largest_number + 1} for problems of length {self.max_length}, got "
                f"{self.num_range}; raise num_range, or lower max_length"
            )
        return self

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the integers that have a symbol or a class."""
        return tuple(map(str, range(self.num_range or self.largest_number + 1)))

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return ``<sep>``, ``|`` and the integers."""
        return ("<sep>", "|", *self.numbers)

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the integers in `numbers`, as the names of the answers."""
        return self.numbers

    def is_legal_length(self, length: int) -> bool:
        """Return whether a length is between `shortest_length` and `max_length`."""
        return self.shortest_length <= length <= self.max_length

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw problems; only the position of ``<sep>`` is supervised."""
        inputs, answers = self.draw(batch_size, length, generator)
        inputs = inputs[:, : int((inputs != PAD).sum(1).max())].contiguous()
        return Batch(inputs, torch.where(inputs == SEP, answers[:, None], IGNORE))

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return the answer at each row's first ``<sep>``, and `IGNORE` elsewhere and in malformed problems.

        Problems that `sample` never draws are also answered, if the right answer is one of the task's classes. Rows are
        read one by one, which is slow.
        """
        targets = torch.full_like(inputs, IGNORE)
        for target, symbols in zip(targets, inputs.tolist(), strict=True):
            if SEP in symbols:
                end = symbols.index(SEP)
                answer = self._answer_to(symbols[:end])
                target[end] = IGNORE if answer is None or answer >= len(self.classes) else answer
        return targets

    def _answer_to(self, symbols: Sequence[int]) -> int | None:
        parts: list[list[int]] = [[]]
        for symbol in symbols:
            if symbol == PAD:
                return None
            if symbol == BAR:
                parts.append([])
            else:
                parts[-1].append(symbol - NUM_SPECIAL)
        return self.answer(parts) if all(parts) else None


def join_parts(*parts: Int64[Tensor, "N _"]) -> Int64[Tensor, "N T"]:
    """Join parts, given as letter ids from 0 or as integers, into problems; pads in the parts move to the end."""
    bar, sep = torch.full((len(parts[0]), 1), BAR), torch.full((len(parts[0]), 1), SEP)
    first, *others = (torch.where(part == PAD, PAD, part + NUM_SPECIAL) for part in parts)
    loose = torch.cat([first, *(column for part in others for column in (bar, part)), sep], 1)
    if not (loose == PAD).any():
        return loose
    # A stable sort moves pads to the end and keeps everything else in order.
    return loose.gather(1, (loose == PAD).to(torch.int8).argsort(dim=1, stable=True))


def check_positive(**integers: Int64[Tensor, "..."]) -> None:
    """Raise a ValueError if an argument contains an integer below 1; the message names the argument."""
    for name, values in integers.items():
        if values.numel() and values.min() < 1:
            raise ValueError(
                f"{name}: expected integers of at least 1, got {int(values.min())}; give positive integers"
            )
