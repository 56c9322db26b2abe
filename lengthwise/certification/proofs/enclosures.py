"""Zonotope enclosures around the classes of a machine that the model maps into one another, whatever the length."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor, nn
from torch.nn.modules.module import _global_forward_hooks, _global_forward_pre_hooks

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.evidence.enclosures import EnclosureEvidence
from lengthwise.certification.proofs.affine import Affine, Inputs
from lengthwise.certification.proofs.base import PROVERS, Prover, Unproved, finer_extractions, finite_or_none
from lengthwise.extraction.base import Extraction, Reader
from lengthwise.layers.codebook import Codebook
from lengthwise.layers.tree_layers import BareLayer, FeedForward, MergeLayer
from lengthwise.models.base import TreeModel
from lengthwise.models.capabilities import AcceptsNoise
from lengthwise.models.codebook_gpt import CodebookGPT
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.ops.intervals import ULPS

MAX_WINDOWS_PER_CHUNK = 24
MAX_BOUNDED = 1_000
"""Windows times rounds: about 8 seconds for a model of width 64."""
MIN_ROUNDS = 4
"""A search with a budget for fewer rounds is not started."""
MAX_ROUNDS = 10
"""All enclosures that closed so far did so in half of them."""
MAX_HALVINGS = 4
"""How often the radius of classes is halved where their enclosures do not close."""
SLACK = 1.05


class Search(NamedTuple):
    """Evidence, where enclosures closed, and the number of merges that were bounded on the way."""

    evidence: EnclosureEvidence | None
    num_merges: int


class _Enclosures(NamedTuple):
    """The sets ``center + axes @ (radius * d)`` with ``|d_i| <= 1``; `axes` has orthonormal columns."""

    center: Float64[Tensor, "K D"]
    axes: Float64[Tensor, "K D D"]
    radius: Float64[Tensor, "K D"]


@torch.no_grad()
def invariant_enclosures(model: TreeModel, extraction: Extraction, max_merges: int = MAX_BOUNDED) -> Search:
    """Enclosures around the prototypes such that every merge maps enclosures into one, or none.

    The search starts with the prototypes as points. Each round bounds all windows of the table and takes for each class
    an enclosure that holds the bounds of the windows that lead to it, until all bounds lie within the enclosures they
    were computed from. By induction on the levels every state that the float32 model computes then lies in the
    enclosure of its class, for every string of every length, and where all logit margins are positive its answer is the
    machine's. An enclosure is turned so that its sides run along the directions in which its class's states differ:
    these are few, and a box along the coordinates would be wide in all of them.

    Raises:
        ValueError: the model is not a `RegularGPT` of variant merge, or has parts of its own; four rounds over the
            entries of the table are more than `max_merges`.

    Source: de Figueiredo & Stolfi, "Affine arithmetic: concepts and applications" (2004), for the bounds; Girard,
        "Reachability of uncertain linear systems using zonotopes" (2005), for sets of this form.
    Differs from the source: an enclosure is an interval hull along axes of its own after every round, and all rounding
        of float32 is part of it.
    """
    layer, readout = model.tree.layers[0], model.readout
    # A subclass may compute something else than what is bounded here.
    if type(model) not in (RegularGPT, CodebookGPT) or type(layer) is not MergeLayer:
        names = f"{type(model).__name__} with a {type(layer).__name__}"
        raise ValueError(f"model: bounds are known for a RegularGPT of variant merge only, got a {names}")
    assert isinstance(layer, MergeLayer)
    assert isinstance(model, nn.Module)
    if type(readout) is not nn.Sequential:
        raise ValueError(
            f"model: bounds are known for its usual parts only, got a {type(readout).__name__} as read-out"
        )
    check_parts(model, layer, readout)
    assert isinstance(extraction.fine, TreeMachine)
    table = extraction.fine.table
    windows = torch.from_numpy(np.argwhere(table >= 0))
    if (minimum := MIN_ROUNDS * len(windows)) > max_merges:
        raise ValueError(
            f"extraction: expected no more than {max_merges:,} merges in {MIN_ROUNDS} rounds, got {minimum:,}"
        )
    targets = torch.tensor(table[tuple(windows.T.numpy())])
    points = extraction.prototypes.double()
    reached = torch.zeros(len(points), dtype=torch.bool).index_fill(0, targets, True)
    enclosures = _Enclosures(
        points, torch.eye(points.shape[1], dtype=torch.float64).repeat(len(points), 1, 1), 0 * points
    )
    num_merges = 0
    while num_merges + len(windows) <= min(max_merges, MAX_ROUNDS * len(windows)):
        num_merges += len(windows)
        merged = [merge_bounds(layer, _parts(enclosures, chunk)) for chunk in windows.split(MAX_WINDOWS_PER_CHUNK)]
        if all(_is_inside(enclosures, classes, bounds) for classes, bounds in _pairs(targets, merged)):
            outputs = torch.tensor(extraction.fine.outputs)[reached]
            margin = smallest_margin(readout, _states(enclosures, reached), outputs)
            return Search(_evidence(enclosures, margin) if margin > 0 else None, num_merges)
        if not all(bool((bounds.radius <= 1).all()) for bounds in merged):
            break
        enclosures = _around(enclosures, targets, merged)
    return Search(None, num_merges)


def _evidence(enclosures: _Enclosures, margin: float) -> EnclosureEvidence:
    return EnclosureEvidence(
        num_prototypes=len(enclosures.center),
        radius=float(enclosures.radius.max()),
        logit_margin=finite_or_none(margin),
    )


def check_parts(model: nn.Module, layer: MergeLayer, *others: nn.Module) -> None:
    """Reject a merge layer, a read-out or a codebook that has parts other than those whose formulas are bounded.

    Raises:
        ValueError: a part is of another type or a subclass, a projection has a bias, or a hook may change a result.
    """
    kinds = {MergeLayer, FeedForward, nn.ModuleList, nn.Sequential, nn.LayerNorm, nn.Linear, Codebook}
    check_usual(model, kinds, layer, *others)
    if any(part.bias is not None for part in (layer.to_query, layer.to_key_value, layer.to_output)):
        raise ValueError("model: bounds are known for projections without biases, got one with a bias")


def check_usual(model: nn.Module, kinds: set[type[nn.Module]], *parts: nn.Module) -> None:
    """Reject parts of a model that are of other kinds, a hook that may change a result, or a replaced method.

    Raises:
        ValueError: as above.
    """
    modules = [module for part in parts for module in part.modules()]
    foreign = sorted({type(module).__name__ for module in modules if type(module) not in kinds})
    if foreign:
        raise ValueError(f"model: bounds are known for its usual parts only, got {', '.join(foreign)}")
    if any(module._forward_hooks or module._forward_pre_hooks for module in (model, *modules)):
        raise ValueError("model: bounds are known for forward passes without hooks, got one; remove it")
    if _global_forward_hooks or _global_forward_pre_hooks:
        raise ValueError("model: bounds are known for forward passes without hooks, got a global one; remove it")
    if isinstance(model, AcceptsNoise) and model.perturb is not None:
        raise ValueError("model: bounds are known for states as computed, got a perturbation of them; set it to None")
    own = {name for module in (model, *modules) for name in vars(module) if callable(getattr(type(module), name, None))}
    if own:
        raise ValueError(f"model: bounds are known for its usual methods only, got another {min(own)}; remove it")


def _pairs(targets: Int64[Tensor, " M"], merged: list[Affine]) -> Iterable[tuple[Int64[Tensor, " _"], Affine]]:
    return zip(targets.split(MAX_WINDOWS_PER_CHUNK), merged, strict=True)


def _extents(
    enclosures: _Enclosures, classes: Int64[Tensor, " N"], bounds: Affine
) -> tuple[Float64[Tensor, "N D"], Float64[Tensor, "N D"]]:
    """Along the axes of each one's enclosure: how far the centers are apart, and how far values are from theirs."""
    turned = enclosures.axes[classes].mT
    offset = (turned @ (bounds.center - enclosures.center[classes])[..., None])[..., 0]
    reach = torch.linalg.vector_norm(turned @ bounds.slope, 1, -1)
    radius = reach + (turned.abs() @ bounds.remainder[..., None])[..., 0]
    # The products are rounded too, a billion times finer than the slack for float32.
    return offset, radius * (1 + 1e-9) + 1e-12


