"""One look at a small net, and the mistakes that it meets."""

from typing import ClassVar

import pytest
import torch

from lengthwise.analysis.overview import analyze
from lengthwise.conventions import IGNORE
from lengthwise.models import make_model
from lengthwise.models.base import SequenceModel
from lengthwise.tasks import make_task


def test_the_analysis_of_a_small_net() -> None:
    task = make_task("cycle-navigation")
    model = make_model("regular-gpt", task, d_model=16, num_heads=2)
    analysis = analyze(model, task, length=63, seed=1)
    assert analysis.inputs.shape == (200, 63)
    assert 0 <= analysis.num_right <= analysis.num_graded == 200
    assert [level.level for level in analysis.levels] == [1, 2, 3, 4, 5, 6]
    assert all(level.num_states == 200 for level in analysis.levels)
    assert analysis.distance == pytest.approx(16**0.5 / 8, rel=1e-3)  # states of the merge layer have norm sqrt(D)
    assert analysis.cumulative.shape == (64, 63)
    assert analysis.flips[0].distance == 0
    assert analysis.flips[-1].distance == 62
    assert all(point.expected == 1 for point in analysis.flips)
    again = analyze(model, task, length=63, seed=1)
    assert torch.equal(again.components.points, analysis.components.points)
    assert again.flips == analysis.flips
    assert not torch.equal(analyze(model, task, length=63, seed=2).inputs, analysis.inputs)


def test_nothing_is_left_changed() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=8, num_heads=2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    analyze(model, task, length=9)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(("task", "length", "taken"), [("modular-arithmetic", 20, 19), ("parity", 1, 1)])
def test_lengths_without_strings_are_one_shorter(task: str, length: int, taken: int) -> None:
    made = make_task(task)
    model = make_model("regular-gpt", made, d_model=8, num_heads=2)
    assert analyze(model, made, length=length).inputs.shape[1] == taken


class Constant(SequenceModel):
    """Answers class 0."""

    name: ClassVar[str] = "constant"

    def reset_parameters(self, generator):
        """It has none."""

    def forward(self, inputs):
        return torch.nn.functional.one_hot(0 * inputs, 2).float()

    def last_state(self, inputs):
        return self.forward(inputs)[:, -1]


def test_other_models_and_lengths_are_refused() -> None:
    task = make_task("parity")
    with pytest.raises(ValueError, match="expected a regular-gpt and a regular task, got constant and parity"):
        analyze(Constant(), task)
    thick = make_model("regular-gpt", task, d_model=8, num_heads=2, thickness=2)
    with pytest.raises(ValueError, match="model: expected thickness 1"):
        analyze(thick, task, length=9)
    with pytest.raises(ValueError, match="length: expected a whole number of at least 1, got 0"):
        analyze(thick, task, length=0)
    with pytest.raises(ValueError, match="length: expected at most 10,000 symbols, got 10,001"):
        analyze(thick, task, length=10_001)


@pytest.mark.parametrize(
    ("fields", "got"),
    [
        ({"alphabet": ("a",), "table": ((1,), (0,)), "outputs": (0, 1)}, "1 and 2"),
        ({"outputs": (0, 0, 0), "answers": ("no",)}, "2 and 1"),
    ],
)
def test_tasks_with_nothing_to_change_are_refused_at_once(fields: dict, got: str) -> None:
    task = make_task("machine", **fields)
    with pytest.raises(
        ValueError, match=f"^task: expected at least two symbols and at least two answers, got {got}; choose"
    ):
        analyze(make_model("regular-gpt", task, d_model=8, num_heads=2), task, length=9)


def test_strings_without_any_answer_are_named() -> None:
    table, outputs = ((1, 2), (1, 3), (4, 2), (5, 5), (5, 5), (5, 5)), (IGNORE, 0, 1, IGNORE, IGNORE, IGNORE)
    task = make_task("machine", alphabet=("a", "b"), table=table, outputs=outputs, answers=("no", "yes"))
    with pytest.raises(ValueError, match=r"length: expected strings that have an answer, got .* of 40 symbols without"):
        analyze(make_model("regular-gpt", task, d_model=8, num_heads=2), task, length=40)
