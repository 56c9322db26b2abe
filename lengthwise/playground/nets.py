"""Models in the form that the page's JavaScript runs: settings, and weights in float32."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lengthwise.layers.block_linear import BlockLinearLayer
from lengthwise.layers.positions.alibi import ALiBi
from lengthwise.layers.positions.base import PositionEncoding
from lengthwise.layers.positions.bias import DistanceBias
from lengthwise.layers.positions.fire import FIRE, FIREBias
from lengthwise.layers.positions.kerple import KerpleLog, KerplePower
from lengthwise.layers.positions.learned import LearnedPositions
from lengthwise.layers.positions.none import NoPositions
from lengthwise.layers.positions.rotary import RotaryPositions, RotatedAttention
from lengthwise.layers.positions.sinusoidal import SinusoidalPositions
from lengthwise.layers.positions.t5 import T5Bias
from lengthwise.layers.positions.transformer_xl import TransformerXLPositions, XLAttention
from lengthwise.layers.read_in import SymbolReadIn
from lengthwise.layers.recurrent_layer import MixtureReadout
from lengthwise.layers.tied_readout import TiedReadout
from lengthwise.models.base import SequenceModel
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.models.gru import GRU
from lengthwise.models.lstm import LSTM
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.models.rnn import RNN
from lengthwise.models.stacked_rnn import StackedRNN
from lengthwise.models.transformer import Transformer
from lengthwise.models.wrapped import WrappedRNN
from lengthwise.ops.in_range import LARGEST

MAX_WEIGHTS = 4_000_000
"""The largest number of weights that a page contains. This many weights take 16 MB in float32, and 21 MB in base64."""

MAX_SYMBOLS = 512
"""The largest number of symbols that a transformer reads on the page, and the largest length of tables of positions."""


def net_json(model: SequenceModel) -> dict[str, Any]:
    """Return a model as plain data: its kind and settings, the names and shapes of tensors, and weights in base64.

    Raises:
        ValueError: the page has no JavaScript for a model of this kind or with these settings, or the model has more
            than 4,000,000 numbers.
    """
    export = EXPORTS.get(type(model))
    if export is None:
        raise ValueError(
            f"model: expected a model that the playground can run ({', '.join(SUPPORTED)}), got {model.name}; evaluate "
            "this model with `lengthwise predict`"
        )
    content, tensors = export(model)
    count = sum(tensor.numel() for tensor in tensors.values())
    if count > MAX_WEIGHTS:
        raise ValueError(
            f"model: expected at most {MAX_WEIGHTS:,} numbers for a page, got {count:,}; train a smaller model"
        )
    shapes = [{"name": name, "shape": list(tensor.shape)} for name, tensor in tensors.items()]
    flat = torch.cat([tensor.detach().flatten().double() for tensor in tensors.values()])
    return content | {"tensors": shapes, "weights": as_base64(flat.numpy())}


def as_base64(numbers: np.ndarray) -> str:
    """Return numbers as little-endian float32 in base64.

    Example:
        >>> as_base64(np.array([1.0, -2.0]))
        'AACAPwAAAMA='
    """
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<f4").tobytes()).decode()


Exported = tuple[dict[str, Any], Mapping[str, Tensor]]


def _tree(model: RegularGPT) -> Exported:
    config, tree = model.config, model.tree
    if tree.left_edge == "cut":
        raise ValueError(
            "model: expected a regular-gpt with left_edge 'pads', got 'cut', which the playground cannot run; use "
            "`lengthwise predict`"
        )
    settings = {
        "kind": "tree",
        "variant": config.variant,
        "heads": config.num_heads,
        "chunk": config.chunk_size,
        "lowerChunks": list(config.lower_chunk_sizes),
        "thickness": config.thickness,
        "rawPads": tree.pad_rule == "raw",
    }
    return settings, model.state_dict()


def _stacked(model: StackedRNN) -> Exported:
    config = model.config
    return {"kind": "stacked", "cell": model.name, "layers": config.num_layers, "width": config.d_model}, (
        model.state_dict()
    )


def _elman(model: RNN) -> Exported:
    return {"kind": "elman", "activation": model.config.activation}, model.state_dict()


def _block_linear(model: BlockLinearRNN) -> Exported:
    """Return one layer as a matrix and a vector for each symbol, instead of the weights that determine them."""
    if model.config.num_layers > 1:
        raise ValueError(
            "model: expected a block-linear-rnn of one layer, whose matrices depend on the symbol alone, got "
            f"{model.config.num_layers} layers, which the playground cannot run; name another model"
        )
    layer = model.layers[0]
    assert isinstance(layer, BlockLinearLayer)
    with torch.no_grad():
        features = model.norms[0](model.embedding.weight)
        tensors = {
            "transitions": layer.transitions(features),
            "values": layer.inputs(features),
            "first_state": layer.initial_state(1)[0].flatten(),
        }
    readout = {name: tensor for name, tensor in model.state_dict().items() if name.startswith("readout.")}
    is_mixture = isinstance(model.readout, MixtureReadout)
    about: dict[str, Any] = {"kind": "block-linear", "readout": "mixture" if is_mixture else "hidden"}
    if model.config.columns == "unit":
        about["largest"] = LARGEST[torch.float32]
    return about, tensors | readout


def _wrapped(model: WrappedRNN) -> Exported:
    head, core = model.readout[1], model.core
    fits = isinstance(model.embedding, nn.Embedding) and isinstance(head, nn.Linear)
    if not fits or not isinstance(core, nn.RNNBase) or core.proj_size:
        raise ValueError(
            "model: expected an nn.Embedding, then an nn.RNN, nn.GRU or nn.LSTM with proj_size=0, then an nn.Linear, "
            "got other parts, which the playground cannot run; name another model"
        )
    cell = f"rnn-{core.nonlinearity}" if model.config.core == "rnn" else model.config.core
    tensors = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("head.")}
    settings = {"kind": "wrapped", "cell": cell, "layers": model.config.num_layers, "width": model.config.hidden_size}
    return settings, tensors


def _transformer(model: Transformer) -> Exported:
    read_in = model.read_in
    if not isinstance(read_in, SymbolReadIn):
        raise ValueError(
            "model: expected a transformer that reads symbols, got a model that reads vectors, which the "
            "playground cannot run; name another model"
        )
    max_length = min(MAX_SYMBOLS, model.max_length or MAX_SYMBOLS)
    if isinstance(read_in.positions, FIRE):
        # Beyond the limit, a bias depends on both positions, so the table would need an entry for each pair.
        limits = [float(layer.limit_in_positions.detach()) for layer in _fire_biases(read_in.positions)]
        max_length = min(max_length, int(min(limits)) + 1)
    # The page gets tables by position or distance, so that no formula of an encoding is written twice.
    tensors = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("read_in.positions.")}
    tensors |= _position_tables(read_in.positions, max_length)
    if isinstance(tied := model.readout[1], TiedReadout):
        tensors["readout.1.weight"] = read_in.embedding.weight[: tied.num_classes]
    settings = {
        "kind": "transformer",
        "layers": model.config.num_layers,
        "heads": model.config.num_heads,
        "maxLength": max_length,
    }
    return settings, tensors


@torch.no_grad()
def _position_tables(positions: PositionEncoding, length: int) -> dict[str, Tensor]:
    """Return the numbers of an encoding for strings of up to `length` symbols.

    These numbers are one of the following, depending on the encoding:

    - vectors by position, which are added to states;
    - biases of scores, by layer, head and distance;
    - cosines and sines by position, which rotate queries and keys;
    - the two vectors of Transformer-XL's scores, and its keys by distance.
    """
    if type(positions) not in ENCODINGS:
        names = ", ".join(encoding.name for encoding in ENCODINGS)
        raise ValueError(
            f"model: expected a position encoding that the playground can compute ({names}), got {positions.name}; "
            "evaluate the model with `lengthwise predict`"
        )
    if isinstance(positions, NoPositions):
        return {}
    distances = torch.arange(length)
    if isinstance(positions, DistanceBias):
        biases = positions.by_distance(distances)
        return {"biases": biases.expand(positions.sizes.num_layers, -1, -1)}
    if isinstance(positions, FIRE):
        # Up to the limit, a bias depends on the distance alone, so the biases of the first key are all biases.
        zeros = torch.zeros_like(distances)
        return {"biases": torch.stack([layer.pairs(distances, zeros) for layer in _fire_biases(positions)])}
    states = torch.zeros(1, length, positions.sizes.d_model)
    if isinstance(positions, RotaryPositions):
        (rotated, *_) = positions.attention(states)
        assert isinstance(rotated, RotatedAttention)
        return {"cosines": rotated.turns.real, "sines": rotated.turns.imag}
    if isinstance(positions, TransformerXLPositions):
        falling = [layer.falling for layer in positions.attention(states) if isinstance(layer, XLAttention)]
        return {"u": positions.u, "v": positions.v, "distance_keys": torch.stack(falling).flip(2)}
    return {"positions": positions.add(states)[0]}


def _fire_biases(positions: FIRE) -> list[FIREBias]:
    return [layer for layer in positions.layers if isinstance(layer, FIREBias)]


ENCODINGS: tuple[type[PositionEncoding], ...] = (
    NoPositions,
    ALiBi,
    T5Bias,
    KerpleLog,
    KerplePower,
    FIRE,
    RotaryPositions,
    TransformerXLPositions,
    LearnedPositions,
    SinusoidalPositions,
)
"""The encodings that the page can run. Tables by position or distance may not be enough for other encodings."""

EXPORTS: Mapping[type[SequenceModel], Callable[[Any], Exported]] = {
    RegularGPT: _tree,
    BlockLinearRNN: _block_linear,
    GRU: _stacked,
    LSTM: _stacked,
    RNN: _elman,
    Transformer: _transformer,
    WrappedRNN: _wrapped,
}
"""The exporter of each class of models. Subclasses are not included, because they may compute something else."""

SUPPORTED = ("regular-gpt", "block-linear-rnn", "gru", "lstm", "rnn", "transformer", "nets of your own in TOML")
