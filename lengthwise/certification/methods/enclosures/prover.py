"""Proof by zonotope enclosures around the prototypes of a tree model's states.

A merge computes one state from a window of states. The proof shows that each merge maps the enclosures of its window
into the enclosure of the merged state's class.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor, nn

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.methods.affine import ROUNDING, Affine
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none, foreign_extraction
from lengthwise.certification.methods.enclosures.evidence import EnclosureEvidence
from lengthwise.certification.methods.merges import check_parts, merge_bounds, merges_of, smallest_margin
from lengthwise.certification.methods.usual_parts import unlike_settings
from lengthwise.extraction.base import Extraction
from lengthwise.layers.tree_layers import BareLayer, FeedForward, MergeLayer
from lengthwise.models.base import TreeModel
from lengthwise.models.codebook_gpt import CodebookGPT
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.ops.tree_attention import merge_windows
from lengthwise.validation import narrow, type_in_words

MAX_WINDOWS_PER_CHUNK = 24
"""The largest number of windows whose merges are bounded at once."""
MAX_TANGENTS_PER_CHUNK = 64
"""The largest number of windows whose Jacobians are computed at once."""
MAX_BOUNDED = 8_000
"""The largest number of merges (windows times rounds) that are bounded.

For a model of width 64, these bounds take about 20 seconds.
"""
MAX_BYTES = 1_000_000_000
"""The largest memory of the slopes of a round's affine forms, or of the tangents of all merges, in bytes."""
MIN_ROUNDS = 2
"""The smallest number of rounds of a search. A search is not started if its budget allows fewer rounds."""
MAX_FIRST_ORDER_ROUNDS = 16
"""The largest number of first-order rounds, which only find a start for the search."""
CONVERGED_GROWTH = 1.01
"""First-order enclosures count as converged when a round enlarges the largest norm of radii by at most this factor."""
RELATIVE_SLACK, ABSOLUTE_SLACK = 1.05, 1e-5
"""A new enclosure contains the bounds on all merges of its class.

Along each axis, its radius is the radius of these bounds times `RELATIVE_SLACK`, plus `ABSOLUTE_SLACK`. So the bounds
of the next round may fit into the enclosure.
"""
FREE_FRACTION = 0.02
"""The fraction of a radius that bounds must leave free, because the separate checker's bounds are a little wider."""


class _Enclosures(NamedTuple):
    """The sets ``center + axes @ (radius * d)`` with ``|d_i| <= 1``; `axes` has orthonormal columns."""

    center: Float64[Tensor, "K D"]
    axes: Float64[Tensor, "K D D"]
    radius: Float64[Tensor, "K D"]


class Search(NamedTuple):
    """The result of a search for enclosures: the evidence, or else the reason why the search failed.

    `num_merges` is the number of merges for which the search computed bounds.
    """

    evidence: EnclosureEvidence | None
    reason: str
    num_merges: int
    enclosures: _Enclosures | None = None


class _Windows(NamedTuple):
    """The windows that occur in strings, the class of each window's merged state, and a mask of these classes.

    A window lists the classes of the states that one merge reads.
    """

    parts: Int64[Tensor, "M C"]
    targets: Int64[Tensor, " M"]
    reached: Bool[Tensor, " K"]


