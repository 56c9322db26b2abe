"""Tested strings, and the model's states along them.

The states are compared with the classes of an extracted machine. The strings are structured, sampled, or drawn because
their answers are rare.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int64, Integer
from torch import Tensor

from lengthwise.automata.sampling import StringSampler
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.counterexample import MAX_PAIRS_READ, Graded, grade, solved_last
from lengthwise.certification.grids import NUM_LETTERS, NUM_PAIRS, problems_of
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.parts import TraceAgreement
from lengthwise.conventions import IGNORE
from lengthwise.evaluation.length_curve import (
    MAX_SYMBOLS_PER_CHUNK,
    MIN_STRINGS_PER_CHUNK,
    final_answers,
    sample_in_parts,
)
from lengthwise.evaluation.structured import STRUCTURED
from lengthwise.extraction.base import Extraction, Reader, TraceCount, Traces
from lengthwise.models.base import SequenceModel
from lengthwise.randomness import generator_for
from lengthwise.tasks.algorithmic.two_strings import GridTask
from lengthwise.tasks.base import OracleTask, RegularTask, SymbolTask

TESTED_LENGTHS = (40, 500, 10_000)
"""The lengths of tested strings, in symbols; level `extracted` requires all three."""

NUM_STRINGS = 1_000
"""The number of tested strings of each length."""

MAX_SYMBOLS_IN_BYTES = 128
"""The largest number of symbols that fit into signed bytes; strings may also contain pads, which are -1."""

MIN_STRINGS_PER_ANSWER = 10
"""The smallest number of strings that `with_rare_answers` reserves for each answer.

If it could reserve fewer strings for each answer, it replaces no samples.
"""

MAX_SAMPLER_SIZE = 10**7
"""The largest number of floats that are stored to draw strings with rare answers. They take 80 MB.

A machine of 1,000 states and two symbols reaches this limit at length 10,000 if one of its answers is rare.
"""

SUBSAMPLE_SIZE = 100
"""The number of strings in the subsample for each length.

The model's states along the subsamples of the two shorter lengths are compared with a machine first, before all
strings.
"""

NUM_COMPARED_FIRST = 25
"""The number of strings in each subsample along which states are compared before the whole subsample."""

MAX_SYMBOLS_READ = 1_000_000
"""The largest number of symbols that the model itself reads, if a reader has traced its states along all strings.

The answers to all other strings then come from the traced states (`TracedStrings.graded`).
"""

FIRST_BATCH_UNTRACED = 8
"""The number of strings that a model without a reader (`extraction.base.Reader`) answers first."""

FIRST_BATCH_TRACED = 32
"""The approximate number of strings that a model with a reader (`extraction.base.Reader`) answers first.

