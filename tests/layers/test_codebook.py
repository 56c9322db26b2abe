"""Codebooks against their definition, in values and gradients."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.layers.codebook import Codebook, QuantizingLayer
from lengthwise.layers.tree_layers import MergeLayer
from lengthwise.ops.tree_attention import merge_windows

dtypes = st.sampled_from([torch.float32, torch.float64])


def drawn(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def filled(codes: torch.Tensor, max_codes: int = 9) -> Codebook:
    codebook = Codebook(max_codes=max_codes, d_model=codes.shape[1]).to(codes.dtype)
    codebook.fill(codes)
    return codebook


@given(st.integers(1, 9), st.integers(1, 63), st.integers(0, 10**6), dtypes)
def test_the_nearest_code_replaces_a_state(count: int, states: int, seed: int, dtype: torch.dtype) -> None:
    codes, points = drawn(count, 5, seed=seed, dtype=dtype), drawn(states, 5, seed=seed + 1, dtype=dtype)
    distances = torch.stack([(points - code).norm(dim=1) for code in codes], 1)
    quantized = filled(codes)(points)
    assert all(any(torch.equal(state, code) for code in codes) for state in quantized)
    torch.testing.assert_close((quantized - points).norm(dim=1), distances.amin(1))


@pytest.mark.parametrize("shape", [(5,), (1, 5), (4, 7, 5)])
def test_any_axes_may_come_first(shape: tuple[int, ...]) -> None:
    codebook, states = filled(drawn(4, 5, seed=0)), drawn(*shape, seed=1)
    assert codebook(states).shape == shape
    assert torch.equal(codebook(states).reshape(-1, 5), codebook(states.reshape(-1, 5)))


def test_gradients_pass_as_if_states_had_stayed() -> None:
    codebook, weights = filled(drawn(4, 5, seed=0)), drawn(7, 5, seed=2)
    states = drawn(7, 5, seed=1).requires_grad_()
    (weights * codebook(states).square()).sum().backward()
    assert torch.equal(states.grad, 2 * weights * codebook(states.detach()))
    assert not list(codebook.parameters())


def test_without_codes_states_stay() -> None:
    states = drawn(7, 5, seed=1)
    assert torch.equal(Codebook(max_codes=3, d_model=5)(states), states)


def test_codes_replace_all_earlier_ones() -> None:
    codebook, codes = filled(drawn(8, 5, seed=0)), drawn(2, 5, seed=1)
    codebook.fill(codes)
    assert torch.equal(codebook.known, codes)
    assert codebook.gap == pytest.approx(float((codes[0] - codes[1]).norm()))
    codebook.fill(codes[:1])
    assert codebook.gap == math.inf


@pytest.mark.parametrize("count", [0, 4])
def test_no_codes_and_too_many_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"codes: expected 1 to 3 codes, got {count}; give 1 code or more"):
        Codebook(max_codes=3, d_model=5).fill(drawn(count, 5, seed=0))


def test_codes_are_kept_with_the_weights() -> None:
    codebook, again = filled(drawn(4, 5, seed=0)), Codebook(max_codes=9, d_model=5)
    again.load_state_dict(codebook.state_dict())
    assert torch.equal(again.known, codebook.known)


def test_a_quantizing_layer_is_its_layer_and_then_the_codebook() -> None:
    layer = MergeLayer(d_model=8, num_heads=2, chunk_size=3)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    codebook, windows = filled(drawn(5, 8, seed=0)), drawn(40, 3, 8, seed=1)
    merged = merge_windows(QuantizingLayer(layer, codebook), windows)
    assert torch.equal(merged, codebook(merge_windows(layer, windows)))
    assert len(merged.unique(dim=0)) > 1
