"""Bounds on attention scores, for each position encoding.

A score depends on the kinds of two positions and on their distance. In the first layer, the kind of a position is its
symbol. In later layers, it is the symbol and the state of the task's machine.

In shapes, K and N are numbers of kinds, and T is the number of distances. H is the number of heads, and E is a head's
width. Small boxes (pieces) enclose the queries or keys of one kind: M pieces for queries, and M or O pieces for keys.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from lengthwise.certification.methods.usual_parts import unlike_settings
from lengthwise.layers.positions.alibi import ALiBi
from lengthwise.layers.positions.base import PositionEncoding, PositionSizes
from lengthwise.layers.positions.bias import DistanceBias
from lengthwise.layers.positions.fire import EPSILON, FIRE, INITIAL_LIMIT, FIREBias
from lengthwise.layers.positions.kerple import FLOOR, KerpleLog, KerplePower
from lengthwise.layers.positions.none import NoPositions
from lengthwise.layers.positions.rotary import RotaryPositions
from lengthwise.layers.positions.t5 import T5Bias
from lengthwise.layers.positions.transformer_xl import TransformerXLPositions
from lengthwise.ops.intervals import ULPS, UNIT, Intervals
from lengthwise.ops.sinusoids import distance_sinusoids, position_angles
from lengthwise.validation import narrow

KINDS: frozenset[type[nn.Module]] = frozenset({nn.ModuleList, nn.Sequential, nn.Linear, nn.ReLU, FIREBias})
"""The classes of the modules that an encoding of positions may contain."""


def check_encoding(positions: PositionEncoding, sizes: PositionSizes) -> None:
    """Reject an encoding whose scores have no bounds, or whose attributes differ from the model's settings."""
    if type(positions) not in SCORES:
        raise ValueError(
            f"model: expected one of the position encodings {', '.join(names())}, got {positions.name!r}; choose "
            "one of these"
        )
    parts = [positions, *(positions.layers if isinstance(positions, FIRE) else ())]
    if any(part.sizes != sizes for part in parts):  # sizes determine slopes and angles, but no weight contains them
        raise unlike_settings("expected a position encoding whose sizes are the model's, got other sizes")
    for layer in parts[1:]:
        if [type(part) for part in narrow(layer, FIREBias).net] != [nn.Linear, nn.ReLU, nn.Linear]:
            raise unlike_settings(
                "expected a linear map, a ReLU and a linear map as the net of FIRE's biases, got other layers"
            )


def names() -> list[str]:
    """Return the names of the position encodings for whose attention scores bounds are known (`SCORES`)."""
    return [encoding.name for encoding in SCORES]


def max_length_of(positions: PositionEncoding, max_length: int) -> int:
    """Return the largest length, up to `max_length`, for which scores depend on kinds and distances alone.

    If the query's position exceeds FIRE's limit L, scores also depend on this position. So the last position may be at
    most L.
    """
    limits = [_limit_of(layer) for layer in positions.modules() if isinstance(layer, FIREBias)]
    return min([max_length, *(int(min(max_length, float(limit))) + 1 for limit in limits)])


def scores_by_distance(
    positions: PositionEncoding, index: int, query: Intervals, key: Intervals, max_length: int
) -> Intervals:
    """Return bounds [K, K, H, T] on the scores of layer `index`, given queries and keys [K, M, H, E].

    The shapes contain K kinds, M pieces (boxes) of each kind, H heads of width E, and the distances 0 ... T - 1. The
    first axis of scores is the kind of the query, and the second axis is the kind of the key. Without an encoding of
    positions, the last axis has length 1.
    """
    return SCORES[type(positions)](positions, index, query, key, torch.arange(max_length))


def products_of(query: Intervals, key: Intervals, units: int) -> Intervals:
    """Return bounds [K, N, H] on the products of queries [K, M, H, E] and keys [N, O, H, E].

    The shapes contain K kinds of queries in M pieces (boxes) each, N kinds of keys in O pieces each, and H heads of
    width E. A bound holds for all M pieces of the query and all O pieces of the key. The bounds allow `units` units of
    rounding, relative to the sum of the absolute values of a product's terms.
    """
    (num_kinds, num_pieces), (num_keys, num_key_pieces) = query.low.shape[:2], key.low.shape[:2]
    other = tuple(_by_piece(end) for end in (key.center, key.radius, key.size))
    kinds = []
    for kind in range(num_kinds):  # all kinds at once would need K M x N O numbers
        own = query[kind : kind + 1]
        one = tuple(_by_piece(end) for end in (own.center, own.radius, own.size))
        # A query's entry is c + v and a key's entry is c' + v', with centers c and c' and deviations v and v'. Their
        # product is c c' + c v' + v (c' + v').
        center = one[0] @ other[0].mT
        radius = one[0].abs() @ other[1].mT + one[1] @ other[2].mT
        products = Intervals(center - radius, center + radius).rounded(one[2] @ other[2].mT, units)
        low, high = (end.view(len(end), num_pieces, num_keys, num_key_pieces) for end in (products.low, products.high))
        kinds.append(Intervals(low.amin((1, 3)).mT, high.amax((1, 3)).mT))
    return Intervals.stacked(kinds)


