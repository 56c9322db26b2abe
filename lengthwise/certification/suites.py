"""Strings that a task's machine names: those that tell it from other machines, and those of rare answers."""

from itertools import groupby

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.automata.conformance import conformance_strings
from lengthwise.automata.sampling import StringSampler
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.counterexample import String, grade
from lengthwise.conventions import IGNORE
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import MachineTask

MAX_SYMBOLS_OF_SUITE = 100_000
"""Strings that tell the task's machine from others have no more symbols together, and each a few hundred at most."""

FEWEST = 10
"""Each of Y answers has as many strings as a third of the samples has for each, where these are no fewer."""

MAX_SAMPLED = 10**7
"""Floats that drawing strings of rare answers takes, at most: 80 MB, as of 1,000 states at 10,000 of two symbols."""


def error_of_suite(model: SequenceModel, task: MachineTask) -> String | None:
    """The first wrongly answered of the strings that tell the task's machine from others (`conformance_strings`).

    They lead to every state and through every transition, as far as `MAX_SYMBOLS_OF_SUITE` and the longest string that
    the model reads go: up to there, one that never gives some answer is wrong on one of them.
    """
    if not isinstance(reference := task.reference, Transducer):
        return None
    for length, strings in groupby(conformance_strings(reference, MAX_SYMBOLS_OF_SUITE), key=len):
        batch = torch.tensor(list(strings))
        if length > (model.max_length or length):
            return None
        wrong = grade(model, task, batch).wrong
        if bool(wrong.any()):
            return batch[wrong][0]
    return None


def with_rare_answers(
    machine: Transducer, samples: Int64[Tensor, "B T"], generator: torch.Generator
) -> Int64[Tensor, "B T"]:
    """The samples, where some that have frequent answers give way to strings of answers that too few have.

    These are drawn uniformly; of an answer that no string of this length has there are none. Without them a model that
    never gives an answer which is rare among samples could be right on all of these.
    """
    length, semiautomaton = samples.shape[1], machine.semiautomaton
    answers = np.unique(machine.outputs[machine.outputs != IGNORE])
    enough = len(samples) // (3 * len(answers))
    if enough < FEWEST or len(machine.symbols) == 1:
        return samples
    last = machine.outputs[semiautomaton.final_states(samples.numpy(), machine.start)]
    missing = {answer: enough - int((last == answer).sum()) for answer in answers.tolist()}
    missing = {answer: count for answer, count in missing.items() if count > 0}
    if semiautomaton.table[:, 1:].size * length * len(missing) > MAX_SAMPLED:
        return samples
    drawn, weights = [samples[:0]], np.ones(semiautomaton.table.shape)
    for answer, count in missing.items():
        sampler = StringSampler(semiautomaton, np.array([machine.start]), machine.outputs == answer, weights)
        if sampler.possible(length)[0]:
            uniforms = torch.rand(count, length, generator=generator, dtype=torch.float64).numpy()
            drawn.append(torch.from_numpy(sampler.sample(uniforms, np.zeros(count, dtype=np.int64)).copy()))
    rank = sum(np.where(last == answer, np.cumsum(last == answer), 0) for answer in answers.tolist())
    is_kept = (last != IGNORE) & (rank <= enough)
    order = np.concatenate([np.flatnonzero(is_kept), np.flatnonzero(~is_kept)])
    num_drawn = sum(map(len, drawn))
    return torch.cat([samples[np.sort(order[: len(samples) - num_drawn])], *drawn])
