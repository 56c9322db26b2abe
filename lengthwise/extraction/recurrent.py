"""The finite machine inside a recurrent model: its states, closed symbol by symbol, and compared along strings."""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.extraction.tree import Extraction, Prototypes
from lengthwise.extraction.tree_traces import TraceCount, farthest
from lengthwise.models.base import RecurrentModel

MAX_ELEMENTS_PER_CHUNK = 1 << 26
"""Strings are read in parts whose states, at the positions that a model gives at a time, are so many numbers."""

MAX_STATES_PER_CHUNK = 1 << 14


@torch.no_grad()
def extract_recurrent(
    model: RecurrentModel, symbols: tuple[str, ...], *, radius: float, max_classes: int = 500
) -> Extraction:
    """Close a recurrent model's states into classes, without looking at the task, as `extract` does for a tree.

    From the first state on, every class is followed by every symbol, from the state of its prototype. The first state
    is a class of its own.

    Raises:
        NotFinite: more than `max_classes` classes are founded.
    """
    prototypes = Prototypes(model, model.initial_state(1), radius=radius, maximum=max_classes)
    rows: list[Int64[Tensor, " _ V"]] = []
    num_steps = num_followed = 0
    while num_followed < len(prototypes.states):
        new = prototypes.states[num_followed:]
        num_followed += len(new)
        tokens = torch.arange(len(symbols)).repeat(len(new))
        _, states = model.step(tokens, new.repeat_interleave(len(symbols), 0))
        rows.append(prototypes.join(states).view(len(new), len(symbols)))
        num_steps += 1
    table = Semiautomaton(torch.cat(rows).numpy(), symbols)
    fine = Transducer(table, 0, prototypes.outputs)
    machine = fine.minimize()
    return prototypes.extraction(machine, fine, states_of(machine, fine), num_steps)


def states_of(machine: Transducer, fine: Transducer) -> Int64[np.ndarray, " K"]:
    """The state of the smaller of two machines that answer alike in which each state of the larger is reached."""
    states = np.full(fine.num_states, -1)
    states[fine.start] = machine.start
    order = [fine.start]
    for state in order:
        following = fine.semiautomaton.table[state]
        for one, other in zip(following.tolist(), machine.semiautomaton.table[states[state]].tolist(), strict=True):
            if states[one] < 0:
                states[one] = other
                order.append(one)
    return states


@torch.no_grad()
def compare_recurrent_traces(
    model: RecurrentModel, extraction: Extraction, strings: Int64[Tensor, "B T"]
) -> TraceCount:
    """Read strings by the model and by the extracted machine side by side, and compare the classes of all states.

    The states are those that the model computes for a whole string, which may be rounded otherwise than those of steps.
    """
    seen = TraceCount(len(strings), 0, 0, 0.0)
    for states, expected in paired_states(model, extraction.machine, strings):
        found, distances = extraction.classes_of(model, states)
        num_wrong = int(((found != expected) | ~distances.isfinite()).sum())
        seen += TraceCount(0, len(states), num_wrong, farthest(distances))
    return seen


def paired_states(
    model: RecurrentModel, machine: TreeMachine | Transducer, strings: Int64[Tensor, "B T"]
) -> Iterator[tuple[Float[Tensor, "N D"], Int64[Tensor, " N"]]]:
    """The states of a model at all positions of all strings, part by part, and those of a machine next to them."""
    assert isinstance(machine, Transducer)
    of_machine = torch.from_numpy(machine.semiautomaton.run(strings.numpy(), machine.start))
    subsample = next(iter(model.states(strings[:1])))  # as many positions as the model gives at a time
    at_once = max(1, MAX_ELEMENTS_PER_CHUNK // subsample.numel())
    for some, beside in zip(strings.split(at_once), of_machine.split(at_once), strict=True):
        index = 0
        for states in model.states(some):
            of = beside[:, index : index + states.shape[1]].flatten()
            index += states.shape[1]
            yield from zip(
                states.flatten(0, 1).split(MAX_STATES_PER_CHUNK), of.split(MAX_STATES_PER_CHUNK), strict=True
            )
