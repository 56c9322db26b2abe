"""Pictures of orbits: regions hold their states, whatever the word."""

import numpy as np
import pytest

from lengthwise.constructions.memorization.frequencies import orbit
from lengthwise.constructions.memorization.memorize import memorize
from lengthwise.constructions.memorization.rational import memorize_rationally
from lengthwise.report.charts.memorization import EDGE, _named, _regions, memorization_chart


def area(corners: list[dict[str, float]]) -> float:
    x, y = (np.array([corner[axis] for corner in corners]) for axis in "xy")
    return abs(float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())) / 2


def inside(point: np.ndarray, corners: list[dict[str, float]]) -> bool:
    indices = np.array([[corner["x"], corner["y"]] for corner in corners])
    edges, away = np.roll(indices, -1, 0) - indices, point - indices
    turns = edges[:, 0] * away[:, 1] - edges[:, 1] * away[:, 0]
    return bool((turns >= -1e-9).all() or (turns <= 1e-9).all())


@pytest.mark.parametrize("text", ["00000111", "abac", "abcde", "abacdc", "aab"])
def test_regions_part_the_square_and_hold_their_states(text: str) -> None:
    memorization = memorize(text)
    generator = memorization.generator
    regions = _regions(generator.readout, generator.bias, generator.symbols)
    assert sum(map(area, regions)) == pytest.approx(4 * EDGE**2)
    by_symbol = {corners[0]["symbol"]: corners for corners in regions}
    for state, letter in zip(generator.states(memorization.word.period), memorization.word.text, strict=True):
        assert inside(state, by_symbol[letter])


LONG_WORDS = ("abcdefghij", "01101001100101101001")


@pytest.mark.parametrize(
    "text", ["a ", "aab", "abacabad", *(pytest.param(text, marks=pytest.mark.slow) for text in LONG_WORDS)]
)
def test_every_word_has_a_picture(text: str) -> None:
    for memorization in (memorize(text), memorize_rationally(text)):
        chart = memorization_chart(memorization).to_dict()
        assert len(chart["vconcat"]) >= 2
        steps = chart["vconcat"][-1]["layer"][0]["encoding"]["x"]["axis"]["values"]
        assert steps == list(range(1, len(text) + 1))


def test_names_of_several_steps_stand_above_or_below_their_point() -> None:
    states = _named(orbit((4,), 10), memorization := memorize("0010110111"))
    assert sorted(state["name"] for state in states if state["name"]) == ["1,6", "2,7", "3,8", "4,9", "5,10"]
    assert all(state["lx"] == state["x"] and abs(abs(state["ly"] - state["y"]) - 0.14) < 1e-9 for state in states)
    assert [state["several"] for state in states[:5]] == [
        a != b for a, b in zip(memorization.word.text[:5], memorization.word.text[5:], strict=True)
    ]


def test_one_symbol_has_no_picture() -> None:
    with pytest.raises(ValueError, match="so there is no state to draw"):
        memorization_chart(memorize("a"))
