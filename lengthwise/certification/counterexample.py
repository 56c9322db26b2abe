"""The search for counterexamples (strings that a model answers wrongly) by enumeration, and ways to shorten them."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.devices import denormals_kept
from lengthwise.evaluation.length_curve import MAX_SYMBOLS_DRAWN, final_answers, prefix_answers
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import OracleTask

MAX_STRINGS_PER_LENGTH = 4_096
"""All strings of a length are enumerated if their number is at most this number."""

MAX_CANDIDATES = 64
"""The largest number of shorter candidates that are tried in one step to shorten a string.

The candidates are prefixes of the string, or copies of it without a window of a given size.
"""

MAX_PAIRS_READ = 1 << 31
"""The largest number of pairs of positions in one search, for a model from which no machine can be extracted.

A string of T symbols has T^2 pairs of positions, so 21 strings of 10,000 symbols have about this number of pairs. A
small transformer, from which no machine can be extracted, processes them in forty seconds.
"""

String = Int64[Tensor, " _"]
"""A string of symbol ids. The axis has no name, because strings of different lengths occur in one function."""


class Graded(NamedTuple):
    """Final answers of a model, and the expected answers (`IGNORE` if the task has no answer to a string)."""

    answers: Int64[Tensor, " B"]
    expected: Int64[Tensor, " B"]

    @property
    def wrong(self) -> Bool[Tensor, " B"]:
        """Return a mask of the strings that have an expected answer, and to which the model gives another answer."""
        return (self.expected != IGNORE) & (self.answers != self.expected)


@torch.no_grad()
def grade(model: SequenceModel, task: OracleTask, strings: Int64[Tensor, "B T"]) -> Graded:
    """Return the final answers of the model and of the task to each string."""
    return Graded(final_answers(model, strings), solved_last(task, strings))


def solved_last(task: OracleTask, strings: Int64[Tensor, "B T"]) -> Int64[Tensor, " B"]:
    """Return the task's answers to whole strings.

    `solve` also answers all prefixes, which takes memory, so the strings are solved in chunks.
    """
    parts = strings.split(max(1, MAX_SYMBOLS_DRAWN // strings.shape[1]))
    return torch.cat([task.solve(part)[:, -1] for part in parts])


def max_enumerated_length(model: SequenceModel, task: OracleTask) -> int:
    """Return the largest length that the model can read and for which at most 4,096 strings exist.

    The result is 1 if the task has only one symbol, or more than 4,096 symbols.
    """
    length, longest = 1, model.max_length or MAX_STRINGS_PER_LENGTH
    while len(task.symbols) > 1 and length < longest and len(task.symbols) ** (length + 1) <= MAX_STRINGS_PER_LENGTH:
        length += 1
    return length


def all_strings(task: OracleTask, length: int) -> Int64[Tensor, "B T"]:
    """Return all strings of a length, in lexicographic order of the symbol ids."""
    return torch.cartesian_prod(*[torch.arange(len(task.symbols))] * length).reshape(-1, length)


def shortest_error(model: SequenceModel, task: OracleTask) -> String | None:
    """Return the first wrongly answered string of at most `max_enumerated_length` symbols, or None.

    Strings are ordered by length, and strings of one length by their symbol ids.

    If the result is a string, the model answers all shorter strings correctly, whether denormal numbers are kept or
    rounded to 0.
    """
    error = _first_error(model, task, max_enumerated_length(model, task))
    if error is None:
        return None
    # Users run the model without rounding denormal numbers to 0. It may then answer a shorter string wrongly.
    with denormals_kept():
        kept = _first_error(model, task, len(error))
    return error if kept is None else kept


def _first_error(model: SequenceModel, task: OracleTask, max_length: int) -> String | None:
    return first_wrong(model, task, (all_strings(task, length) for length in range(1, max_length + 1)))


def first_wrong(model: SequenceModel, task: OracleTask, batches: Iterable[Int64[Tensor, "_ _"]]) -> String | None:
    """Let the model read batches of strings in turn; return the first wrongly answered string, or None."""
    for strings in batches:
        wrong = grade(model, task, strings).wrong
        if bool(wrong.any()):
            return strings[wrong][0]
    return None


@torch.no_grad()
def shrunk_error(model: SequenceModel, task: OracleTask, string: String, *, max_pairs: int | None = None) -> String:
    """Shorten a wrongly answered string as long as the shorter string is also answered wrongly.

    First, the string is cut to its shortest wrongly answered prefix. Then windows of half the length, a quarter, ...,
    one symbol are left out, at up to 64 positions for each size. The result is short, but not always the shortest. The
    search ends before the model processes more than `max_pairs` pairs of positions; None means no limit.

    Example:
        >>> from lengthwise import make_model, make_task
        >>> task = make_task("parity")
        >>> model = make_model("rnn", task)  # without training
        >>> string = next(s for s in all_strings(task, 6) if bool(grade(model, task, s[None]).wrong))
        >>> len(shrunk_error(model, task, string))
        1
    """
    reduction = _Reduction(model, task, string, max_pairs)
    try:
        reduction.cut_to_wrong_prefix()
        while reduction.remove_window():
            reduction.cut_to_wrong_prefix()
    except _WorkLimitReached:
        pass  # the string as shortened so far is also answered wrongly
    return reduction.string


class _WorkLimitReached(Exception):
    """The next step would process more pairs of positions than the limit allows."""


class _Reduction:
    """A wrongly answered string, and the number of pairs of positions that may still be processed to shorten it."""

    def __init__(self, model: SequenceModel, task: OracleTask, string: String, max_pairs: int | None) -> None:
        self.model = model
        self.task = task
        self.string = string
        self.pairs_left = max_pairs

    def cut_to_wrong_prefix(self) -> None:
        """Replace the string by its shortest wrongly answered prefix."""
        self._count(self.string[None])
        prefixes = Graded(prefix_answers(self.model, self.string[None])[0], self.task.solve(self.string[None])[0])
        indices = torch.nonzero(prefixes.wrong)[:, 0]
        # The model may round differently when it answers all prefixes at once. So each prefix is also read alone, and
        # only this answer counts.
        for index in indices[:MAX_CANDIDATES].tolist():
            prefix = self.string[: index + 1]
            if bool(self._wrong(prefix[None]).any()):
                self.string = prefix
                return

    def remove_window(self) -> bool:
        """Try to remove a window of symbols from the string, and return whether a window was removed.

        Large windows are tried first. A window is removed only if the model still answers the shorter string wrongly.
        """
        # Large windows come first, because one success halves the string, and so halves all later work.
        for size in (len(self.string) >> halvings for halvings in range(1, len(self.string).bit_length())):
            starts = torch.arange(0, len(self.string) - size + 1, size)[:MAX_CANDIDATES]
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
            raise _WorkLimitReached
