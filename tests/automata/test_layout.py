"""Layouts keep states apart, curves away from states and labels away from both, as far as there is room."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.automata.drawing import label_lines, transitions
from lengthwise.automata.layout import RADIUS, Layout, lay_out, layers
from lengthwise.automata.transducer import Transducer
from lengthwise.tasks import make_task

MACHINES = [
    ("parity", {}),
    ("cycle-navigation", {}),
    ("even-pairs", {}),
    *(("tomita", {"index": index}) for index in range(1, 8)),
    ("bounded-dyck", {"depth": 4}),
    ("word-problem", {"group": "S3"}),
]


def layout_of(machine: Transducer) -> Layout:
    lines = {pair: label_lines(symbols) for pair, symbols in transitions(machine).items()}
    return lay_out(machine.num_states, machine.start, lines)


def cross(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two lines cross: a piece of each has its ends on different sides of a piece of the other."""

    def sides(line: np.ndarray, points: np.ndarray) -> np.ndarray:
        (x, y), (left, top) = np.diff(line, axis=0).T, line[:-1].T
        return np.sign(x[:, None] * (points[:, 1] - top[:, None]) - y[:, None] * (points[:, 0] - left[:, None]))

    ends, other_ends = sides(one, other), sides(other, one)
    return bool(((ends[:, 1:] * ends[:, :-1] < 0) & (other_ends[:, 1:] * other_ends[:, :-1] < 0).T).any())


@pytest.mark.parametrize(("name", "fields"), MACHINES)
def test_curves_avoid_states_and_labels_avoid_one_another(name: str, fields: dict) -> None:
    layout = layout_of(make_task(name, **fields).transducer.minimize())
    routes = list(layout.routes.items())
    for (one, other), route in routes:
        others = np.delete(layout.centers, list({one, other}), 0)
        gaps = np.linalg.norm(route.samples[:, None] - others, axis=-1)
        assert gaps.min(initial=np.inf) > RADIUS, f"the arrow from {one} to {other} touches a state"
    for index, (pair, route) in enumerate(routes):
        for other_pair, other_route in routes[:index]:
            overlap = (np.array(route.label_size) + other_route.label_size) / 2
            apart = np.abs(route.label_at - other_route.label_at) >= overlap
            assert apart.any(), f"the labels of {pair} and {other_pair} overlap"
            # All of these machines but the word problem can be drawn without crossings.
            assert name == "word-problem" or not cross(route.samples, other_route.samples)


@settings(max_examples=12)
@given(st.integers(1, 7), st.data())
def test_any_machine_is_laid_out_with_states_apart_and_inside_the_bounds(size: int, data: st.DataObject) -> None:
    ends = st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=2 * size, unique=True)
    pairs, start = data.draw(ends), data.draw(st.integers(0, size - 1))
    layout = lay_out(size, start, {pair: ["a"] for pair in pairs})
    gaps = np.linalg.norm(layout.centers[:, None] - layout.centers, axis=-1) + 1e9 * np.eye(size)
    assert gaps.min() > 2 * RADIUS + 20
    assert layout.centers[start, 0] == layout.centers[:, 0].min(), "the start is on the left"
    assert set(layout.routes) == set(pairs)
    left, top, right, bottom = layout.bounds
    for points in (layout.centers, *(route.samples for route in layout.routes.values())):
        assert (points >= (left, top)).all()
        assert (points <= (right, bottom)).all()


def test_layers_are_distances_and_what_is_never_left_is_below() -> None:
    assert layers(3, 2, [(2, 0), (0, 1)]) == [[2], [0], [1]]
    sink_below = layers(5, 0, [(0, 1), (1, 2), (0, 3), (1, 3), (2, 3), (2, 0), (3, 3)])
    assert sink_below[1][-1] == 3
    assert sum(map(len, sink_below)) == 5, "a state that nothing leads to is drawn, too"
