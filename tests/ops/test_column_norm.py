"""Columns of bounded norm, and what products of such matrices do."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lengthwise.ops.column_norm import (
    clamped_columns,
    hard_columns,
    reflections,
    rescaled_blocks,
    rescaled_blocks_by_definition,
    stochastic_columns,
    unit_columns,
)
from lengthwise.ops.symbol_recurrence import symbol_final_state

seeds = st.integers(0, 10_000)
norms = st.sampled_from([1.0, 1.2, 2.0, 3.0])


def draw(seed: int, count: int = 3, size: int = 8, scale: float = 3.0) -> torch.Tensor:
    return scale * torch.randn(count, size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def column_norms(matrices: torch.Tensor, p: float) -> torch.Tensor:
    return matrices.abs().pow(p).sum(-2).pow(1 / p)


@given(seeds, norms, st.sampled_from([0.01, 3.0]))
@settings(deadline=None)
def test_clamped_columns_are_cut_down_to_norm_one_and_never_up(seed: int, p: float, scale: float) -> None:
    matrices = draw(seed, scale=scale)
    before, after = column_norms(matrices, p), column_norms(clamped_columns(matrices, p), p)
    torch.testing.assert_close(after, before.clamp(max=1.0))


@given(seeds, norms, st.sampled_from([0.01, 3.0]))
@settings(deadline=None)
def test_unit_columns_have_norm_one_and_their_direction(seed: int, p: float, scale: float) -> None:
    matrices = draw(seed, scale=scale)
    matrices[0, :, 0] = 0
    columns = unit_columns(matrices, p)
    norms = column_norms(columns, p)
    assert float(norms[0, 0]) == 0
    torch.testing.assert_close(norms.flatten()[1:], torch.ones(norms.numel() - 1, dtype=norms.dtype))
    torch.testing.assert_close(columns * column_norms(matrices, p)[:, None], matrices)


@given(seeds, st.sampled_from([-2, -1]))
@settings(deadline=None)
def test_hard_columns_are_one_hot_and_have_the_gradient_of_a_softmax(seed: int, dim: int) -> None:
    logits = draw(seed).float().requires_grad_()
    weight = torch.randn(logits.shape, generator=torch.Generator().manual_seed(seed))
    hard, soft = hard_columns(logits, dim), logits.softmax(dim)
    assert set(hard.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(hard.argmax(dim), logits.argmax(dim))
    assert bool((hard.sum(dim) == 1).all())
    ours, theirs = (torch.autograd.grad((x * weight).sum(), logits)[0] for x in (hard, soft))
    assert torch.equal(ours, theirs)


@given(seeds, st.integers(1, 30))
@settings(deadline=None)
def test_products_of_columns_of_norm_one_have_such_columns(seed: int, count: int) -> None:
    """Eq. (7): p = 1 is closed under products; so are distributions."""
    for columns in (clamped_columns(draw(seed, count), p=1.0), stochastic_columns(draw(seed, count))):
        product = torch.linalg.multi_dot([*columns, torch.eye(8, dtype=torch.float64)])
        assert float(column_norms(product, 1.0).max()) <= 1 + 1e-12


def test_above_one_a_product_may_grow() -> None:
    """All entries S^(-1/p): columns of p-norm 1, and twice as large a product as one of them allows."""
    matrix = torch.full((8, 8), 8 ** (-1 / 1.2), dtype=torch.float64)
    torch.testing.assert_close(column_norms(matrix, 1.2), torch.ones(8, dtype=torch.float64))
    grown = column_norms(torch.linalg.matrix_power(matrix, 10), 1.2)
    torch.testing.assert_close(grown, torch.full((8,), 8 ** (9 * (1 - 1 / 1.2)), dtype=torch.float64))


@given(seeds, norms)
@settings(deadline=None)
def test_rescaled_blocks_sum_to_zero_and_their_largest_column_has_norm_one(seed: int, p: float) -> None:
    rescaled = rescaled_blocks(draw(seed), p)
    assert float(rescaled.sum(-2).abs().max()) < 1e-12
    torch.testing.assert_close(column_norms(rescaled, p).amax(-1), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(rescaled_blocks(7.0 * draw(seed), p), rescaled)
    assert not rescaled_blocks(torch.ones(2, 4, 4)).any()


@given(
    seeds,
    norms,
    st.sampled_from([(2, 2), (3, 3, 3), (1, 5, 8, 8)]),
    st.sampled_from([torch.float32, torch.float64]),
    st.sampled_from(["spread", "tied", "zero"]),
)
@settings(deadline=None)
def test_rescaled_blocks_are_those_of_the_definition_in_value_and_gradient(
    seed: int, p: float, shape: tuple[int, ...], dtype: torch.dtype, kind: str
) -> None:
    """Also where columns have one norm, as those of a permutation, and next to a matrix of zeros."""
    generator = torch.Generator().manual_seed(seed)
    size = shape[-1]
    matrices = torch.randn(shape, generator=generator, dtype=dtype)
    if kind == "tied":
        assume(size != 3 and p in (1.0, 2.0))  # otherwise rounding decides which column is the largest
        matrices = torch.eye(size, dtype=dtype)[torch.randperm(size, generator=generator)].expand_as(matrices).clone()
    weight = torch.randn(matrices.shape, generator=generator, dtype=dtype)
    if kind == "zero":
        matrices, weight = torch.stack([matrices, 0 * matrices]), torch.stack([weight, 0 * weight])
    matrices.requires_grad_()
    ours, slow = rescaled_blocks(matrices, p), rescaled_blocks_by_definition(matrices, p)
    torch.testing.assert_close(ours, slow)
    by_ours, by_slow = (torch.autograd.grad((x * weight).sum(), matrices)[0] for x in (ours, slow))
    # What is left of a gradient after its means are gone is rounded as its largest number is.
    largest = float(by_slow.detach().abs().max())
    torch.testing.assert_close(by_ours, by_slow, rtol=1e-4, atol=64 * torch.finfo(dtype).eps * max(1.0, largest))


@given(seeds, st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([torch.float32, torch.float64]))
@settings(deadline=None)
def test_reflections_turn_the_side_of_one_direction_and_leave_all_others(
    seed: int, temperature: float, dtype: torch.dtype
) -> None:
    """I - b k k^T: 1 - b times k, and all that is orthogonal to it once."""
    numbers = draw(seed, count=1, size=9, scale=1.0)[0].to(dtype)
    matrices, directions = reflections(numbers, temperature), numbers[:, :8] / numbers[:, :8].norm(dim=1, keepdim=True)
    gates = numbers[:, 8]
    factor = 2 * (gates / temperature).sigmoid() if temperature else 2 * (gates > 0).to(dtype)
    values = torch.randn(9, 8, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    across = values - (values * directions).sum(1, keepdim=True) * directions
    for vectors, expected in ((directions, (1 - factor)[:, None] * directions), (across, across)):
        torch.testing.assert_close((matrices @ vectors[..., None])[..., 0], expected, atol=2e-5, rtol=1e-4)
    if not temperature:
        squares = (matrices @ matrices).double()
        torch.testing.assert_close(squares, torch.eye(8, dtype=torch.float64).expand(9, -1, -1), atol=1e-5, rtol=0)
    with pytest.raises(ValueError, match="temperature: expected at least 0, got -1"):
        reflections(numbers, -1.0)


def test_a_permutation_shrinks_to_three_quarters_a_step() -> None:
    """Of a vector whose entries sum to 0, the only kind that survives, 0.743 of it is left."""
    permutation = torch.eye(8)[:, torch.randperm(8, generator=torch.Generator().manual_seed(0))]
    step = rescaled_blocks(permutation, 1.2)
    vector = torch.randn(8, generator=torch.Generator().manual_seed(1))
    vector = vector - vector.mean()
    assert float((step @ vector).norm() / vector.norm()) == pytest.approx(0.743, abs=5e-4)
    for _ in range(360):
        vector = step @ vector
    assert float(vector.abs().max()) < 1e-44  # the last bits of float32


def test_distributions_keep_their_size_over_a_million_steps() -> None:
    """Rounding moves the size of soft columns a little; sharp ones are a finite machine's maps, to the last bit."""
    logits = draw(0, count=5).float()[:, None]
    symbols = torch.randint(5, (1, 1_000_000), generator=torch.Generator().manual_seed(0))
    for temperature in (1.0, 0.0):
        columns = stochastic_columns(logits, temperature)
        state = symbol_final_state(columns, torch.zeros(5, 1, 8), symbols, torch.eye(8)[:1, None])
        if temperature:
            torch.testing.assert_close(state.sum(), torch.tensor(1.0), rtol=0.05, atol=0)
        else:
            assert sorted(state.flatten().tolist()) == [0.0] * 7 + [1.0]


