"""The states of a block-diagonal recurrence with one-hot columns, one by one, whatever float32 rounds."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float64, Int64
from torch import Tensor, nn

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.proofs.affine import ULPS, Affine
from lengthwise.certification.proofs.codes import Enumeration, exact_points
from lengthwise.certification.proofs.enclosures import check_usual, layer_norm_bounds
from lengthwise.conventions import IGNORE
from lengthwise.extraction.recurrent import paired_states, states_of
from lengthwise.extraction.tree import Extraction
from lengthwise.extraction.tree_traces import TraceCount, farthest
from lengthwise.layers.block_linear import BlockLinearLayer
from lengthwise.layers.recurrent_layer import MIN_PROBABILITY, MixtureReadout, Topmost
from lengthwise.models.base import RecurrentModel
from lengthwise.models.block_linear_rnn import BlockLinearRNN

MAX_STATES = 200_000

NEVER_SEEN = {torch.float32: 110.0, torch.float64: 760.0}
"""A softmax gives exactly 0 to a logit that is so much below the largest one."""


class OneHotMachine(NamedTuple):
    """A model's own states as a machine, and how certain it is.

    Of the extraction, `fine` has all states, which are its prototypes, and `machine` those that answers tell apart.
    Outputs are the answers, and `IGNORE` in states in which rounding may decide which. Of the evidence, `room` is how
    much closer logits of a column could come to the largest one before the column were another; `margin` is about the
    states that have an answer.
    """

    extraction: Extraction
    evidence: Enumeration


@torch.no_grad()
def enumerate_states(model: RecurrentModel, symbols: tuple[str, ...]) -> OneHotMachine | None:
    """The machine that the model is; None where float32 may give other columns than computed here, or no answer.

    If every column of every symbol's A is a one-hot vector, to the last bit, and v = 0, then so are all blocks of all
    states: a product with a matrix adds zeros to one number, exactly, in any order, and so does one of two matrices.
    States are then finitely many, and where the largest logit of every column is ahead by more than rounding can change
    the float32 model steps through them, for every string of every length.

    Raises:
        ValueError: the model is not a `BlockLinearRNN` of one layer with columns `"stochastic"`, or has parts of its
            own; it has more than 200,000 states.

    Example:
        >>> from lengthwise.automata import library
        >>> from lengthwise.constructions import construct
        >>> model = construct("block-linear-rnn", library.cycle(5)).model
        >>> enumerate_states(model, ("0", "1", "2")).extraction.machine.num_states
        5
    """
    layer = _checked_layer(model)
    assert isinstance(model, BlockLinearRNN)
    (norm,) = model.norms
    (features,) = exact_points(model.embedding.weight.double()[None])
    (first,) = exact_points(layer.first_state.double()[None])
    columns = _columns(_through(nn.Sequential(norm, *layer.transition_map), features), layer.blocks)
    temperature, never_seen = float(layer.temperature), NEVER_SEEN[layer.first_state.dtype]
    slacks = [_slack(logits, temperature, never_seen) for logits in (columns, first)]
    if not all(slack > 0 for slack in slacks):  # not their minimum, which forgets one that is no number
        return None
    found = _closed(columns.center.argmax(-1), first.center.argmax(-1))
    states = nn.functional.one_hot(found.states, layer.blocks[1]).flatten(1).to(layer.first_state.dtype)
    (one_hot,) = exact_points(states.double()[None])
    answers = _answers(model.readout, one_hot)
    margins = _lead(answers)
    certain = margins > 0
    if not bool(certain.any()):
        return None
    outputs = torch.where(certain, answers.center.argmax(-1), IGNORE)
    fine = Transducer(Semiautomaton(found.table.numpy(), symbols), 0, outputs.numpy())
    machine = fine.minimize()
    gap = math.sqrt(2)  # of one-hot vectors no two are nearer
    extraction = Extraction(machine, fine, states_of(machine, fine), states, 0, 0.0, gap, found.num_steps, exact=True)
    return OneHotMachine(extraction, Enumeration(found.table.numel(), min(slacks), float(margins[certain].min())))


@torch.no_grad()
def compare_exact_traces(model: RecurrentModel, extraction: Extraction, strings: Int64[Tensor, "B T"]) -> TraceCount:
    """Compare the states that the model computes for whole strings with those that were enumerated: all bits."""
    seen = TraceCount(len(strings), 0, 0, 0.0)
    for states, expected in paired_states(model, extraction.fine, strings):
        same = extraction.prototypes[expected]
        num_wrong = int((states != same).any(1).sum())
        seen += TraceCount(0, len(states), num_wrong, farthest((states - same).norm(dim=1)))
    return seen


def _columns(logits: Affine, blocks: tuple[int, int]) -> Affine:
    """The logits of columns, each along the last axis, with no slope."""
    center, radius = (part.unflatten(-1, (*blocks, -1)).mT for part in (logits.center, logits.radius))
    return Affine(center, center.new_zeros(*center.shape, 0), radius)


def _slack(logits: Affine, temperature: float, never_seen: float) -> float:
    """How much closer other logits could come to the largest one before a softmax were no one-hot vector."""
    if not temperature:
        return float(_lead(logits).min())
    scaled = logits.scaled(torch.tensor(1 / temperature, dtype=torch.float64))
    return temperature * (float(_lead(scaled).min()) - never_seen)


def _lead(values: Affine) -> Float64[Tensor, "*M"]:
    """By how much the largest of numbers along the last axis is ahead of the others, at least; infinite if alone."""
    largest = values.center.argmax(-1, keepdim=True)
    low = (values.center - values.radius).gather(-1, largest)
    ahead: Tensor = (low - (values.center + values.radius).scatter(-1, largest, -torch.inf)).amin(-1)
    return ahead


def _checked_layer(model: RecurrentModel) -> BlockLinearLayer:
    """The layer of a model whose states can be one-hot vectors, if nothing in it is foreign."""
    # Of a subclass nobody knows whether it still computes what is bounded here.
    if type(model) is not BlockLinearRNN:
        raise ValueError(f"model: states are enumerated of a BlockLinearRNN only, got a {type(model).__name__}")
    if model.config.columns != "stochastic" or model.config.num_layers != 1:
        raise ValueError(
            "model: states are enumerated of one layer with columns 'stochastic', got "
            f"{model.config.num_layers} with {model.config.columns!r}"
        )
    kinds: set[type[nn.Module]] = {BlockLinearLayer, MixtureReadout, Topmost, nn.ModuleList, nn.Sequential}
    kinds |= {nn.LayerNorm, nn.Identity, nn.Linear, nn.ReLU, nn.Embedding}
    check_usual(model, kinds, *model.children())
    (layer,) = model.layers
    assert isinstance(layer, BlockLinearLayer)
    if layer.columns != "stochastic" or layer.input_map is not None:
        raise ValueError(f"model: expected a layer with columns 'stochastic', as configured, got {layer.columns!r}")
    return layer


def _answers(readout: nn.Module, states: Affine) -> Affine:
    """What is read from one-hot states."""
    if isinstance(readout, nn.Sequential):
        return _through(readout, states)
    assert isinstance(readout, MixtureReadout)
    # One number of a one-hot state is 1, so that its sum is one probability, exactly. Its logarithm is wrong by what
    # the probability is wrong by in relation to its size: a few units of the logit's distance to the largest one.
    logits = states.center @ readout.weight.double()
    (exact,) = exact_points(logits.log_softmax(-1).clamp(min=math.log(MIN_PROBABILITY))[None])
    size = 1 + logits.amax(-1, keepdim=True) - logits.amin(-1, keepdim=True) + math.log(logits.shape[-1])
    return exact.rounded(size, 4 * ULPS + logits.shape[-1])


def _through(parts: nn.Sequential, values: Affine) -> Affine:
    """What a chain of norms, linear maps and ReLUs makes of values."""
    for part in parts:
        if isinstance(part, nn.Linear):
            values = values.linear(part.weight, part.bias)
        elif isinstance(part, nn.LayerNorm):
            values = layer_norm_bounds(values, part)
        elif isinstance(part, nn.ReLU):
            values = values.relu()
        elif isinstance(part, nn.Identity):
            continue
        else:
            assert isinstance(part, Topmost)
            assert values.center.shape[-1] == part.width
    return values


class _Closed(NamedTuple):
    """All states that are reached, the start first, where each symbol leads from them, and after how many symbols."""

    table: Int64[Tensor, "Q V"]
    states: Int64[Tensor, "Q N"]
    num_steps: int


def _closed(maps: Int64[Tensor, "V N S"], start: Int64[Tensor, " N"]) -> _Closed:
    size = maps.shape[-1]
    if len(start) * math.log2(size) > 62:
        raise ValueError(
            f"model: expected at most 2^62 states that blocks could have together, got {size}^{len(start)}"
        )
    indices = size ** torch.arange(len(start))
    of_digits = maps * indices[:, None]  # a block's part of the number of the state that it leads to

    def following(numbers: Int64[Tensor, " F"]) -> Int64[Tensor, "F V"]:
        digits = numbers[:, None] // indices % size
        return of_digits.gather(2, digits.T.expand(len(maps), -1, -1)).sum(1).T

    reached = new = (start * indices).sum()[None]
    num_steps = 0
    while len(new):
        num_steps += 1
        found = following(new).unique()
        new = found[~torch.isin(found, reached)]
        reached = torch.cat([reached, new])
        if len(reached) > MAX_STATES:
            raise ValueError(f"model: expected at most {MAX_STATES:,} states to enumerate, got more")
    in_order, order = reached.sort()
    table = order[torch.searchsorted(in_order, following(reached).contiguous())]
    return _Closed(table, reached[:, None] // indices % size, num_steps)
