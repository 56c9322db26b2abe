"""Proof that a block-diagonal recurrence has one-hot states, however float32 rounds."""

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
from lengthwise.certification.methods.usual_parts import check_usual, unlike_settings
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction
from lengthwise.layers.block_linear import BlockLinearLayer
from lengthwise.layers.recurrent_layer import MixtureReadout, Topmost
from lengthwise.models.base import RecurrentModel
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.ops.answer_likelihood import MIN_PROBABILITY
from lengthwise.ops.intervals import ULPS
from lengthwise.validation import narrow, type_in_words, with_article

NEVER_SEEN = {torch.float32: 110.0, torch.float64: 760.0}
"""A logit that is this far below the largest logit has a softmax of exactly 0.

exp(x) rounds to 0 below the logarithm of half the smallest positive number: -104.0 in float32, -745.1 in float64. The
larger numbers here cover the error of the subtraction before the exponential.
"""

UNCERTAIN_COLUMNS = "some columns are not one-hot vectors, or rounding may decide which entry of a column is 1"


@torch.no_grad()
def prove_states(model: RecurrentModel, extraction: Extraction) -> StateEvidence:
    """Show that an extraction has all states, steps and answers of the model.

    Suppose that the columns of each symbol's matrix and the blocks of the first state are one-hot vectors, bit for bit.
    Suppose also that the layer adds no input vector. Then the blocks of each state are one-hot vectors: a product with
    such a matrix adds zeros to one number, without error. Products of such matrices also have one-hot columns.

    A column is a softmax of logits. However float32 rounds, the column is one-hot if the largest logit leads by enough.
    At temperature 0, any lead is enough. Otherwise, the lead must exceed `NEVER_SEEN` times the temperature. If the
    extraction's table agrees with these columns, the float32 model steps through the extraction's states for every
    string. Each output must have the largest logit, however float32 rounds. States with output `IGNORE` are exempt.

    Raises:
        Unproved: rounding may change a column or an answer, the temperature is negative or NaN, or the extraction lacks
            states or steps of the model.
        ValueError: the model is not a `BlockLinearRNN` of one layer with columns `"stochastic"`, or has unknown parts.

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
    # Parameters are exact. The bounds contain all rounding between the parameters and the logits of columns.
    (features,) = exact_points(model.embedding.weight.double()[None])
    (first,) = exact_points(layer.first_state.double()[None])
    columns = _columns(_through(nn.Sequential(norm, *layer.transition_map), features), layer.blocks)
    temperature, never_seen = float(layer.temperature), NEVER_SEEN[layer.first_state.dtype]
    if not temperature >= 0:  # a negative divisor would reverse the order of logits; NaN also ends here
        raise Unproved(f"the layer's temperature is {temperature}, but must be at least 0; set it to 0")
    slacks = [_slack(logits, temperature, never_seen) for logits in (columns, first)]
    if not all(slack > 0 for slack in slacks):  # no `min` here, because Python's `min` may drop a NaN
        raise Unproved(UNCERTAIN_COLUMNS)
    # If a state were missing, some steps of the induction on the length would not be compared with the machine's table.
    if not extraction.exact:
        raise Unproved("the model's enumerated states do not answer as the task does, or the model has too many states")
    # The comparison with `one_hot` below also rejects prototypes that are not one-hot.
    states = extraction.prototypes.unflatten(1, layer.blocks).argmax(-1)
    one_hot = nn.functional.one_hot(states, layer.blocks[1]).flatten(1).to(extraction.prototypes)
    fine = narrow(extraction.fine, Transducer)
    # Each lead is positive, so the logit with the largest center is the largest for every point within the bounds, and
    # in the float32 net. The extraction's table was computed with rounding, so it must agree with these columns.
    bounded = (columns.center.argmax(-1), first.center.argmax(-1))
    if not (torch.equal(one_hot, extraction.prototypes) and _steps_agree(fine, states, *bounded)):
        raise Unproved("the bounds of the model's steps do not confirm the machine's steps")
    (points,) = exact_points(one_hot.double()[None])
    margin = _smallest_margin(_answers(model.readout, points), torch.tensor(fine.outputs))
    if not margin > 0:
        raise Unproved("rounding may decide the answer in some states")
    return StateEvidence(
        num_states=len(states),
        num_steps=fine.semiautomaton.table.size,
        slack=finite_or_none(min(slacks)),
        logit_margin=finite_or_none(margin),
    )


@PROVERS.register("states")
class StateProver(Prover):
    """A proof that the model has exactly the enumerated states, steps and answers (`prove_states`)."""

    reader = "one-hot"

    def prove(self, model: BlockLinearRNN, extraction: Extraction) -> StateEvidence:
        evidence = prove_states(model, extraction)
        (layer,) = model.layers
        self.sets = {"states": extraction.prototypes.unflatten(1, layer.blocks).argmax(-1)}
        return evidence


def _steps_agree(
    fine: Transducer, states: Int64[Tensor, "Q N"], maps: Int64[Tensor, "V N S"], first: Int64[Tensor, " N"]
) -> bool:
    """Return whether the machine has the model's first state, and the steps that the columns imply."""
    table = torch.tensor(fine.semiautomaton.table)
    agrees = [
        torch.equal(states[successors], columns.gather(1, states.T).T)
        for columns, successors in zip(maps, table.unbind(1), strict=True)
    ]
    return torch.equal(states[fine.start], first) and all(agrees)


