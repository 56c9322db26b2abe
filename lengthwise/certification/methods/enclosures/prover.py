"""Zonotope enclosures around the classes of a machine that the model maps into one another, whatever the length."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor, nn

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.methods.affine import ROUNDING, Affine
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finer_extractions, finite_or_none
from lengthwise.certification.methods.enclosures.evidence import EnclosureEvidence
from lengthwise.certification.methods.merges import check_parts, merge_bounds, smallest_margin
from lengthwise.extraction.base import Extraction, Reader
from lengthwise.layers.tree_layers import BareLayer, FeedForward, MergeLayer
from lengthwise.models.base import TreeModel
from lengthwise.models.codebook_gpt import CodebookGPT
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.ops.tree_attention import merge_windows

MAX_WINDOWS_PER_CHUNK = 24
TANGENTS_PER_CHUNK = 64
MAX_BOUNDED = 8_000
"""Windows times rounds: about 20 seconds for a model of width 64."""
MAX_BYTES = 1_000_000_000
"""Of the slopes of all bounds of a round, or of the tangents of all merges."""
MIN_ROUNDS = 2
"""A search with a budget for fewer rounds is not started."""
MAX_FIRST_ORDER_ROUNDS = 16
AT_REST = 1.01
"""Enclosures whose radius grows no more than by this have come to rest."""
MAX_HALVINGS = 8
"""How often the radius of classes is halved where their enclosures do not close."""
SLACK, MORE = 1.05, 1e-5
TO_SPARE = 0.02
"""The share of its enclosure that bounds leave free, for a checker whose bounds are a little wider."""


class _Enclosures(NamedTuple):
    """The sets ``center + axes @ (radius * d)`` with ``|d_i| <= 1``; `axes` has orthonormal columns."""

    center: Float64[Tensor, "K D"]
    axes: Float64[Tensor, "K D D"]
    radius: Float64[Tensor, "K D"]


class Search(NamedTuple):
    """Evidence, where enclosures closed, or else why not, and the number of merges that were bounded on the way."""

    evidence: EnclosureEvidence | None
    reason: str
    num_merges: int
    enclosures: _Enclosures | None = None


class _Windows(NamedTuple):
    """The windows of classes that a string can show, and the class of each; which classes are merged states."""

    parts: Int64[Tensor, "M C"]
    targets: Int64[Tensor, " M"]
    reached: Bool[Tensor, " K"]


@torch.no_grad()
def invariant_enclosures(model: TreeModel, extraction: Extraction, max_merges: int = MAX_BOUNDED) -> Search:
    """Enclosures around the prototypes such that every merge maps enclosures into one, or none.

    The search starts where `first_order_enclosures` ends, which costs little and proves nothing. Then each round bounds
    all windows of the table and takes for each class an enclosure that holds the bounds of the windows that lead to it,
    until all bounds lie within the enclosures they were computed from. By induction on the levels every state that the
    float32 model computes then lies in the enclosure of its class, for every string of every length, and where all
    logit margins are positive its answer is the machine's. An enclosure is turned so that its sides run along the
    directions in which its class's states differ: these are few, and a box along the coordinates would be wide in all
    of them.

    Raises:
        ValueError: the model is not a `RegularGPT` of variant merge, or has parts of its own; the extraction is
            another's; two rounds over the entries of the table are more than `max_merges`, or take more than
            `MAX_BYTES`.

    Source: de Figueiredo & Stolfi, "Affine arithmetic: concepts and applications" (2004), for the bounds; Girard,
        "Reachability of uncertain linear systems using zonotopes" (2005), for sets of this form.
    Differs from the source: an enclosure is an interval hull along axes of its own after every round, and all rounding
        of float32 is part of it.
    """
    layer, readout = _parts_of(model)
    windows, leaves = _windows(extraction), model.tree.leaves
    if not torch.equal(extraction.prototypes[: len(leaves)], leaves) or bool(windows.reached[: len(leaves)].any()):
        raise ValueError("extraction: its first prototypes are not the model's leaves; extract from this model")
    if (minimum := MIN_ROUNDS * len(windows.parts)) > max_merges:
        raise ValueError(
            f"extraction: expected no more than {max_merges:,} merges in {MIN_ROUNDS} rounds, got {minimum:,}"
        )
    _check_memory(layer, windows)
    assert isinstance(extraction.fine, TreeMachine)
    outputs = torch.tensor(extraction.fine.outputs)[windows.reached]
    subject = f"enclosures of {len(outputs)} classes of radius {extraction.radius:.2g}"
    enclosures, growth = first_order_enclosures(layer, extraction, windows)
    if enclosures is None:
        return Search(None, f"{subject} grow by {growth:.2f} at a merge", 0)
    num_merges = 0
    extents = [_extent(enclosures)]
    while num_merges + len(windows.parts) <= max_merges and not _swells(extents):
        margin = smallest_margin(readout, _states(enclosures, windows.reached), outputs)
        if not margin > 0:  # nor where it is no number
            return Search(None, f"{subject} hold states of several answers", num_merges)
        num_merges += len(windows.parts)
        merged = _merged(layer, enclosures, windows)
        if all(_is_inside(enclosures, classes, bounds) for classes, bounds in _pairs(windows.targets, merged)):
            return Search(_evidence(enclosures, margin), "", num_merges, enclosures)
        if not all(bool((bounds.radius <= 1).all()) for bounds in merged):
            break
        enclosures = _around(enclosures, windows.targets, merged)
        extents.append(_extent(enclosures))
    return Search(None, f"{subject} do not close", num_merges)


def _parts_of(model: TreeModel) -> tuple[MergeLayer, nn.Sequential]:
    """The layer and the read-out, if they are those whose formulas are bounded; else a ValueError."""
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
    check_parts(model, layer)
    return layer, readout


def _merged(layer: MergeLayer, enclosures: _Enclosures, windows: _Windows) -> list[Affine]:
    """Bounds on all merges, in chunks."""
    return [merge_bounds(layer, _parts(enclosures, chunk)) for chunk in windows.parts.split(MAX_WINDOWS_PER_CHUNK)]


def _check_memory(layer: MergeLayer, windows: _Windows) -> None:
    """Reject windows whose tangents or bounds take too much memory, before there are any."""
    if (size := max(num_bytes(layer, *windows.parts.shape))) > MAX_BYTES:
        raise ValueError(
            f"extraction: expected merges whose bounds take no more than {MAX_BYTES:,} bytes, got {size:,}; a narrower "
            "model takes fewer"
        )


def num_bytes(layer: MergeLayer, num_windows: int, chunk_size: int) -> tuple[int, int]:
    """What the tangents of merges take, and their bounds: all slopes, and those of hidden units of a chunk.

    The inputs of a merge's affine form are the sides of its parts, and what remainders add on the way: of the parts
    behind the first function, of what attention mixed, and of each block's norm and hidden units.
    """
    width = len(layer.gain)
    hidden = [block.widen.out_features for block in layer.feed_forwards if isinstance(block, FeedForward)]
    num_inputs = (2 * chunk_size + 1 + len(hidden)) * width + sum(hidden)
    at_a_time = 4 * min(num_windows, MAX_WINDOWS_PER_CHUNK) * max(hidden)  # a few forms of the widest layer
    return 4 * num_windows * chunk_size * width**2, 4 * num_inputs * (num_windows * width + at_a_time)


def _extent(enclosures: _Enclosures) -> float:
    """The sum over all classes of half the diagonal of the enclosure."""
    return float(torch.linalg.vector_norm(enclosures.radius, dim=1).sum())


def _swells(extents: Sequence[float]) -> bool:
    """Whether the last round added more than the one before it: what comes to rest adds less and less."""
    *_, first, second, third = (0.0, 0.0, 0.0, *extents)
    return len(extents) > 2 and third - second > max(second - first, 0.001 * second)


def _windows(extraction: Extraction) -> _Windows:
    assert isinstance(extraction.fine, TreeMachine)
    table = extraction.fine.table
    parts = torch.from_numpy(np.argwhere(table >= 0))
    targets = torch.tensor(table[tuple(parts.T.numpy())])
    reached = torch.zeros(len(extraction.prototypes), dtype=torch.bool).index_fill(0, targets, True)
    return _Windows(parts, targets, reached)


@torch.no_grad()
def first_order_enclosures(
    layer: MergeLayer, extraction: Extraction, windows: _Windows
) -> tuple[_Enclosures | None, float]:
    """Where enclosures come to rest if each merge is replaced by its tangent at the prototypes, and how they grew last.

    f(p + d) is taken for f(p) + J d, with the Jacobians J of one backward pass: a round then costs matrix products
    only. None where they grow on and on. A proof has to bound what this leaves out.
    """
    images, tangents = _tangents(layer, extraction.prototypes[windows.parts])
    if not bool(tangents.isfinite().all()):
        return None, math.inf
    points = extraction.prototypes.double()
    axes = torch.eye(points.shape[1], dtype=torch.float64).repeat(len(points), 1, 1)
    enclosures = _Enclosures(points, axes, 0 * points)
    largest = float(torch.linalg.vector_norm(points, dim=1).max())
    extent, growth = 0.0, 0.0
    for _ in range(MAX_FIRST_ORDER_ROUNDS):
        merged = []
        chunks = (array.split(MAX_WINDOWS_PER_CHUNK) for array in (windows.parts, images, tangents))
        for parts, image, tangent in zip(*chunks, strict=True):
            center = image + torch.einsum("mcij,mcj->mi", tangent.double(), enclosures.center[parts] - points[parts])
            forms = _parts(enclosures, parts)
            slope = torch.stack([tangent[:, index] @ form.slope for index, form in enumerate(forms)]).sum(0)
            merged.append(Affine(center, slope, torch.zeros_like(center)))
        enclosures = _around(enclosures, windows.targets, merged)
        before, extent = extent, float(torch.linalg.vector_norm(enclosures.radius, dim=1).max())
        growth = extent / before if before else 0.0
        if growth and not extent <= largest:  # not after one round, which tells nothing of growth
            return None, growth
        if growth and growth <= AT_REST:
            return enclosures, growth
    return None, growth


def _tangents(
    layer: MergeLayer, windows: Float[Tensor, "M C D"]
) -> tuple[Float64[Tensor, "M D"], Float[Tensor, "M C D D"]]:
    """The merged states of windows, and how each changes with the parts."""

    def merge(window: Float[Tensor, "C D"]) -> tuple[Float[Tensor, " D"], Float[Tensor, " D"]]:
        merged = merge_windows(layer, window)
        return merged, merged

    jacobians, images = torch.func.vmap(torch.func.jacrev(merge, has_aux=True), chunk_size=TANGENTS_PER_CHUNK)(windows)
    return images.double(), jacobians.transpose(1, 2).float()


def _evidence(enclosures: _Enclosures, margin: float) -> EnclosureEvidence:
    return EnclosureEvidence(
        num_prototypes=len(enclosures.center),
        radius=float(enclosures.radius.max()),
        logit_margin=finite_or_none(margin),
    )


def _pairs(targets: Int64[Tensor, " M"], merged: Sequence[Affine]) -> Iterable[tuple[Int64[Tensor, " _"], Affine]]:
    return zip(targets.split(MAX_WINDOWS_PER_CHUNK), merged, strict=True)


def _extents(
    enclosures: _Enclosures, classes: Int64[Tensor, " N"], bounds: Affine
) -> tuple[Float64[Tensor, "N D"], Float64[Tensor, "N D"]]:
    """Along the axes of each one's enclosure: how far the centers are apart, and how far values are from theirs."""
    turned = enclosures.axes[classes].mT
    offset = (turned @ (bounds.center - enclosures.center[classes])[..., None])[..., 0]
    slope = Affine(offset, turned.float() @ bounds.slope, torch.zeros_like(offset))
    # Of the slopes' products, as many roundings as there are numbers in a sum, far more than those of float64.
    slack = (offset.shape[-1] + 2) * ROUNDING * bounds.reach + bounds.remainder
    return offset, slope.reach + (turned.abs() @ slack[..., None])[..., 0] * (1 + 1e-9) + 1e-12


