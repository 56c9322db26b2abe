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

SUBSAMPLE_SIZE = 100
"""The number of strings of each of the shorter lengths that decide whether a radius is compared on all strings."""

NUM_COMPARED_FIRST = 25
"""The number of strings of the subsample that are compared first."""

MAX_SYMBOLS_READ = 1_000_000
"""The largest number of symbols that the model reads itself; for the other strings the traces give the answers."""

FIRST_BATCH_UNTRACED = 8
"""The number of strings that a model without a reader answers first."""

FIRST_BATCH_TRACED = 32
"""The number of strings that a model answers first if it has a reader whose traces contain no answers."""


class TracedStrings(NamedTuple):
    """Strings of one length, and the model's states along them if a reader supports the model."""

    strings: Int64[Tensor, "B T"]
    traces: Traces | None

    @property
    def subsample(self) -> Int64[Tensor, "N T"]:
        """Return about `SUBSAMPLE_SIZE` of the strings, evenly spread."""
        return self.strings[:: max(1, len(self.strings) // SUBSAMPLE_SIZE)]

    def graded(self, model: SequenceModel, task: OracleTask) -> Iterator[tuple[Int64[Tensor, "N T"], Graded]]:
        """Yield strings with their graded answers, in parts, so that callers can stop at the first wrong answer.

        If the strings have more than `MAX_SYMBOLS_READ` symbols and the traces contain answers, most answers come from
        the traces. The model itself then reads about `MAX_SYMBOLS_READ` symbols, in evenly spread strings. A model
        without a reader answers evenly spread strings with at most `MAX_PAIRS_READ` pairs of positions: all 1,000 of
        the longest strings would take a transformer an hour.
        """
        stride = -(-self.strings.numel() // MAX_SYMBOLS_READ)
        answers = self.traces.answers() if self.traces is not None and stride > 1 else None
        if answers is not None:
            # Traces compute answers in another order than the model, so the model itself also answers some strings.
            answers[::stride] = final_answers(model, self.strings[::stride])
            yield self.strings, Graded(answers, task.solve(self.strings)[:, -1])
            return
        for strings in self._parts():
            yield strings, grade(model, task, strings)

    def _parts(self) -> list[Int64[Tensor, "_ T"]]:
        """Return the strings that the model reads itself, in two batches with the small one first."""
        strings = self.strings
        if self.traces is None:
            strings = strings[:: -(-strings.numel() * strings.shape[1] // MAX_PAIRS_READ)]
            parts = [strings[:FIRST_BATCH_UNTRACED], strings[FIRST_BATCH_UNTRACED:]]
        else:
            is_first = torch.zeros(len(strings), dtype=torch.bool)
            is_first[:: max(1, len(strings) // FIRST_BATCH_TRACED)] = True
            parts = [strings[is_first], strings[~is_first]]
        return [part for part in parts if len(part)]


AllStrings = Sequence[TracedStrings]
"""The tested strings, with one entry for each length."""


def traced_strings(
    model: SequenceModel, task: SymbolTask, reader: Reader[Any] | None, seed: int, num_lengths: int | None = None
) -> list[TracedStrings] | None:
    """Draw the tested strings of all lengths, or of the `num_lengths` shortest, with the model's states along them.

    The result is None if the task has no strings near one of these lengths.
    """
    drawn = draw_strings(model, task, seed, num_lengths)
    if drawn is None:
        return None
    return [TracedStrings(strings, None if reader is None else reader.traces(strings)) for strings in drawn]


def compare(strings: AllStrings, extraction: Extraction) -> tuple[TraceAgreement, ...]:
    """Check that all states of the model are in the classes that the extracted machine names, and return the counts.

    Raises:
        Unproved: a state is in another class.
    """
    return tuple(
        _agreement(traced.strings, traced.traces.compare(extraction)) for traced in strings if traced.traces is not None
    )


class Stages(NamedTuple):
    """Sets of strings that are compared with an extraction in turn: a few, then a subsample, then all strings.

    The first two sets have only the two shorter lengths. They reject most extractions at low cost.
    """

    smallest: AllStrings
    subsample: AllStrings
    complete: AllStrings


def stages(strings: AllStrings, reader: Reader[Any]) -> Stages:
    """Return the stages of these strings, with the model's states along the smaller sets."""
    samples = [traced.subsample for traced in strings[:2]]
    smallest = [sample[:: max(1, len(sample) // NUM_COMPARED_FIRST)] for sample in samples]
    first, second = ([TracedStrings(part, reader.traces(part)) for part in parts] for parts in (smallest, samples))
    return Stages(first, second, strings)


def compare_powers(reader: Reader[Any], extraction: Extraction) -> None:
    """Raise `Unproved` if a state along powers of words is in another class than the machine's."""
    traces = reader.power_traces()
    count = None if traces is None else traces.compare(extraction)
    # Errors that grow with the depth of a tree pass all drawn strings, and show only at these lengths.
    if count is not None and count.num_disagreements:
        raise Unproved(
            f"{count.num_disagreements:,} of {count.num_nodes:,} states on powers of words are not in the machine's "
            "class"
        )


def _agreement(strings: Int64[Tensor, "B T"], count: TraceCount) -> TraceAgreement:
    if count.num_disagreements:
        raise Unproved(
            f"{count.num_disagreements:,} of {count.num_nodes:,} states on strings of {strings.shape[1]:,} symbols are "
            "not in the machine's class"
        )
    return TraceAgreement(length=strings.shape[1], **count._asdict())
