"""Layouts keep states apart, curves away from states and labels away from both, as far as there is room."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.automata.drawing import label_lines, transitions
from lengthwise.automata.layout import (
    BENDS,
    LAYER_GAP,
    LOOP_ANGLES,
    MIN_LOOP_DISTANCE,
    RADIUS,
    ROW_GAP,
    Layout,
    _bezier,
    _crossings,
    _dense,
    _on_circle,
    _Router,
    label_size,
    lay_out,
    layers,
)
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


def num_crossings(one: np.ndarray, other: np.ndarray) -> int:
    """Two lines cross where a piece of each has its ends on different sides of a piece of the other."""

    def sides(line: np.ndarray, points: np.ndarray) -> np.ndarray:
        (x, y), (left, top) = np.diff(line, axis=0).T, line[:-1].T
        return np.sign(x[:, None] * (points[:, 1] - top[:, None]) - y[:, None] * (points[:, 0] - left[:, None]))

    ends, other_ends = sides(one, other), sides(other, one)
    return int(((ends[:, 1:] * ends[:, :-1] < 0) & (other_ends[:, 1:] * other_ends[:, :-1] < 0).T).sum())


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
            assert name == "word-problem" or not num_crossings(route.samples, other_route.samples)


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


def test_layers_are_the_distances_from_the_start() -> None:
    """In random graphs without sinks, by a search of their own."""
    random = np.random.default_rng(0)
    for _ in range(8):
        size = int(random.integers(2, 8))
        pairs = {(state, int(random.integers(size))) for state in range(size) for _ in range(2)}
        pairs |= {(state, (state + 1) % size) for state in range(size)}
        adjacent = np.eye(size, dtype=np.int64)
        for one, other in pairs:
            adjacent[one, other] = 1
        within = [np.linalg.matrix_power(adjacent, steps)[1 % size] > 0 for steps in range(size)]
        distance = [next(steps for steps in range(size) if within[steps][state]) for state in range(size)]
        columns = layers(size, 1 % size, sorted(pairs))
        assert {state: column for column, states in enumerate(columns) for state in states} == dict(enumerate(distance))


def test_parallel_chains_do_not_cross() -> None:
    """Three chains of three states, whose numbers are shuffled in every layer."""
    for seed in range(3):
        chains = np.random.default_rng(seed).permuted(np.arange(1, 10).reshape(3, 3), axis=1).T.tolist()
        pairs = [(0, first) for first, _, _ in chains]
        pairs += [pair for first, second, third in chains for pair in ((first, second), (second, third), (third, 0))]
        start, *columns = layers(10, 0, pairs)
        assert start == [0]
        order = [
            [next(k for k, chain in enumerate(chains) if state in chain) for state in column] for column in columns
        ]
        assert order[0] == order[1] == order[2]


def test_a_state_without_exits_is_below_all_others() -> None:
    """All four states lead to the sink, which has a loop alone."""
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    centers = lay_out(5, 0, {pair: ["a"] for pair in pairs}).centers
    assert centers[4, 1] >= centers[:4, 1].max() + ROW_GAP


@given(st.integers(3, 4), st.integers(0, 99))
def test_curves_are_those_of_bernstein(count: int, seed: int) -> None:
    control, at = np.random.default_rng(seed).normal(size=(count, 2)), np.linspace(0, 1, 5)
    weights = [comb(count - 1, k) * at**k * (1 - at) ** (count - 1 - k) for k in range(count)]
    np.testing.assert_allclose(_bezier(control, at), np.transpose(weights) @ control)


def test_crossings_are_counted() -> None:
    random = np.random.default_rng(0)
    lines = random.normal(size=(20, 6, 2)) + random.integers(-2, 3, size=(20, 1, 2))
    for one in lines:
        assert _crossings(one, lines[:7]) == sum(num_crossings(one, other) for other in lines[:7])


def test_thirds_of_pieces_are_added_to_a_curve() -> None:
    curve = np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 6.0]])
    expected = [(0, 0), (1, 0), (2, 0), (3, 0), (3, 2), (3, 4), (3, 6)]
    assert sorted(map(tuple, _dense(curve[None])[0].round(9).tolist())) == expected


def test_points_are_beside_a_circle() -> None:
    np.testing.assert_allclose(_on_circle(np.array([1.0, 2.0]), np.array([4.0, 6.0]), 1.0), [1 + 15, 2 + 20])


@pytest.mark.parametrize("label", [["a"], ["CONNECT, DISCONNECT"], list("abcdefgh")])
def test_labels_fit_between_states(label: list[str]) -> None:
    """A fan of three states: the columns are as far apart as the widest label, the rows as the highest one."""
    width, height = label_size(label)
    layout = lay_out(4, 0, {(0, 1): label} | {pair: ["a"] for pair in ((0, 2), (0, 3), (1, 0), (2, 0), (3, 0))})
    assert layout.centers[1, 0] - layout.centers[0, 0] >= max(2 * RADIUS + width, LAYER_GAP)
    rows = np.sort(layout.centers[1:, 1])
    assert np.diff(rows).min() >= max(2 * RADIUS + height, ROW_GAP)
    assert rows.sum() == pytest.approx(3 * layout.centers[0, 1]), "the fan is level with the start"


@pytest.mark.parametrize("has_opposite", [False, True])
def test_curves_bend_as_far_as_they_cost(has_opposite: bool) -> None:
    labels = {(0, 1): ["a"]} | ({(1, 0): ["b"]} if has_opposite else {})
    router = _Router(np.array([[0.0, 0.0], [300.0, 0.0]]), 0, labels)
    begins = []
    for bend, (cost, control) in zip(BENDS, router._curves(0, 1), strict=True):
        (middle,) = _bezier(control, np.array([0.5]))
        assert middle[0] == pytest.approx(150, abs=2)
        # The ends of a curve are on the circles of its states, so that they move its middle by up to half a radius.
        assert abs(abs(middle[1]) - abs(bend)) < RADIUS / 2 + 1
        assert middle[1] * -bend >= 0
        assert np.linalg.norm(control[0]) == pytest.approx(RADIUS + 1)
        assert np.linalg.norm(control[2] - (300, 0)) == pytest.approx(RADIUS + 4)
        begins.append(cost)
        assert (cost >= 400) == (has_opposite and bend < 14)
    straight, *bent = begins if not has_opposite else [cost for cost in begins if cost < 400]
    assert bent == sorted(bent)
    assert straight < bent[0]


def test_loops_keep_away_from_other_curves() -> None:
    router = _Router(np.array([[10.0, 20.0], [10.0, -180.0]]), 0, {(0, 0): ["a"], (0, 1): ["b"], (1, 0): ["c"]})
    free = router._loops(0)
    for angle, (_, control) in zip(LOOP_ANGLES, free, strict=True):
        (top,) = _bezier(control, np.array([0.5])) - router.centers[0]
        assert np.degrees(np.arctan2(top[1], top[0])) % 360 == pytest.approx(angle % 360, abs=3)
        assert np.linalg.norm(top) > RADIUS + 15
        ends = np.linalg.norm(control[[0, -1]] - router.centers[0], axis=1)
        assert ends.tolist() == pytest.approx([RADIUS + 1, RADIUS + 4])
        (_, center), *others = router._label_centers(control, (40.0, 20.0), (0, 0))
        assert not others
        away = center - router.centers[0] - top
        assert away @ top == pytest.approx(np.linalg.norm(away) * np.linalg.norm(top), rel=0.01)
        half = np.abs(top) @ (20.0, 10.0) / np.linalg.norm(top)  # of the label, in the direction of the loop
        assert half < np.linalg.norm(away) < half + 5
    assert [cost for cost, _ in free] == sorted({cost for cost, _ in free})
    for pair, end in (((0, 1), 0), ((1, 0), -1)):  # from the state and to it
        router.routes = {pair: router._cheapest(pair)}
        x, y = router.routes[pair].control[end] - router.centers[0]
        for angle, (cost, _), (alone, _) in zip(LOOP_ANGLES, router._loops(0), free, strict=True):
            between = abs((angle - np.degrees(np.arctan2(y, x)) + 180) % 360 - 180)
            if abs(between - MIN_LOOP_DISTANCE) > 9:  # the code looks a little further along the curve
                assert (cost > alone) == (between < MIN_LOOP_DISTANCE)


def test_labels_cost_what_they_cover() -> None:
    centers = np.array([[0.0, 0.0], [400.0, 0.0]])
    router = _Router(centers, 0, {(0, 1): ["a"]})
    size, nothing = (40.0, 20.0), np.full((1, 2, 2), 1e6)
    assert router._label_cost(np.array([200.0, 0.0]), size, nothing) == 0
    for center in ((0.0, RADIUS + 13.0), (RADIUS + 23.0, 0.0), (400.0, -RADIUS - 13.0)):
        assert router._label_cost(np.array(center), size, nothing) > 0
        assert router._label_cost(np.array(center) * 1.2 - centers[1] * (center[0] > 99) * 0.2, size, nothing) == 0
    router.routes = {(0, 1): router._cheapest((0, 1))}
    at, other = router.routes[0, 1].label_at, router.routes[0, 1].label_size
    for offset in (np.array([(40 + other[0]) / 2, 0]), np.array([0, (20 + other[1]) / 2])):
        assert router._label_cost(at + offset * 0.99, size, nothing) > 0
        assert router._label_cost(at + offset * 1.2, size, nothing) == 0
    line = np.linspace((300.0, 0.0), (300.0, 200.0), 50)[None]
    costs = [router._label_cost(np.array([x, 100.0]), size, line) for x in (270.0, 285.0, 315.0, 330.0)]
    assert costs[0] == costs[3] == 0 < costs[1] == costs[2]
    assert router._label_cost(np.array([285.0, 100.0]), size, np.concatenate([line, line + 1])) == 2 * costs[1]
