"""Sliding-dilated attention against its mask, values and all gradients."""

import pytest
import torch

from lengthwise.ops.dilated_attention import MIN_BLOCK, dilated_attention, dilated_attention_by_definition

LENGTHS = (1, 2, 7, 63, 2 * MIN_BLOCK + 5)
WINDOWS = [(2, 1), (2, 8), (3, 3), (8, 1), (40, 1), (40, 40)]
"""Chunk sizes and strides: blocks wider than a window and as wide, windows longer than strings, strides, too."""


def draw(length: int, chunk: int, dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(length)
    shapes = [(2, 3, length, 4)] * 3 + [(3, chunk)]
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("chunk", "stride"), WINDOWS)
@pytest.mark.parametrize("length", LENGTHS)
def test_blocks_give_what_the_mask_gives(length: int, chunk: int, stride: int, dtype: torch.dtype) -> None:
    given = draw(length, chunk, dtype)
    arriving = torch.randn(2, 3, length, 4, generator=torch.Generator().manual_seed(0), dtype=dtype)
    forms = [form(*given, stride) for form in (dilated_attention, dilated_attention_by_definition)]
    gradients = [torch.autograd.grad(attended, given, arriving) for attended in forms]
    tolerance = {"atol": 1e-5, "rtol": 1e-4} if dtype == torch.float32 else {}
    torch.testing.assert_close(*forms, **tolerance)
    torch.testing.assert_close(*gradients, **tolerance)


def test_no_tensor_grows_with_the_square_of_the_length() -> None:
    """Of 3,000 positions, whose mask alone would have 9,000,000 numbers."""
    sizes = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            sizes.extend(part.numel() for part in torch.utils._pytree.tree_leaves(result) if torch.is_tensor(part))
            return result

    given = draw(3000, 8, torch.float32)
    with Watch():
        torch.autograd.grad(dilated_attention(*given, 8).sum(), given)
    assert max(sizes) <= 2 * 3 * 3000 * 4
