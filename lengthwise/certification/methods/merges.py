"""Bounds on the results of a merge layer and of a read-out, for sets of states."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor, nn

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.methods.affine import Affine, Inputs
from lengthwise.certification.methods.usual_parts import check_usual, unlike_settings
from lengthwise.layers.codebook import Codebook
from lengthwise.layers.tree_layers import FeedForward, MergeLayer
from lengthwise.ops.intervals import ULPS
from lengthwise.validation import narrow


def check_parts(model: nn.Module, layer: MergeLayer) -> None:
    """Reject a tree model with a part that has no bounds, or with a bias in a projection of its attention.

    Raises:
        ValueError: a part has no bounds, a projection has a bias, or `check_usual` rejects the model.
    """
    # The formulas below hold only for these parts. A part of another kind may compute anything.
    kinds = {MergeLayer, FeedForward, nn.ModuleList, nn.Sequential, nn.LayerNorm, nn.Linear, nn.Embedding, Codebook}
    check_usual(model, kinds)
    if any(part.bias is not None for part in (layer.to_query, layer.to_key_value, layer.to_output)):
        raise unlike_settings("expected attention projections without biases, got a projection with a bias")


def merges_of(machine: TreeMachine) -> tuple[Int64[Tensor, "M C"], Int64[Tensor, " M"]]:
    """Return the windows of all M merges in the machine's table, and the class of each merge's result.

    A window is the C classes that one merge reads.
    """
    windows = np.argwhere(machine.table >= 0)
    return torch.from_numpy(windows), torch.from_numpy(machine.table[tuple(windows.T)])


def merge_bounds(layer: MergeLayer, parts: Sequence[Affine]) -> Affine:
    """Return bounds on the state that the layer computes from `parts`: the states that one merge reads, oldest first.

    The formula follows the layer step by step, and each `Affine` operation adds the rounding of its step.
    """
    inputs = Inputs(parts[0].slope.shape[-1])
    gain = layer.gain.double()
    # In later matrices, a remainder only grows, while the terms of an input can cancel. So remainders become inputs
    # after tanh, after attention, after each norm and after each gelu.
    normed = [part.scaled(gain).tanh().with_remainder_as_inputs(inputs) for part in reversed(parts)]
    heads = (layer.num_heads, -1)
    query = normed[0].linear(layer.to_query.weight).unflatten(heads)
    keys, values = zip(*(_halves(state.linear(layer.to_key_value.weight)) for state in normed), strict=True)
    size = torch.tensor(query.center.shape[-1] ** -0.5, dtype=torch.float64)
    scores = [
        (query * key.unflatten(heads)).sum(-1).scaled(size).shifted(bias[:, None])
        for key, bias in zip(keys, layer.window_bias().double().T, strict=True)
    ]
    mixed = _mixed(scores, [value.unflatten(heads) for value in values]).flatten()
    merged = mixed.with_remainder_as_inputs(inputs).linear(layer.to_output.weight)
    for norm, feed_forward in zip(layer.norms, layer.feed_forwards, strict=True):
        assert isinstance(feed_forward, FeedForward)
        normed_state = layer_norm_bounds(merged, narrow(norm, nn.LayerNorm)).with_remainder_as_inputs(inputs)
        hidden = normed_state.linear(feed_forward.widen.weight, feed_forward.widen.bias).gelu()
        merged = merged + hidden.with_remainder_as_inputs(inputs).linear(
            feed_forward.narrow.weight, feed_forward.narrow.bias
        )
    bounds: Affine = merged.layer_norm()  # the layer ends in a norm without weights
    return bounds


def _mixed(scores: Sequence[Affine], values: Sequence[Affine]) -> Affine:
    """Return the mean of the values, weighted by the softmax of their scores; the values are added one at a time.

    Two values a and b with scores s and t have the mean b + sigmoid(s - t) (a - b). The score of this mean is
    log(e^s + e^t). Inputs that a and b share cancel in the difference a - b.
    """
    score, mean = scores[0], values[0]
    # The net rounds each weight separately, so the error does not vanish if a = b: it is relative to |a| + |b|. Each
    # weight has the error of an exponential. The denominator of the weights adds half a unit for each position, and so
    # does the sum of products.
    units = 2 * ULPS + 2 * len(scores)
    for next_score, value in zip(scores[1:], values[1:], strict=True):
        lead = score - next_score
        largest = value.center.abs() + value.radius + mean.center.abs() + mean.radius
        mean = (value + lead.sigmoid() * (mean - value)).rounded(largest, units)
        score = next_score + lead.softplus()
    return mean


def _halves(form: Affine) -> tuple[Affine, Affine]:
    """Return keys and values, which one matrix computes together."""
    keys, values = zip(form.center.chunk(2, -1), form.slope.chunk(2, -2), form.remainder.chunk(2, -1), strict=True)
    return Affine(*keys), Affine(*values)


def layer_norm_bounds(values: Affine, norm: nn.LayerNorm) -> Affine:
    """Return bounds on the result of a LayerNorm with weights and biases."""
    return values.layer_norm(norm.eps).scaled(norm.weight.double()).shifted(norm.bias.double())


def smallest_margin(readout: nn.Sequential, states: Affine, outputs: Int64[Tensor, " N"]) -> float:
    """Return a lower bound on the smallest logit margin in all sets of states (`margins_of`)."""
    return float(margins_of(readout, states, outputs).min())


def margins_of(readout: nn.Sequential, states: Affine, outputs: Int64[Tensor, " N"]) -> Float64[Tensor, " N"]:
    """Return a lower bound on the logit margin in each set of states; minus infinity if a bound is not finite.

    The margin is the logit of the right answer minus the largest other logit.
    """
    norm, linear = readout
    assert isinstance(linear, nn.Linear)
    # Logits are linear in the normed state, so they share its inputs. Shared inputs cancel in a difference of logits.
    normed = layer_norm_bounds(states, narrow(norm, nn.LayerNorm))
    logits = normed.linear(linear.weight, linear.bias)
    answers = outputs[:, None]
    weights = linear.weight.double()
    # The weights are subtracted before absolute values are taken, so changes that move two logits equally cancel out.
    lead = weights[answers] - weights
    ahead = logits.center.gather(1, answers) - logits.center
    slack = torch.einsum("nyd,ndp->nyp", lead, normed.slope.double()).abs().sum(-1)
    # A remainder contains the float32 rounding of its logit. So both logits' remainders are subtracted in full.
    slack = slack + logits.remainder + logits.remainder.gather(1, answers)
    # A bound that is infinite or NaN shows nothing, so its margin is -inf and the proof fails.
    margins = (ahead - slack).scatter(1, answers, torch.inf).where(slack.isfinite(), -torch.inf)
    return margins.amin(1)
