"""Bounds on what a merge layer and a read-out make of sets of states."""

from collections.abc import Sequence

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from lengthwise.certification.methods.affine import Affine, Inputs
from lengthwise.certification.methods.usual_parts import check_usual
from lengthwise.layers.codebook import Codebook
from lengthwise.layers.tree_layers import FeedForward, MergeLayer
from lengthwise.ops.intervals import ULPS


def check_parts(model: nn.Module, layer: MergeLayer) -> None:
    """Reject a tree model that has parts other than those whose formulas are bounded, or a projection with a bias.

    Raises:
        ValueError: as above, and as `check_usual`.
    """
    kinds = {MergeLayer, FeedForward, nn.ModuleList, nn.Sequential, nn.LayerNorm, nn.Linear, nn.Embedding, Codebook}
    check_usual(model, kinds)
    if any(part.bias is not None for part in (layer.to_query, layer.to_key_value, layer.to_output)):
        raise ValueError("model: bounds are known for projections without biases, got one with a bias")


def merge_bounds(layer: MergeLayer, parts: Sequence[Affine]) -> Affine:
    """Bounds on the layer's value on a window, oldest part first."""
    inputs = Inputs(parts[0].slope.shape[-1])
    gain = layer.gain.double()
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
        assert isinstance(norm, nn.LayerNorm)
        assert isinstance(feed_forward, FeedForward)
        normed_state = layer_norm_bounds(merged, norm).with_remainder_as_inputs(inputs)
        hidden = normed_state.linear(feed_forward.widen.weight, feed_forward.widen.bias).gelu()
        merged = merged + hidden.with_remainder_as_inputs(inputs).linear(
            feed_forward.narrow.weight, feed_forward.narrow.bias
        )
    bounds: Affine = merged.layer_norm()
    return bounds


def _mixed(scores: Sequence[Affine], values: Sequence[Affine]) -> Affine:
    """The values weighted by the softmax of their scores, one at a time.

    Of a and b with scores s and t that is b + sigmoid(s - t) (a - b), with the score log(e^s + e^t) towards the next.
    """
    score, mixed = scores[0], values[0]
    # The network rounds each weight for itself, so that its error does not vanish with a - b. A weight is wrong by an
    # exponential's error and, as its denominator, by half a unit for each position; so is the sum of the products.
    units = 2 * ULPS + 2 * len(scores)
    for next_score, value in zip(scores[1:], values[1:], strict=True):
        lead = score - next_score
        largest = value.center.abs() + value.radius + mixed.center.abs() + mixed.radius
        mixed = (value + lead.sigmoid() * (mixed - value)).rounded(largest, units)
        score = next_score + lead.softplus()
    return mixed


def _halves(both: Affine) -> tuple[Affine, Affine]:
    keys, values = zip(both.center.chunk(2, -1), both.slope.chunk(2, -2), both.remainder.chunk(2, -1), strict=True)
    return Affine(*keys), Affine(*values)


def layer_norm_bounds(values: Affine, norm: nn.LayerNorm) -> Affine:
    """What a LayerNorm with weights and biases makes of values."""
    return values.layer_norm(norm.eps).scaled(norm.weight.double()).shifted(norm.bias.double())


def smallest_margin(readout: nn.Sequential, states: Affine, outputs: Int64[Tensor, " N"]) -> float:
    """By how much the logit of each state's answer in the machine exceeds every other one, at least."""
    norm, linear = readout
    assert isinstance(norm, nn.LayerNorm)
    assert isinstance(linear, nn.Linear)
    normed = layer_norm_bounds(states, norm)
    logits = normed.linear(linear.weight, linear.bias)
    answers = outputs[:, None]
    weights = linear.weight.double()
    lead = weights[answers] - weights
    ahead = logits.center.gather(1, answers) - logits.center
    slack = torch.einsum("nyd,ndp->nyp", lead, normed.slope.double()).abs().sum(-1)
    slack = slack + logits.remainder + logits.remainder.gather(1, answers)
    margins = (ahead - slack).scatter(1, answers, torch.inf).where(slack.isfinite(), -torch.inf)
    return float(margins.min())