def _is_inside(enclosures: _Enclosures, classes: Int64[Tensor, " N"], bounds: Affine) -> bool:
    offset, radius = _extents(enclosures, classes, bounds)
    return bool((offset.abs() + radius <= (1 - TO_SPARE) * enclosures.radius[classes]).all())


def _around(enclosures: _Enclosures, targets: Int64[Tensor, " M"], merged: list[Affine]) -> _Enclosures:
    """For each class an enclosure of the bounds of the windows that lead to it; leaves stay points."""
    count, width = enclosures.center.shape
    mean = torch.zeros_like(enclosures.center).index_add_(0, targets, torch.cat([bounds.center for bounds in merged]))
    mean = mean / targets.bincount(minlength=count).clamp(min=1)[:, None]
    spread = enclosures.axes.new_zeros(count, width, width)
    for classes, bounds in _pairs(targets, merged):
        offset = (bounds.center - mean[classes])[..., None]
        of_remainder = torch.diag_embed(bounds.remainder**2)
        of_slope = (bounds.slope @ bounds.slope.mT).double()
        spread.index_add_(0, classes, offset * offset.mT + of_slope + of_remainder)
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
    radius = torch.where(reached, SLACK * (highest - lowest) / 2 + MORE, 0.0)
    return _Enclosures(center, turned.axes, radius)