def scores_of(query: Intervals, key: Intervals) -> Intervals:
    """Return bounds [K, N, H] on the scores q . k / sqrt(E) of queries q and keys k, with heads of width E."""
    head_dim = query.low.shape[-1]
    # A kernel may scale queries and keys before the product, or scores after it, and may add the terms in any order.
    scores = _times(products_of(query, key, head_dim + 8), head_dim**-0.5)
    # These bounds are sound. But the separate checker must also accept the bounds on attention masses, so its own
    # bounds on scores must not be wider. The checker takes the rounding of every piece relative to the largest score of
    # all pieces, and not of this piece alone. Three more units make up for this difference.
    return scores.rounded(scores.size, 3)


def _without_positions(
    positions: PositionEncoding, index: int, query: Intervals, key: Intervals, distance: Int64[Tensor, " T"]
) -> Intervals:
    return scores_of(query, key)[..., None]


def _rotated(
    positions: PositionEncoding, index: int, query: Intervals, key: Intervals, distance: Int64[Tensor, " T"]
) -> Intervals:
    """Return Re(q conj(k) e^(i n w)), summed over a head's pairs of numbers, which are read as complex numbers q and k.

    Here i is the imaginary unit, n is the distance, and w is the frequency of a pair. So each pair (a, b) of a query
    and (c, d) of a key adds (a c + b d) cos(n w) + (a d - b c) sin(n w).
    """
    head_dim = query.low.shape[-1]
    angles = position_angles(len(distance), head_dim)
    center = radius = size = torch.zeros((), dtype=torch.float64)
    for pair in range(head_dim // 2):
        one, other = (states[..., 2 * pair : 2 * pair + 2] for states in (query, key))
        # The key (d, -c) gives a d - b c.
        turned = Intervals.joined([other[..., 1:], _times(other[..., :1], -1)])
        waves = angles[:, pair].cos(), angles[:, pair].sin()
        for keys, wave in zip((other, turned), waves, strict=True):
            products = products_of(one, keys, 1)[..., None]
            center = center + products.center * wave
            radius = radius + products.radius * wave.abs()
        # A rotated pair consists of two numbers, each of size at most |a| + |b|.
        sizes = one.size.sum(-1).amax(1)[:, None] * other.size.sum(-1).amax(1)
        size = size + 2 * sizes[..., None]
    # The error of a rotated number is at most three units of |a| + |b|: one for its cosine or sine, one for the
    # products, and one for their sum. The query and the key are rotated, which gives six units. Two more units cover
    # the angles, which float64 computes to 1e-11. The product and its scale are rounded as in `scores_of`.
    scores = Intervals(center - radius, center + radius).rounded(size.expand_as(center), head_dim + 8 + 8)
    return _times(scores, head_dim**-0.5)


def _relative(
    positions: TransformerXLPositions, index: int, query: Intervals, key: Intervals, distance: Int64[Tensor, " T"]
) -> Intervals:
    """Return ((q + u) . k + (q + v) . W R_n) / sqrt(E), with query q, key k and head width E.

    The vectors u and v and the matrix W are learned, and R_n contains the sinusoids of distance n.
    """
    linear = narrow(positions.maps[index], nn.Linear)
    sinusoids = Intervals.around(distance_sinusoids(len(distance), positions.sizes.d_model))
    sinusoids = sinusoids.rounded(sinusoids.size)  # the net rounds them to float32
    mapped = sinusoids.linear(linear.weight.double(), None if linear.bias is None else linear.bias.double())
    relative = Intervals(*(end.unflatten(-1, positions.u.shape)[:, None] for end in (mapped.low, mapped.high)))
    u, v = (Intervals.around(vector.double()) for vector in (positions.u, positions.v))
    by_distance = scores_of(query + v, relative)  # K T H
    return scores_of(query + u, key)[..., None] + Intervals(by_distance.low.mT, by_distance.high.mT)[:, None]


def _biased(
    bias_of: Callable[[Any, int, Int64[Tensor, " T"]], Intervals],
    positions: PositionEncoding,
    index: int,
    query: Intervals,
    key: Intervals,
    distance: Int64[Tensor, " T"],
) -> Intervals:
    bias = bias_of(positions, index, distance)
    # The bias is rounded to float32, and so is its sum with the score. The separate checker must also accept the bounds
    # on attention masses, and it assumes larger errors of elementwise functions. Three more units make these bounds
    # wider than the checker's bounds.
    return scores_of(query, key)[..., None] + bias.rounded(bias.size, 4)


def _definition(positions: DistanceBias, index: int, distance: Int64[Tensor, " T"]) -> Intervals:
    """Return the biases [H, T] of H heads and T distances, which the net looks up, or computes in float64."""
    return Intervals.around(positions.by_distance(distance).double())


def _kerple_log(positions: KerpleLog, index: int, distance: Int64[Tensor, " T"]) -> Intervals:
    """Return the biases -p ln(1 + a n) of distances n, with the learned p and a of each head."""
    p, a = _limited(positions.p), _limited(positions.a)
    return _times(p * (a * Intervals.around(distance.double())).monotone(torch.log1p), -1)


def _kerple_power(positions: KerplePower, index: int, distance: Int64[Tensor, " T"]) -> Intervals:
    """Return the biases -a n^p of distances n, with the learned p and a of each head."""
    p, a = _limited(positions.p, 2.0), _limited(positions.a)
    # n^p rises with p for n >= 1, and is 0 for n = 0.
    powers = Intervals(distance.double() ** p.low, distance.double() ** p.high)
    return _times(a * powers.rounded(powers.high, ULPS), -1)


def _limited(numbers: Float[Tensor, " H"], maximum: float | None = None) -> Intervals:
    """Return bounds [H, 1] on a KERPLE parameter of H heads, which the net limits to a range.

    For a parameter x, the net computes x + (limited x - x). This sum is exact if x is within the range.
    """
    exact = numbers.double()[:, None]
    limited = exact.clamp(FLOOR, maximum)
    # Float32 rounds the difference, the sum and the ends of the range. The separate checker must also accept the proof,
    # so its own bounds must not be wider. They are narrower than these bounds.
    radius = torch.where(limited == exact, 0.0, 3 * UNIT * (exact.abs() + limited))
    return Intervals(limited - radius, limited + radius)


def _fire(positions: FIRE, index: int, distance: Int64[Tensor, " T"]) -> Intervals:
    """Return bounds on the biases f(psi(n) / (psi(L) + 1e-6)) of distances n, with a net f and psi(x) = ln(1 + |c x|).

    The letter c is a learned number, and L is FIRE's limit. The bounds hold for queries at positions up to L.
    """
    layer = narrow(positions.layers[index], FIREBias)
    size = Intervals.around(layer.c.double().abs()[None])

    def psi(numbers: Intervals) -> Intervals:
        return (size * numbers).monotone(torch.log1p)

    limit = Intervals.around(_limit_of(layer)[None])
    # A limit that overflows is infinite in float32. For a limit of `LARGEST` or more, `rounded` returns an infinite
    # bound.
    below = psi(limit.rounded(limit.size)) + Intervals.around(torch.full_like(limit.low, EPSILON))
    above = psi(Intervals.around(distance.double()))
    # The exact numbers are not negative, but with slack the lower ends may be.
    ratio = Intervals(above.low.clamp(min=0) / below.high, above.high / below.low)
    state = ratio.rounded(ratio.size)[..., None]
    first, _, last = layer.net
    assert isinstance(first, nn.Linear)
    assert isinstance(last, nn.Linear)
    hidden = state.linear(first.weight.double(), first.bias.double()).relu()
    biases = hidden.linear(last.weight.double(), last.bias.double())
    return Intervals(biases.low.mT, biases.high.mT)


def _limit_of(layer: FIREBias) -> Float64[Tensor, ""]:
    """Return FIRE's limit L, 512 times a float32 number. Float32 represents L exactly unless L overflows."""
    return (INITIAL_LIMIT * layer.limit.double()).abs()


def _times(values: Intervals, factor: float) -> Intervals:
    """Return the intervals multiplied by a number, without slack for rounding."""
    ends = values.low * factor, values.high * factor
    return Intervals(*(ends if factor > 0 else ends[::-1]))


def _by_piece(numbers: Float64[Tensor, "K M H E"]) -> Float64[Tensor, "H N E"]:
    """Return a matrix [N, E] for each head of width E; its N = K M rows are the M pieces of each of K kinds."""
    return numbers.flatten(0, 1).transpose(0, 1)


Table = Callable[[Any, int, Intervals, Intervals, Int64[Tensor, " T"]], Intervals]

SCORES: dict[type[PositionEncoding], Table] = {
    NoPositions: _without_positions,
    ALiBi: partial(_biased, _definition),
    T5Bias: partial(_biased, _definition),
    KerpleLog: partial(_biased, _kerple_log),
    KerplePower: partial(_biased, _kerple_power),
    FIRE: partial(_biased, _fire),
    RotaryPositions: _rotated,
    TransformerXLPositions: _relative,
}
"""The encodings that have bounds, each with the function that computes the bounds on scores.

Up to the length that `max_length_of` returns, a score depends only on two kinds of positions and their distance.
"""
