"""What steps train on: a fixed training set, and a task whose field rises."""

from pathlib import Path

import pytest
import torch

from lengthwise.conventions import IGNORE, PAD
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import at_smoke_scale
from lengthwise.models.base import SequenceModel
from lengthwise.runs.execute import Interrupted, execute
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.spec import RunSpec, make_spec, spec_from_json
from lengthwise.tasks import make_task
from lengthwise.training.batches import Batches, examples_answered, task_at, training_set
from lengthwise.training.loop import TrainingState, training_steps
from lengthwise.training.recipe import Recipe

FIXED = Recipe(steps=4, batch_size=32, max_length=6, num_examples=5)


def drawn(batches: Batches, step: int, length: int) -> torch.Tensor:
    return batches.draw(step, length, torch.Generator().manual_seed(step)).inputs


def rows(inputs: torch.Tensor) -> set[tuple[int, ...]]:
    return {tuple(row) for row in inputs.tolist()}


def test_all_strings_of_all_steps_are_of_the_fixed_set() -> None:
    task = make_task("parity")
    own = rows(training_set(task, FIXED, 20, seed=3).inputs)
    assert len(own) == 5, "of 2^20 strings, five differ"
    seen = [rows(drawn(Batches(task, FIXED, seed=3), step, 20)) for step in range(4)]
    assert set.union(*seen) == own
    assert not own & rows(training_set(task, FIXED, 20, seed=4).inputs)


def test_a_fixed_set_has_all_answers_where_all_prefixes_are_supervised() -> None:
    task = make_task("reverse-string")
    for supervision, min_answers in (("prefix", 5), ("last", 1)):
        recipe = FIXED.model_copy(update={"num_examples": 64, "supervision": supervision})
        answered = (training_set(task, recipe, 5, seed=0).targets != IGNORE).sum(1)
        assert (int(answered.min()), int(answered.max())) == (min_answers, 5)


def test_a_step_needs_none_of_those_before_it() -> None:
    task, first = make_task("parity"), Batches(make_task("parity"), FIXED, seed=0)
    in_turn = [drawn(first, step, 6) for step in range(3)]
    assert torch.equal(drawn(Batches(task, FIXED, seed=0), 2, 6), in_turn[2])
    assert not torch.equal(in_turn[1], in_turn[2])


def test_strings_keep_their_answers_and_lose_only_pads() -> None:
    task = make_task("edit-distance", max_length=8, alphabet=4)
    inputs, targets = Batches(task, FIXED, seed=0).draw(0, 8, torch.Generator().manual_seed(0))
    assert (inputs != PAD).any(0).all()
    assert torch.equal(task.solve(inputs), targets)


def test_without_a_fixed_set_strings_are_those_of_before() -> None:
    task = make_task("parity")
    fresh = Batches(task, FIXED.model_copy(update={"num_examples": None}), seed=0)
    assert torch.equal(drawn(fresh, 7, 6), task.sample(32, 6, torch.Generator().manual_seed(7)).inputs)
    assert {"num_examples", "task_rise"} & Recipe().model_dump(mode="json").keys() == set()


def spec_of(**train: object) -> RunSpec:
    settings = at_smoke_scale({"model": {"d_model": 8, "num_heads": 2}}, "looped-transformer")
    settings["train"] |= {"steps": 6, "max_length": 4, "checkpoint_every": 2, **train}
    return make_spec("parity", "looped-transformer", settings, preset="plain")


PLAN = EvaluationPlan(dense=(2, 4), dense_strings=8, long=(), structured=())


def test_an_interrupted_run_goes_on_with_the_same_batches(tmp_path: Path) -> None:
    spec = spec_of(num_examples=7)
    whole = execute(spec, tmp_path / "whole", PLAN)
    requests = iter([False] * 3 + [True])
    with pytest.raises(Interrupted):
        execute(spec, tmp_path / "parts", PLAN, stop_requested=lambda: next(requests))
    parts = execute(spec, tmp_path / "parts", PLAN)
    assert (parts.dense, parts.examples) == (whole.dense, whole.examples)
    losses = [
        [step.loss for step in RunFolder(tmp_path / name / spec.id).read_metrics()] for name in ("whole", "parts")
    ]
    assert losses[0] == losses[1]
    assert [(point.length, point.num_strings) for point in whole.examples] == [(1, 7), (2, 7), (3, 7), (4, 7)]
    assert spec_from_json(spec.to_json()).id == spec.id != spec_of().id
    assert "examples" not in execute(spec_of(), tmp_path / "fresh", PLAN).model_dump(mode="json")


