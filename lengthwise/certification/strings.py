"""The strings on which a model is tested: structured strings, samples of the task, and strings of rare answers."""

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.automata.sampling import StringSampler
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.grids import NUM_LETTERS, NUM_PAIRS, problems_of
from lengthwise.conventions import IGNORE
from lengthwise.evaluation.structured import STRUCTURED
from lengthwise.models.base import SequenceModel
from lengthwise.randomness import generator_for
from lengthwise.tasks.algorithmic.two_strings import GridTask
from lengthwise.tasks.base import RegularTask, SymbolTask

TESTED_LENGTHS = (40, 500, 10_000)
"""The lengths of tested strings, in symbols; level `extracted` requires all three."""

NUM_STRINGS = 1_000
"""The number of tested strings of each length."""

MIN_STRINGS_PER_ANSWER = 10
"""The smallest number of strings for each answer. If there would be fewer, no samples are replaced."""

MAX_SAMPLER_SIZE = 10**7
"""The largest number of floats for drawing strings of rare answers: 80 MB.

A machine of 1,000 states and two symbols reaches the limit at length 10,000, if one answer is rare.
"""


def tested_lengths(model: SequenceModel) -> tuple[int, ...]:
    """Return the tested lengths that the model reads, or else the largest length that it reads."""
    longest = model.max_length
    if longest is None:
        return TESTED_LENGTHS
    return tuple(length for length in TESTED_LENGTHS if length <= longest) or (longest,)


def tested_strings(
    task: SymbolTask, length: int, num_strings: int, seed: int, longest: int | None
) -> Int64[Tensor, "B T"] | None:
    """Draw strings: at most two fifths are structured, equally many of each family, and the others are samples.

    Strings of rare answers replace samples of frequent answers (`with_rare_answers`). If the task has no strings of
    this length, the strings are one symbol shorter or longer, but never longer than `longest`. The result is None if
    the task has no strings of these lengths either.
    """
    # Some tasks have strings of odd lengths only, such as modular arithmetic, or of even lengths only.
    candidates = [n for n in (length, length - 1, length + 1) if n <= (longest or n)]
    legal = [n for n in candidates if task.is_legal_length(n)]
    if not legal:
        return None
    # Structured strings come first, and samples fill up the number: families have few distinct strings at some lengths.
    num_per_family = num_strings * 2 // 5 // len(STRUCTURED)
    structured = torch.cat(
        [
            draw(len(task.symbols), num_per_family, legal[0], generator_for(seed, "tested", family, length))
            for family, draw in STRUCTURED.items()
        ]
    ).unique(dim=0)
    sampled = task.sample(num_strings - len(structured), legal[0], generator_for(seed, "tested", length)).inputs
    if isinstance(task, RegularTask):
        sampled = with_rare_answers(task.transducer, sampled, generator_for(seed, "tested", "rare answers", length))
    return torch.cat([sampled, structured])


def draw_strings(
    model: SequenceModel, task: SymbolTask, seed: int, num_lengths: int | None = None
) -> list[Int64[Tensor, "B T"]] | None:
    """Draw the tested strings of all lengths, or of the `num_lengths` shortest.

    The result is None if the task has no strings near one of these lengths.
    """
    if isinstance(task, GridTask):
        return tested_pairs(len(task.reference.symbols), seed)[:num_lengths]
    lengths = tested_lengths(model)[:num_lengths]
    drawn = [tested_strings(task, length, NUM_STRINGS, seed, model.max_length) for length in lengths]
    existing = [strings for strings in drawn if strings is not None]
    return existing if len(existing) == len(drawn) else None


def with_rare_answers(
    machine: Transducer, samples: Int64[Tensor, "B T"], generator: torch.Generator
) -> Int64[Tensor, "B T"]:
    """Replace samples that have frequent answers by strings that have rare answers.

    The new strings are drawn uniformly. An answer that no string of this length has is skipped. Without the new strings
    a model that never gives a rare answer could be right on all samples.
    """
    length, semiautomaton = samples.shape[1], machine.semiautomaton
    answers = np.unique(machine.outputs[machine.outputs != IGNORE])
    # A third of the samples, shared equally by the answers, so that most samples still follow the task's distribution.
    enough = len(samples) // (3 * len(answers))
    # With one symbol, a length has a single string.
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
        if sampler.possible(length)[0]:  # an automaton may give an answer at other lengths only
            uniforms = torch.rand(count, length, generator=generator, dtype=torch.float64).numpy()
            drawn.append(torch.from_numpy(sampler.sample(uniforms, np.zeros(count, dtype=np.int64)).copy()))
    # Each answer keeps its first `enough` samples; the samples beyond these are the first to be replaced.
    rank = sum(np.where(last == answer, np.cumsum(last == answer), 0) for answer in answers.tolist())
    is_kept = (last != IGNORE) & (rank <= enough)
    order = np.concatenate([np.flatnonzero(is_kept), np.flatnonzero(~is_kept)])
    num_drawn = sum(map(len, drawn))
    return torch.cat([samples[np.sort(order[: len(samples) - num_drawn])], *drawn])


def tested_pairs(num_letters: int, seed: int) -> list[Int64[Tensor, "B T"]]:
    """Draw problems of two strings: unrelated, equal, rotated, edited, reversed, periodic, and of one letter."""
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