@torch.no_grad()
def invariant_enclosures(model: TreeModel, extraction: Extraction, max_merges: int = MAX_BOUNDED) -> Search:
    """Search for an enclosure of each class such that every merge maps enclosures into the enclosure of its class.

    The class of a merge is the class of its merged state. The search starts at the result of `first_order_enclosures`,
    which is cheap and proves nothing. Each round bounds the merges of all windows (the classes of the states that one
    merge reads) in the machine's table. If all bounds lie within the enclosures of their classes, the search ends.
    Otherwise each class gets an enclosure that contains the bounds of all merges of this class.

    The proof is by induction on the levels of the tree. It shows that each state that the float32 model computes is in
    the enclosure of its class, for every string of every length. If all logit margins are also positive, the model
    gives the machine's answers.

    The states of a class differ in few directions, and its enclosure has its axes along these directions. A box along
    the coordinates would be wide in all directions.

    Raises:
        ValueError: the model is neither a `RegularGPT` of variant merge nor a `CodebookGPT` without codes, or has parts
            without bounds. The extraction belongs to another model, or a merge leads to the class of a leaf. Two rounds
            over the table have more than `max_merges` merges, or the bounds or tangents take more than `MAX_BYTES`
            bytes.

    Source: de Figueiredo & Stolfi, "Affine arithmetic: concepts and applications" (2004), for the bounds; Girard,
        "Reachability of uncertain linear systems using zonotopes" (2005), for sets of this form.
    Differs from the source: after every round, an enclosure is the interval hull of the bounds of its class, along its
        own axes. The bounds cover all rounding of float32.
    """
    layer, readout = _parts_of(model)
    windows, leaves = _windows(extraction), model.tree.leaves
    # The induction starts at the leaves, which must equal the model's leaves bit for bit. They stay points, so no merge
    # may lead to their classes.
    if not torch.equal(extraction.prototypes[: len(leaves)], leaves) or bool(windows.reached[: len(leaves)].any()):
        raise foreign_extraction(
            "expected this model's leaf vectors as first prototypes, and no merge into their classes, got another "
            "extraction"
        )
    _check_work(layer, windows, max_merges)
    # The root of every tree is a merged state, so only classes of merges need an answer.
    outputs = torch.tensor(narrow(extraction.fine, TreeMachine).outputs)[windows.reached]
    subject = f"enclosures of {len(outputs)} classes of radius {extraction.radius:.2g}"
    enclosures, growth = first_order_enclosures(layer, extraction, windows)
    if enclosures is None:
        return Search(None, f"{subject} grow by a factor of {growth:.2f} at a merge", 0)
    num_merges = 0
    extents = [_extent(enclosures)]
    while num_merges + len(windows.parts) <= max_merges and not _diverges(extents):
        # The margin comes first: it costs one read-out for each class, while a round costs one merge for each window.
        margin = smallest_margin(readout, _states(enclosures, windows.reached), outputs)
        if not margin > 0:  # a margin that is NaN also ends here
            return Search(None, f"{subject} may contain states with different answers", num_merges)
        num_merges += len(windows.parts)
        merged = _merged(layer, enclosures, windows)
        # This comparison and the margin of the same enclosures are the proof. The rest of the search only guesses.
        if all(_is_inside(enclosures, classes, bounds) for classes, bounds in _pairs(windows.targets, merged)):
            return Search(_evidence(enclosures, margin), "", num_merges, enclosures)
        # A merged state is normalized, so its numbers have mean square 1. Bounds wider than 1 exclude little.
        if not all(bool((bounds.radius <= 1).all()) for bounds in merged):
            break
        enclosures = _around(enclosures, windows.targets, merged)
        extents.append(_extent(enclosures))
    return Search(None, f"merges do not map {subject} into one another", num_merges)


def _parts_of(model: TreeModel) -> tuple[MergeLayer, nn.Sequential]:
    """Return the model's layer and its read-out; raise a ValueError if their formulas have no bounds."""
    layer, readout = model.tree.layers[0], model.readout
    # Types are compared exactly, because a subclass may compute another formula.
    if type(model) not in (RegularGPT, CodebookGPT) or type(layer) is not MergeLayer:
        names = f"{type(model).__name__} with {type_in_words(layer)}"
        raise ValueError(
            f"model: expected a RegularGPT or CodebookGPT with a MergeLayer, got a {names}; certify a RegularGPT with "
            "variant='merge'"
        )
    if type(readout) is not nn.Sequential:
        raise unlike_settings(f"expected an nn.Sequential as model.readout, got {type_in_words(readout)}")
    check_parts(model, layer)
    return layer, readout


def _merged(layer: MergeLayer, enclosures: _Enclosures, windows: _Windows) -> list[Affine]:
    """Return bounds on the merges of all windows, in chunks."""
    return [merge_bounds(layer, _parts(enclosures, chunk)) for chunk in windows.parts.split(MAX_WINDOWS_PER_CHUNK)]


def _check_work(layer: MergeLayer, windows: _Windows, max_merges: int) -> None:
    """Reject windows if two rounds over them have more than `max_merges` merges, or need too much memory."""
    if (minimum := MIN_ROUNDS * len(windows.parts)) > max_merges:
        raise ValueError(
            f"extraction: expected at most {max_merges:,} merges (left of {MAX_BOUNDED:,} for all searches), got "
            f"{minimum:,} in {MIN_ROUNDS} rounds; train a model whose states form fewer classes"
        )
    if (size := max(num_bytes(layer, *windows.parts.shape))) > MAX_BYTES:
        raise ValueError(
            f"extraction: expected merges whose tangents or bounds take no more than {MAX_BYTES:,} bytes, got "
            f"{size:,}; train a model with a smaller d_model"
        )


def num_bytes(layer: MergeLayer, num_windows: int, chunk_size: int) -> tuple[int, int]:
    """Return the memory of all tangents, and of all bounds, in bytes.

    Bounds need memory for the slopes of all merges, and for the slopes of the hidden units in one chunk. The affine
    form of a merge has two kinds of inputs. Each axis of the enclosures of the merge's parts is an input. Remainders
    also become inputs: after the tanh of each part, after attention, and after the norm and the hidden units of each
    block.
    """
    width = len(layer.gain)
    hidden = [block.widen.out_features for block in layer.feed_forwards if isinstance(block, FeedForward)]
    num_inputs = (2 * chunk_size + 1 + len(hidden)) * width + sum(hidden)
    at_a_time = 4 * min(num_windows, MAX_WINDOWS_PER_CHUNK) * max(hidden)  # four forms of the widest layer
    return 4 * num_windows * chunk_size * width**2, 4 * num_inputs * (num_windows * width + at_a_time)


