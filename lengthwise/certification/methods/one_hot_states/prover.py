"""The states of a block-diagonal recurrence with one-hot columns, whatever float32 rounds."""

import math

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor, nn

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.methods.affine import Affine
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none
from lengthwise.certification.methods.codes.prover import exact_points
from lengthwise.certification.methods.merges import layer_norm_bounds
from lengthwise.certification.methods.one_hot_states.evidence import StateEvidence
from lengthwise.certification.methods.usual_parts import check_usual
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction
from lengthwise.layers.block_linear import BlockLinearLayer
from lengthwise.layers.recurrent_layer import MIN_PROBABILITY, MixtureReadout, Topmost
from lengthwise.models.base import RecurrentModel
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.ops.intervals import ULPS

NEVER_SEEN = {torch.float32: 110.0, torch.float64: 760.0}
"""A softmax gives exactly 0 to a logit that is so far below the largest one."""

UNCERTAIN_COLUMNS = "columns are not one-hot vectors, or rounding may decide which"


@torch.no_grad()
def prove_states(model: RecurrentModel, extraction: Extraction) -> StateEvidence:
    """Show that an extraction has all states of the model, its steps and its answers.

    If every column of every symbol's A is a one-hot vector, to the last bit, and v = 0, then so are all blocks of all
    states: a product with a matrix adds zeros to one number, exactly, in any order, and so does one of two matrices.
    Where the largest logit of every column is ahead by more than rounding can change, the float32 model steps through
    the states of the extraction, for every string of every length, as long as its table is that of these columns.
    Outputs `IGNORE` are not needed; every other one has to be that of the largest logit, whatever is rounded.

    Raises:
        Unproved: the columns are no one-hot vectors beyond rounding, or the extraction is not the model's.
        ValueError: the model is not a `BlockLinearRNN` of one layer with columns `"stochastic"`, or has parts of its
            own.

    Example:
        >>> from lengthwise.automata import library
        >>> from lengthwise.constructions import construct
        >>> from lengthwise.extraction.base import reader_of
        >>> model = construct("block-linear-rnn", library.cycle(5)).model
        >>> prove_states(model, reader_of(model, ("0", "1", "2")).extract(0.0)).num_states
        5
    """
    layer = _checked_layer(model)
    assert isinstance(model, BlockLinearRNN)
    (norm,) = model.norms
    (features,) = exact_points(model.embedding.weight.double()[None])
    (first,) = exact_points(layer.first_state.double()[None])
    columns = _columns(_through(nn.Sequential(norm, *layer.transition_map), features), layer.blocks)
    temperature, never_seen = float(layer.temperature), NEVER_SEEN[layer.first_state.dtype]
    if not temperature >= 0:
        raise Unproved(f"its temperature, {temperature}, is below 0")
    slacks = [_slack(logits, temperature, never_seen) for logits in (columns, first)]
    if not all(slack > 0 for slack in slacks):  # not their minimum, which forgets one that is no number
        raise Unproved(UNCERTAIN_COLUMNS)
    if not extraction.exact:
        raise Unproved("the model's states, enumerated, do not answer as the task does, or are too many")
    states = extraction.prototypes.unflatten(1, layer.blocks).argmax(-1)
    one_hot = nn.functional.one_hot(states, layer.blocks[1]).flatten(1).to(extraction.prototypes)
    assert isinstance(extraction.fine, Transducer)
    bounded = (columns.center.argmax(-1), first.center.argmax(-1))
    if not (torch.equal(one_hot, extraction.prototypes) and _steps_agree(extraction.fine, states, *bounded)):
        raise Unproved("the steps between the states, as bounded, are not those of the machine")
    (points,) = exact_points(one_hot.double()[None])
    margin = _smallest_margin(_answers(model.readout, points), torch.tensor(extraction.fine.outputs))
    if not margin > 0:
        raise Unproved("rounding may decide the answer in some states")
    return StateEvidence(
        num_states=len(states),
        num_steps=extraction.fine.semiautomaton.table.size,
        slack=finite_or_none(min(slacks)),
        logit_margin=finite_or_none(margin),
    )