def _parts(enclosures: _Enclosures, windows: Int64[Tensor, "M C"]) -> list[Affine]:
    """The enclosures of the parts of each window, oldest first; each side of each part is an input of its own."""
    chunk, width = windows.shape[1], enclosures.center.shape[1]
    parts = []
    for index, classes in enumerate(windows.T):
        slope = torch.zeros(len(windows), width, chunk, width)
        slope[:, :, index] = enclosures.axes[classes] * enclosures.radius[classes][:, None]
        center = enclosures.center[classes]
        rounded = 4 * ROUNDING * torch.linalg.vector_norm(enclosures.radius[classes], dim=-1, keepdim=True)
        parts.append(Affine(center, slope.flatten(-2), rounded.expand_as(center)))
    return parts


def _states(enclosures: _Enclosures, chosen: Bool[Tensor, " K"]) -> Affine:
    """What lies in the chosen enclosures."""
    (states,) = _parts(enclosures, torch.nonzero(chosen))
    return states


@PROVERS.register("enclosures")
class EnclosureProver(Prover):
    """Looks for enclosures (`invariant_enclosures`) around the prototypes, or around those of smaller classes."""

    reader = "tree"

    @classmethod
    def applies_to(cls, model: TreeModel) -> bool:
        # Merges of another tree have no bounds, and those of a bare layer are followed exactly.
        return isinstance(model, RegularGPT) and type(model.tree.layers[0]) is not BareLayer

    def __init__(self) -> None:
        self.num_merges_left = MAX_BOUNDED

    def candidates(
        self, reader: Reader[Any], extraction: Extraction, radius: float
    ) -> Iterator[tuple[Extraction, float]]:
        """The extraction and those of smaller classes."""
        return finer_extractions(reader, extraction, radius, MAX_HALVINGS)

    def prove(self, model: TreeModel, extraction: Extraction) -> EnclosureEvidence:
        search = invariant_enclosures(model, extraction, self.num_merges_left)
        self.num_merges_left -= search.num_merges
        if search.evidence is None or search.enclosures is None:
            raise Unproved(search.reason)
        self.sets = search.enclosures._asdict()
        return search.evidence
