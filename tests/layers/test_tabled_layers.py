"""Layers that make what a step does once for each row of a table: the same as for each position, and its gradients."""

import pytest
import torch
import torch.nn.functional as F

from lengthwise.layers.recurrent_layer import TabledLayer
from lengthwise.models import make_model
from lengthwise.ops.parts import through_parts
from lengthwise.tasks import make_task

LAYERS = {
    "DeltaNet": ("delta-net", {}),
    "Gated DeltaNet": ("delta-net", {"gated": True}),
    "DeltaProduct": ("delta-net", {"householders": 2}),
    "DeltaNet, convolution": ("delta-net", {"conv": 4}),
    "Mamba": ("mamba", {}),
    "Mamba, signed": ("mamba", {"eigenvalues": "signed", "learned_start": True}),
    "Mamba, convolution": ("mamba", {"conv": 4}),
    "mLSTM": ("xlstm", {"cells": "m"}),
    "mLSTM, convolution": ("xlstm", {"cells": "m", "conv": 4}),
    "PD-SSM": ("pd-ssm", {}),
    "linear CDE": ("linear-cde", {}),
    "linear CDE, low rank": ("linear-cde", {"structure": "low-rank"}),
    "linear CDE, product of low rank": ("linear-cde", {"structure": "low-rank-product"}),
}


@pytest.mark.parametrize("length", [1, 2, 7, 63, 130])
@pytest.mark.parametrize("name", LAYERS)
def test_a_table_gives_what_its_rows_give(name: str, length: int) -> None:
    model, settings = LAYERS[name]
    generator = torch.Generator().manual_seed(length)
    layer = next(iter(make_model(model, make_task("parity"), d_model=8, **settings).double().layers))
    assert isinstance(layer, TabledLayer)
    layer.reset_parameters(generator)
    table = torch.randn(5, 8, generator=generator, dtype=torch.float64).requires_grad_()
    rows = torch.randint(5, (3, length), generator=generator)
    state = layer.initial_state(table[:3]).detach() + 0.1
    compared = []
    for outputs, after in (layer.through_rows(table, rows, state), layer(F.embedding(rows, table), state)):
        gradients = torch.autograd.grad(
            outputs.square().sum() + after.square().sum(), (table, *layer.parameters()), allow_unused=True
        )
        compared.append((outputs, after, *(torch.zeros(()) if each is None else each for each in gradients)))
    for one, other in zip(*compared, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9 * max(1.0, float(other.detach().abs().max())))


@pytest.mark.parametrize("numbers_per_part", [1, 14, 1 << 20])
def test_parts_of_a_batch_give_what_the_whole_gives(numbers_per_part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five strings of seven numbers one, two, or all at a time."""
    monkeypatch.setattr("lengthwise.ops.parts.NUMBERS_PER_PART", numbers_per_part)
    numbers = torch.randn(5, 7, generator=torch.Generator().manual_seed(0)).requires_grad_()
    seen = []

    def function(each: torch.Tensor, nothing: None) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(len(each))
        return each.square(), each.sum(1)

    squares, sums = through_parts(function, [numbers, None], 7)
    assert seen == {1: [1] * 5, 14: [2, 2, 1], 1 << 20: [5]}[numbers_per_part]
    assert torch.equal(squares, numbers.square())
    torch.testing.assert_close(sums, numbers.sum(1))
    (gradient,) = torch.autograd.grad(squares.sum(), numbers)
    torch.testing.assert_close(gradient, 2 * numbers.detach())
