"""RegularGPT beyond the shared contract."""

import pytest
import torch

from lengthwise.models import make_model
from lengthwise.models.regular_gpt import RegularGPT, RegularGPTConfig
from lengthwise.tasks import make_task


def make(**config) -> RegularGPT:
    return make_model("regular-gpt", make_task("parity"), **config)


def test_size_is_what_the_equations_say() -> None:
    """4 D^2 in the attention, 4 D^2 + 3 D in each feed-forward block and a norm, g, r; embedding, normed read-out."""
    width, heads, chunk, symbols, classes = 64, 8, 2, 2, 2
    layer = 4 * width**2 + 2 * (4 * width**2 + 3 * width + 2 * width) + width + heads * chunk
    outside = (symbols + 1) * width + 2 * width + classes * (width + 1)
    assert sum(p.numel() for p in make().parameters()) == layer + outside


@pytest.mark.parametrize("thickness", [1, 2])
@pytest.mark.parametrize("variant", ["merge", "paper", "code", "bare"])
def test_depth_adds_no_parameters(variant: str, thickness: int) -> None:
    """Weights are shared: any length runs on the same ones."""
    model = make(variant=variant, thickness=thickness)
    with torch.no_grad():
        assert model.last(torch.zeros(1, 3000, dtype=torch.int64)).shape == (1, 2)


@pytest.mark.parametrize("variant", ["merge", "paper", "code", "bare"])
def test_hidden_units_are_four_times_the_width_unless_given(variant: str) -> None:
    units = [
        sum(block.widen.out_features for block in make(variant=variant, d_model=16, **hidden).layers[0].feed_forwards)
        for hidden in ({}, {"hidden": 6})
    ]
    assert units == [64, 6]


def test_hidden_units_are_part_of_a_configuration_only_where_given() -> None:
    """A setting that came later leaves the ids of earlier runs alone."""
    assert "hidden" not in RegularGPTConfig().model_dump(mode="json")
    assert RegularGPTConfig(hidden=6).model_dump(mode="json")["hidden"] == 6
    assert "lower_chunk_sizes" not in RegularGPTConfig().model_dump(mode="json")
    assert RegularGPTConfig(lower_chunk_sizes=(4,)).model_dump(mode="json")["lower_chunk_sizes"] == [4]


def test_merged_states_have_one_scale_at_every_depth() -> None:
    model = make()
    norms = []

    def watch(states: torch.Tensor) -> torch.Tensor:
        norms.append(states.norm(dim=-1))
        return states

    with torch.no_grad():
        model.perturbed(watch).last(torch.zeros(1, 1000, dtype=torch.int64))
    for norm in norms:
        torch.testing.assert_close(norm, torch.full_like(norm, 8.0), rtol=1e-3, atol=0)


def test_the_default_generator_is_deterministic() -> None:
    one, other = (RegularGPT(RegularGPTConfig(), vocab_size=2, num_classes=2).state_dict() for _ in range(2))
    assert all(torch.equal(one[key], other[key]) for key in one)
