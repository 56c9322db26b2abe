"""Boxes of attention masses, which are halved until one answer has the largest logit in each piece."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor, nn

from lengthwise.certification.methods.affine import ROUNDING, Affine, Inputs
from lengthwise.certification.methods.attention.masses import MIN_WEIGHT
from lengthwise.certification.methods.attention.scores import Heads, ratio_bounds
from lengthwise.certification.methods.merges import layer_norm_bounds, margins_of
from lengthwise.layers.transformer_layer import TransformerLayer
from lengthwise.ops.intervals import Intervals
from lengthwise.validation import narrow

MAX_PIECES = 20_000
"""The largest number of pieces into which the boxes of one block of lengths are halved."""

NUM_ROUNDS = 8
"""The number of times that boxes of the first layer's attention masses are halved.

Then bounds on the layer's results become the inputs of the next layer.
"""

MAX_NUMBERS = 1 << 28
"""The largest number of slopes (of `Affine` forms) in the feed-forward part, over all pieces of one block of lengths.

Wide nets get fewer pieces, so that a search without success does not take minutes.
"""

PIECES_AT_ONCE = 256
"""The number of pieces whose results are bounded at once."""

MIN_WIDTH = 1e-5
"""The smallest width of a piece that is halved again.

Rounding alone moves a head's output by more than this width. A search fails if a narrower piece has no proof.
"""

SLACK = 1e-12
"""The slack of sums of masses, which float64 computes to about 1e-15."""

TIE_SLACK = 1e-9
"""The slack of the bounds on one head's masses that follow from the masses of another head.

Scores are below 2^17, so float64 exponents have errors below 1e-10.
"""


class Pieces(NamedTuple):
    """Boxes of attention masses at the last position of strings.

    `last` is the kind of the last position. Several boxes may enclose the layer's inputs for this kind, and `inputs` is
    the index of one of them. `outputs` is the right answer.
    """

    low: Float64[Tensor, "N H K"]
    high: Float64[Tensor, "N H K"]
    last: Int64[Tensor, " N"]
    inputs: Int64[Tensor, " N"]
    outputs: Int64[Tensor, " N"]

    def at(self, index: Bool[Tensor, " N"] | Int64[Tensor, " M"] | slice) -> "Pieces":
        return Pieces(*(part[index] for part in self))


class Halved(NamedTuple):
    """The smallest logit margin over all `Pieces` (minus infinity if `halved` failed), and the number of pieces."""

    margin: float
    num_pieces: int


class Head(NamedTuple):
    """The part of a layer that follows its attention weights: from the values of the heads to the layer's output."""

    layer: TransformerLayer
    heads: Heads
    error: float
    """The relative error of a product of an attention weight and a value."""
    ratios: tuple[Float64[Tensor, "X K H"], Float64[Tensor, "X K H"]]
    """The lower and upper bounds of `ratio_bounds`, which relate the masses of all heads to the first head's masses."""

    @property
    def num_slopes(self) -> int:
        """The number of slopes of a piece: hidden units of the feed-forward part times inputs of the affine form."""
        num_kinds, num_heads, head_dim = self.heads.values.center.shape
        num_sides = head_dim if self.heads.states.low.shape[1] > 1 else 0
        width = num_heads * head_dim
        return 4 * width * (num_heads * num_kinds * (1 + num_sides) + 7 * width)


def head_of(layer: TransformerLayer, heads: Heads, length: int) -> Head:
    """Return the part of a layer that follows its attention weights, for strings of up to `length` symbols."""
    return Head(layer, heads, heads.relative_error(length), ratio_bounds(heads))


