"""Vectors of strings, against the machines that read them."""

from itertools import permutations

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, transducers
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import Transducer, library
from lengthwise.automata.group_action import smallest_transitive_action
from lengthwise.automata.monoid import transition_monoid
from lengthwise.automata.representation import (
    ReadOut,
    Representation,
    linear_read_out,
    live_states,
    matrix_products,
    one_hot_elements,
    point_matrices,
    separating_weights,
    state_matrices,
)
from lengthwise.conventions import IGNORE

pytestmark = checked_strategies

chunks = st.integers(2, 4)


def vector(representation: Representation, parts: list[int]) -> np.ndarray:
    """Of a string of leaves (0 is the empty one), C at a time."""
    chunk = representation.products.reads.shape[1]
    whole = representation.leaves[0]
    for start in range(0, len(parts), chunk - 1):
        children = parts[start : start + chunk - 1]
        children += [0] * (chunk - 1 - len(children))
        whole = representation.products.join(np.stack([whole, *representation.leaves[children]]))
    return whole


def answer(read_out: ReadOut, whole: np.ndarray) -> int:
    scores = read_out.weights @ whole + read_out.offsets
    best, *others = np.sort(scores)[::-1]
    assert not others or best - others[0] >= 1
    return int(scores.argmax())


def assert_answers(representation: Representation, machine: Transducer, length: int = 4) -> None:
    assert set(np.unique(representation.leaves)) <= {0, 1}
    for n in range(1, length + 1):
        for string in all_strings(len(machine.symbols), n)[:100]:
            whole = vector(representation, (string + 1).tolist())
            assert set(np.unique(whole)) <= {0, 1}
            expected = int(machine.run(string[None])[0, -1])
            if expected != IGNORE:
                assert answer(representation.read_out, whole) == expected


def smallest(machine: Transducer) -> Transducer:
    outputs = np.where(machine.outputs < 0, IGNORE, machine.outputs)
    return Transducer(machine.semiautomaton, machine.start, outputs).minimize()


@given(transducers(max_states=5), chunks)
def test_matrices_of_states_give_the_answers(machine: Transducer, chunk: int) -> None:
    machine = smallest(machine)
    assert_answers(state_matrices(machine, 3, chunk), machine)


def test_the_answer_in_a_sink_is_read_from_a_row_without_a_1() -> None:
    machine = library.bounded_dyck(1).transducer.minimize()
    assert len(live_states(machine)) < machine.num_states
    assert_answers(state_matrices(machine, 2, 2), machine)


@given(transducers(max_states=3), st.integers(2, 3))
def test_one_hot_elements_give_the_answers(machine: Transducer, chunk: int) -> None:
    machine = smallest(machine)
    monoid = transition_monoid(machine.semiautomaton)
    answers = machine.outputs[monoid.maps[:, machine.start]]
    assert_answers(one_hot_elements(monoid, answers, 3, chunk), machine)


@pytest.mark.parametrize("chunk", [2, 3, 4])
def test_points_give_the_answers_of_a_group(chunk: int) -> None:
    machine = library.cycle(3)
    monoid = transition_monoid(machine.semiautomaton)
    answers = machine.outputs[monoid.maps[:, machine.start]]
    action = smallest_transitive_action(monoid)
    read_out = linear_read_out(action, answers, 3)
    assert_answers(point_matrices(monoid, action, read_out, chunk), machine, length=5)


@given(st.integers(1, 4), chunks, st.data())
def test_products_of_matrices_are_matrix_products(num_points: int, chunk: int, data: st.DataObject) -> None:
    """Each row has a single 1, or, for a string that leads to the sink, none."""
    rows = st.lists(st.integers(-1, num_points - 1), min_size=num_points, max_size=num_points)
    maps = np.array(data.draw(st.lists(rows, min_size=chunk, max_size=chunk)))
    matrices = (maps[:, :, None] == np.arange(num_points)).astype(np.int64)
    products = matrix_products(num_points, chunk)
    assert products.reads.shape == (num_points ** (chunk + 1), chunk)
    joined = products.join(matrices.reshape(chunk, -1))
    np.testing.assert_array_equal(joined.reshape(num_points, num_points), np.linalg.multi_dot([*matrices]))


def test_a_sink_is_left_out_unless_it_is_the_start() -> None:
    assert live_states(library.bounded_dyck(2).transducer.minimize()).tolist() == [0, 1, 3]
    assert live_states(library.parity()).tolist() == [0, 1]
    assert live_states(library.cycle(1)).tolist() == [0]


@given(st.integers(1, 4), st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=1, max_size=8))
def test_separating_weights_separate(num_classes: int, rows: list[list[int]]) -> None:
    """Answers that a linear map gives are found again."""
    vectors = np.array(rows)
    scores = vectors @ np.array([[0, 1, 5, 2], [3, 3, 0, 1], [1, 4, 2, 6]])[:, :num_classes]
    answers = scores.argmax(1)
    clear = (np.sort(scores, axis=1)[:, -2:] @ [-1, 1] > 0) if num_classes > 1 else np.ones(len(rows), dtype=bool)
    vectors, answers = vectors[clear], answers[clear]
    weights = separating_weights(vectors, answers, num_classes)
    for actual, right in zip(vectors @ weights.T, answers, strict=True):
        assert all(actual[right] >= other + 1 for row, other in enumerate(actual) if row != right)


def test_what_no_plane_separates_is_given_up() -> None:
    """Exclusive or, with a constant."""
    vectors = np.array([[1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]])
    assert separating_weights(vectors, np.array([0, 1, 1, 0]), 2) is None


def test_of_all_permutations_each_has_its_own_matrix_as_weights() -> None:
    """Two matrices of permutations of N points have product N if they are equal, and at most N - 2 if not."""
    matrices = np.array([np.eye(3, dtype=np.int64)[list(images)].ravel() for images in permutations(range(3))])
    np.testing.assert_array_equal(separating_weights(matrices, np.arange(6), 6), matrices)
