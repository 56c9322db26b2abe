"""Attention scores so far apart that exponentials of their differences overflow or underflow in float64."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

from lengthwise.certification import checker
from lengthwise.certification.methods.attention.pieces import Pieces, narrowed
from lengthwise.certification.methods.attention.scores import Heads, Values, ratio_bounds
from lengthwise.ops.intervals import Intervals

FAR_APART = [
    [[-354.9, -354.85], [354.9, 354.85]],  # e^709.8 overflows, and e^709.7 does not
    [[372.55, 295.2], [-372.55, -372.65]],  # products of small masses and e^-745 underflow
    [[700.0, 0.0], [0.0, 700.0]],
    [[0.0, -2_000.0], [-40_000.0, 0.0]],
    [[0.5, 0.0], [1.0, 2.0]],
]
"""Scores of two heads for two symbols."""


def masses(scores: list[list[float]], counts: tuple[int, int]) -> np.ndarray:
    """Return the masses of two symbols in two heads [H, V], for numbers of their positions."""
    shares = []
    for own in scores:
        weights = [
            Fraction(count) * (Fraction(np.exp(score - max(own))) if score > max(own) - 700 else 0)
            for count, score in zip(counts, own, strict=True)
        ]
        shares.append([float(weight / sum(weights)) for weight in weights])
    return np.array(shares)


@pytest.mark.parametrize("scores", FAR_APART)
@pytest.mark.parametrize("counts", [(1, 1), (4, 1), (1, 30)])
def test_no_mass_of_a_string_is_cut_away(scores: list[list[float]], counts: tuple[int, int]) -> None:
    own = masses(scores, counts)
    # The first head's masses are known, or nothing is known of either head's.
    for is_known, program in product((True, False), ("prover", "checker")):
        low, high = np.zeros((1, 2, 2)), np.ones((1, 2, 2))
        if is_known:
            low[0, 0], high[0, 0] = np.maximum(own[0] - 1e-9, 0), np.minimum(own[0] + 1e-9, 1)
        table = np.array(scores).T[None, :, :, None]  # [X, V, H, T]
        if program == "checker":
            form = checker.between(table)
            regions = checker.Regions(low, high, *[np.array([0])] * 3)
            cut = checker.narrowed(checker.Heads(form, table, table, form), regions)
            bounds = cut.low, cut.high
        else:
            around = Intervals.around(torch.from_numpy(table))
            one = torch.zeros(1, dtype=torch.int64)
            pieces = Pieces(torch.from_numpy(low), torch.from_numpy(high), one, one, one)
            values = Values(around.low, around.low)
            cut_pieces = narrowed(pieces, ratio_bounds(Heads(around, values, around)))
            bounds = cut_pieces.low.numpy(), cut_pieces.high.numpy()
        assert len(bounds[0]) == 1
        assert (bounds[0][0] <= own).all()
        assert (own <= bounds[1][0]).all()
