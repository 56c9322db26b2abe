"""The scores and values of a transformer of one layer, as tables of symbols and distances with bounds on rounding."""

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
from lengthwise.ops.intervals import UNIT, Intervals

POSITIONS: tuple[type[PositionEncoding], ...] = (NoPositions, ALiBi, T5Bias)
"""The encodings that have bounds: a score depends on two symbols and their distance, and on nothing else."""

MIN_KEYS_PER_CHUNK = 64
"""The smallest number of keys after which a kernel may rescale its sums. Torch's kernel takes 512 keys at a time."""

ATTENTION_ULPS = 32
"""The largest error, in units, of an exponential inside attention; `kernels` measures it."""

MAX_RELATIVE_ERROR = 0.02
"""The largest relative error of a head for which products of errors are covered."""


class Heads(NamedTuple):
    """Bounds on everything in front of the head's output that depends on symbols and distances alone.

    Scores have axes query symbol, key symbol, head, distance; the last axis has length 1 without positions. `states`
    are the inputs of the layer, and `values` the values of each head, by symbol.
    """

    scores: Intervals
    values: Intervals
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


def layer_of(model: Transformer) -> TransformerLayer:
    """Return the layer of a model whose formula has bounds.

    Raises:
        ValueError: the model has several layers, another encoding of positions, a tied read-out, or a part or a weight
            that `check_usual` rejects.
    """
    config = model.config
    if config.num_layers != 1 or config.readout != "linear":
        raise ValueError(
            "model: expected a transformer of one layer with a linear read-out, got "
            f"num_layers={config.num_layers}, readout={config.readout!r}"
        )
    kinds: set[type[nn.Module]] = {SymbolReadIn, nn.Embedding, nn.LayerNorm, nn.Identity, nn.Linear}
    check_usual(model, kinds | {nn.ModuleList, nn.Sequential, TransformerLayer, *POSITIONS})
    read_in, (layer,) = model.read_in, model.layers
    assert isinstance(read_in, SymbolReadIn)
    assert isinstance(layer, TransformerLayer)
    if type(read_in.positions) not in POSITIONS:
        raise ValueError(f"model: expected positions none, alibi or t5, got {config.positions!r}")
    # The layer's activation is a plain attribute, which neither weights nor parts show.
    activation = layer.activation
    is_usual = isinstance(activation, partial) and (activation.func, activation.args) == (F.gelu, ())
    if not is_usual or activation.keywords != {"approximate": "tanh"}:  # type: ignore[attr-defined]
        raise ValueError("model: expected the tanh form of GELU as activation, as configured, got another")
    # With max_norm, a look-up rescales the table in place, so the weights would change while the net reads.
    if read_in.embedding.max_norm is not None:
        raise ValueError(f"model: expected an embedding without max_norm, got {read_in.embedding.max_norm}")
    return layer


@torch.no_grad()
def heads_of(model: Transformer, num_symbols: int, max_length: int) -> Heads:
    """Return the tables of a model for strings of up to `max_length` symbols.

    Raises:
        ValueError: `layer_of` rejects the model, or a score may overflow in float32.
    """
    layer, read_in = layer_of(model), model.read_in
    assert isinstance(read_in, SymbolReadIn)
    states = Intervals.around(read_in.embedding.weight[:num_symbols].double())
    if isinstance(read_in.norm, nn.LayerNorm):
        states = states.normed(read_in.norm)
    (norm, _), maps = layer.norms, layer.query_key_value
    assert isinstance(norm, nn.LayerNorm)
    width = states.low.shape[-1]
    query, key, value = (
        _by_head(part, layer.num_heads)
        for part in states.normed(norm).linear(maps.weight, maps.bias).split([width] * 3)
    )
    # A product of two intervals, number by number, then their sum. A kernel may scale queries and keys before the
    # product, or scores after it, and takes the terms in any order.
    head_dim = width // layer.num_heads
    products = query[:, None] * key[None]
    size = (query.size[:, None] * key.size).sum(-1)
    scale = head_dim**-0.5
    scores = Intervals(products.low.sum(-1), products.high.sum(-1)).rounded(size, head_dim + 8)
    scores = Intervals(scores.low * scale, scores.high * scale)[..., None]
    if isinstance(read_in.positions, DistanceBias):
        bias = Intervals.around(read_in.positions.by_distance(torch.arange(max_length)).double())
        # The bias is rounded to float32, and so is its sum with the score.
        bias = bias.rounded(bias.size)
        scores = Intervals(scores.low + bias.low, scores.high + bias.high).rounded(scores.size + bias.size, 2)
    if not bool(scores.size.isfinite().all() & value.size.isfinite().all()):
        raise ValueError("model: expected scores and values that float32 represents, got some that may overflow")
    return Heads(scores, value, states)


def _by_head(part: Intervals, num_heads: int) -> Intervals:
    """Return intervals [V, D] as [V, H, E]."""
    return Intervals(*(end.unflatten(-1, (num_heads, -1)) for end in (part.low, part.high)))


def ratio_bounds(heads: Heads) -> tuple[Float64[Tensor, "X V H"], Float64[Tensor, "X V H"]]:
    """Return bounds on f e^(s - s_0), over all distances, for the scores s of each head and s_0 of the first head.

    The factor f of a query symbol and a head makes the largest upper bound 1, so that no exponential overflows.
    """
    scores = heads.scores
    low = (scores.low - scores.high[:, :, :1]).amin(-1)
    high = (scores.high - scores.low[:, :, :1]).amax(-1)
    shift = high.amax(1, keepdim=True)
    return (low - shift).exp(), (high - shift).exp()
