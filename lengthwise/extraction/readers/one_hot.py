"""The reader of block-diagonal recurrences with one-hot columns, whose states can be enumerated."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import READERS, Extraction, TraceCount, Traces
from lengthwise.extraction.prototypes import largest_finite
from lengthwise.extraction.readers.recurrent import RecurrentReader, paired_states, states_of
from lengthwise.layers.block_linear import BlockLinearLayer
from lengthwise.models.base import RecurrentModel
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.ops.answers import answers_of
from lengthwise.ops.symbol_recurrence import one_hot_positions
from lengthwise.validation import narrow

MAX_STATES = 200_000
"""The largest number of enumerated states."""

MAX_COMPUTED = 50_000
"""The largest number of symbols, in all strings together, for which states are computed as products of matrices.

For more symbols, only the index of the 1 in each block is computed, which gives the same states to the last bit.
"""

MAX_POSITIONS_PER_CHUNK = 1 << 20
"""The largest number of indices that are computed at once: the index of the 1 in each block of each state."""


class Columns(NamedTuple):
    """The index of the 1 in each one-hot column: `maps` for each symbol's transitions, `first` for the first state."""

    maps: Int64[Tensor, "V N S"]
    first: Int64[Tensor, " N"]


@torch.no_grad()
def one_hot_columns(model: BlockLinearRNN) -> Columns | None:
    """Return the one-hot columns of a one-layer model, as this CPU computes them; None if a column is not one-hot."""
    (norm,), (layer,) = model.norms, model.layers
    assert isinstance(layer, BlockLinearLayer)
    transitions, first = layer.transitions(norm(model.embedding.weight)), layer.initial_state(1)[0]
    if not (_is_one_hot(transitions, -2) and _is_one_hot(first, -1)):
        return None
    return Columns(transitions.argmax(-2), first.argmax(-1))


def _is_one_hot(values: Float[Tensor, "*N"], dim: int) -> bool:
    return bool(((values == 0) | (values == 1)).all()) and bool((values.sum(dim) == 1).all())


@torch.no_grad()
def enumerate_states(model: BlockLinearRNN, symbols: tuple[str, ...], columns: Columns) -> Extraction:
    """Return the machine of all reachable states of a one-layer model with one-hot columns.

    The product of a matrix with one-hot columns and a one-hot state adds zeros to one number, without error and in any
    order. The same holds for the product of two such matrices. So the number of states is finite. In the result, `fine`
    has all reachable states of the model, and `machine` has only the states that answers distinguish.

    Raises:
        ValueError: there are more than 200,000 reachable states, or more than 2^62 possible states.

    Example:
        >>> from lengthwise.automata import library
        >>> from lengthwise.constructions import construct
        >>> model = construct("block-linear-rnn", library.cycle(5)).model
        >>> enumerate_states(model, ("0", "1", "2"), one_hot_columns(model)).machine.num_states
        5
    """
    layer = narrow(model.layers[0], BlockLinearLayer)
    closed = _closed(*columns)
    states = nn.functional.one_hot(closed.states, layer.blocks[1]).flatten(1).to(layer.first_state.dtype)
    answers = answers_of(model.readout(states))
    outputs = torch.where(answers < 0, IGNORE, answers)
    fine = Transducer(Semiautomaton(closed.table.numpy(), symbols), 0, outputs.numpy())
    machine = fine.minimize()
    gap = math.sqrt(2)  # states differ in at least one block, and two one-hot blocks have this distance
    return Extraction(machine, fine, states_of(machine, fine), states, 0, 0.0, gap, closed.num_levels, exact=True)


@torch.no_grad()
def compare_exact_traces(model: RecurrentModel, extraction: Extraction, strings: Int64[Tensor, "B T"]) -> TraceCount:
    """Compare the states that the model computes for whole strings with the enumerated states, bit for bit."""
    count = TraceCount(len(strings), 0, 0, 0.0)
    for states, expected in paired_states(model, extraction.fine, strings):
        enumerated = extraction.prototypes[expected]
        num_wrong = int((states != enumerated).any(1).sum())
        count += TraceCount(0, len(states), num_wrong, largest_finite((states - enumerated).norm(dim=1)))
    return count