def test_a_net_that_knows_its_set_by_heart_is_right_on_it_and_not_elsewhere() -> None:
    """By construction: a table of 16 strings, whose answers are drawn apart from them."""
    task = make_task("parity")

    strings = training_set(task, Recipe(num_examples=16), 30, seed=0)
    answers = zip(strings.inputs.tolist(), strings.targets[:, -1].tolist(), strict=True)
    known = {tuple(row): answer for row, answer in answers}

    class ByHeart(SequenceModel):
        def reset_parameters(self, generator: torch.Generator) -> None: ...

        def last_state(self, inputs: torch.Tensor) -> torch.Tensor:
            answers = [known.get(tuple(row), 0) for row in inputs.tolist()]
            return torch.nn.functional.one_hot(torch.tensor(answers), 2).float()

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return torch.stack([self.last_state(inputs[:, : t + 1]) for t in range(inputs.shape[1])], 1)

        readout = torch.nn.Identity()

    recipe = Recipe(min_length=30, max_length=30, lengths="legal", num_examples=16)
    (own,) = examples_answered(ByHeart(), task, recipe, seed=0)
    (other,) = examples_answered(ByHeart(), task, recipe, seed=1)
    assert own.accuracy == 1.0 > other.accuracy
    with pytest.raises(ValueError, match="recipe: expected a recipe with num_examples, got one that draws new strings"):
        examples_answered(ByHeart(), task, Recipe(), seed=0)


RISE = {"field": "active_dims", "start": 2, "stop": 5, "by": 2, "every": 10}


def test_a_field_of_the_task_rises_with_the_steps() -> None:
    task = make_task("decision-tree", dims=6, depth=2)
    recipe = Recipe(task_rise=RISE)
    assert [task_at(task, recipe, step).active_dims for step in (0, 9, 10, 20, 99)] == [2, 2, 4, 5, 5]
    for step, dims in ((0, 2), (10, 4), (20, 5)):
        points = drawn(Batches(task, recipe, seed=0), step, 9)[:, ::2]
        assert (points != 0).any((0, 1)).tolist() == [True] * dims + [False] * (6 - dims)
    assert task_at(task, Recipe(), 20) is task


def test_training_sees_the_curriculum() -> None:
    """Losses of the first steps are those of a task with few coordinates, and then no longer."""
    settings = {"train": {"steps": 4, "batch_size": 4, "min_length": 4, "max_length": 4}, "model": {"d_model": 8}}
    settings["task"] = {"dims": 6, "depth": 2, "max_points": 8}
    losses = {}
    for name, rise in (("rising", {"task_rise": RISE | {"every": 2}}), ("two", {"task_rise": RISE | {"stop": 2}})):
        train = {"train": settings["train"] | rise}
        spec = make_spec("decision-tree", "looped-transformer", settings | train, preset="plain")
        state = TrainingState(spec.make_model(), spec.recipe, spec.task)
        losses[name] = [record.loss for record in training_steps(state, spec.task, spec.recipe, seed=0)]
    assert losses["rising"][:2] == losses["two"][:2]
    assert losses["rising"][2] != losses["two"][2]


@pytest.mark.parametrize(
    ("task", "rise", "sentence"),
    [
        ("decision-tree", RISE | {"field": "active_dim"}, r"train\.task_rise\.field: .*did you mean 'active_dims'"),
        ("decision-tree", RISE | {"field": "dims"}, r"train\.task_rise\.field: expected a field that keeps"),
        (
            "decision-tree",
            RISE | {"stop": 99},
            r"train\.task_rise\.stop: expected a value that .* got 99 \(task",
        ),
        ("decision-tree", RISE | {"start": 0}, r"train\.task_rise\.start: expected a value that .* got 0"),
        ("decision-tree", RISE | {"start": 7}, r"stop: expected at least start=7, got 5; raise stop or lower start"),
        ("decision-tree", RISE | {"by": 0}, r"train\.task_rise\.by: expected a number greater than or equal to 1"),
        (
            "parity",
            RISE,
            r"train\.task_rise\.field: expected a field of parity that takes integers \(it has none\), got active_d",
        ),
    ],
)
def test_what_cannot_rise_is_refused(task: str, rise: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make_spec(task, "looped-transformer", {"train": {"task_rise": rise}}, preset="plain")


@pytest.mark.parametrize("count", [0, 1_000_001])
def test_sets_of_no_size_or_too_large_a_one_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match=r"train\.num_examples: expected a number"):
        make_spec("parity", "gru", {"train": {"num_examples": count}})


def test_pieces_of_states_come_from_other_strings() -> None:
    with pytest.raises(ValueError, match="num_examples: expected no value if states are supervised"):
        Recipe(num_examples=8, states={})
