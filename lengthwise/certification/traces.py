"""Tested strings with the model's states along them, and the comparison of these states with a machine's classes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.certification.counterexample import MAX_PAIRS_READ, Graded, grade
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.parts import TraceAgreement
from lengthwise.certification.strings import draw_strings
from lengthwise.evaluation.length_curve import final_answers
from lengthwise.extraction.base import Extraction, Reader, TraceCount, Traces
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import OracleTask, SymbolTask

SUBSAMPLE_SIZE, NUM_COMPARED_FIRST = 100, 25
"""How many strings of each of the shorter lengths decide whether a radius is worth a closer look, and how many of these
are compared first: the states along them are kept."""

MAX_SYMBOLS_READ = 1_000_000
"""The largest number of symbols that the model reads itself; for the other strings the traces give the answers."""

NUM_FIRST, NUM_FIRST_READ = 8, 32
"""How many strings are read first by a model without a reader, and by one whose traces give no answers."""


class TracedStrings(NamedTuple):
    """Strings of one length, and the model's states along them where a reader reads it."""

    strings: Int64[Tensor, "B T"]
    traces: Traces | None

    @property
    def subsample(self) -> Int64[Tensor, "N T"]:
        """About `SUBSAMPLE_SIZE` of the strings, evenly spread."""
        return self.strings[:: max(1, len(self.strings) // SUBSAMPLE_SIZE)]

    def graded(self, model: SequenceModel, task: OracleTask) -> Iterator[tuple[Int64[Tensor, "N T"], Graded]]:
        """Strings and the answers to them, part by part, so that a wrong answer to the first few can end it.

        Of many symbols most answers are those of the traces, where these give any; `MAX_SYMBOLS_READ`, in strings that
        are spread evenly, are read as the model always reads. Of a model without a reader strings are spread evenly and
        have at most `MAX_PAIRS_READ` pairs of positions: of a transformer, a thousand of the longest take an hour.
        """
        stride = -(-self.strings.numel() // MAX_SYMBOLS_READ)
        answers = self.traces.answers() if self.traces is not None and stride > 1 else None
        if answers is not None:
            answers[::stride] = final_answers(model, self.strings[::stride])
            yield self.strings, Graded(answers, task.solve(self.strings)[:, -1])
            return
        for strings in self._parts():
            yield strings, grade(model, task, strings)

    def _parts(self) -> list[Int64[Tensor, "_ T"]]:
        """What the model reads itself, a few strings first."""
        strings = self.strings
        if self.traces is None:
            strings = strings[:: -(-strings.numel() * strings.shape[1] // MAX_PAIRS_READ)]
            parts = [strings[:NUM_FIRST], strings[NUM_FIRST:]]
        else:
            is_first = torch.zeros(len(strings), dtype=torch.bool)
            is_first[:: max(1, len(strings) // NUM_FIRST_READ)] = True
            parts = [strings[is_first], strings[~is_first]]
        return [part for part in parts if len(part)]


AllStrings = Sequence[TracedStrings]
"""The tested strings, by length."""


def traced_strings(
    model: SequenceModel, task: SymbolTask, reader: Reader[Any] | None, seed: int, num_lengths: int | None = None
) -> list[TracedStrings] | None:
    """Draw the tested strings of every length, or of the shortest few; None if the task has none near one of these."""
    drawn = draw_strings(model, task, seed, num_lengths)
    if drawn is None:
        return None
    return [TracedStrings(strings, None if reader is None else reader.traces(strings)) for strings in drawn]


def compare(strings: AllStrings, extraction: Extraction) -> tuple[TraceAgreement, ...]:
    """How many of the model's states are in the classes that the extracted machine names: all of them.

    Raises:
        Unproved: some are not.
    """
    return tuple(
        _agreement(traced.strings, traced.traces.compare(extraction)) for traced in strings if traced.traces is not None
    )


class Stages(NamedTuple):
    """What is compared one after the other: few strings of the two shorter lengths, more of them, and all strings.

    The first two reject most extractions at little cost.
    """

    few: AllStrings
    more: AllStrings
    every: AllStrings


def stages(strings: AllStrings, reader: Reader[Any]) -> Stages:
    """The stages of these strings."""
    more = [traced.subsample for traced in strings[:2]]
    few = [sample[:: max(1, len(sample) // NUM_COMPARED_FIRST)] for sample in more]
    first, second = ([TracedStrings(sample, reader.traces(sample)) for sample in samples] for samples in (few, more))
    return Stages(first, second, strings)


def compare_powers(reader: Reader[Any], extraction: Extraction) -> None:
    """Raise an `Unproved` where states along powers of words are in another class than the machine says."""
    traces = reader.power_traces()
    count = None if traces is None else traces.compare(extraction)
    if count is not None and count.num_disagreements:
        raise Unproved(
            f"{count.num_disagreements:,} of {count.num_nodes:,} states on powers of words are in another class than "
            "the machine says"
        )


def _agreement(strings: Int64[Tensor, "B T"], count: TraceCount) -> TraceAgreement:
    if count.num_disagreements:
        raise Unproved(
            f"{count.num_disagreements:,} of {count.num_nodes:,} states on strings of {strings.shape[1]:,} symbols are "
            "in another class than the machine says"
        )
    return TraceAgreement(length=strings.shape[1], **count._asdict())