@pytest.mark.parametrize("p", [0.5, 0.0, -1.0, float("nan"), float("inf")])
def test_what_is_no_norm_is_refused(p: float) -> None:
    for function in (clamped_columns, rescaled_blocks, unit_columns):
        with pytest.raises(ValueError, match="p: expected a finite number of at least 1, got"):
            function(torch.eye(2), p)


@pytest.mark.parametrize("temperature", [-1.0, float("nan")])
def test_what_is_no_temperature_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature: expected at least 0, got"):
        stochastic_columns(torch.eye(2), temperature)


@pytest.mark.unchecked
def test_logits_that_are_not_real_are_refused() -> None:
    for dtype in (torch.complex64, torch.int64):
        with pytest.raises(ValueError, match=f"logits: expected real numbers, got {dtype}"):
            stochastic_columns(torch.eye(2, dtype=dtype))


@given(seeds)
@settings(deadline=None)
def test_at_temperature_zero_columns_are_what_they_go_to(seed: int) -> None:
    logits = draw(seed)
    torch.testing.assert_close(stochastic_columns(logits, 0.0), stochastic_columns(logits, 1e-6), atol=1e-3, rtol=0)
    assert torch.equal(stochastic_columns(logits, 0.0).sum(-2), torch.ones(3, 8, dtype=torch.float64))


@pytest.mark.unchecked
@pytest.mark.parametrize("function", [clamped_columns, unit_columns, rescaled_blocks])
def test_matrices_that_are_not_square_are_named(function) -> None:
    for shape in ((2, 3), (3,), (4, 2, 1)):
        with pytest.raises(ValueError, match=r"^matrices: expected square matrices \[..., S, S\], got shape"):
            function(torch.ones(shape))
