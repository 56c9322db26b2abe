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
"""Floats that are kept to draw strings of one answer, at most: 80 MB."""


def error_of_suite(model: SequenceModel, task: MachineTask) -> String | None:
    """The first wrongly answered of the strings that tell the task's machine from others (`conformance_strings`).

    Where they do not have too many symbols together they lead to every state and through every transition: a model
    that never gives some answer is wrong on one of them, however rare that answer is.
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


def of_rare_answers(
    machine: Transducer, samples: Int64[Tensor, "B T"], generator: torch.Generator
) -> Int64[Tensor, "N T"]:
    """Of each answer that too few samples have, as many strings as are missing, drawn uniformly; none if it has none.

    Without them a model that never gives an answer which is rare among samples could be right on all of these.
    """
    length, semiautomaton = samples.shape[1], machine.semiautomaton
    answers = np.unique(machine.outputs[machine.outputs != IGNORE])
    enough, drawn = len(samples) // (3 * len(answers)), [samples[:0]]
    if enough < FEWEST or semiautomaton.table[:, 1:].size * length > MAX_SAMPLED:
        return drawn[0]
    last = machine.outputs[semiautomaton.final_states(samples.numpy(), machine.start)]
    for answer in answers.tolist():
        missing = enough - int((last == answer).sum())
        weights = np.ones(semiautomaton.table.shape)
        sampler = StringSampler(semiautomaton, np.array([machine.start]), machine.outputs == answer, weights)
        if missing > 0 and sampler.possible(length)[0]:
            uniforms = torch.rand(missing, length, generator=generator, dtype=torch.float64).numpy()
            drawn.append(torch.from_numpy(sampler.sample(uniforms, np.zeros(missing, dtype=np.int64)).copy()))
    return torch.cat(drawn)
