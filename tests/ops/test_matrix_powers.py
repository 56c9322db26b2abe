"""Powers by doubling against powers one after another."""

import pytest
import torch

from lengthwise.ops.matrix_powers import powers_times, powers_times_by_definition


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 8, 13, 63, 100])
def test_doubling_gives_the_same(count: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(count)
    matrices = 0.4 * torch.randn(2, 4, 4, generator=generator, dtype=dtype)
    given = [matrices.requires_grad_(), torch.randn(2, 4, generator=generator, dtype=dtype).requires_grad_()]
    actual, expected = powers_times(*given, count), powers_times_by_definition(*given, count)
    assert actual.shape == (2, 4, count)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
    gradients = [
        torch.autograd.grad(images.square().sum(), given, materialize_grads=True) for images in (actual, expected)
    ]
    torch.testing.assert_close(*gradients, rtol=10 * tolerance, atol=10 * tolerance)