def _is_inside(enclosures: _Enclosures, classes: Int64[Tensor, " N"], bounds: Affine) -> bool:
    offset, radius = _extents(enclosures, classes, bounds)
    return bool((offset.abs() + radius <= enclosures.radius[classes]).all())


def _around(enclosures: _Enclosures, targets: Int64[Tensor, " M"], merged: list[Affine]) -> _Enclosures:
    """For each class an enclosure of the bounds of the windows that lead to it; leaves stay points."""
    count, width = enclosures.center.shape
    mean = torch.zeros_like(enclosures.center).index_add_(0, targets, torch.cat([bounds.center for bounds in merged]))
    mean = mean / targets.bincount(minlength=count).clamp(min=1)[:, None]
    spread = enclosures.axes.new_zeros(count, width, width)
    for classes, bounds in _pairs(targets, merged):
        offset = (bounds.center - mean[classes])[..., None]
        of_remainder = torch.diag_embed(bounds.remainder**2)
        spread.index_add_(0, classes, offset * offset.mT + bounds.slope @ bounds.slope.mT + of_remainder)
    turned = _Enclosures(mean, torch.linalg.eigh(spread).eigenvectors, enclosures.radius)
    lowest, highest = torch.full_like(mean, torch.inf), torch.full_like(mean, -torch.inf)
    for classes, bounds in _pairs(targets, merged):
        offset, radius = _extents(turned, classes, bounds)
        index = classes[:, None].expand_as(offset)
        lowest.scatter_reduce_(0, index, offset - radius, "amin")
        highest.scatter_reduce_(0, index, offset + radius, "amax")
    reached = (lowest <= highest).all(1, keepdim=True)
    middle = torch.where(reached, (lowest + highest) / 2, 0.0)
    center = torch.where(reached, mean + (turned.axes @ middle[..., None])[..., 0], enclosures.center)
    radius = torch.where(reached, SLACK * (highest - lowest) / 2 + 1e-6, 0.0)
    return _Enclosures(center, turned.axes, radius)