def _extent(enclosures: _Enclosures) -> float:
    """Return the sum over all classes of half the diagonal of the class's enclosure."""
    return float(torch.linalg.vector_norm(enclosures.radius, dim=1).sum())


def _diverges(extents: Sequence[float]) -> bool:
    """Return whether the last round added more to the extent of the enclosures than the round before.

    In a search that converges, each round adds less than the round before.
    """
    *_, first, second, third = (0.0, 0.0, 0.0, *extents)
    # A round that adds less than a thousandth of the extent does not count as divergence, whatever the round before
    # added.
    return len(extents) > 2 and third - second > max(second - first, 0.001 * second)


def _windows(extraction: Extraction) -> _Windows:
    parts, targets = merges_of(narrow(extraction.fine, TreeMachine))
    reached = torch.zeros(len(extraction.prototypes), dtype=torch.bool).index_fill(0, targets, True)
    return _Windows(parts, targets, reached)


@torch.no_grad()
def first_order_enclosures(
    layer: MergeLayer, extraction: Extraction, windows: _Windows
) -> tuple[_Enclosures | None, float]:
    """Return the enclosures that result if each merge is replaced by its tangent, and their growth in the last round.

    The extent of an enclosure is the norm of its radii. The growth is the factor by which a round enlarges the largest
    extent. A merge f(p + d) is replaced by f(p) + J d, with the Jacobian J at the prototypes p. All Jacobians are
    computed once, so a round costs only matrix products. The enclosures are None if they do not converge. They prove
    nothing: a proof must also bound the difference between a merge and its tangent.
    """
    images, tangents = _tangents(layer, extraction.prototypes[windows.parts])
    if not bool(tangents.isfinite().all()):
        return None, math.inf
    points = extraction.prototypes.double()
    axes = torch.eye(points.shape[1], dtype=torch.float64).repeat(len(points), 1, 1)
    enclosures = _Enclosures(points, axes, 0 * points)
    # Enclosures wider than the states themselves exclude nothing, so the search need not go on.
    largest = float(torch.linalg.vector_norm(points, dim=1).max())
    extent, growth = 0.0, 0.0
    for _ in range(MAX_FIRST_ORDER_ROUNDS):
        # Rounding and curvature are left out here: the start only has to be close to enclosures that give a proof.
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
        # The first round starts at points, so growth is known only from the second round on. `not <=` also holds for
        # NaN.
        if growth and not extent <= largest:
            return None, growth
        if growth and growth <= CONVERGED_GROWTH:
            return enclosures, growth
    return None, growth


def _tangents(
    layer: MergeLayer, windows: Float[Tensor, "M C D"]
) -> tuple[Float64[Tensor, "M D"], Float[Tensor, "M C D D"]]:
    """Return the merged states of windows, and their Jacobians with respect to the parts."""

    def merge(window: Float[Tensor, "C D"]) -> tuple[Float[Tensor, " D"], Float[Tensor, " D"]]:
        merged = merge_windows(layer, window)
        return merged, merged

    jacobian_and_image = torch.func.jacrev(merge, has_aux=True)
    jacobians, images = torch.func.vmap(jacobian_and_image, chunk_size=MAX_TANGENTS_PER_CHUNK)(windows)
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
    """Return each bound's offset from its enclosure's center, and the bound's radius, along the enclosure's axes."""
    turned = enclosures.axes[classes].mT
    offset = (turned @ (bounds.center - enclosures.center[classes])[..., None])[..., 0]
    slope = Affine(offset, turned.float() @ bounds.slope, torch.zeros_like(offset))
    # The slopes are turned in float32: a sum of D products and the float32 copy of the axes round at most D + 2 times.
    # Offsets and remainders are turned in float64. The numbers of states are near 1, so this rounding is about D times
    # 1e-16. The factor 1 + 1e-9 and the term 1e-12 cover it.
    slack = (offset.shape[-1] + 2) * ROUNDING * bounds.reach + bounds.remainder
    return offset, slope.reach + (turned.abs() @ slack[..., None])[..., 0] * (1 + 1e-9) + 1e-12


