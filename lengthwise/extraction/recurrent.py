"""The finite machine inside a recurrent model: its states, closed symbol by symbol, and compared along strings."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.extraction.base import Extraction, Machine, TraceCount, extraction_of
from lengthwise.extraction.prototypes import Prototypes, largest_finite
from lengthwise.models.base import RecurrentModel

MAX_ELEMENTS_PER_CHUNK = 1 << 26
"""Strings are read in chunks whose states, at the positions that a model gives at a time, have no more numbers."""

MAX_STATES_PER_CHUNK = 1 << 14


@torch.no_grad()
def extract_recurrent(
    model: RecurrentModel, symbols: tuple[str, ...], *, radius: float, max_classes: int = 500
) -> Extraction:
    """Close a recurrent model's states into classes, without looking at the task, as `extract_tree` does for trees.

    From the first state on, every class is followed by every symbol, from the state of its prototype. The first state
    is a class of its own.

    Raises:
        NotFinite: more than `max_classes` classes are founded.
    """
    prototypes = Prototypes(model, model.initial_state(1), radius=radius, maximum=max_classes)
    rows: list[Int64[Tensor, " _ V"]] = []
    num_steps = num_stepped = 0
    while num_stepped < len(prototypes.states):
        new = prototypes.states[num_stepped:]
        num_stepped += len(new)
        for part in new.split(max(1, MAX_STATES_PER_CHUNK // len(symbols))):
            tokens = torch.arange(len(symbols)).repeat(len(part))
            _, states = model.step(tokens, part.repeat_interleave(len(symbols), 0))
            rows.append(prototypes.join(states).view(len(part), len(symbols)))
        num_steps += 1
    table = Semiautomaton(torch.cat(rows).numpy(), symbols)
    fine = Transducer(table, 0, prototypes.outputs)
    machine = fine.minimize()
    return extraction_of(prototypes, machine, fine, states_of(machine, fine), num_steps)


def states_of(machine: Transducer, fine: Transducer) -> Int64[np.ndarray, " K"]:
    """The state of the smaller of two machines that answer alike in which each state of the larger is reached."""
    states = np.full(fine.num_states, -1)
    states[fine.start] = machine.start
    order = [fine.start]
    for state in order:
        successors = fine.semiautomaton.table[state]
        in_machine = machine.semiautomaton.table[states[state]]
        for in_fine, reduced in zip(successors.tolist(), in_machine.tolist(), strict=True):
            if states[in_fine] < 0:
                states[in_fine] = reduced
                order.append(in_fine)
    return states


@torch.no_grad()
def all_states(model: RecurrentModel, strings: Int64[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
    """The states at all positions of strings, in one tensor."""
    first, length = model.initial_state(len(strings)), strings.shape[1]
    states, start = first.new_empty(len(strings), length, first.shape[1]), 0
    for part in model.states(strings):
        states[:, start : start + part.shape[1]] = part
        start += part.shape[1]
    return states


@torch.no_grad()
def compare_recurrent_traces(
    model: RecurrentModel,
    extraction: Extraction,
    strings: Int64[Tensor, "B T"],
    states_read: Float[Tensor, "B T D"] | None = None,
) -> TraceCount:
    """Read strings by the model and by the extracted machine side by side, and compare the classes of all states.

    The states are those that the model computes for a whole string, which may be rounded otherwise than those of steps;
    `states_read` has them where they were computed before.
    """
    count = TraceCount(len(strings), 0, 0, 0.0)
    for states, expected in paired_states(model, extraction.machine, strings, states_read):
        classes, distances = extraction.classes_of(model, states)
        num_wrong = int(((classes != expected) | ~distances.isfinite()).sum())
        count += TraceCount(0, len(states), num_wrong, largest_finite(distances))
    return count


def paired_states(
    model: RecurrentModel,
    machine: Machine,
    strings: Int64[Tensor, "B T"],
    states_read: Float[Tensor, "B T D"] | None = None,
) -> Iterator[tuple[Float[Tensor, "N D"], Int64[Tensor, " N"]]]:
    """The states of a model at all positions of all strings, chunk by chunk, each with a machine's."""
    assert isinstance(machine, Transducer)
    machine_states = torch.from_numpy(machine.semiautomaton.run(strings.numpy(), machine.start))
    if states_read is not None:
        yield from _paired([states_read], machine_states)
        return
    first = next(iter(model.states(strings[:1])))  # at as many positions as the model gives at a time
    num_strings = max(1, MAX_ELEMENTS_PER_CHUNK // first.numel())
    for chunk, their_states in zip(strings.split(num_strings), machine_states.split(num_strings), strict=True):
        yield from _paired(model.states(chunk), their_states)


def _paired(
    parts: Iterable[Float[Tensor, "B _ D"]], machine_states: Int64[Tensor, "B T"]
) -> Iterator[tuple[Float[Tensor, "N D"], Int64[Tensor, " N"]]]:
    """States at some positions at a time, each with a machine's."""
    start = 0
    for states in parts:
        expected = machine_states[:, start : start + states.shape[1]].flatten()
        start += states.shape[1]
        yield from zip(
            states.flatten(0, 1).split(MAX_STATES_PER_CHUNK), expected.split(MAX_STATES_PER_CHUNK), strict=True
        )
