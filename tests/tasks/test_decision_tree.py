import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from task_strings import seeded

from lengthwise.tasks import make_task
from lengthwise.tasks.in_context.decision_tree import (
    Trees,
    mean_so_far,
    nearest_neighbor,
    nearest_neighbor_by_definition,
    tree_values,
    tree_values_by_definition,
)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 9), st.integers(0, 1_000))
def test_all_points_at_once_is_point_by_point(depth: int, dims: int, num_points: int, seed: int) -> None:
    generator = seeded(seed)
    inner = 2**depth - 1
    trees = Trees(torch.randint(dims, (3, inner), generator=generator), torch.randn(3, inner + 1, generator=generator))
    points = torch.randint(-1, 2, (3, num_points, dims), generator=generator).float()  # 0 goes to the left
    assert torch.equal(tree_values(trees, points), tree_values_by_definition(trees, points))


def test_a_tree_by_hand() -> None:
    """The root asks for coordinate 1, its left child for 0, its right child for 2."""
    trees = Trees(torch.tensor([[1, 0, 2]]), torch.tensor([[10.0, 11.0, 12.0, 13.0]]))
    points = torch.tensor([[[-1.0, -1.0, 9.0], [1.0, 0.0, 9.0], [9.0, 1.0, -1.0], [9.0, 1.0, 1.0]]])
    assert tree_values(trees, points).tolist() == [[10.0, 11.0, 12.0, 13.0]]


def test_sequences_alternate_points_and_values_of_one_tree() -> None:
    task = make_task("decision-tree", depth=2, dims=3, max_points=200)
    inputs, targets = task.sample(50, 200, seeded(0))
    assert inputs.shape == (50, 399, 3)
    assert torch.equal(inputs[:, 1::2, 0], targets[:, :-1:2])
    assert (inputs[:, 1::2, 1:] == 0).all()
    assert targets[:, 1::2].isnan().all()
    for row, values in zip(inputs[:, ::2], targets[:, ::2], strict=True):
        assert len(values.unique()) <= 4
        signs = (row > 0).long() @ torch.tensor([1, 2, 4])
        assert all(len(values[signs == cell].unique()) <= 1 for cell in range(8))


def test_points_leaves_and_coordinates_are_as_the_paper_says() -> None:
    inputs, targets = make_task("decision-tree").sample(2_000, 101, seeded(0))
    points = inputs[:, ::2]
    assert points.mean().item() == pytest.approx(0, abs=0.005)
    assert points.std().item() == pytest.approx(1, abs=0.005)
    values = targets[:, ::2]
    assert values.var(dim=0).mean().item() == pytest.approx(1, abs=0.05)
    assert 10 < sum(len(row.unique()) for row in values) / 2_000 <= 16


def test_a_curriculum_leaves_coordinates_out() -> None:
    task = make_task("decision-tree", depth=3, dims=6, active_dims=2)
    inputs, targets = task.sample(200, 40, seeded(0))
    assert task.input_dim == inputs.shape[2] == 6
    assert (inputs[:, ::2, 2:] == 0).all()
    assert (inputs[:, ::2, :2] != 0).all()
    for points, values in zip(inputs[:, ::2], targets[:, ::2], strict=True):
        quadrants = (points[:, :2] > 0).long() @ torch.tensor([1, 2])
        assert all(len(values[quadrants == quadrant].unique()) <= 1 for quadrant in range(4))


@given(st.integers(1, 12), st.integers(1, 4), st.integers(0, 1_000))
def test_the_nearest_neighbor_is_that_of_the_definition(num_points: int, dims: int, seed: int) -> None:
    inputs = make_task("decision-tree", dims=dims).sample(3, num_points, seeded(seed)).inputs
    torch.testing.assert_close(
        nearest_neighbor(inputs), nearest_neighbor_by_definition(inputs), rtol=0, atol=0, equal_nan=True
    )


def test_the_mean_so_far() -> None:
    inputs = torch.tensor([[[5.0], [1.0], [6.0], [2.0], [7.0], [6.0], [8.0]]])
    assert mean_so_far(inputs)[0, ::2].tolist() == [0.0, 1.0, 1.5, 3.0]
    assert mean_so_far(inputs)[0, 1::2].isnan().all()
    assert mean_so_far(inputs[:, :1]).tolist() == nearest_neighbor(inputs[:, :1]).tolist() == [[0.0]]


def test_learners_use_no_later_value_and_are_better_than_a_constant() -> None:
    inputs, targets = make_task("decision-tree", depth=2, dims=5).sample(2_000, 26, seeded(0))
    for learner in (mean_so_far, nearest_neighbor):
        changed = inputs.clone()
        changed[:, 21:] += 1
        torch.testing.assert_close(learner(changed)[:, :21], learner(inputs)[:, :21], rtol=0, atol=0, equal_nan=True)
        error = (learner(inputs) - targets)[:, -1].square().mean().item()
        assert error < 0.9 < make_task("decision-tree").baseline(26)


def test_more_points_than_there_are_positions_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"length: decision-tree has no strings of length 102; legal .*\[99, 100, 101\]"
    ):
        make_task("decision-tree").sample(1, 102, seeded(0))


def test_a_greedy_tree_is_better_than_the_nearest_neighbor() -> None:
    tree = pytest.importorskip("sklearn.tree")
    inputs, targets = make_task("decision-tree").sample(100, 101, seeded(0))
    errors = []
    for sequence, target in zip(inputs.double().numpy(), targets[:, -1].tolist(), strict=True):
        learner = tree.DecisionTreeRegressor(random_state=0).fit(sequence[:-1:2], sequence[1::2, 0])
        errors.append(float(learner.predict(sequence[-1:])[0] - target) ** 2)
    neighbor_error = (nearest_neighbor(inputs) - targets)[:, -1].square().mean().item()
    assert sum(errors) / len(errors) < neighbor_error