def _parts(enclosures: _Enclosures, windows: Int64[Tensor, "M C"]) -> list[Affine]:
    """The enclosures of the parts of each window, oldest first; each side of each part is an input of its own."""
    chunk, width = windows.shape[1], enclosures.center.shape[1]
    parts = []
    for index, classes in enumerate(windows.T):
        slope = torch.zeros(len(windows), width, chunk, width, dtype=torch.float64)
        slope[:, :, index] = enclosures.axes[classes] * enclosures.radius[classes][:, None]
        center = enclosures.center[classes]
        parts.append(Affine(center, slope.flatten(-2), torch.zeros_like(center)))
    return parts


def _states(enclosures: _Enclosures, chosen: Bool[Tensor, " K"]) -> Affine:
    """What lies in the chosen enclosures."""
    center, slope = enclosures.center[chosen], (enclosures.axes * enclosures.radius[:, None])[chosen]
    return Affine(center, slope, torch.zeros_like(center))


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
    for next_score, value in zip(scores[1:], values[1:], strict=True):
        lead = score - next_score
        largest = value.center.abs() + value.radius + mixed.center.abs() + mixed.radius
        # The network's weights are rounded each for itself, so that the error does not vanish with a - b.
        mixed = (value + lead.sigmoid() * (mixed - value)).rounded(largest, ULPS)
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
    slack = torch.einsum("nyd,ndp->nyp", lead, normed.slope).abs().sum(-1)
    slack = slack + logits.remainder + logits.remainder.gather(1, answers)
    margins = (ahead - slack).scatter(1, answers, torch.inf)
    return float(margins.min())


@PROVERS.register("enclosures")
class EnclosureProver(Prover):
    """Looks for enclosures (`invariant_enclosures`) around the prototypes, or around those of smaller classes."""

    reader = "tree"

    @classmethod
    def applies_to(cls, model: TreeModel) -> bool:
        return type(model.tree.layers[0]) is not BareLayer  # whose merges are followed exactly

    def __init__(self) -> None:
        self.num_merges_left = MAX_BOUNDED

    def candidates(
        self, reader: Reader[Any], extraction: Extraction, radius: float
    ) -> Iterator[tuple[Extraction, float]]:
        """The extraction and those of smaller classes."""
        return finer_extractions(reader, extraction, radius, MAX_HALVINGS)

    def prove(self, model: TreeModel, extraction: Extraction) -> EnclosureEvidence:
        evidence, num_merges = invariant_enclosures(model, extraction, self.num_merges_left)
        self.num_merges_left -= num_merges
        if evidence is None:
            raise Unproved("no enclosures were found that the model maps into one another, with a logit margin")
        return evidence
