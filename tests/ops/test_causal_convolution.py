"""Convolutions by Fourier transforms against sums, values and gradients."""

import pytest
import torch

from lengthwise.ops.causal_convolution import causal_convolution, causal_convolution_by_definition


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("length", [1, 2, 7, 63, 100])
def test_transforms_give_the_sums(length: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(length)
    shapes = ((3, length, 4), (4, length), (3, length, 4))
    inputs, kernels, weight = (torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes)
    given = [inputs.requires_grad_(), kernels.requires_grad_()]
    tolerance = 1e-3 if dtype == torch.float32 else 1e-10
    actual, expected = causal_convolution(*given), causal_convolution_by_definition(*given)
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
    gradients = [torch.autograd.grad((outputs * weight).sum(), given) for outputs in (actual, expected)]
    torch.testing.assert_close(*gradients, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("length", "of_kernels", "name"), [(0, 0, "inputs"), (3, 4, "kernels"), (3, 2, "kernels")])
def test_shapes_that_do_not_fit_are_named(length: int, of_kernels: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        causal_convolution(torch.zeros(1, length, 2), torch.zeros(2, of_kernels))
