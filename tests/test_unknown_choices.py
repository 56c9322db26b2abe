"""Choices and sizes that would fall through: one sentence that begins with the argument's name."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch

from lengthwise.constructions.memorization.closed_form import permutation
from lengthwise.constructions.memorization.words import parse_word
from lengthwise.layers.block_linear import BlockLinearLayer
from lengthwise.layers.linear_cde import LinearCDELayer
from lengthwise.layers.mamba import Mamba2Layer, MambaLayer
from lengthwise.layers.positions.alibi import ALiBi, alibi_slopes
from lengthwise.layers.positions.base import PositionSizes
from lengthwise.layers.state_space import S4DLayer
from lengthwise.layers.transformer_layer import TransformerLayer
from lengthwise.ops.selective_scan import selective_scan
from lengthwise.training.muon import Muon

pytestmark = pytest.mark.unchecked  # the package itself is to refuse them, without beartype

ONES = torch.ones(1, 3, 1)
MATRICES = [torch.nn.Parameter(torch.ones(2, 2))]

block_linear = partial(BlockLinearLayer, d_model=4, block_dim=2, columns="clamped", p=1.2, hidden=3)
mamba = partial(MambaLayer, d_model=4, d_state=2)
transformer = partial(TransformerLayer, d_model=4, num_heads=2, kind="rms")
diagonal = partial(S4DLayer, d_model=4, d_state=2)
linear_cde = partial(LinearCDELayer, d_model=4, block_dim=2, rank=1)
mamba2 = partial(Mamba2Layer, d_model=4, d_state=2, num_heads=2)
scan = partial(selective_scan, ONES, -torch.ones(1, 1), ONES, ONES, ONES, torch.zeros(1, 1, 1))


@pytest.mark.parametrize(
    ("call", "argument", "value", "expected"),
    [
        (partial(permutation, parse_word("abc")), "action", "foo", "'inverse' or 'note'"),
        (block_linear, "columns", "foo", "'stochastic' or 'reflected' or 'clamped' or 'rescaled' or 'unit'"),
        (block_linear, "input_map", "foo", "'two-layer' or 'linear'"),
        (block_linear, "first_state", "foo", "'learned' or 'zero'"),
        (block_linear, "first_state", 3, "'learned' or 'zero'"),
        (transformer, "kind", "rmss", "'scaled' or 'rms' or 'gpt2'"),
        (transformer, "activation", "relu", "'silu' or 'gelu' or 'gelu-tanh'"),
        (diagonal, "start", "legz", "'legs' or 'lin' or 'inv'"),
        (linear_cde, "structure", "x", "'block' or 'low-rank' or 'low-rank-product'"),
        (mamba, "eigenvalues", "foo", "'positive' or 'signed'"),
        (mamba2, "eigenvalues", "foo", "'positive' or 'signed'"),
        (scan, "eigenvalues", "foo", "'positive' or 'signed'"),
    ],
)
def test_unknown_choices_are_named(call: Callable[..., object], argument: str, value: object, expected: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the sentence is compared below
        call(**{argument: value})
    assert str(caught.value) == f"{argument}: expected {expected}, got {value!r}; choose one of these"


@pytest.mark.parametrize("block_dim", [2, 0, -1])
def test_blocks_that_do_not_fill_the_width_are_named(block_dim: int) -> None:
    with pytest.raises(ValueError, match=f"^block_dim: expected a divisor of d_model=7, got {block_dim}; choose"):
        block_linear(d_model=7, block_dim=block_dim)


def test_positions_without_heads_are_named() -> None:
    for num_heads in (0, 3):
        with pytest.raises(ValueError, match=f"^num_heads: expected a divisor of d_model=4, got {num_heads}; choose"):
            ALiBi(PositionSizes(4, num_heads, 1, 0))
    with pytest.raises(ValueError, match=r"^num_heads: expected a whole number of at least 1, got 0; give 1 or more$"):
        alibi_slopes(0)


@pytest.mark.parametrize(
    ("argument", "value", "expected"),
    [
        ("lr", -1, "a finite number of at least 0"),
        ("lr", math.nan, "a finite number of at least 0"),
        ("weight_decay", -0.1, "a finite number of at least 0"),
        ("momentum", 1.0, "a number of at least 0 and below 1"),
    ],
)
def test_rates_that_muon_cannot_use_are_named(argument: str, value: float, expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{argument}: expected {expected}, got {value}; try 0"):
        Muon(MATRICES, **{"lr": 0.1, argument: value})
