"""The scores and values of a transformer's layer, as tables of kinds of positions and distances, with bounds."""

import math
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float64
from torch import Tensor, nn

from lengthwise.certification.methods.usual_parts import check_usual
from lengthwise.layers.positions.alibi import ALiBi
from lengthwise.layers.positions.base import PositionEncoding
from lengthwise.layers.positions.bias import DistanceBias
from lengthwise.layers.positions.none import NoPositions
from lengthwise.layers.positions.t5 import T5Bias
from lengthwise.layers.read_in import SymbolReadIn
from lengthwise.layers.transformer_layer import TransformerLayer
from lengthwise.models.transformer import Transformer
from lengthwise.ops.intervals import SMALLEST, UNIT, Intervals

POSITIONS: tuple[type[PositionEncoding], ...] = (NoPositions, ALiBi, T5Bias)
"""The encodings that have bounds: a score depends on two symbols and their distance, and on nothing else."""

MIN_KEYS_PER_CHUNK = 64
"""The smallest number of keys after which a kernel may rescale its sums. Torch's kernel takes 512 keys at a time."""

ATTENTION_ULPS = 32
"""The largest error, in units, of an exponential inside attention; `kernels` measures it."""

MAX_RELATIVE_ERROR = 0.02
"""The largest relative error of a head for which products of errors are covered."""


class Values(NamedTuple):
    """The values of each head by kind: center + directions @ a for any numbers a in [-1, 1].

    The values of one kind differ in few directions, because they come from few masses. An enclosure along these
    directions is much smaller than one along the axes.
    """

    center: Float64[Tensor, "K H E"]
    directions: Float64[Tensor, "K H E E"]

    @property
    def size(self) -> Float64[Tensor, "K H E"]:
        """The largest absolute value of each number."""
        size: Tensor = self.center.abs() + self.directions.abs().sum(-1)
        return size * (1 + 1e-12)


class Heads(NamedTuple):
    """Bounds on everything in front of a layer's heads that depends on kinds of positions and on distances alone.

    The kind of a position is its symbol in the first layer, and its symbol and state of the machine in later layers.
    Scores have axes kind of the query, kind of the key, head, distance; the last axis has length 1 without positions.
    `states` are the inputs of the layer, in pieces for each kind.
    """

    scores: Intervals
    values: Values
    states: Intervals

    def relative_error(self, length: int) -> float:
        """Return the largest relative error of a product of an attention weight and a value, on strings of a length.

        A head computes sum_i e_i v_i / sum_i e_i. Kernels subtract the largest score so far from each score. If it
        grows later, they multiply the sums so far by an exponential. Let r be the number of these products, at most
        one for each chunk of keys.

        - The differences of scores that lead to e_i add up to at most 2 S, with S the largest size of a score. Each
          rounds once, so the exponents of numerator and denominator are off by 2 S half units each.
        - Numerator and denominator have up to r + 1 exponentials, of 32 units each, and as many products.
        - A sum of t terms is off by at most t half units, in numerator and denominator. Eight units are left for the
          quotient, and for the products with the values.
        """
        largest = float(self.scores.size.max())
        num_exponentials = length // MIN_KEYS_PER_CHUNK + 2
        error = UNIT * (2 * largest + 2 * num_exponentials * (ATTENTION_ULPS + 1) + length + 8)
        # (1 + a) / (1 - b) - 1 is at most (a + b) (1 + 2 (a + b)) for such small errors.
        return error * 1.05 if error <= MAX_RELATIVE_ERROR else math.inf


def layers_of(model: Transformer) -> list[TransformerLayer]:
    """Return the layers of a model whose formula has bounds.

    Raises:
        ValueError: the model has another encoding of positions, a tied read-out, or a part or a weight that
            `check_usual` rejects.
    """
    config = model.config
    if config.readout != "linear":
        raise ValueError(f"model: expected a transformer with a linear read-out, got readout={config.readout!r}")
    kinds: set[type[nn.Module]] = {SymbolReadIn, nn.Embedding, nn.LayerNorm, nn.Identity, nn.Linear}
    check_usual(model, kinds | {nn.ModuleList, nn.Sequential, TransformerLayer, *POSITIONS})
    read_in = model.read_in
    assert isinstance(read_in, SymbolReadIn)
    if type(read_in.positions) not in POSITIONS:
        raise ValueError(f"model: expected positions none, alibi or t5, got {config.positions!r}")
    layers = []
    for layer in model.layers:
        assert isinstance(layer, TransformerLayer)
        # The layer's activation is a plain attribute, which neither weights nor parts show.
        activation = layer.activation
        is_usual = isinstance(activation, partial) and (activation.func, activation.args) == (F.gelu, ())
        if not is_usual or activation.keywords != {"approximate": "tanh"}:  # type: ignore[attr-defined]
            raise ValueError("model: expected the tanh form of GELU as activation, as configured, got another")
        layers.append(layer)
    # With max_norm, a look-up rescales the table in place, so the weights would change while the net reads.
    if read_in.embedding.max_norm is not None:
        raise ValueError(f"model: expected an embedding without max_norm, got {read_in.embedding.max_norm}")
    return layers


