"""Bounds of the attention inside a merge hold what float32 makes of it in any order of summation."""

import math

import numpy as np
import pytest
import torch

from lengthwise.certification.methods.affine import Affine
from lengthwise.certification.methods.merges import _mixed


def known(number: float) -> Affine:
    points = torch.full((1, 1, 1), number, dtype=torch.float64)
    return Affine(points, torch.zeros(1, 1, 1, 0), torch.zeros_like(points))


@pytest.mark.parametrize("count", [2, 3, 8, 15, 32])
@pytest.mark.parametrize("which", ["first", "middle", "last"])
def test_softmax_may_add_its_exponentials_in_any_order(count: int, which: str) -> None:
    """Exponentials just below half a unit of the largest one round away if they are added to it one at a time."""
    largest = {"first": 0, "middle": count // 2, "last": count - 1}[which]
    scores = np.full(count, math.log(2.0**-24) - 1e-3, np.float32)
    scores[largest] = 0.0
    exponentials = np.exp(scores)
    total = np.float32(0)
    for one in np.sort(exponentials)[::-1]:
        total += one
    values = np.zeros(count, np.float32)
    values[largest] = 1.0
    computed = float((exponentials / total) @ values)
    exact = np.exp(scores.astype(np.float64))
    assert computed - float(exact[largest] / exact.sum()) > 0.99 * (count - 1) * 2.0**-24
    mixed = _mixed([known(float(one)) for one in scores], [known(float(one)) for one in values])
    low, high = (float(mixed.center + sign * mixed.radius) for sign in (-1, 1))
    assert low <= computed <= high
