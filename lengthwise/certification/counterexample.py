"""Strings that a model answers wrongly: searched for by enumeration, then shortened."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.evaluation.length_curve import final_answers, prefix_answers
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import OracleTask
from lengthwise.threads import denormals_kept

MAX_STRINGS_OF_A_LENGTH = 4_096
MAX_CUTS_PER_CHUNK = 64

MAX_PAIRS_READ = 1 << 31
"""Pairs of positions in strings that are read for one purpose by a model whose work grows with their number: forty
seconds of a small transformer, and 21 strings of 10,000 symbols."""

String = Int64[Tensor, " _"]  # a shortened string has another length


class Graded(NamedTuple):
    """Final answers to strings, the right ones (`IGNORE` where a string is not supervised), and which are wrong."""

    answers: Int64[Tensor, " B"]
    expected: Int64[Tensor, " B"]

    @property
    def wrong(self) -> Bool[Tensor, " B"]:
        return (self.expected != IGNORE) & (self.answers != self.expected)


@torch.no_grad()
def grade(model: SequenceModel, task: OracleTask, strings: Int64[Tensor, "B T"]) -> Graded:
    """The final answers of the model and of the task."""
    return Graded(final_answers(model, strings), task.solve(strings)[:, -1])


def max_enumerated_length(model: SequenceModel, task: OracleTask) -> int:
    """The largest length of which there are no more than 4,096 strings, and which the model reads."""
    length, longest = 1, model.max_length or MAX_STRINGS_OF_A_LENGTH
    while len(task.symbols) > 1 and length < longest and len(task.symbols) ** (length + 1) <= MAX_STRINGS_OF_A_LENGTH:
        length += 1
    return length


def all_strings(task: OracleTask, length: int) -> Int64[Tensor, "B T"]:
    """All strings of a length, in the order of the symbols."""
    return torch.cartesian_prod(*[torch.arange(len(task.symbols))] * length).reshape(-1, length)


def shortest_error(model: SequenceModel, task: OracleTask) -> String | None:
    """The first wrongly answered of all strings up to `max_enumerated_length`, by length and symbol order, or None.

    Where one is, none that is shorter is answered wrongly as users read it either, with small numbers kept.
    """
    error = _first_error(model, task, max_enumerated_length(model, task))
    if error is None:
        return None
    with denormals_kept():
        kept = _first_error(model, task, len(error))
    return error if kept is None else kept


def _first_error(model: SequenceModel, task: OracleTask, max_length: int) -> String | None:
    for length in range(1, max_length + 1):
        strings = all_strings(task, length)
        wrong = grade(model, task, strings).wrong
        if bool(wrong.any()):
            return strings[wrong][0]
    return None


@torch.no_grad()
def shrunk_error(model: SequenceModel, task: OracleTask, string: String, *, max_pairs: int | None = None) -> String:
    """Leave out parts of a wrongly answered string for as long as what remains is answered wrongly.

    First to the shortest wrong prefix, then without windows of half its length, a quarter, ... one symbol; up to 64 of
    each size are tried. The result is short, not always the shortest. It ends where strings of more than `max_pairs`
    pairs of positions would have been read; None: it goes on.
    """
    shrinking = _Shrinking(model, task, string, max_pairs)
    try:
        shrinking.to_shortest_wrong_prefix()
        while shrinking.to_what_a_window_leaves():
            shrinking.to_shortest_wrong_prefix()
    except _TooMuchWork:
        pass
    return shrinking.string


class _TooMuchWork(Exception):
    """More pairs of positions would be read than may be."""


class _Shrinking:
    """A string that is answered wrongly, and how many pairs of positions may still be read to shorten it."""

    def __init__(self, model: SequenceModel, task: OracleTask, string: String, max_pairs: int | None) -> None:
        self.model = model
        self.task = task
        self.string = string
        self.pairs_left = max_pairs

    def to_shortest_wrong_prefix(self) -> None:
        """Go on with it."""
        self._count(self.string[None])
        every = Graded(prefix_answers(self.model, self.string[None])[0], self.task.solve(self.string[None])[0])
        indices = torch.nonzero(every.wrong)[:, 0]
        # Reading all prefixes at once may round otherwise than reading the whole: only what holds of `last` counts.
        for index in indices[:MAX_CUTS_PER_CHUNK].tolist():
            prefix = self.string[: index + 1]
            if bool(self._wrong(prefix[None]).any()):
                self.string = prefix
                return

    def to_what_a_window_leaves(self) -> bool:
        """Go on with the first string without a window, the largest ones first, that is wrong; whether there is one."""
        for size in _halves(len(self.string)):
            starts = torch.arange(0, len(self.string) - size + 1, size)[:MAX_CUTS_PER_CHUNK]
            kept = torch.arange(len(self.string) - size)
            candidates = self.string[kept + size * (kept >= starts[:, None])]
            wrong = self._wrong(candidates)
            if bool(wrong.any()):
                self.string = candidates[wrong][0]
                return True
        return False

    def _wrong(self, strings: Int64[Tensor, "B T"]) -> Bool[Tensor, " B"]:
        self._count(strings)
        return grade(self.model, self.task, strings).wrong

    def _count(self, strings: Int64[Tensor, "B T"]) -> None:
        if self.pairs_left is None:
            return
        self.pairs_left -= strings.numel() * strings.shape[1]
        if self.pairs_left < 0:
            raise _TooMuchWork


def _halves(length: int) -> Iterator[int]:
    size = length // 2
    while size:
        yield size
        size //= 2