@PROVERS.register("states")
class StateProver(Prover):
    """Shows that the enumerated states, steps and answers are the model's (`prove_states`)."""

    reader = "one-hot"

    def prove(self, model: BlockLinearRNN, extraction: Extraction) -> StateEvidence:
        evidence = prove_states(model, extraction)
        (layer,) = model.layers
        self.sets = {"states": extraction.prototypes.unflatten(1, layer.blocks).argmax(-1)}
        return evidence


def _steps_agree(
    fine: Transducer, states: Int64[Tensor, "Q N"], maps: Int64[Tensor, "V N S"], first: Int64[Tensor, " N"]
) -> bool:
    """Whether the machine starts in the first state, and each symbol leads from each state where the columns lead."""
    table = torch.tensor(fine.semiautomaton.table)
    agrees = [
        torch.equal(states[successors], columns.gather(1, states.T).T)
        for columns, successors in zip(maps, table.unbind(1), strict=True)
    ]
    return torch.equal(states[fine.start], first) and all(agrees)


def _smallest_margin(logits: Affine, outputs: Int64[Tensor, " Q"]) -> float:
    """By how much the logit of each state's output exceeds every other one, at least; outputs `IGNORE` do not count."""
    needed: Bool[Tensor, " Q"] = outputs != IGNORE
    outputs = outputs[needed, None]
    low = (logits.center - logits.radius)[needed].gather(-1, outputs)
    others = (logits.center + logits.radius)[needed].scatter(-1, outputs, -torch.inf)
    return float((low - others).min()) if bool(needed.any()) else -math.inf


def _columns(logits: Affine, blocks: tuple[int, int]) -> Affine:
    """The logits of columns, each along the last axis, with no slope."""
    center, radius = (part.unflatten(-1, (*blocks, -1)).mT for part in (logits.center, logits.radius))
    return Affine(center, torch.zeros(*center.shape, 0), radius)


def _slack(logits: Affine, temperature: float, never_seen: float) -> float:
    """How much closer other logits could come to the largest one before a softmax gave no one-hot vector."""
    if not temperature:
        return float(_lead(logits).min())
    scaled = logits.scaled(torch.tensor(1 / temperature, dtype=torch.float64))
    return temperature * (float(_lead(scaled).min()) - never_seen)


def _lead(values: Affine) -> Float64[Tensor, "*M"]:
    """By how much the largest number along the last axis exceeds the others, at least; infinite if alone."""
    largest = values.center.argmax(-1, keepdim=True)
    low = (values.center - values.radius).gather(-1, largest)
    lead: Tensor = (low - (values.center + values.radius).scatter(-1, largest, -torch.inf)).amin(-1)
    return lead


def _checked_layer(model: RecurrentModel) -> BlockLinearLayer:
    """The layer of a model whose states can be one-hot vectors, if nothing in it is foreign."""
    # A subclass may compute something else than what is bounded here.
    if type(model) is not BlockLinearRNN:
        raise ValueError(f"model: states are enumerated of a BlockLinearRNN only, got a {type(model).__name__}")
    if model.config.columns != "stochastic" or model.config.num_layers != 1:
        raise ValueError(
            "model: states are enumerated of one layer with columns 'stochastic', got "
            f"{model.config.num_layers} with {model.config.columns!r}"
        )
    kinds: set[type[nn.Module]] = {BlockLinearLayer, MixtureReadout, Topmost, nn.ModuleList, nn.Sequential}
    kinds |= {nn.LayerNorm, nn.Identity, nn.Linear, nn.ReLU, nn.Embedding}
    check_usual(model, kinds)
    (layer,) = model.layers
    assert isinstance(layer, BlockLinearLayer)
    if layer.columns != "stochastic" or layer.holds_inputs or layer.input_map is not None:
        raise ValueError(f"model: expected a layer with columns 'stochastic', as configured, got {layer.columns!r}")
    return layer


def _answers(readout: nn.Module, states: Affine) -> Affine:
    """What is read from one-hot states."""
    if isinstance(readout, nn.Sequential):
        return _through(readout, states)
    if not isinstance(readout, MixtureReadout):
        raise ValueError(f"model: bounds are known for its usual read-out, got a {type(readout).__name__}")
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
        elif not isinstance(part, Topmost) or values.center.shape[-1] != part.width:
            raise ValueError(f"model: bounds are known for its usual chains only, got one with a {type(part).__name__}")
    return values
