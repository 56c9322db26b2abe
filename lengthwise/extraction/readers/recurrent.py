"""The reader of recurrent models: it closes states into a machine, and compares the states along strings."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.extraction.base import READERS, Extraction, Machine, Reader, TraceCount, Traces, extraction_of
from lengthwise.extraction.prototypes import Prototypes, largest_finite
from lengthwise.models.base import RecurrentModel

MAX_ELEMENTS_PER_CHUNK = 1 << 26
"""The largest number of elements in the states of one chunk of strings."""

MAX_STATES_PER_CHUNK = 1 << 14
"""The largest number of states that are stepped, or whose classes are looked up, at once."""

MAX_KEPT_POSITIONS, MAX_KEPT_ELEMENTS = 1 << 14, 1 << 25
"""The largest numbers of positions and of elements (128 MB in float32) of states that are kept for the next extraction.

Larger tensors of states are computed again for each extraction.
"""


@torch.no_grad()
def extract_recurrent(
    model: RecurrentModel, symbols: tuple[str, ...], *, radius: float, max_classes: int = 500
) -> Extraction:
    """Close a recurrent model's states into classes, by following every symbol from every class.

    The search does not use the task. The search starts at the first state, which is a class that no other state joins.
    The model reads each symbol from the prototype of each class. The next state joins a class, or becomes the prototype
    of a new class. The search ends when no new class appears. `extract_tree` does the same for trees.

    Raises:
        NotFinite: more than `max_classes` classes are needed, or a state, a logit or the radius is infinite or NaN.
    """
    # The first state is given, so that no other state joins its class. It answers the empty string, which is not
    # supervised: its answer may be wrong.
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
    """Return, for each state of the larger machine `fine`, the state of `machine` to which the same strings lead.

    Both machines give the same answers. The entry of a state is -1 if no string leads to it.
    """
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
    """Return one tensor with the model's states at all positions of the strings."""
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
    """Run the model and the extracted machine on the same strings, and compare the classes of all states.

    The model reads whole strings, because states in whole strings may round differently from states after single steps.
    `states_read` contains these states if they were computed before.
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
    """Yield chunks of the model's states at all positions of strings, with the machine's states at these positions."""
    assert isinstance(machine, Transducer)
    machine_states = torch.from_numpy(machine.semiautomaton.run(strings.numpy(), machine.start))
    if states_read is not None:
        yield from _paired([states_read], machine_states)
        return
    first = next(iter(model.states(strings[:1])))  # the model decides how many positions it returns at once
    num_strings = max(1, MAX_ELEMENTS_PER_CHUNK // first.numel())
    for chunk, their_states in zip(strings.split(num_strings), machine_states.split(num_strings), strict=True):
        yield from _paired(model.states(chunk), their_states)


def _paired(
    parts: Iterable[Float[Tensor, "B _ D"]], machine_states: Int64[Tensor, "B T"]
) -> Iterator[tuple[Float[Tensor, "N D"], Int64[Tensor, " N"]]]:
    """Yield the model's states in each part of the strings, with the machine's state at the same position."""
    start = 0
    for states in parts:
        expected = machine_states[:, start : start + states.shape[1]].flatten()
        start += states.shape[1]
        yield from zip(
            states.flatten(0, 1).split(MAX_STATES_PER_CHUNK), expected.split(MAX_STATES_PER_CHUNK), strict=True
        )


class RecurrentTraces(Traces):
    """The states of a recurrent model at all positions of strings."""

    def __init__(self, model: RecurrentModel, strings: Int64[Tensor, "B T"]) -> None:
        self.model = model
        self.strings = strings
        self._kept: Float[Tensor, "B T D"] | None = None

    def compare(self, extraction: Extraction) -> TraceCount:
        # The same few strings are compared with the extraction of each radius, so their states are worth keeping.
        positions = self.strings.numel()
        is_small = positions <= MAX_KEPT_POSITIONS and (
            positions * self.model.initial_state(1).numel() <= MAX_KEPT_ELEMENTS
        )
        if self._kept is None and is_small:
            self._kept = all_states(self.model, self.strings)
        return compare_recurrent_traces(self.model, extraction, self.strings, self._kept)


@READERS.register("recurrent")
class RecurrentReader(Reader[RecurrentModel]):
    """A reader of recurrent models, which keep one state from symbol to symbol (`extract_recurrent`)."""

    kind = RecurrentModel

    def extract(self, radius: float) -> Extraction:
        return extract_recurrent(self.model, self.symbols, radius=radius)

    def traces(self, strings: Int64[Tensor, "B T"]) -> Traces:
        return RecurrentTraces(self.model, strings)
