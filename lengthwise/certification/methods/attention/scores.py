"""Bounds on the attention scores and values of a transformer layer, which depend on symbols, states and distances."""

import math
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float64
from torch import Tensor, nn

from lengthwise.certification.methods.attention import distances
from lengthwise.certification.methods.usual_parts import check_usual, unlike_settings
from lengthwise.layers.positions.base import PositionSizes
from lengthwise.layers.read_in import SymbolReadIn
from lengthwise.layers.transformer_layer import TransformerLayer
from lengthwise.models.transformer import Transformer
from lengthwise.ops.intervals import SMALLEST, UNIT, Intervals
from lengthwise.validation import narrow, type_in_words

MIN_KEYS_PER_CHUNK = 64
"""The smallest number of keys between two rescalings of an attention kernel's sums; 512 in Torch's kernel."""

ATTENTION_ULPS = 32
"""The largest relative error, in multiples of `UNIT`, of an exponential inside attention.

`certification.kernels` measures the error on this computer.
"""

MAX_RELATIVE_ERROR = 0.02
"""The largest relative error of a head, to first order.

Up to this error, a factor of 1.05 covers all products of errors.
"""


class Values(NamedTuple):
    """Enclosures of each head's values for each kind of position: vectors center + directions @ a with |a_i| <= 1.

    The values of one kind differ in few directions, because they depend on few attention masses (`masses`). An
    enclosure along these directions is much smaller than an enclosure along the axes.
    """

    center: Float64[Tensor, "K H E"]
    directions: Float64[Tensor, "K H E E"]

    @property
    def size(self) -> Float64[Tensor, "K H E"]:
        """An upper bound on the absolute value of each number in the enclosed value vectors."""
        size: Tensor = self.center.abs() + self.directions.abs().sum(-1)
        return size * (1 + 1e-12)


class Heads(NamedTuple):
    """Bounds on the scores, values and inputs of a layer, which depend on kinds of positions and on distances alone.

    The kind of a position is its symbol in the first layer, and its symbol and the machine's state in later layers. The
    axes of scores are the kind of the query, the kind of the key, the head, and the distance. Without an encoding of
    positions, the last axis has length 1. `states` contains boxes around the layer's inputs. Each kind of position has
    one or more boxes.
    """

    scores: Intervals
    values: Values
    states: Intervals

    def relative_error(self, length: int) -> float:
        """Return the largest relative error of an attention weight times a value, for strings up to a length.

        A head computes sum_i e_i v_i / sum_i e_i, with the exponential e_i of the score of position i and the value
        v_i. Kernels subtract the largest score so far from each score. When the largest score grows, they multiply the
        sums so far by an exponential. Let r be the number of such rescalings. Each chunk of keys causes at most one
        rescaling. One unit is 2^-23 of the rounded number.

        - The exponent of e_i is a sum of differences of scores. The sizes of these differences add up to at most 2 S,
          with S the largest size of a score. Each difference rounds once, so the exponents of numerator and denominator
          are off by 2 S half units each.
        - Each term of numerator and denominator has up to r + 1 exponentials, off by 32 units each, and as many
          products.
        - A sum of t terms is off by at most t half units, in numerator and denominator. Eight units are left for the
          quotient, and for the products with the values.
        """
        largest = float(self.scores.size.max())
        num_exponentials = length // MIN_KEYS_PER_CHUNK + 2
        error = UNIT * (2 * largest + 2 * num_exponentials * (ATTENTION_ULPS + 1) + length + 8)
        # For small relative errors a of the numerator and b of the denominator, (1 + a) / (1 - b) - 1 is at most
        # (a + b) (1 + 2 (a + b)).
        return error * 1.05 if error <= MAX_RELATIVE_ERROR else math.inf


