"""Encodings of positions and loops against their formulas, number by number."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.ops.sinusoids import distance_sinusoids, position_sinusoids, sinusoids_at, timestep_sinusoids


@given(st.integers(1, 20), st.integers(1, 9))
def test_positions_have_sines_and_cosines_in_turn(length: int, width: int) -> None:
    encoding = position_sinusoids(length, width)
    assert encoding.shape == (length, width)
    for position in range(length):
        for i in range(width):
            angle = position / 10_000 ** (2 * (i // 2) / width)
            expected = math.cos(angle) if i % 2 else math.sin(angle)
            assert float(encoding[position, i]) == pytest.approx(expected, abs=1e-6)


@given(st.integers(1, 20), st.integers(1, 9))
def test_distances_have_all_sines_first(length: int, width: int) -> None:
    encoding, num_sines = distance_sinusoids(length, width), (width + 1) // 2
    assert encoding.shape == (length, width)
    for distance in range(length):
        angles = [distance / 10_000 ** (2 * m / width) for m in range(num_sines)]
        expected = [*map(math.sin, angles), *map(math.cos, angles)][:width]
        assert encoding[distance].tolist() == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=9), st.integers(1, 9))
def test_any_positions_have_the_sinusoids_of_their_formula(positions: list[int], width: int) -> None:
    encoding = sinusoids_at(torch.tensor(positions), width)
    for row, position in zip(encoding.tolist(), positions, strict=True):
        angles = [position / 10_000 ** (2 * (i // 2) / width) for i in range(width)]
        expected = [math.cos(angle) if i % 2 else math.sin(angle) for i, angle in enumerate(angles)]
        assert row == pytest.approx(expected, abs=1e-6)


@given(st.integers(1, 120), st.sampled_from([2, 8, 256]))
def test_loops_have_all_cosines_first(num_loops: int, width: int) -> None:
    encoding = timestep_sinusoids(num_loops, width)
    frequencies = [10_000 ** (-2 * i / width) for i in range(width // 2)]
    for loop in (0, num_loops // 2, num_loops - 1):
        cosines, sines = encoding[loop].tolist()[: width // 2], encoding[loop].tolist()[width // 2 :]
        assert cosines == pytest.approx([math.cos(loop * f) for f in frequencies], abs=1e-6)
        assert sines == pytest.approx([math.sin(loop * f) for f in frequencies], abs=1e-6)


@given(st.integers(1, 120))
def test_fractions_of_loops_are_less_than_1(num_loops: int) -> None:
    encoding = timestep_sinusoids(num_loops, 4, "fraction")
    for loop in (0, num_loops // 2, num_loops - 1):
        angles = [loop / num_loops, loop / num_loops / 100]
        assert encoding[loop].tolist() == pytest.approx([*map(math.cos, angles), *map(math.sin, angles)], abs=1e-6)


def test_far_positions_keep_their_digits() -> None:
    assert float(position_sinusoids(1_000_001, 1)[-1, 0]) == pytest.approx(math.sin(1_000_000), abs=1e-6)
    assert torch.equal(position_sinusoids(9, 6), position_sinusoids(50, 6)[:9])
