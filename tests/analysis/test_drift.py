"""Drift of states: on nets whose turn and loss at each symbol are known."""

import math

import pytest
import torch

from lengthwise.analysis.drift import harmonics, remainder_drift
from lengthwise.models.block_linear_rnn import BlockLinearRNN, BlockLinearRNNConfig, SymbolTables
from lengthwise.tasks.regular.sum import Sum

MODULUS = 5


def turning(excess: float, kept: float) -> BlockLinearRNN:
    """A net of one plane that turns by a fifth for each unit of a digit, and by `excess` and `kept` at each symbol."""
    config = BlockLinearRNNConfig(d_model=2, block_dim=2, columns="clamped", read="last")
    model = BlockLinearRNN(config, vocab_size=MODULUS, num_classes=MODULUS, generator=torch.Generator())
    angles = 2 * math.pi * torch.arange(MODULUS) / MODULUS + excess
    rows = torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()], 1).view(-1, 1, 2, 2)
    model._tables_of = lambda embedded: SymbolTables(embedded, kept * rows, torch.zeros(MODULUS, 1, 2))  # type: ignore[method-assign]
    with torch.no_grad():
        model._layers()[0].first_state.copy_(torch.tensor([[1.0, 0.0]]))
    regular = 2 * math.pi * torch.arange(MODULUS) / MODULUS
    model.readout = torch.nn.Linear(2, MODULUS, bias=False)
    model.readout.weight.data.copy_(torch.stack([regular.cos(), regular.sin()], 1))
    return model


@pytest.mark.parametrize(("excess", "kept"), [(0.0, 1.0), (0.01, 0.99), (-0.02, 0.97)])
def test_a_plane_turns_and_shrinks_evenly(excess: float, kept: float) -> None:
    points = remainder_drift(turning(excess, kept), Sum(modulus=MODULUS), [10, 21, 63], 10, num_strings=256)
    for point in points:
        steps = point.length - 10
        assert point.kept[0] == pytest.approx(kept**steps, rel=1e-4)
        assert point.turns[0] == pytest.approx(excess * steps * MODULUS / (2 * math.pi), abs=1e-4)
        shift = round(excess * point.length * MODULUS / (2 * math.pi)) % MODULUS
        assert point.shifts[shift] == 1, "all answers are off by the same number"
    assert points[0].accuracy == points[0].shifts[0]


def test_each_remainder_needs_a_string() -> None:
    with pytest.raises(ValueError, match=r"remainders: .* from 0 to 4, got no string for some remainders; draw more"):
        remainder_drift(turning(0.0, 1.0), Sum(modulus=MODULUS), [3], 3, num_strings=2)
    with pytest.raises(ValueError, match=r"lengths: expected lengths of at least 1, got 0; choose positive lengths"):
        remainder_drift(turning(0.0, 1.0), Sum(modulus=MODULUS), [0, 3], 3)


def test_harmonics_are_those_of_a_discrete_fourier_transform() -> None:
    means = torch.randn(MODULUS, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = torch.fft.fft(means, dim=0)[1 : MODULUS // 2 + 1] / MODULUS
    torch.testing.assert_close(harmonics(means, torch.arange(MODULUS), MODULUS), expected)
