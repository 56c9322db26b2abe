"""Layers that are made directly, without a model's settings: a size or a choice that cannot be is named."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from lengthwise.layers.block_linear import BlockLinearLayer, num_symbol_features, num_transition_features
from lengthwise.layers.codebook import Codebook
from lengthwise.layers.delta_net import DeltaNetLayer
from lengthwise.layers.feed_forward_layer import FeedForwardLayer
from lengthwise.layers.gated_cells import GRULayer, LSTMLayer
from lengthwise.layers.grid_cells import CategoricalCell, FreeCell, NumberReadout
from lengthwise.layers.linear_cde import LinearCDELayer
from lengthwise.layers.linear_recurrence import DenseLinearLayer, InputDependentLayer, LRULayer, S5Layer
from lengthwise.layers.log_depth import GatedSum, LinearOperator, LogDepthLayer, MLPOperator
from lengthwise.layers.mamba import Mamba2Layer, MambaLayer
from lengthwise.layers.positions.base import PositionEncoding, PositionSizes
from lengthwise.layers.positions.t5 import t5_buckets
from lengthwise.layers.read_in import SymbolReadIn, VectorReadIn
from lengthwise.layers.recurrent_layer import Gated, MixtureReadout, RecurrentLayer, Topmost, hidden_layer_readout
from lengthwise.layers.rwkv import ChannelMix, TimeMix
from lengthwise.layers.short_convolution import ShortConvolution
from lengthwise.layers.sparse_linear import PDSSMLayer
from lengthwise.layers.state_space import LiquidS4Layer, S4DLayer, S4Layer, eigenvalues, legs, legs_pairs
from lengthwise.layers.tied_readout import TiedReadout
from lengthwise.layers.timestep import ConstantScales, TimestepScales
from lengthwise.layers.transformer_layer import TransformerLayer
from lengthwise.layers.tree_layers import MergeLayer
from lengthwise.layers.xlstm import MLSTMLayer, SLSTMLayer
from lengthwise.ops.column_norm import hard_columns, unit_columns
from lengthwise.registry import Registry

pytestmark = pytest.mark.unchecked  # the package itself is to refuse them, without beartype

PD_SSM = {"d_model": 8, "d_state": 8, "num_matrices": 2, "diagonal": "none", "driven": False, "form": "scatter"}

BLOCKS = {"d_model": 4, "block_dim": 2, "columns": "clamped", "p": 1.2, "hidden": 4}
POSITIONS = PositionEncoding(PositionSizes(4, 2, 1, 8))
READ = {"vocab_size": 2, "d_model": 4}
TRANSFORMER = TransformerLayer(d_model=4, num_heads=2, kind="gpt2")
MERGE = {"d_model": 4, "num_heads": 2, "chunk_size": 2}


def codes_of(codes: object) -> None:
    Codebook(max_codes=2, d_model=2).fill(codes)  # type: ignore[arg-type]  # the point of the test


LAYERS: list[tuple[Callable[..., nn.Module], dict[str, object]]] = [
    (Codebook, {"max_codes": 8, "d_model": 8}),
    (DeltaNetLayer, {"d_model": 8, "num_heads": 2, "householders": 2}),
    (FeedForwardLayer, {"d_model": 8, "hidden": 8}),
    (GRULayer, {"d_model": 8}),
    (LSTMLayer, {"d_model": 8}),
    (CategoricalCell, {"num_letters": 2, "num_messages": 2, "num_relations": 2}),
    (FreeCell, {"num_letters": 2, "d_model": 8, "hidden": 8}),
    (NumberReadout, {"num_classes": 2, "sharpness": 1.0}),
    (LinearCDELayer, {"d_model": 8, "structure": "block", "block_dim": 4, "rank": 2}),
    (DenseLinearLayer, {"d_model": 8, "d_state": 8}),
    (LRULayer, {"d_model": 8, "d_state": 8}),
    (S5Layer, {"d_model": 8, "d_state": 8}),
    (InputDependentLayer, {"d_model": 8, "hidden": 8}),
    (MLPOperator, {"d_model": 8}),
    (GatedSum, {"d_model": 8}),
    (LinearOperator, {"d_model": 8}),
    (LogDepthLayer, {"d_model": 8, "operator": "mlp"}),
    (MambaLayer, {"d_model": 8, "d_state": 8}),
    (Mamba2Layer, {"d_model": 8, "d_state": 8, "num_heads": 2}),
    (MixtureReadout, {"num_states": 8, "num_classes": 2}),
    (TimeMix, {"d_model": 8}),
    (ChannelMix, {"d_model": 8}),
    (PDSSMLayer, PD_SSM),
    (S4DLayer, {"d_model": 8, "d_state": 8, "start": "lin"}),
    (S4Layer, {"d_model": 8, "d_state": 8}),
    (LiquidS4Layer, {"d_model": 8, "d_state": 8}),
    (TimestepScales, {"d_model": 8}),
    (ConstantScales, {"d_model": 8}),
    (ShortConvolution, {"channels": 8, "width": 2}),
]


@pytest.mark.parametrize("wrong", [-4, 0, True, "8", None])
@pytest.mark.parametrize(("layer", "sizes"), LAYERS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_size_that_is_not_a_positive_whole_number_is_named(
    layer: Callable[..., nn.Module], sizes: dict[str, object], wrong: object
) -> None:
    layer(**sizes)
    for name, size in sizes.items():
        # Numbers of heads and blocks are checked as divisors of `d_model`. A grid may have no letters.
        if type(size) is int and name not in ("num_heads", "block_dim", "num_letters"):
            with pytest.raises(ValueError, match=f"^(d_model|{name}): expected a "):
                layer(**{**sizes, name: wrong})


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: PDSSMLayer(**{**PD_SSM, "diagonal": "half"}), "diagonal: expected 'full' or 'phase' or 'none', got"),
        (lambda: PDSSMLayer(**{**PD_SSM, "form": "scater"}), "form: expected 'scatter' or 'gather', got 'scater'"),
        (lambda: TimestepScales(d_model=8, time="steps"), "time: expected 'index' or 'fraction', got 'steps'"),
        (lambda: ConstantScales(d_model=8, gates="shut"), "gates: expected 'closed' or 'open', got 'shut'"),
        (lambda: unit_columns(torch.ones(3)), r"matrices: expected square matrices \[..., S, S\], got shape \[3\]"),
        (lambda: LogDepthLayer(d_model=8, operator="lin"), "operator: expected 'mlp' or 'gated-sum' or 'linear', got"),
        (
            lambda: DeltaNetLayer(d_model=8, num_heads=2, householders=1, eigenvalues="signd"),
            "eigenvalues: expected 'signed' or 'positive', got 'signd'",
        ),
        (lambda: MergeLayer(**MERGE, hidden=0), "hidden: expected a whole number of at least 1, got 0; give 1"),
        (lambda: MergeLayer(**MERGE, hidden="a"), "hidden: expected a whole number of at least 1, got 'a'; give 1"),
        (lambda: MergeLayer(**MERGE, hidden=1), "hidden: expected at least 2 units, got 1; give one for each block"),
        (lambda: NumberReadout(3, sharpness=-1), "sharpness: expected a number above 0, got -1; choose"),
        (lambda: NumberReadout(3, sharpness=float("nan")), "sharpness: expected a number above 0, got nan; choose"),
        (
            lambda: BlockLinearLayer(**{**BLOCKS, "p": 0.1}),
            "p: expected a finite number of at least 1, got 0.1; choose",
        ),
        (lambda: BlockLinearLayer(**{**BLOCKS, "hidden": -4}), "hidden: expected a whole number of at least 1, got -4"),
        (lambda: num_transition_features(4, 2, "zz"), "columns: expected 'stochastic' or .*, got 'zz'; choose"),
        (lambda: num_symbol_features(4, 3, "unit"), "block_dim: expected a divisor of d_model=4, got 3; choose"),
        (lambda: MambaLayer(d_model=4, d_state=4, conv="a"), "conv: expected a whole number of at least 0, got 'a'"),
        (
            lambda: MambaLayer(d_model=4, d_state=4, conv=-1),
            "conv: expected a whole number of at least 0, got -1; give",
        ),
        (lambda: SLSTMLayer(d_model=4, num_heads=1, conv=None), "conv: expected a whole number of at least 0, got Non"),
        (lambda: Gated(None, d_model=4), "layer: expected a recurrent layer, got None; give one"),
        (lambda: codes_of([[1.0, 2.0]]), "codes: expected a tensor, got a list"),
        (lambda: codes_of(torch.ones(2, 1)), r"codes: expected shape \[K, 2\], got \[2, 1\]; give one vector per code"),
        (
            lambda: codes_of(torch.full((1, 2), float("nan"))),
            "codes: expected finite numbers, got NaN or infinity; check",
        ),
        (
            lambda: DeltaNetLayer(d_model=4, num_heads=True),
            "num_heads: expected a divisor of d_model=4, got True; choose",
        ),
        (lambda: DeltaNetLayer(d_model=4, num_heads=2, gated="a"), "gated: expected True or False, got 'a'; give one"),
        (
            lambda: MambaLayer(d_model=4, d_state=4, learned_start=3),
            "learned_start: expected True or False, got 3; give",
        ),
        (lambda: PDSSMLayer(**{**PD_SSM, "driven": "a"}), "driven: expected True or False, got 'a'; give one"),
        (
            lambda: S4DLayer(d_model=4, d_state=3, start="lin"),
            "d_state: expected an even number, because .*, got 3; choose",
        ),
        (lambda: legs("a"), "size: expected a whole number of at least 1, got 'a'; give 1"),
        (lambda: legs_pairs(3), "size: expected an even number, because .*, got 3; choose 4"),
        (lambda: eigenvalues("zz", 4), "name: expected 'legs' or 'lin' or 'inv', got 'zz'; choose"),
        (lambda: SymbolReadIn(**READ, positions=None), "positions: expected a position encoding, got None; give one"),
        (lambda: SymbolReadIn(**READ, positions=POSITIONS, kind="zz"), "kind: expected 'normed' or 'plain', got 'zz'"),
        (
            lambda: SymbolReadIn(**READ, positions=POSITIONS, num_rows=-1),
            "num_rows: expected a whole number of at least 1",
        ),
        (
            lambda: VectorReadIn(input_dim=2, d_model=4, positions=None),
            "positions: expected a position encoding, got None",
        ),
        (lambda: Topmost(0), "width: expected a whole number of at least 1, got 0; give 1"),
        (lambda: hidden_layer_readout(2, -2, 2), "hidden: expected a whole number of at least 1, got -2; give 1"),
        (lambda: TiedReadout(None, 3), "embedding: expected an nn.Embedding, got None; give one"),
        (
            lambda: TiedReadout(nn.Embedding(2, 2), 5),
            "num_classes: expected a whole number from 1 to 2, got 5; give",
        ),
        (lambda: ConstantScales(d_model=4)("a"), "num_loops: expected a whole number, got 'a'; give one"),
        (lambda: TRANSFORMER(torch.ones(1, 2, 5)), r"states: expected shape \[B, T, 4\], got \[1, 2, 5\]; give"),
        (lambda: TRANSFORMER(torch.ones(1, 2, 4), 3), "scales: expected Scales or None, got 3; give one"),
        (lambda: TRANSFORMER(torch.ones(1, 2, 4), None, 3), "attention: expected a CausalAttention, got 3; give one"),
        (
            lambda: MLSTMLayer(d_model=3, num_heads=1),
            "d_model: expected an even number, for blocks of 4 x 4, got 3; add 1",
        ),
        (
            lambda: MLSTMLayer(d_model=4, num_heads=1, num_blocks=0),
            "num_blocks: expected a whole number of at least 1, got",
        ),
        (
            lambda: CategoricalCell(num_letters=-1, num_messages=2, num_relations=2),
            "num_letters: expected a whole number",
        ),
        (
            lambda: FreeCell(num_letters="a", d_model=2, hidden=2),
            "num_letters: expected a whole number of at least 1, got",
        ),
        (lambda: PositionEncoding(None), "sizes: expected a PositionSizes, got None; give one"),
        (lambda: t5_buckets([1]), "distance: expected a tensor, got a list"),
        (
            lambda: BlockLinearLayer(**{**BLOCKS, "hidden": 0}).transitions(torch.ones(1, 3)),
            r"features: expected shape \[..., 12\], got \[1, 3\]; give vectors of 12 numbers",
        ),
        (lambda: hard_columns(torch.ones(2, 2), dim=5), "dim: expected -2 for columns or -1 for rows .*, got 5"),
        (lambda: Registry("task", "lengthwise.tasks").register("mine")(3), "task 'mine': expected a class or a func"),
    ],
)
def test_a_wrong_choice_or_shape_is_named(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        call()


RECURRENT = [
    *(part for part in LAYERS if issubclass(part[0], RecurrentLayer)),  # type: ignore[arg-type]  # all are classes
    (SLSTMLayer, {"d_model": 8, "num_heads": 2}),
    (MLSTMLayer, {"d_model": 8, "num_heads": 2}),
]


@pytest.mark.parametrize(("kind", "sizes"), RECURRENT, ids=lambda value: getattr(value, "__name__", ""))
def test_recurrent_layers_name_features_and_states_of_another_shape(
    kind: Callable[..., RecurrentLayer], sizes: dict[str, object]
) -> None:
    layer = kind(**sizes)
    layer.reset_parameters(torch.Generator())
    features = torch.ones(2, 3, 8)
    state = layer.initial_state(features[:, 0])
    layer(features, state)
    for wrong in (features[..., :7], features[0], features[:, :0]):
        with pytest.raises(ValueError, match=r"^features: expected shape \[B, T, 8\] with T of at least 1, got \["):
            layer(wrong, state)
    with pytest.raises(ValueError, match=r"^features: expected a tensor, got a list"):
        layer([1.0], state)
    with pytest.raises(ValueError, match=r"^state: expected shape \[2, \d+\], got \[1, \d+\]; give one state"):
        layer(features, state[:1])