def layers_of(model: Transformer) -> list[TransformerLayer]:
    """Return the layers of a model, after checks that proofs support all its parts.

    Raises:
        ValueError: the read-out is not linear, or `check_usual` rejects a part or a weight. The encoding of positions
            has no bounds, or does not follow the model's settings. The part after the embedding is neither a LayerNorm
            nor an identity. The number of heads or the activation is not as configured.
    """
    config = model.config
    if config.readout != "linear":
        raise ValueError(
            f"model: expected a transformer with readout='linear', got readout={config.readout!r}; train one with "
            "readout='linear'"
        )
    kinds: set[type[nn.Module]] = {SymbolReadIn, nn.Embedding, nn.LayerNorm, nn.Identity, nn.Linear}
    check_usual(model, kinds | distances.KINDS | {nn.Sequential, TransformerLayer, *distances.SCORES})
    read_in = narrow(model.read_in, SymbolReadIn)
    if type(read_in.norm) not in (nn.LayerNorm, nn.Identity):
        raise unlike_settings(f"expected a LayerNorm or nothing after the embedding, got {type_in_words(read_in.norm)}")
    sizes = PositionSizes(config.d_model, config.num_heads, config.num_layers, read_in.positions.sizes.max_positions)
    distances.check_encoding(read_in.positions, sizes)
    layers = [narrow(layer, TransformerLayer) for layer in model.layers]
    for layer in layers:
        if layer.num_heads != config.num_heads:  # the bounds on angles use the settings
            raise ValueError(
                f"model: expected num_heads={config.num_heads} in each layer, as its settings imply, got "
                f"num_heads={layer.num_heads}; build the model again, and load its weights"
            )
        # The layer's activation is a plain attribute, which is neither a weight nor a part.
        activation = layer.activation
        is_usual = type(activation) is partial and (activation.func, activation.args) == (F.gelu, ())
        if not is_usual or activation.keywords != {"approximate": "tanh"}:  # type: ignore[attr-defined]
            raise ValueError(
                "model: expected the tanh form of GELU as activation, got another activation; build the model again, "
                "and load its weights"
            )
    return layers


@torch.no_grad()
def states_of_symbols(model: Transformer, num_symbols: int) -> Intervals:
    """Return the inputs [V, 1, D] of the first layer, with one box (piece) for each symbol."""
    read_in = narrow(model.read_in, SymbolReadIn)
    states = Intervals.around(read_in.embedding.weight[:num_symbols, None].double())
    return states.normed(read_in.norm) if isinstance(read_in.norm, nn.LayerNorm) else states


@torch.no_grad()
def heads_of(model: Transformer, index: int, states: Intervals, max_length: int) -> Heads:
    """Return bounds on a layer's scores and values, given boxes [K, M, D] of its inputs.

    Each of K kinds of positions has M boxes of width D. The bounds hold for strings of up to `max_length` symbols.

    Raises:
        ValueError: a score or a value may overflow in float32.
    """
    layer = narrow(model.layers[index], TransformerLayer)
    norm, maps = narrow(layer.norms[0], nn.LayerNorm), layer.query_key_value
    width = states.low.shape[-1]
    mapped = states.normed(norm).linear(maps.weight, maps.bias)
    query, key, value = (_by_head(part, layer.num_heads) for part in mapped.split([width] * 3))
    scores = distances.scores_by_distance(model.read_in.positions, index, query, key, max_length)
    if not bool(scores.size.isfinite().all() & value.size.isfinite().all()):
        raise ValueError(
            "model: expected finite attention scores and values, got some that may overflow in float32; train a "
            "model with smaller weights"
        )
    return Heads(scores, values_of(value), states)


def values_of(pieces: Intervals) -> Values:
    """Enclose the M pieces (boxes) of values of each kind of position and each head by one box.

    The sides of this box are along the principal directions of the pieces' centers.
    """
    pieces = Intervals(pieces.low.transpose(1, 2), pieces.high.transpose(1, 2))  # K H M E
    middle = pieces.center.mean(2, keepdim=True)
    points = pieces.center - middle
    # The transpose of the basis serves as its inverse. The basis is orthogonal up to float64 rounding, about 1e-15,
    # which `slack` covers. Its directions need not be exactly the principal directions.
    basis = torch.linalg.svd(points.mT @ points).U
    along, off = points @ basis, pieces.radius @ basis.abs()
    low, high = (along - off).amin(2), (along + off).amax(2)
    center = middle[:, :, 0] + (basis @ ((low + high) / 2)[..., None])[..., 0]
    slack = 1e-12 * (pieces.size.amax((2, 3)) + SMALLEST)
    return Values(center, basis * ((high - low) / 2 + slack[..., None])[..., None, :])


def _by_head(part: Intervals, num_heads: int) -> Intervals:
    """Return intervals [K, M, D] as [K, M, H, E], with D split into H heads of width E."""
    return Intervals(*(end.unflatten(-1, (num_heads, -1)) for end in (part.low, part.high)))


def ratio_bounds(heads: Heads) -> tuple[Float64[Tensor, "X K H"], Float64[Tensor, "X K H"]]:
    """Return bounds on f e^(s - s_0), over all distances, for the scores s of each head and s_0 of the first head.

    The factor f depends on the kind of the query and on the head. It makes the largest upper bound 1, so that no
    exponential overflows.
    """
    scores = heads.scores
    low = (scores.low - scores.high[:, :, :1]).amin(-1)
    high = (scores.high - scores.low[:, :, :1]).amax(-1)
    shift = high.amax(1, keepdim=True)
    return (low - shift).exp(), (high - shift).exp()