@torch.no_grad()
def halved(head: Head, readout: nn.Sequential, pieces: Pieces) -> Halved:
    """Halve pieces until the right answer has the largest logit in each piece, or until there are too many pieces.

    A string's masses lie in one of the two halves. So a lower bound on the logit margin in both halves is also a lower
    bound in the whole piece.
    """
    smallest, num_done = math.inf, 0
    max_pieces = min(MAX_PIECES, MAX_NUMBERS // head.num_slopes)
    while len(pieces.low):
        if num_done + len(pieces.low) > max_pieces:
            return Halved(-math.inf, num_done)
        # The newest pieces are bounded first. If halving does not help, this shows before there are many pieces.
        newest = narrowed(pieces.at(slice(-PIECES_AT_ONCE, None)), head.ratios)
        pieces = pieces.at(slice(-PIECES_AT_ONCE))
        margins = margins_in(head, readout, newest)
        is_ahead = margins > 0  # False for a margin that is NaN
        smallest = min([smallest, *margins[is_ahead].tolist()])
        num_done += int(is_ahead.sum())
        newest = newest.at(~is_ahead)
        if bool(((newest.high - newest.low).flatten(1).amax(1) < MIN_WIDTH).any()):
            return Halved(-math.inf, num_done)
        pieces = Pieces(*(torch.cat(parts) for parts in zip(pieces, *_halves(head, newest), strict=True)))
    return Halved(smallest, num_done)


def narrowed(pieces: Pieces, ratios: tuple[Tensor, Tensor]) -> Pieces:
    """Cut away attention masses that no string can have, and drop pieces that become empty.

    The masses of a head add up to 1. The masses of two heads depend on each other. Let n_v be the sum of e^s over the
    positions of kind v, with the first head's scores s. Then another head's sum over these positions is n_v r_v, with
    r_v within the bounds of `ratio_bounds`. If the first head has mass m_v, the other head has mass m_v r_v / (m_v r_v
    + sum of m_u r_u over all other u). This mass rises with m_v r_v, and falls with all other m_u r_u.
    """
    low, high = pieces.low, pieces.high
    if low.shape[1] > 1:
        least, most = (end[pieces.last].mT for end in ratios)
        # An upper bound must not underflow to 0, which would be a false bound.
        low_share, high_share = low[:, :1] * least, (high[:, :1] * most).clamp(min=MIN_WEIGHT)
        others_low, others_high = map(_others, (low_share, high_share))
        tied_low = low_share / (low_share + others_high)
        tied_high = high_share / (high_share + others_low)
        # NaN comes from exponentials that overflow or vanish, and is not a bound.
        low = torch.maximum(low, (tied_low - TIE_SLACK).nan_to_num(0.0, 0.0, 0.0))
        high = torch.minimum(high, (tied_high + TIE_SLACK).nan_to_num(1.0, 1.0, 1.0))
    others_low, others_high = map(_others, (low, high))
    low = torch.maximum(low, 1 - others_high - SLACK)
    high = torch.minimum(high, 1 - others_low + SLACK)
    exists = (low <= high).all(-1).all(-1)
    return Pieces(low, high, pieces.last, pieces.inputs, pieces.outputs).at(exists)


def _others(shares: Float64[Tensor, "N H K"]) -> Float64[Tensor, "N H K"]:
    """Return, for each share, the sum of the other shares in its row.

    A subtraction from the total would lose digits of small shares, so the other shares are added.
    """
    is_own = torch.eye(shares.shape[-1], dtype=torch.bool)
    others: Tensor = shares[..., None, :].masked_fill(is_own, 0.0).sum(-1)
    return others


def margins_in(head: Head, readout: nn.Sequential, pieces: Pieces) -> Float64[Tensor, " N"]:
    """Return a lower bound on the logit margin in each piece; minus infinity if float32 may overflow there."""
    return margins_of(readout, state_in(head, pieces), pieces.outputs)


def state_in(head: Head, pieces: Pieces) -> Affine:
    """Return bounds on the layer's output at the last position, for the attention masses in each box of `pieces`."""
    layer, norm = head.layer, narrow(head.layer.norms[1], nn.LayerNorm)
    states = head.heads.states[pieces.last, pieces.inputs]
    # In later matrices, a remainder only grows, while the terms of an input can cancel. So remainders become inputs.
    mixed = attended(head, pieces)
    inputs = Inputs(mixed.slope.shape[-1])
    residual = Affine(states.center, torch.zeros(*states.low.shape, 1), states.radius * (1 + 1e-12))
    state = residual.with_remainder_as_inputs(inputs) + mixed.with_remainder_as_inputs(inputs).linear(
        layer.output.weight, layer.output.bias
    )
    normed = layer_norm_bounds(state, norm).with_remainder_as_inputs(inputs)
    wide = normed.linear(layer.widen.weight, layer.widen.bias).tanh_gelu().with_remainder_as_inputs(inputs)
    return state + wide.linear(layer.narrow.weight, layer.narrow.bias)


@torch.no_grad()
def states_after(head: Head, masses: Pieces) -> Intervals:
    """Return M enclosures [N, M, D] of a layer's results for each of N pairs of symbol and state.

    `masses` contains a box of attention masses for each pair. The boxes are halved first, because bounds over a small
    box lose less of the dependence between the numbers of a result. If the layer's inputs are already in pieces, its
    results have the same number of pieces.
    """
    num_inputs = head.heads.states.low.shape[1]
    rounds = NUM_ROUNDS if num_inputs == 1 else 0
    enclosures = []
    for index in range(len(masses.low)):
        each = masses.at(torch.full((num_inputs,), index))
        pieces = narrowed(each._replace(inputs=torch.arange(num_inputs)), head.ratios)
        for _ in range(rounds):
            halves = zip(*_halves(head, pieces), strict=True)
            pieces = narrowed(Pieces(*map(torch.cat, halves)), head.ratios)
        state = state_in(head, pieces)
        low, high = state.center - state.radius, state.center + state.radius
        # Some halves are empty. A copy of the first piece replaces each of them.
        missing = num_inputs * 2**rounds - len(low)
        enclosures.append(Intervals(*(torch.cat([end, end[:1].expand(missing, -1)]) for end in (low, high))))
    return Intervals.stacked(enclosures)


def attended(head: Head, pieces: Pieces) -> Affine:
    """Return bounds on the heads' outputs sum_v m_v value_v, with a mass m_v and a value for each kind v of positions.

    The masses of a head add up to 1. So the mass of one kind u, which has the widest bounds, is 1 minus all other
    masses, and the output is value_u + sum_v m_v (value_v - value_u). Each mass in this sum is an input of the affine
    form.
    """
    values = head.heads.values
    middle, radius = (pieces.low + pieces.high) / 2, (pieces.high - pieces.low) / 2
    left_out = radius.argmax(-1, keepdim=True)  # N H 1
    radius = radius.scatter(-1, left_out, 0.0)
    middle = middle.scatter(-1, left_out, 0.0)
    centers = values.center.transpose(0, 1)  # H K E
    reference = centers[torch.arange(centers.shape[0]), left_out[..., 0]]  # N H E
    directions = centers - reference[:, :, None]  # N H K E
    center = reference + (middle[..., None] * directions).sum(2)
    slope = torch.diag_embed((radius[..., None] * directions).permute(0, 3, 2, 1), dim1=1, dim2=-1)  # N H E K H
    slope = slope.permute(0, 1, 2, 4, 3).flatten(3).flatten(1, 2)
    # Errors of weights are relative to the values. The term 1e-12 covers sums in float64.
    size = values.size.amax(0)
    remainder = ((head.error + 1e-12) * size).flatten().expand(len(center), -1)
    # A value of kind k differs from its center by directions_k a, with |a_i| <= 1. So the mean of the values differs
    # from the mean of the centers by at most the sum of high_k directions_k a.
    own = pieces.high[:, :, None, :, None] * values.directions.permute(1, 2, 0, 3)  # N H E K E
    if head.heads.states.low.shape[1] == 1:
        # These directions come from rounding alone, and need no inputs.
        off = torch.minimum(own.abs().sum((3, 4)), values.directions.abs().sum(-1).amax(0))
        remainder = remainder + off.flatten(1)
    else:
        own = torch.diag_embed(own.permute(0, 2, 3, 4, 1), dim1=1, dim2=-1)  # N H E K E H
        slope = torch.cat([slope, own.flatten(3).flatten(1, 2)], -1)
    # The float32 slope rounds each number once.
    remainder = remainder + 2 * ROUNDING * slope.abs().sum(-1)
    form = Affine(center.flatten(1), slope.float(), remainder)
    return form.rounded(size.flatten().expand_as(form.center))


def _halves(head: Head, pieces: Pieces) -> tuple[Pieces, Pieces]:
    """Return the lower and the upper halves of pieces, each halved along the mass that moves its head's output most."""
    values = head.heads.values.center
    spread = (values.amax(0) - values.amin(0)).norm(dim=-1)  # H
    widths = (pieces.high - pieces.low) * spread[:, None]
    index = widths.flatten(1).argmax(1, keepdim=True)
    low, high = pieces.low.flatten(1), pieces.high.flatten(1)
    middle = (low.gather(1, index) + high.gather(1, index)) / 2
    shape = pieces.low.shape
    below = pieces._replace(high=high.scatter(1, index, middle).view(shape))
    return below, pieces._replace(low=low.scatter(1, index, middle).view(shape))
