"""Attention with positions in its fast forms and by its definition, to compare values and gradients."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lengthwise.layers.positions.base import POSITIONS, CausalAttention, PositionEncoding, PositionSizes

HEADS, HEAD_WIDTH, WIDTH, LAYERS = 2, 4, 8, 2


def draw_encoding(name: str, max_positions: int) -> PositionEncoding:
    """Of two layers, in float64, every parameter another number."""
    encoding = POSITIONS[name](PositionSizes(WIDTH, HEADS, LAYERS, max_positions))
    generator = torch.Generator().manual_seed(0)
    encoding.reset_parameters(generator)
    encoding.double()
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter += 0.05 + 0.1 * torch.rand(parameter.shape, generator=generator)
    return encoding


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def queries_keys_values(length: int) -> list[Tensor]:
    return [draw(2, HEADS, length, HEAD_WIDTH, seed=seed).requires_grad_() for seed in range(3)]


def top(encoding: PositionEncoding, length: int, dtype: torch.dtype = torch.float64) -> CausalAttention:
    """The attention of the last layer."""
    return list(encoding.attention(torch.zeros(1, length, WIDTH, dtype=dtype)))[LAYERS - 1]


def by_definition(attention: CausalAttention, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    later = torch.ones(query.shape[2], query.shape[2], dtype=torch.bool).triu(1)
    return attention.scores(query, key).masked_fill(later, -torch.inf).softmax(-1) @ value


def check_equal(actual: Tensor, expected: Tensor, encoding: PositionEncoding, inputs: Sequence[Tensor]) -> None:
    """Values, and the gradients of inputs and parameters."""
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)
    weights, variables = draw(*actual.shape, seed=9), [*inputs, *encoding.parameters()]
    slopes, known = (
        torch.autograd.grad((output * weights).sum(), variables, retain_graph=True, materialize_grads=True)
        for output in (actual, expected)
    )
    torch.testing.assert_close(slopes, known, atol=1e-10, rtol=1e-10)


def check_fast_forms(encoding: PositionEncoding, length: int) -> None:
    """All positions together, and one position of each row, against the definition."""
    inputs = queries_keys_values(length)
    attention, (query, key, value) = top(encoding, length), inputs
    expected = by_definition(attention, *inputs)
    check_equal(attention.attend(*inputs), expected, encoding, inputs)
    rows, positions = torch.arange(2), torch.tensor([length - 1, length // 2])
    alone = attention.attend_at(query[rows, :, positions][:, :, None], key, value, positions)[:, :, 0]
    check_equal(alone, expected[rows, :, positions], encoding, inputs)
