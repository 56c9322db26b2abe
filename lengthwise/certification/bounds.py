"""Boxes around the classes of a machine that the model itself maps into one another, whatever the length."""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor, nn

from lengthwise.certification.affine import Affine, Inputs
from lengthwise.certification.extraction import Extraction, TreeModel
from lengthwise.layers.tree_layers import FeedForward, MergeLayer

WINDOWS_AT_ONCE = 64
MOST_ROUNDS = 40
SLACK = 1.02


class Robustness(NamedTuple):
    """Boxes that are mapped into one another: their largest half-width, and the smallest margin of an answer.

    The margin is by how much the logit of a class's answer exceeds every other one, at least, anywhere in its box.
    """

    half_width: float
    margin: float


class _Boxes(NamedTuple):
    center: Float64[Tensor, "K D"]
    half_width: Float64[Tensor, "K D"]


@torch.no_grad()
def invariant_boxes(model: TreeModel, extraction: Extraction) -> Robustness | None:
    """Boxes around the prototypes such that every merge of the table maps boxes into a box, or None if none is found.

    Begins with the prototypes as points, takes for each class the hull of what the windows of its table entries are
    bounded by, and again, until the hulls lie within the boxes they were computed from. By induction on the levels
    every state that the float32 model computes then lies in the box of its class, for every string of every length,
    and where all margins are positive its answer is the machine's.

    Raises:
        ValueError: the model is not a `RegularGPT` of variant merge.
    """
    layer, readout = model.tree.layers[0], model.readout
    if not isinstance(layer, MergeLayer) or not isinstance(readout, nn.Sequential):
        raise ValueError(f"model: bounds are known for variant merge only, got a layer {type(layer).__name__}")
    machine = extraction.machine
    windows = torch.from_numpy(np.argwhere(machine.table >= 0))
    targets = torch.tensor(machine.table[tuple(windows.T.numpy())])
    points = extraction.prototypes.double()
    reached = torch.zeros(len(points), dtype=torch.bool).index_fill(0, targets, True)
    boxes = _Boxes(points, torch.zeros_like(points))
    for _ in range(MOST_ROUNDS):
        hulls = _hulls(layer, boxes, reached, windows, targets)
        inside = (hulls.center - boxes.center).abs() + hulls.half_width <= boxes.half_width
        if bool(inside.all()):
            margin = _smallest_margin(readout, boxes, reached)
            return Robustness(float(boxes.half_width.max()), margin) if margin > 0 else None
        if not bool(hulls.half_width.isfinite().all()) or float(hulls.half_width.max()) > 1:
            return None
        boxes = _Boxes(hulls.center, torch.where(reached[:, None], SLACK * hulls.half_width + 1e-6, 0.0))
    return None


def _hulls(
    layer: MergeLayer,
    boxes: _Boxes,
    reached: Bool[Tensor, " K"],
    windows: Int64[Tensor, "M C"],
    targets: Int64[Tensor, " M"],
) -> _Boxes:
    """For each class the smallest box around the bounds of the windows that lead to it; leaves stay points."""
    lowest, highest = (boxes.center.masked_fill(reached[:, None], end) for end in (torch.inf, -torch.inf))
    for some, to in zip(windows.split(WINDOWS_AT_ONCE), targets.split(WINDOWS_AT_ONCE), strict=True):
        merged = merge_bounds(layer, _parts(boxes, some))
        index = to[:, None].expand_as(merged.center)
        lowest.scatter_reduce_(0, index, merged.center - merged.radius, "amin")
        highest.scatter_reduce_(0, index, merged.center + merged.radius, "amax")
    return _Boxes((lowest + highest) / 2, (highest - lowest) / 2)


def _parts(boxes: _Boxes, windows: Int64[Tensor, "M C"]) -> list[Affine]:
    """The boxes of the parts of each window, oldest first; each number of each part is an input of its own."""
    chunk, width = windows.shape[1], boxes.center.shape[1]
    parts = []
    for place, classes in enumerate(windows.T):
        slope = torch.zeros(len(windows), width, chunk, width, dtype=torch.float64)
        slope[:, torch.arange(width), place, torch.arange(width)] = boxes.half_width[classes]
        center = boxes.center[classes]
        parts.append(Affine(center, slope.flatten(-2), torch.zeros_like(center)))
    return parts


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
        for key, bias in zip(keys, layer.bias.double().T, strict=True)
    ]
    mixed = reduce(
        Affine.__add__,
        (_weight(scores, place) * value.unflatten(heads) for place, value in enumerate(values)),
    )
    merged = mixed.flatten().with_remainder_as_inputs(inputs).linear(layer.to_output.weight)
    for norm, feed_forward in zip(layer.norms, layer.feed_forwards, strict=True):
        assert isinstance(norm, nn.LayerNorm)
        assert isinstance(feed_forward, FeedForward)
        normed_state = _layer_norm(merged, norm).with_remainder_as_inputs(inputs)
        hidden = normed_state.linear(feed_forward.widen.weight, feed_forward.widen.bias).gelu()
        merged = merged + hidden.with_remainder_as_inputs(inputs).linear(
            feed_forward.narrow.weight, feed_forward.narrow.bias
        )
    bounds: Affine = merged.layer_norm()
    return bounds


def _weight(scores: Sequence[Affine], place: int) -> Affine:
    """softmax of the scores at one place: 1 / (1 + the sum of the others' e^(s_i - s_place))."""
    others = [(score - scores[place]).exp() for i, score in enumerate(scores) if i != place]
    return reduce(Affine.__add__, others).shifted(1.0).power(-1.0)


def _halves(both: Affine) -> tuple[Affine, Affine]:
    one, another = zip(both.center.chunk(2, -1), both.slope.chunk(2, -2), both.remainder.chunk(2, -1), strict=True)
    return Affine(*one), Affine(*another)


def _layer_norm(values: Affine, norm: nn.LayerNorm) -> Affine:
    return values.layer_norm(norm.eps).scaled(norm.weight.double()).shifted(norm.bias.double())


def _smallest_margin(readout: nn.Sequential, boxes: _Boxes, reached: Bool[Tensor, " K"]) -> float:
    """By how much the answer of any class is ahead of every other answer, at least, in its box."""
    norm, linear = readout
    assert isinstance(norm, nn.LayerNorm)
    assert isinstance(linear, nn.Linear)
    box = _Boxes(boxes.center[reached], boxes.half_width[reached])
    state = Affine(box.center, torch.diag_embed(box.half_width), torch.zeros_like(box.center))
    normed = _layer_norm(state, norm)
    logits = normed.linear(linear.weight, linear.bias)
    answers = logits.center.argmax(-1)
    weights = linear.weight.double()
    lead = weights[answers][:, None] - weights
    ahead = logits.center.gather(1, answers[:, None]) - logits.center
    slack = torch.einsum("nyd,ndp->nyp", lead, normed.slope).abs().sum(-1)
    slack = slack + torch.einsum("nyd,nd->ny", lead.abs(), normed.remainder) + 2 * logits.remainder
    margins = (ahead - slack).scatter(1, answers[:, None], torch.inf)
    return float(margins.min())
