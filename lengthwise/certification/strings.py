"""The strings on which a model is tested, and its answers to them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.certification.counterexample import MAX_PAIRS_READ, Graded, grade
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.pairs import tested_pairs
from lengthwise.certification.parts import Tested, TraceAgreement
from lengthwise.certification.suites import with_rare_answers
from lengthwise.conventions import IGNORE
from lengthwise.evaluation.length_curve import final_answers
from lengthwise.evaluation.structured import STRUCTURED
from lengthwise.extraction.base import Extraction, Reader, TraceCount, Traces
from lengthwise.models.base import SequenceModel
from lengthwise.randomness import generator_for
from lengthwise.tasks.algorithmic.two_strings import GridTask
from lengthwise.tasks.base import OracleTask, RegularTask, SymbolTask

TESTED_LENGTHS = (40, 500, 10_000)
NUM_STRINGS = 1_000

SUBSAMPLE_SIZE, NUM_COMPARED_FIRST = 100, 25
"""How many strings of each of the shorter lengths decide whether a radius is worth a closer look, and how many of these
are compared first: the states along them are kept."""

MAX_SYMBOLS_READ = 1_000_000
"""Strings with more symbols are read in part by the model; for the others the traces give the answers, if they can."""

NUM_FIRST, NUM_FIRST_READ = 8, 32
"""Strings that a model without a reader reads first, and that one does whose traces give no answers."""


def tested_lengths(model: SequenceModel) -> tuple[int, ...]:
    """Those of them that the model reads, or the longest that it does."""
    longest = model.max_length
    if longest is None:
        return TESTED_LENGTHS
    return tuple(length for length in TESTED_LENGTHS if length <= longest) or (longest,)


def tested_strings(
    task: SymbolTask, length: int, num_strings: int, seed: int, longest: int | None
) -> Int64[Tensor, "B T"] | None:
    """Structured strings, each once, for two fifths or less, of all families alike, and for the rest samples.

    Samples of frequent answers make room for strings of answers that too few have (`with_rare_answers`).
    Where the task has no strings of this length they have a symbol less or more, but no more than `longest`; None where
    these do not exist either.
    """
    near = [n for n in (length, length - 1, length + 1) if n <= (longest or n)]
    legal = [n for n in near if task.is_legal_length(n)]
    if not legal:
        return None
    of_each_family = num_strings * 2 // 5 // len(STRUCTURED)
    structured = torch.cat(
        [
            draw(len(task.symbols), of_each_family, legal[0], generator_for(seed, "tested", family, length))
            for family, draw in STRUCTURED.items()
        ]
    ).unique(dim=0)
    sampled = task.sample(num_strings - len(structured), legal[0], generator_for(seed, "tested", length)).inputs
    if isinstance(task, RegularTask):
        sampled = with_rare_answers(task.transducer, sampled, generator_for(seed, "tested", "rare answers", length))
    return torch.cat([sampled, structured])


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
    """The tested strings of every length, or the shortest few; None where the task has none near one of these."""
    if isinstance(task, GridTask):
        drawn: Sequence[Int64[Tensor, "_ _"] | None] = tested_pairs(len(task.reference.symbols), seed)[:num_lengths]
    else:
        lengths = tested_lengths(model)[:num_lengths]
        drawn = [tested_strings(task, length, NUM_STRINGS, seed, model.max_length) for length in lengths]
    strings = [of_length for of_length in drawn if of_length is not None]
    if len(strings) < len(drawn):
        return None
    return [TracedStrings(of_length, None if reader is None else reader.traces(of_length)) for of_length in strings]


def grade_all(
    model: SequenceModel, task: OracleTask, strings: AllStrings
) -> tuple[tuple[Tested, ...], Int64[Tensor, " T"] | None]:
    """How many answers are right, up to the first part with a wrong one; a string that is answered wrongly."""
    tested: list[Tested] = []
    for traced in strings:
        done, wrong = [], None
        for part, graded in traced.graded(model, task):
            done.append(graded)
            if bool(graded.wrong.any()):
                wrong = part[graded.wrong][0]
                break
        all_graded = Graded(*map(torch.cat, zip(*done, strict=True)))
        num_graded, num_wrong = int((all_graded.expected != IGNORE).sum()), int(all_graded.wrong.sum())
        tested.append(
            Tested(
                length=traced.strings.shape[1],
                num_strings=len(all_graded.answers),
                num_graded=num_graded,
                num_correct=num_graded - num_wrong,
            )
        )
        if wrong is not None:
            return tuple(tested), wrong
    return tuple(tested), None


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