@torch.no_grad()
def states_of_symbols(model: Transformer, num_symbols: int) -> Intervals:
    """Return the inputs of the first layer, with one piece for each symbol, [V, 1, D]."""
    read_in = model.read_in
    assert isinstance(read_in, SymbolReadIn)
    states = Intervals.around(read_in.embedding.weight[:num_symbols, None].double())
    return states.normed(read_in.norm) if isinstance(read_in.norm, nn.LayerNorm) else states


@torch.no_grad()
def heads_of(model: Transformer, layer: TransformerLayer, states: Intervals, max_length: int) -> Heads:
    """Return the tables of a layer for strings of up to `max_length` symbols, given its inputs [K, M, D].

    Raises:
        ValueError: a score may overflow in float32.
    """
    norm, maps = layer.norms[0], layer.query_key_value
    assert isinstance(norm, nn.LayerNorm)
    positions = model.read_in.positions
    width = states.low.shape[-1]
    mapped = states.normed(norm).linear(maps.weight, maps.bias)
    query, key, value = (_by_head(part, layer.num_heads) for part in mapped.split([width] * 3))
    scores = scores_of(query, key)[..., None]
    if isinstance(positions, DistanceBias):
        bias = Intervals.around(positions.by_distance(torch.arange(max_length)).double())
        # The bias is rounded to float32, and so is its sum with the score.
        bias = bias.rounded(bias.size)
        scores = Intervals(scores.low + bias.low, scores.high + bias.high).rounded(scores.size + bias.size, 2)
    if not bool(scores.size.isfinite().all() & value.size.isfinite().all()):
        raise ValueError("model: expected scores and values that float32 represents, got some that may overflow")
    return Heads(scores, values_of(value), states)


def values_of(pieces: Intervals) -> Values:
    """Return enclosures of the pieces [K, M, H, E] of each kind and head, along the pieces' principal directions."""
    pieces = Intervals(pieces.low.transpose(1, 2), pieces.high.transpose(1, 2))  # K H M E
    middle = pieces.center.mean(2, keepdim=True)
    points = pieces.center - middle
    # Any matrix with an inverse will do. Float64 computes the inverse of an orthogonal matrix to about 1e-15.
    basis = torch.linalg.svd(points.mT @ points).U
    along, off = points @ basis, pieces.radius @ basis.abs()
    low, high = (along - off).amin(2), (along + off).amax(2)
    center = middle[:, :, 0] + (basis @ ((low + high) / 2)[..., None])[..., 0]
    slack = 1e-12 * (pieces.size.amax((2, 3)) + SMALLEST)
    return Values(center, basis * ((high - low) / 2 + slack[..., None])[..., None, :])


def scores_of(query: Intervals, key: Intervals) -> Intervals:
    """Return the scores [K, K, H] of queries and keys [K, M, H, E], over all of their pieces."""
    num_kinds, num_pieces, _, head_dim = query.low.shape
    other = tuple(_by_piece(end) for end in (key.center, key.radius, key.size))
    kinds = []
    for kind in range(num_kinds):  # all at once would need K M x K M numbers
        own = query[kind : kind + 1]
        one = tuple(_by_piece(end) for end in (own.center, own.radius, own.size))
        # (c + v)(c' + v') = c c' + c v' + v (c' + v'), number by number. A kernel may scale queries and keys before the
        # product, or scores after it, and takes the terms in any order.
        center = one[0] @ other[0].mT
        radius = one[0].abs() @ other[1].mT + one[1] @ other[2].mT
        scores = Intervals(center - radius, center + radius).rounded(one[2] @ other[2].mT, head_dim + 8)
        low, high = (end.unflatten(2, (num_kinds, num_pieces)) for end in (scores.low, scores.high))
        kinds.append(Intervals(low.amin((1, 3)).mT, high.amax((1, 3)).mT))
    scores = Intervals.stacked(kinds)
    return Intervals(scores.low * head_dim**-0.5, scores.high * head_dim**-0.5)


def _by_piece(numbers: Float64[Tensor, "K M H E"]) -> Float64[Tensor, "H N E"]:
    """Return the numbers of each head, with one row for each piece of any kind."""
    return numbers.flatten(0, 1).transpose(0, 1)


def _by_head(part: Intervals, num_heads: int) -> Intervals:
    """Return intervals [K, M, D] as [K, M, H, E]."""
    return Intervals(*(end.unflatten(-1, (num_heads, -1)) for end in (part.low, part.high)))


def ratio_bounds(heads: Heads) -> tuple[Float64[Tensor, "X K H"], Float64[Tensor, "X K H"]]:
    """Return bounds on f e^(s - s_0), over all distances, for the scores s of each head and s_0 of the first head.

    The factor f of a query symbol and a head makes the largest upper bound 1, so that no exponential overflows.
    """
    scores = heads.scores
    low = (scores.low - scores.high[:, :, :1]).amin(-1)
    high = (scores.high - scores.low[:, :, :1]).amax(-1)
    shift = high.amax(1, keepdim=True)
    return (low - shift).exp(), (high - shift).exp()