def _is_inside(enclosures: _Enclosures, classes: Int64[Tensor, " N"], bounds: Affine) -> bool:
    """Return whether bounds are in the enclosures of their classes; NaN bounds are never inside."""
    # The transpose of the axes serves as their inverse. The axes are orthonormal up to float64 rounding, about 1e-15,
    # which `FREE_FRACTION` covers.
    offset, radius = _extents(enclosures, classes, bounds)
    return bool((offset.abs() + radius <= (1 - FREE_FRACTION) * enclosures.radius[classes]).all())


def _around(enclosures: _Enclosures, targets: Int64[Tensor, " M"], merged: list[Affine]) -> _Enclosures:
    """Return, for each class, an enclosure of the bounds on all merges of this class; leaves stay points."""
    count, width = enclosures.center.shape
    mean = torch.zeros_like(enclosures.center).index_add_(0, targets, torch.cat([bounds.center for bounds in merged]))
    mean = mean / targets.bincount(minlength=count).clamp(min=1)[:, None]
    spread = enclosures.axes.new_zeros(count, width, width)
    for classes, bounds in _pairs(targets, merged):
        offset = (bounds.center - mean[classes])[..., None]
        remainder_spread = torch.diag_embed(bounds.remainder**2)
        slope_spread = (bounds.slope @ bounds.slope.mT).double()
        spread.index_add_(0, classes, offset * offset.mT + slope_spread + remainder_spread)
    # The eigenvectors are the directions in which the bounds of a class differ. Other directions would only give wider
    # enclosures: `_is_inside` checks the result for any axes that are orthonormal up to float64 rounding.
    turned = _Enclosures(mean, torch.linalg.eigh(spread).eigenvectors, enclosures.radius)
    # The hull of all bounds along the new axes: a bound extends `radius` in both directions from its `offset`.
    lowest, highest = torch.full_like(mean, torch.inf), torch.full_like(mean, -torch.inf)
    for classes, bounds in _pairs(targets, merged):
        offset, radius = _extents(turned, classes, bounds)
        index = classes[:, None].expand_as(offset)
        lowest.scatter_reduce_(0, index, offset - radius, "amin")
        highest.scatter_reduce_(0, index, offset + radius, "amax")
    # Classes without a merge keep their points: their ends are still infinite.
    reached = (lowest <= highest).all(1, keepdim=True)
    middle = torch.where(reached, (lowest + highest) / 2, 0.0)
    center = torch.where(reached, mean + (turned.axes @ middle[..., None])[..., 0], enclosures.center)
    radius = torch.where(reached, RELATIVE_SLACK * (highest - lowest) / 2 + ABSOLUTE_SLACK, 0.0)
    return _Enclosures(center, turned.axes, radius)


def _parts(enclosures: _Enclosures, windows: Int64[Tensor, "M C"]) -> list[Affine]:
    """Return the enclosures of the parts of each window, oldest first; each axis of an enclosure has its own input."""
    chunk, width = windows.shape[1], enclosures.center.shape[1]
    parts = []
    for index, classes in enumerate(windows.T):
        slope = torch.zeros(len(windows), width, chunk, width)
        slope[:, :, index] = enclosures.axes[classes] * enclosures.radius[classes][:, None]
        center = enclosures.center[classes]
        # The float32 slope rounds each axes_ij r_j once. A row of the axes has norm 1, so its errors add up to at most
        # one rounding of |r| (Cauchy-Schwarz). The bound allows four roundings.
        rounded = 4 * ROUNDING * torch.linalg.vector_norm(enclosures.radius[classes], dim=-1, keepdim=True)
        parts.append(Affine(center, slope.flatten(-2), rounded.expand_as(center)))
    return parts


def _states(enclosures: _Enclosures, chosen: Bool[Tensor, " K"]) -> Affine:
    """Return the chosen enclosures as one affine form."""
    (states,) = _parts(enclosures, torch.nonzero(chosen))
    return states


@PROVERS.register("enclosures")
class EnclosureProver(Prover):
    """A search for enclosures (`invariant_enclosures`) around the prototypes, or around prototypes of finer classes."""

    reader = "tree"
    max_halvings = 8

    @classmethod
    def applies_to(cls, model: TreeModel) -> bool:
        # Only the merges of a RegularGPT, or of its subclass CodebookGPT, have bounds. Method `exact` covers the merges
        # of bare layers.
        return isinstance(model, RegularGPT) and type(model.tree.layers[0]) is not BareLayer

    def __init__(self) -> None:
        self.num_merges_left = MAX_BOUNDED

    def prove(self, model: TreeModel, extraction: Extraction) -> EnclosureEvidence:
        search = invariant_enclosures(model, extraction, self.num_merges_left)
        self.num_merges_left -= search.num_merges
        if search.evidence is None or search.enclosures is None:
            raise Unproved(search.reason)
        self.sets = search.enclosures._asdict()
        return search.evidence