If most answers come from traces (`TracedStrings.graded`), this number is not used.
"""


def tested_lengths(model: SequenceModel, task: SymbolTask) -> tuple[int, ...]:
    """Return the tested lengths that the model reads; if it reads none of them, the largest length that it reads.

    If the task cannot draw strings of a tested length, the largest length that the task can draw is tested instead.
    """
    drawn = task.max_drawn_length
    lengths = TESTED_LENGTHS if drawn is None else tuple(dict.fromkeys(min(each, drawn) for each in TESTED_LENGTHS))
    if (longest := model.max_length) is None:
        return lengths
    return tuple(length for length in lengths if length <= longest) or (longest,)


def tested_strings(
    task: SymbolTask, length: int, num_strings: int, seed: int, longest: int | None
) -> Int64[Tensor, "B T"] | None:
    """Draw the tested strings of one length: at most two fifths are structured, and the others are samples of the task.

    Each family of structured strings (`STRUCTURED`) draws the same number of strings, and duplicates are removed.
    Strings with rare answers replace samples with frequent answers (`with_rare_answers`). If the task has no strings of
    this length, the strings are one symbol shorter or longer, but never longer than `longest`. The result is None if
    the task also has no strings of these lengths.
    """
    # Some tasks, such as modular arithmetic, have only strings of odd lengths. Others have only strings of even
    # lengths.
    candidates = [n for n in (length, length - 1, length + 1) if n <= (longest or n)]
    legal = [n for n in candidates if task.is_legal_length(n)]
    if not legal:
        return None
    # Structured strings are drawn first. A family may have few distinct strings, and samples replace the missing ones.
    num_per_family, num_symbols = num_strings * 2 // 5 // len(STRUCTURED), len(task.symbols)
    # The strings are copied several times below. To save memory, each symbol takes one byte until they are returned.
    dtype = torch.int8 if num_symbols <= MAX_SYMBOLS_IN_BYTES else torch.int64
    structured = torch.cat(
        [
            draw(num_symbols, num_per_family, legal[0], generator_for(seed, "tested", family, length)).to(dtype)
            for family, draw in STRUCTURED.items()
        ]
    ).unique(dim=0)
    parts = sample_in_parts(task, num_strings - len(structured), legal[0], generator_for(seed, "tested", length))
    sampled = torch.cat([batch.inputs.to(dtype) for _, batch in parts])
    if isinstance(task, RegularTask):
        sampled = with_rare_answers(task.transducer, sampled, generator_for(seed, "tested", "rare answers", length))
    return torch.cat([sampled, structured]).long()


def draw_strings(
    model: SequenceModel, task: SymbolTask, seed: int, num_lengths: int | None = None
) -> list[Int64[Tensor, "B T"]] | None:
    """Draw the tested strings of all lengths, or of the `num_lengths` shortest lengths.

    The result is None if the task has no strings near one of these lengths.
    """
    if isinstance(task, GridTask):
        return tested_pairs(len(task.reference.symbols), seed)[:num_lengths]
    lengths = tested_lengths(model, task)[:num_lengths]
    drawn = [tested_strings(task, length, NUM_STRINGS, seed, model.max_length) for length in lengths]
    existing = [strings for strings in drawn if strings is not None]
    return existing if len(existing) == len(drawn) else None


def with_rare_answers(
    machine: Transducer, samples: Integer[Tensor, "B T"], generator: torch.Generator
) -> Integer[Tensor, "B T"]:
    """Replace samples that have frequent answers by strings that have rare answers.

    The new strings are drawn uniformly. An answer that no string of this length has is skipped. Without the new
    strings, a model that never gives a rare answer could be right on all samples.
    """
    length, semiautomaton = samples.shape[1], machine.semiautomaton
    answers = np.unique(machine.outputs[machine.outputs != IGNORE])
    # The answers share a third of the samples equally. So most samples still follow the task's distribution.
    enough = len(samples) // (3 * len(answers))
    # If there is one symbol, each length has a single string.
    if enough < MIN_STRINGS_PER_ANSWER or len(machine.symbols) == 1:
        return samples
    last = machine.outputs[semiautomaton.final_states(samples.numpy(), machine.start)]
    missing = {answer: enough - int((last == answer).sum()) for answer in answers.tolist()}
    missing = {answer: count for answer, count in missing.items() if count > 0}
    if semiautomaton.table[:, 1:].size * length * len(missing) > MAX_SAMPLER_SIZE:
        return samples
    drawn, weights = [samples[:0]], np.ones(semiautomaton.table.shape)
    for answer, count in missing.items():
        sampler = StringSampler(semiautomaton, np.array([machine.start]), machine.outputs == answer, weights)
        if sampler.possible(length)[0]:  # a machine may give an answer only at other lengths
            uniforms = torch.rand(count, length, generator=generator, dtype=torch.float64).numpy()
            strings = torch.from_numpy(sampler.sample(uniforms, np.zeros(count, dtype=np.int64)).copy())
            drawn.append(strings.to(samples.dtype))
    # Each answer keeps its first `enough` samples. All other samples are replaced first.
    rank = sum(np.where(last == answer, np.cumsum(last == answer), 0) for answer in answers.tolist())
    is_kept = (last != IGNORE) & (rank <= enough)
    order = np.concatenate([np.flatnonzero(is_kept), np.flatnonzero(~is_kept)])
    num_drawn = sum(map(len, drawn))
    return torch.cat([samples[np.sort(order[: len(samples) - num_drawn])], *drawn])


def tested_pairs(num_letters: int, seed: int) -> list[Int64[Tensor, "B T"]]:
    """Draw pairs of unrelated, equal, rotated, edited, reversed, periodic or constant strings."""
    return [_problems(num_letters, length, generator_for(seed, "tested", length)) for length in NUM_LETTERS]


def _problems(num_letters: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
    shape = (NUM_PAIRS, length)
    first, second = (torch.randint(num_letters, shape, generator=generator) for _ in range(2))
    uniform = torch.rand(shape, generator=generator)
    kind, row = torch.arange(NUM_PAIRS) % 8, torch.arange(NUM_PAIRS)
    first[kind == 5] = first[kind == 5].gather(1, (torch.arange(length) % (1 + row[kind == 5, None] % 5)))
    first[kind == 6] = first[kind == 6, :1]
    second[kind == 6] = second[kind == 6, :1]
    second[kind == 7] = first[kind == 7, :1]
    related = torch.stack([first, first.roll(1, 1), torch.where(uniform < 0.8, first, second), first.flip(1)])
    for index, made in enumerate(related, start=1):
        second[kind == index] = made[kind == index]
    return torch.from_numpy(problems_of(first.numpy(), second.numpy()))


class TracedStrings(NamedTuple):
    """Strings of one length, with a model's states along them if the model has a reader (`extraction.base.Reader`)."""

    strings: Int64[Tensor, "B T"]
    traces: Traces | None

    @property
    def subsample(self) -> Int64[Tensor, "N T"]:
        """Return about `SUBSAMPLE_SIZE` of the strings, at equal distances in their order."""
        return self.strings[:: max(1, len(self.strings) // SUBSAMPLE_SIZE)]

    def graded(self, model: SequenceModel, task: OracleTask) -> Iterator[tuple[Int64[Tensor, "N T"], Graded]]:
        """Yield strings with their graded answers, in parts, so that callers can stop at the first wrong answer.

        If the strings have more than `MAX_SYMBOLS_READ` symbols and the traces contain answers, most answers come from
        the traces. The model itself then reads about `MAX_SYMBOLS_READ` symbols, in evenly spread strings. A model
        without a reader answers only some strings, evenly spread. These strings together have at most `MAX_PAIRS_READ`
        pairs of positions. A small transformer would need about half an hour for 1,000 strings of 10,000 symbols.
        """
        stride = -(-self.strings.numel() // MAX_SYMBOLS_READ)
        answers = self.traces.answers() if self.traces is not None and stride > 1 else None
        if answers is not None:
            # Traces compute sums in a different order from the model, so the model itself also answers some strings.
            answers[::stride] = final_answers(model, self.strings[::stride])
            yield self.strings, Graded(answers, solved_last(task, self.strings))
            return
        for strings in self._parts():
            yield strings, grade(model, task, strings)

    def _parts(self) -> Iterator[Int64[Tensor, "_ T"]]:
        """Yield the strings that the model reads itself. The first part is small.

        With a reader, all later parts have the usual batch size. Without a reader, one part contains all other strings.
        """
        strings, length = self.strings, self.strings.shape[1]
        if self.traces is None:
            strings = strings[:: -(-strings.numel() * length // MAX_PAIRS_READ)]
            yield from filter(len, (strings[:FIRST_BATCH_UNTRACED], strings[FIRST_BATCH_UNTRACED:]))
            return
        is_first = torch.zeros(len(strings), dtype=torch.bool)
        is_first[:: max(1, len(strings) // FIRST_BATCH_TRACED)] = True
        yield strings[is_first]
        for part in torch.nonzero(~is_first)[:, 0].split(max(MIN_STRINGS_PER_CHUNK, MAX_SYMBOLS_PER_CHUNK // length)):
            if len(part):
                yield strings[part]


AllStrings = Sequence[TracedStrings]
"""The tested strings, with one entry for each length."""


def traced_strings(
    model: SequenceModel, task: SymbolTask, reader: Reader[Any] | None, seed: int, num_lengths: int | None = None
) -> list[TracedStrings] | None:
    """Draw the tested strings (`draw_strings`), with the model's states along them if there is a reader.

    The result is None if the task has no strings near one of the tested lengths.
    """
    drawn = draw_strings(model, task, seed, num_lengths)
    if drawn is None:
        return None
    return [TracedStrings(strings, None if reader is None else reader.traces(strings)) for strings in drawn]


def compare(strings: AllStrings, extraction: Extraction) -> tuple[TraceAgreement, ...]:
    """Check that every state of the model along the strings is in the class that the extracted machine predicts.

    Return the counts of states for each length that has traces.

    Raises:
        Unproved: a state is in another class.
    """
    return tuple(
        _agreement(traced.strings, traced.traces.compare(extraction)) for traced in strings if traced.traces is not None
    )


class Stages(NamedTuple):
    """Sets of strings that are compared with an extraction in turn: a few, then a subsample, then all strings.

    The first two sets have only strings of the two shortest lengths. They reject most extractions at low cost.
    """

    smallest: AllStrings
    subsample: AllStrings
    complete: AllStrings


def stages(strings: AllStrings, reader: Reader[Any]) -> Stages:
    """Return the sets of `Stages` for these strings.

    The model's states along the strings of the first two sets are computed here. The third set is `strings`.
    """
    samples = [traced.subsample for traced in strings[:2]]
    smallest = [sample[:: max(1, len(sample) // NUM_COMPARED_FIRST)] for sample in samples]
    first, second = ([TracedStrings(part, reader.traces(part)) for part in parts] for parts in (smallest, samples))
    return Stages(first, second, strings)


def compare_powers(reader: Reader[Any], extraction: Extraction) -> None:
    """Raise `Unproved` if a state along a repeated word is not in the class that the machine predicts."""
    traces = reader.power_traces()
    count = None if traces is None else traces.compare(extraction)
    # Powers of words can be much longer than drawn strings. Some errors grow with the depth of a tree, and appear only
    # on such long strings.
    if count is not None and count.num_disagreements:
        raise Unproved(
            f"{count.num_disagreements:,} of {count.num_nodes:,} states along powers of words (such as ababab) are "
            "not in the class that the machine predicts"
        )


def _agreement(strings: Int64[Tensor, "B T"], count: TraceCount) -> TraceAgreement:
    if count.num_disagreements:
        raise Unproved(
            f"{count.num_disagreements:,} of {count.num_nodes:,} states on strings of {strings.shape[1]:,} symbols are "
            "not in the class that the machine predicts"
        )
    return TraceAgreement(length=strings.shape[1], **count._asdict())
