"""The delta rule in chunks against its definition: values, and gradients by all arguments."""

import pytest
import torch

from lengthwise.ops.delta_rule import delta_rule, delta_rule_by_definition

CHUNK = 6
LENGTHS = [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5, 63]
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10}


def draw(length: int, dtype: torch.dtype, *, products: int, gated: bool) -> list[torch.Tensor | None]:
    """Two strings, three heads, keys of length 1 in 4 dimensions, values of 5, strengths from 0 to 2, both included."""
    generator = torch.Generator().manual_seed(100 * length + products)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    keys = torch.nn.functional.normalize(normal(2, length, products, 3, 4), dim=-1)
    strengths = (1 + 2 * normal(2, length, products, 3)).clamp(0, 2)
    decays = -normal(2, length, 3).square() if gated else None
    given = [normal(2, length, 3, 4), keys, normal(2, length, products, 3, 5), strengths, decays, normal(2, 3, 4, 5)]
    return [None if tensor is None else tensor.requires_grad_() for tensor in given]


def gradients(results: tuple[torch.Tensor, torch.Tensor], leaves: list[torch.Tensor]) -> list[torch.Tensor]:
    """Of a random linear function of what is read and of the last state."""
    generator = torch.Generator().manual_seed(0)
    weighted = [(x * torch.randn(x.shape, generator=generator, dtype=x.dtype)).sum() for x in results]
    return list(torch.autograd.grad(sum(weighted), leaves))


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize(("products", "gated"), [(1, False), (1, True), (3, False), (2, True)])
@pytest.mark.parametrize("length", LENGTHS)
def test_chunks_give_what_the_loop_gives(length: int, products: int, gated: bool, dtype: torch.dtype) -> None:
    given = draw(length, dtype, products=products, gated=gated)
    leaves = [tensor for tensor in given if tensor is not None]
    ours = delta_rule(*given, chunk_steps=CHUNK * products)
    expected = delta_rule_by_definition(*given)
    pairs = zip((*ours, *gradients(ours, leaves)), (*expected, *gradients(expected, leaves)), strict=True)
    for one, other in pairs:
        scale = max(1.0, float(other.detach().abs().max()))
        assert one.shape == other.shape
        assert float((one - other).detach().abs().max()) <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_a_gate_that_resets_the_state_leaves_the_digits_of_others(dtype: torch.dtype) -> None:
    queries, keys, values, strengths, decays, state = draw(40, dtype, products=1, gated=True)
    with torch.no_grad():
        decays.fill_(-1e-3)
        decays[:, ::8] = -5e5
        ours = delta_rule(queries, keys, values, strengths, decays, state)
        expected = delta_rule_by_definition(queries, keys, values, strengths, decays, state)
    # Sums of logarithms of up to 750 are rounded, in float32 up to 104: by so much decays may differ.
    tolerance = 2 * 750 * torch.finfo(dtype).eps
    for one, other in zip(ours, expected, strict=True):
        assert float((one - other).abs().max()) <= tolerance * float(other.abs().max())


def test_the_definition_is_its_matrices() -> None:
    """a (I - b k k^T) ... (I - b k k^T) S + what is written, by matrices that are written out."""
    queries, keys, values, strengths, decays, state = draw(4, torch.float64, products=2, gated=True)
    expected = state
    for t in range(4):
        expected = decays[:, t, :, None, None].exp() * expected
        for j in range(2):
            key, strength = keys[:, t, j], strengths[:, t, j, :, None, None]
            factor = torch.eye(4, dtype=torch.float64) - strength * key[..., :, None] * key[..., None, :]
            expected = factor @ expected + strength * key[..., :, None] * values[:, t, j, :, None, :]
    read, final = delta_rule_by_definition(queries, keys, values, strengths, decays, state)
    torch.testing.assert_close(final, expected)
    torch.testing.assert_close(read[:, -1], torch.einsum("bhk,bhkm->bhm", queries[:, -1], expected))


def test_reflections_along_one_axis_are_exact_however_many() -> None:
    """Keys (1, 0) and strengths 2 are integers in all chunks: no size is lost, where a sum with 1e-6 would lose 1 %."""
    length = 10_000
    key = torch.tensor([1.0, 0.0]).expand(1, length, 1, 1, 2)
    strengths, values = torch.full((1, length, 1, 1), 2.0), torch.zeros(1, length, 1, 1, 1)
    read, _ = delta_rule(key[:, :, 0], key, values, strengths, None, torch.ones(1, 1, 2, 1))
    assert read.flatten().tolist() == [-1.0, 1.0] * (length // 2)


def test_very_small_decays_overflow_nowhere() -> None:
    given = draw(40, torch.float32, products=1, gated=True)
    given[4] = torch.full((2, 40, 3), -90.0, requires_grad=True)
    assert all(x.isfinite().all() for x in gradients(delta_rule(*given), given))