def _smallest_margin(logits: Affine, outputs: Int64[Tensor, " Q"]) -> float:
    """Return the smallest lead of the logit of a state's output over the other logits.

    States with output `IGNORE` are skipped. If all states are skipped, the result is -inf, and no proof succeeds.
    """
    # Each radius covers the float32 rounding of its logit, so it is enough to compare the low end of the answer's logit
    # with the high ends of the other logits.
    needed: Bool[Tensor, " Q"] = outputs != IGNORE
    outputs = outputs[needed, None]
    low = (logits.center - logits.radius)[needed].gather(-1, outputs)
    other_high = (logits.center + logits.radius)[needed].scatter(-1, outputs, -torch.inf)
    return float((low - other_high).min()) if bool(needed.any()) else -math.inf


def _columns(logits: Affine, blocks: tuple[int, int]) -> Affine:
    """Return the logits of columns as bounds without slopes; the last axis runs along a column."""
    center, radius = (part.unflatten(-1, (*blocks, -1)).mT for part in (logits.center, logits.radius))
    return Affine(center, torch.zeros(*center.shape, 0), radius)


def _slack(logits: Affine, temperature: float, never_seen: float) -> float:
    """Return the distance by which other logits may approach the largest logit while the column stays one-hot."""
    if not temperature:  # at temperature 0, the 1 is at the maximum, for which any lead is enough
        return float(_lead(logits).min())
    # The largest logit gives exp(0) = 1, and the other logits give 0. So the sum and the quotient are 1, without error.
    scaled = logits.scaled(torch.tensor(1 / temperature, dtype=torch.float64))
    return temperature * (float(_lead(scaled).min()) - never_seen)


def _lead(values: Affine) -> Float64[Tensor, "*M"]:
    """Return the smallest lead of the largest number over the others along the last axis; infinite without others."""
    # Both radii contain float32 rounding. If a radius is infinite or NaN, the lead is -inf or NaN, and never above 0.
    largest = values.center.argmax(-1, keepdim=True)
    low = (values.center - values.radius).gather(-1, largest)
    lead: Tensor = (low - (values.center + values.radius).scatter(-1, largest, -torch.inf)).amin(-1)
    return lead


def _checked_layer(model: RecurrentModel) -> BlockLinearLayer:
    """Return the layer of a model whose states can be one-hot vectors; raise a ValueError for other models."""
    # Types are compared exactly, because a subclass may compute another formula.
    if type(model) is not BlockLinearRNN:
        raise ValueError(
            f"model: expected a BlockLinearRNN, got {type_in_words(model)}; certify a model of exactly this class"
        )
    if model.config.columns != "stochastic" or model.config.num_layers != 1:
        raise ValueError(
            "model: expected num_layers=1 and columns='stochastic', got "
            f"num_layers={model.config.num_layers} and columns={model.config.columns!r}; train a model with the "
            "expected settings"
        )
    kinds: set[type[nn.Module]] = {BlockLinearLayer, MixtureReadout, Topmost, nn.ModuleList, nn.Sequential}
    kinds |= {nn.LayerNorm, nn.Identity, nn.Linear, nn.ReLU, nn.Embedding}
    check_usual(model, kinds)
    (layer,) = (narrow(part, BlockLinearLayer) for part in model.layers)
    adds_inputs = layer.holds_inputs or layer.input_map is not None
    if layer.columns != "stochastic" or adds_inputs:
        raise unlike_settings(
            "expected columns 'stochastic' and no added inputs in the model's layer, got columns "
            f"{layer.columns!r} and {'' if adds_inputs else 'no '}added inputs"
        )
    return layer


def _answers(readout: nn.Module, states: Affine) -> Affine:
    """Return bounds on the logits of one-hot states."""
    if isinstance(readout, nn.Sequential):
        return _through(readout, states)
    if not isinstance(readout, MixtureReadout):
        raise unlike_settings(
            f"expected a MixtureReadout or an nn.Sequential as model.readout, got {type_in_words(readout)}"
        )
    # A one-hot state selects one row of the read-out's probabilities, without error. But the softmax of this row is
    # rounded. The relative error of a probability is a few rounding units times the distance of its logit from the
    # largest logit. This is also the absolute error of the probability's logarithm.
    logits = states.center @ readout.weight.double()
    (exact,) = exact_points(logits.log_softmax(-1).clamp(min=math.log(MIN_PROBABILITY))[None])
    size = 1 + logits.amax(-1, keepdim=True) - logits.amin(-1, keepdim=True) + math.log(logits.shape[-1])
    return exact.rounded(size, 4 * ULPS + logits.shape[-1])


def _through(parts: nn.Sequential, values: Affine) -> Affine:
    """Return bounds on the result of a chain of norms, linear maps and ReLUs."""
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
            width = values.center.shape[-1]
            raise unlike_settings(
                "expected parts of type LayerNorm, Linear, ReLU, Identity, or Topmost with its input's width, got "
                f"{with_article(type(part).__name__)} whose input has width {width}"
            )
    return values
