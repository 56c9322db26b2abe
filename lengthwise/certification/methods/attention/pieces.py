"""Boxes of attention masses, which are halved until one answer leads in each piece."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor, nn

from lengthwise.certification.methods.affine import ROUNDING, Affine
from lengthwise.certification.methods.attention.masses import MIN_WEIGHT
from lengthwise.certification.methods.attention.scores import Heads, layer_of, ratio_bounds
from lengthwise.certification.methods.merges import layer_norm_bounds, margins_of
from lengthwise.models.transformer import Transformer

MAX_PIECES = 20_000
"""The largest number of pieces into which the boxes of one block of lengths are halved."""

PIECES_AT_ONCE = 256
"""The number of pieces that are bounded at once."""

MIN_WIDTH = 1e-5
"""The width of a piece that is not halved again: rounding alone moves a head's output by more than this."""

SLACK = 1e-12
"""The slack of sums of masses, and of bounds that follow from others: float64 is off by about 1e-15 there."""

TIE_SLACK = 1e-9
"""The slack of shares that tie heads. Scores are smaller than 2^17, so their exponents are off by less than 1e-10."""


class Pieces(NamedTuple):
    """Boxes of masses, each with its last symbol and its right answer."""

    low: Float64[Tensor, "N H V"]
    high: Float64[Tensor, "N H V"]
    symbols: Int64[Tensor, " N"]
    outputs: Int64[Tensor, " N"]

    def at(self, index: Bool[Tensor, " N"] | slice) -> "Pieces":
        return Pieces(*(part[index] for part in self))


class Halved(NamedTuple):
    """The smallest logit margin over all pieces, and the number of pieces. The margin is minus infinity on failure."""

    margin: float
    num_pieces: int


class Head(NamedTuple):
    """The part of a model behind its attention weights, from the values to the logits."""

    model: Transformer
    heads: Heads
    error: float
    """The relative error of a product of a weight and a value."""
    ratios: tuple[Float64[Tensor, "X V H"], Float64[Tensor, "X V H"]]


def head_of(model: Transformer, heads: Heads, length: int) -> Head:
    """Return the part of a model after attention weights, for strings of up to that length."""
    return Head(model, heads, heads.relative_error(length), ratio_bounds(heads))


@torch.no_grad()
def halved(head: Head, pieces: Pieces) -> Halved:
    """Halve pieces until the right answer leads in each, or until there are too many of them.

    A string's masses lie in one of the two halves, so a margin for both halves is a margin for the whole.
    """
    smallest, num_done = math.inf, 0
    while len(pieces.low):
        if num_done + len(pieces.low) > MAX_PIECES:
            return Halved(-math.inf, num_done)
        # The newest pieces come first: if no halving helps, this shows before there are many pieces.
        newest, pieces = (
            narrowed(pieces.at(slice(-PIECES_AT_ONCE, None)), head.ratios),
            pieces.at(slice(-PIECES_AT_ONCE)),
        )
        margins = margins_in(head, newest)
        is_ahead = margins > 0  # False for a margin that is NaN
        smallest = min([smallest, *margins[is_ahead].tolist()])
        num_done += int(is_ahead.sum())
        newest = newest.at(~is_ahead)
        if bool(((newest.high - newest.low).flatten(1).amax(1) < MIN_WIDTH).any()):
            return Halved(-math.inf, num_done)
        pieces = Pieces(*(torch.cat(parts) for parts in zip(pieces, *_halves(head, newest), strict=True)))
    return Halved(smallest, num_done)


def narrowed(pieces: Pieces, ratios: tuple[Tensor, Tensor]) -> Pieces:
    """Cut away masses that no string can have, and drop pieces that become empty.

    The masses of a head add up to 1. Masses of different heads are tied: let n_v be the sum of e^s of the first head
    over the positions of symbol v. The sum of another head is n_v r_v, with r_v within `ratio_bounds`. So the other
    mass is m_v r_v / (m_v r_v + sum of m_u r_u over all other u), which rises with m_v r_v and falls with all others.
    """
    low, high = pieces.low, pieces.high
    if low.shape[1] > 1:
        least, most = (end[pieces.symbols].mT for end in ratios)
        # An upper bound must not underflow to 0, which would be a false bound.
        low_share, high_share = low[:, :1] * least, (high[:, :1] * most).clamp(min=MIN_WEIGHT)
        others_low, others_high = map(_others, (low_share, high_share))
        tied_low = low_share / (low_share + others_high)
        tied_high = high_share / (high_share + others_low)
        # NaN comes from exponentials that overflow or vanish, and bounds nothing.
        low = torch.maximum(low, (tied_low - TIE_SLACK).nan_to_num(0.0, 0.0, 0.0))
        high = torch.minimum(high, (tied_high + TIE_SLACK).nan_to_num(1.0, 1.0, 1.0))
    others_low, others_high = map(_others, (low, high))
    low = torch.maximum(low, 1 - others_high - SLACK)
    high = torch.minimum(high, 1 - others_low + SLACK)
    exists = (low <= high).all(-1).all(-1)
    return Pieces(low, high, pieces.symbols, pieces.outputs).at(exists)