@torch.no_grad()
def compare_positions(model: BlockLinearRNN, extraction: Extraction, strings: Int64[Tensor, "B T"]) -> TraceCount:
    """Compare states as `compare_exact_traces` does, but by the index of the 1 in each block instead of all numbers."""
    layer = narrow(model.layers[0], BlockLinearLayer)
    fine = narrow(extraction.fine, Transducer)
    (norm,) = model.norms
    transitions = layer.transitions(norm(model.embedding.weight))
    enumerated = extraction.prototypes.unflatten(1, layer.blocks).argmax(-1)
    count = TraceCount(len(strings), 0, 0, 0.0)
    for chunk in strings.split(max(1, MAX_POSITIONS_PER_CHUNK // (strings.shape[1] * layer.blocks[0]))):
        positions = one_hot_positions(transitions, chunk, layer.initial_state(len(chunk)))
        expected = torch.from_numpy(fine.semiautomaton.run(chunk.numpy(), fine.start))
        num_different = (positions != enumerated[expected]).sum(-1)  # each different block adds 2 to |x - y|^2
        num_wrong, most = int((num_different > 0).sum()), int(num_different.max())
        count += TraceCount(0, num_different.numel(), num_wrong, math.sqrt(2 * most))
    return count


class OneHotTraces(Traces):
    """The states of a recurrence along strings; they are compared bit for bit if the extraction is `exact`.

    Otherwise, `others` compares the states by their distances.
    """

    def __init__(self, model: BlockLinearRNN, strings: Int64[Tensor, "B T"], others: Traces) -> None:
        self.model = model
        self.strings = strings
        self._others = others

    def compare(self, extraction: Extraction) -> TraceCount:
        if not extraction.exact:
            return self._others.compare(extraction)
        compare = compare_exact_traces if self.strings.numel() <= MAX_COMPUTED else compare_positions
        return compare(self.model, extraction, self.strings)


@READERS.register("one-hot")
class OneHotReader(RecurrentReader):
    """A reader of `BlockLinearRNN` models of one layer whose transition matrices have stochastic columns.

    If all columns and the first state are one-hot (`one_hot_columns`), radius 0 comes first. At radius 0, `extract`
    enumerates the states of the model.
    """

    kind = BlockLinearRNN

    @classmethod
    def reads(cls, model: BlockLinearRNN) -> bool:
        return (model.config.columns, model.config.num_layers) == ("stochastic", 1)

    def radii(self, strings: Int64[Tensor, "B T"]) -> list[float]:
        radii = super().radii(strings)
        return radii if self._columns() is None else [0.0, *radii]

    def extract(self, radius: float) -> Extraction:
        columns = None if radius else self._columns()
        if columns is None:
            return super().extract(radius)
        return enumerate_states(narrow(self.model, BlockLinearRNN), self.symbols, columns)

    def traces(self, strings: Int64[Tensor, "B T"]) -> Traces:
        return OneHotTraces(narrow(self.model, BlockLinearRNN), strings, super().traces(strings))

    def _columns(self) -> Columns | None:
        return one_hot_columns(narrow(self.model, BlockLinearRNN))


class _Closed(NamedTuple):
    """All reachable states, the start first; the table of their steps; and the number of levels of the search."""

    table: Int64[Tensor, "Q V"]
    states: Int64[Tensor, "Q N"]
    num_levels: int


def _closed(maps: Int64[Tensor, "V N S"], start: Int64[Tensor, " N"]) -> _Closed:
    """Return the reachable states, the table of their steps, and the number of levels of the breadth-first search.

    Raises:
        ValueError: there are more than 200,000 reachable states, or more than 2^62 possible states.
    """
    size = maps.shape[-1]
    if len(start) * math.log2(size) > 62:
        raise ValueError(
            f"model: expected at most 2^62 combinations of block states, got {size}^{len(start)}; train a model with "
            "fewer blocks"
        )
    # A state is one integer, whose digits in base `size` are the indices of its blocks, so that sets of states are
    # sorted arrays.
    weights = size ** torch.arange(len(start))
    weighted = maps * weights[:, None]

    def successors_of(numbers: Int64[Tensor, " F"]) -> Int64[Tensor, "F V"]:
        digits = numbers[:, None] // weights % size
        return weighted.gather(2, digits.T.expand(len(maps), -1, -1)).sum(1).T

    reached = new = (start * weights).sum()[None]
    num_levels = 0
    while len(new):
        num_levels += 1
        successors = successors_of(new).unique()
        new = successors[~torch.isin(successors, reached)]
        reached = torch.cat([reached, new])
        if len(reached) > MAX_STATES:
            raise ValueError(
                f"model: expected no more than {MAX_STATES:,} states to enumerate, got more states; train a model with "
                "fewer or smaller blocks"
            )
    in_order, order = reached.sort()
    table = order[torch.searchsorted(in_order, successors_of(reached).contiguous())]
    return _Closed(table, reached[:, None] // weights % size, num_levels)
