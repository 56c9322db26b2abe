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

MAX_STRINGS_OF_A_LENGTH = 4_096
MAX_CUTS_PER_CHUNK = 64

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


def max_enumerated_length(task: OracleTask) -> int:
    """The largest length of which there are no more than 4,096 strings."""
    length = 1
    while len(task.symbols) > 1 and len(task.symbols) ** (length + 1) <= MAX_STRINGS_OF_A_LENGTH:
        length += 1
    return length


def all_strings(task: OracleTask, length: int) -> Int64[Tensor, "B T"]:
    """All strings of a length, in the order of the symbols."""
    return torch.cartesian_prod(*[torch.arange(len(task.symbols))] * length).reshape(-1, length)


def shortest_error(model: SequenceModel, task: OracleTask) -> String | None:
    """The first wrongly answered of all strings up to `max_enumerated_length`, by length and symbol order, or None."""
    for length in range(1, max_enumerated_length(task) + 1):
        strings = all_strings(task, length)
        wrong = grade(model, task, strings).wrong
        if bool(wrong.any()):
            return strings[wrong][0]
    return None


@torch.no_grad()
def shrunk_error(model: SequenceModel, task: OracleTask, string: String) -> String:
    """Leave out parts of a wrongly answered string for as long as what remains is answered wrongly.

    First to the shortest wrong prefix, then without windows of half its length, a quarter, ... one symbol; up to 64 of
    each size are tried. The result is short, not always the shortest.
    """
    shorter: String | None = string
    while shorter is not None:
        string = _shortest_wrong_prefix(model, task, shorter)
        shorter = _with_a_window_left_out(model, task, string)
    return string


def _shortest_wrong_prefix(model: SequenceModel, task: OracleTask, string: String) -> String:
    every = Graded(prefix_answers(model, string[None])[0], task.solve(string[None])[0])
    indices = torch.nonzero(every.wrong)[:, 0]
    # Reading all prefixes at once may round otherwise than reading the whole string: only what holds of `last` counts.
    for index in indices[:MAX_CUTS_PER_CHUNK].tolist():
        if bool(grade(model, task, string[None, : index + 1]).wrong):
            return string[: index + 1]
    return string


def _with_a_window_left_out(model: SequenceModel, task: OracleTask, string: String) -> String | None:
    for size in _halves(len(string)):
        starts = torch.arange(0, len(string) - size + 1, size)[:MAX_CUTS_PER_CHUNK]
        kept = torch.arange(len(string) - size)
        candidates = string[kept + size * (kept >= starts[:, None])]
        wrong = grade(model, task, candidates).wrong
        if bool(wrong.any()):
            return candidates[wrong][0]
    return None


def _halves(length: int) -> Iterator[int]:
    size = length // 2
    while size:
        yield size
        size //= 2