def _others(shares: Float64[Tensor, "N H V"]) -> Float64[Tensor, "N H V"]:
    """Return the sum of all other shares, in which small shares keep their digits."""
    is_own = torch.eye(shares.shape[-1], dtype=torch.bool)
    others: Tensor = shares[..., None, :].masked_fill(is_own, 0.0).sum(-1)
    return others


def margins_in(head: Head, pieces: Pieces) -> Float64[Tensor, " N"]:
    """Return the smallest logit margin in each piece; it is minus infinity if float32 may overflow there."""
    model, layer = head.model, layer_of(head.model)
    norm = layer.norms[1]
    assert isinstance(norm, nn.LayerNorm)
    states = head.heads.states
    residual = Affine(
        states.center[pieces.symbols],
        torch.zeros(len(pieces.symbols), states.low.shape[-1], 1),
        states.radius[pieces.symbols] * (1 + 1e-12),
    )
    state = residual + attended(head, pieces).linear(layer.output.weight, layer.output.bias)
    wide = layer_norm_bounds(state, norm).linear(layer.widen.weight, layer.widen.bias)
    state = state + wide.tanh_gelu().linear(layer.narrow.weight, layer.narrow.bias)
    return margins_of(model.readout, state, pieces.outputs)


def attended(head: Head, pieces: Pieces) -> Affine:
    """Return the heads' outputs sum_v m_v value_v, which have one input for each mass but one.

    The mass of one symbol is 1 less the others, so the output is its value plus sum_v m_v (value_v - its value).
    """
    values = head.heads.values
    middle, radius = (pieces.low + pieces.high) / 2, (pieces.high - pieces.low) / 2
    left_out = radius.argmax(-1, keepdim=True)  # N H 1
    radius = radius.scatter(-1, left_out, 0.0)
    middle = middle.scatter(-1, left_out, 0.0)
    centers = values.center.transpose(0, 1)  # H V E
    reference = centers[torch.arange(centers.shape[0]), left_out[..., 0]]  # N H E
    directions = centers - reference[:, :, None]  # N H V E
    center = reference + (middle[..., None] * directions).sum(2)
    slope = torch.diag_embed((radius[..., None] * directions).permute(0, 3, 2, 1), dim1=1, dim2=-1)  # N H E V H
    slope = slope.permute(0, 1, 2, 4, 3).flatten(3).flatten(1, 2)
    # A mean of values, each off by its radius, is off by at most the largest radius. Errors of weights are relative to
    # the values; the part 1e-12 covers sums in float64.
    size = values.size.amax(0)
    remainder = values.radius.amax(0) + (head.error + 1e-12) * size
    # The float32 slope rounds each direction times its radius once.
    remainder = remainder + 2 * ROUNDING * (radius[..., None] * directions.abs()).sum(2)
    form = Affine(center.flatten(1), slope.float(), remainder.flatten(1))
    return form.rounded(size.flatten().expand_as(form.center))


def _halves(head: Head, pieces: Pieces) -> tuple[Pieces, Pieces]:
    """Return the lower and the upper halves of pieces, across the mass that moves the head's output most."""
    values = head.heads.values.center
    spread = (values.amax(0) - values.amin(0)).norm(dim=-1)  # H
    widths = (pieces.high - pieces.low) * spread[:, None]
    index = widths.flatten(1).argmax(1, keepdim=True)
    low, high = pieces.low.flatten(1), pieces.high.flatten(1)
    middle = (low.gather(1, index) + high.gather(1, index)) / 2
    shape = pieces.low.shape
    below = pieces._replace(high=high.scatter(1, index, middle).view(shape))
    return below, pieces._replace(low=low.scatter(1, index, middle).view(shape))
