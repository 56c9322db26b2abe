"""Decaying sums of outer products in chunks, against their loop: values and all gradients."""

import pytest
import torch

from lengthwise.ops.outer_products import MAX_CHUNK as C
from lengthwise.ops.outer_products import (
    decay_products,
    decay_products_by_definition,
    outer_products,
    outer_products_by_definition,
)

LENGTHS = [1, 2, C - 1, C, C + 1, 63, 3 * C + 5]
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10}


def decays(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Of both signs, every third one 0 and every third one -1 or 1."""
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=dtype).tanh()
    kinds = torch.arange(drawn.numel()).reshape(shape) % 7
    return torch.where(kinds == 0, 0.0, torch.where(kinds < 4, drawn.sign(), drawn))


def assert_same(one: torch.Tensor, other: torch.Tensor, dtype: torch.dtype) -> None:
    assert one.shape == other.shape
    assert float((one - other).detach().abs().max()) <= TOLERANCE[dtype] * max(1, float(other.detach().abs().max()))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shared", [True, False], ids=["shared keys", "a key for each head"])
@pytest.mark.parametrize("length", LENGTHS)
def test_chunks_give_what_the_loop_gives(length: int, shared: bool, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(length)
    heads = 1 if shared else 3
    shapes = [(2, length, heads, 4), (2, length, 3, 5), (2, length, heads, 4), (2, 3, 4, 5)]
    given = [decays(2, length, 3, dtype=dtype), *(torch.randn(s, generator=generator, dtype=dtype) for s in shapes)]
    given, compared = [tensor.requires_grad_() for tensor in given], []
    for function in (outer_products, outer_products_by_definition):
        outputs, last = function(*given)
        weight = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
        gradients = torch.autograd.grad((outputs * weight).sum() + last.square().sum(), given)
        compared.append((outputs, last, *gradients))
    for one, other in zip(*compared, strict=True):
        assert_same(one, other, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("length", [1, 2, 3, C])
def test_products_of_decays(length: int, dtype: torch.dtype) -> None:
    given = decays(2, length, dtype=dtype).requires_grad_()
    one, other = (function(given) for function in (decay_products, decay_products_by_definition))
    weight = torch.randn(one.shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    assert_same(one, other, dtype)
    assert_same(*(torch.autograd.grad((products * weight).sum(), given)[0] for products in (one, other)), dtype=dtype)
