"""The loop, its losses, its rates and its recipe."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_training import SMALL, small_recipe, small_state
from torch import nn

from lengthwise.conventions import IGNORE, PAD
from lengthwise.models import MODELS, make_model
from lengthwise.presets import PRESETS
from lengthwise.randomness import generator_for
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import Batch, make_task
from lengthwise.training.checkpoint import load_checkpoint, save_checkpoint
from lengthwise.training.loop import (
    MIN_CLIP_NORM,
    Diverged,
    TrainingState,
    train,
    training_steps,
)
from lengthwise.training.losses import supervised_loss
from lengthwise.training.recipe import Recipe
from lengthwise.training.requirements import check_memory, check_model
from lengthwise.validation import validated


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "train.augmentation: gru accepts no pads; set padding, leading_padding and late_consistency to 0, as in ",
        ),
        ({"late_consistency": 1.0}, "train.late_consistency: expected 0 for gru, which accepts no pads, got 1; set"),
        (
            {"late_consistency": 0.0, "augmentation": {"padding": 0, "leading_padding": 0}},
            "train.augmentation: gru accepts no noise",
        ),
    ],
)
def test_a_recipe_that_needs_a_missing_capability_is_rejected(changes: dict, sentence: str) -> None:
    unchanged = {"augmentation": PRESETS["plain"].train["augmentation"]} if changes.get("late_consistency") else {}
    with pytest.raises(ValueError, match=sentence):
        check_model(MODELS["gru"], validated(Recipe, unchanged | changes))


def test_last_supervision_scores_the_last_question_only() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, **SMALL)
    inputs = torch.tensor([[0, 1, 1], [1, 1, 0]])
    targets = torch.tensor([[0, 1, IGNORE], [1, 0, IGNORE]])
    expected = torch.nn.functional.cross_entropy(model(inputs)[:, 1], targets[:, 1])
    torch.testing.assert_close(supervised_loss(model, Batch(inputs, targets), "last"), expected)


def test_prefix_supervision_scores_every_question() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, **SMALL)
    inputs = torch.tensor([[0, 1, 1], [1, 1, 0]])
    targets = torch.tensor([[0, IGNORE, 0], [1, 0, 0]])
    logits = model(inputs).log_softmax(-1)
    supervised = [(0, 0, 0), (0, 2, 0), (1, 0, 1), (1, 1, 0), (1, 2, 0)]
    expected = -torch.stack([logits[row, position, answer] for row, position, answer in supervised]).mean()
    torch.testing.assert_close(supervised_loss(model, Batch(inputs, targets), "prefix"), expected)


@pytest.mark.parametrize("supervision", ["last", "prefix"])
def test_where_nothing_is_supervised_the_loss_is_0(supervision: str) -> None:
    model, inputs = make_model("gru", make_task("parity"), d_model=4), torch.zeros(3, 5, dtype=torch.int64)
    loss = supervised_loss(model, Batch(inputs, torch.full_like(inputs, IGNORE)), supervision)
    loss.backward()
    assert float(loss.detach()) == 0
    assert all(not parameter.grad.any() for parameter in model.parameters())


def test_rows_of_different_lengths_are_scored_at_the_last_supervised_position_of_each() -> None:
    """Pads at the end: the loss is that of the rows alone, in values and gradients."""
    task = make_task("parity")
    model = make_model("looped-transformer", task, num_loops=2, variant="code", **SMALL).double()
    rows = [torch.tensor([0, 1, 1]), torch.tensor([1]), torch.tensor([1, 1, 0, 1, 0])]
    inputs, targets = torch.full((3, 5), PAD), torch.full((3, 5), IGNORE)
    alone = []
    for position, row in enumerate(rows):
        inputs[position, : len(row)], targets[position, len(row) - 1] = row, position % 2
        alone.append(torch.nn.functional.cross_entropy(model.last(row[None]), torch.tensor([position % 2])))
    together = supervised_loss(model, Batch(inputs, targets), "last")
    losses = (together, torch.stack(alone).mean(), supervised_loss(model, Batch(inputs, targets), "prefix"))
    gradients = [torch.autograd.grad(loss, list(model.parameters()), retain_graph=True) for loss in losses]
    for loss, gradient in zip(losses[1:], gradients[1:], strict=True):
        torch.testing.assert_close(loss, losses[0])
        torch.testing.assert_close(gradient, gradients[0])


@pytest.mark.parametrize("supervision", ["last", "prefix"])
def test_numbers_of_a_batch_that_supervises_nothing_have_no_gradient(supervision: str) -> None:
    task = make_task("longest-common-subsequence")
    model, batch = make_model("grid-recurrence", task), task.sample(2, 8, torch.Generator().manual_seed(0))
    loss = supervised_loss(model, batch._replace(targets=torch.full_like(batch.targets, IGNORE)), supervision)
    assert float(loss.detach()) == 0.0
    loss.backward()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("supervision", ["last", "prefix"])
def test_numbers_are_scored_by_their_squared_error(supervision: str) -> None:
    task = make_task("decision-tree", depth=2, dims=3, max_points=6)
    model = make_model("looped-transformer", task, num_loops=2, variant="code", **SMALL)
    batch = task.sample(4, 5, torch.Generator().manual_seed(0))
    answers = model(batch.inputs)[..., 0]
    positions = [8] if supervision == "last" else [0, 2, 4, 6, 8]
    expected = (answers[:, positions] - batch.targets[:, positions]).square().mean()
    torch.testing.assert_close(supervised_loss(model, batch, supervision), expected)


def test_training_depends_on_the_seed_alone() -> None:
    task, recipe = make_task("parity"), small_recipe()
    runs = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(runs))  # the global generator must not matter
        runs.append(train(make_model("regular-gpt", task, **SMALL), task, recipe, seed=seed))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


# It trains a net of trees for seconds; in tests/models/test_rnn.py a net learns its task by default.
@pytest.mark.slow
@pytest.mark.unchecked
@pytest.mark.parametrize("supervision", ["last", "prefix"])
def test_training_lowers_the_loss(supervision: str) -> None:
    task = make_task("cycle-navigation", size=2)
    records = train(
        make_model("regular-gpt", task, **SMALL),
        task,
        small_recipe(steps=300, max_length=4, supervision=supervision, batch_size=64),
    )
    start, end = (sum(record.loss for record in part) / 20 for part in (records[:20], records[-20:]))
    assert end < 0.5 * start


def test_the_average_follows_the_weights() -> None:
    task = make_task("parity")
    recipe = small_recipe(steps=3, ema_decay=0.5)
    state = small_state(task, recipe)
    name, parameter = next(iter(state.model.named_parameters()))
    expected = parameter.detach().clone()
    for step, _ in enumerate(training_steps(state, task, recipe, seed=0), start=1):
        decay = min(0.5, step / (step + 10))
        expected = decay * expected + (1 - decay) * parameter.detach()
        torch.testing.assert_close(state.average[name], expected)
    state.load_final_weights()
    torch.testing.assert_close(parameter.detach(), expected)


def test_divergence_stops_before_it_harms_the_weights() -> None:
    task, recipe = make_task("parity"), small_recipe()
    state = small_state(task, recipe)
    steps = training_steps(state, task, recipe, seed=0)
    next(steps)
    with torch.no_grad():
        state.model.readout[1].weight[0, 0] = math.inf
    before = {name: p.clone() for name, p in state.model.named_parameters()}
    with pytest.raises(Diverged, match=r"diverged at step 2.*learning_rate"):
        next(steps)
    assert state.step == 1
    assert all(torch.equal(before[name], p) for name, p in state.model.named_parameters())


def test_the_rate_rises_and_falls() -> None:
    recipe = validated(Recipe, {"steps": 1000, "optimizer": {"learning_rate": 0.01, "warmup_steps": 100}})
    rates = [recipe.optimizer.learning_rate * recipe.rate_factor_at(step) for step in range(1000)]
    assert rates[0] == pytest.approx(0.0001, rel=0.01)
    assert max(rates) == rates[99]
    assert rates[99:] == sorted(rates[99:], reverse=True)
    assert rates[-1] < 1e-6
    constant = Recipe(**PRESETS["chi2023"].train)
    assert {constant.rate_factor_at(step) for step in (0, 5, 99_999)} == {1.0}


def test_a_linear_schedule_rises_and_falls_to_nothing() -> None:
    recipe = Recipe(steps=10, optimizer={"schedule": "linear", "warmup_steps": 4})
    factors = [recipe.rate_factor_at(step) for step in range(10)]
    assert factors == pytest.approx([1 / 4, 2 / 4, 3 / 4, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])
    published = Recipe(**PRESETS["xu2024"].train)
    assert published.optimizer.warmup_steps == pytest.approx(published.steps * 5 / 100, abs=1)
    assert published.steps * published.batch_size == 100 * 1_000_000


def test_checkpoints_of_equal_runs_are_equal_files(tmp_path: Path) -> None:
    task, recipe = make_task("parity"), small_recipe(steps=3)
    files = []
    for _ in range(6):
        state = small_state(task, recipe)
        list(training_steps(state, task, recipe, seed=0))
        save_checkpoint(state, tmp_path / "checkpoint", "a")
        files.append((tmp_path / "checkpoint").read_bytes())
    assert len(set(files)) == 1


def test_a_checkpoint_whose_step_was_changed_is_rejected(tmp_path: Path) -> None:
    task, recipe = make_task("parity"), small_recipe()
    state = small_state(task, recipe)
    path = tmp_path / "checkpoint"
    save_checkpoint(state, path, "a")
    content = path.read_bytes()
    assert content.count(b'"step":"0"') == 1
    path.write_bytes(content.replace(b'"step":"0"', b'"step":"1"'))
    with pytest.raises(ValueError, match="its contents have changed"):
        load_checkpoint(state, path, "a")


@pytest.mark.parametrize(("ratio", "limits"), [(2.0, (0.02, 0.02, 1.0)), (0.0, (1.0, 1.0, 1.0))])
def test_a_gradient_is_clipped_at_the_running_norm_of_those_before(ratio, limits, monkeypatch) -> None:
    """Not below `MIN_CLIP_NORM`, and never above `clip_norm`, however large those before were."""
    task, recipe = make_task("parity"), small_recipe(steps=1, optimizer={"clip_ratio": ratio})
    supervised = []
    clip = torch.nn.utils.clip_grad_norm_
    monkeypatch.setattr(
        torch.nn.utils, "clip_grad_norm_", lambda given, limit: supervised.append(limit) or clip(given, limit)
    )
    for before in (0.01, MIN_CLIP_NORM / 100, 5.0):
        state = small_state(task, recipe)
        state.gradient_norm = before
        (record,) = training_steps(state, task, recipe, seed=0)
        assert record.gradient_norm > 0.02  # before clipping
        assert state.gradient_norm == pytest.approx(0.95 * before + 0.05 * min(record.gradient_norm, supervised[-1]))
    assert supervised == pytest.approx([limits[0], MIN_CLIP_NORM if ratio else 1.0, limits[2]])


def test_final_weights_are_lent_and_taken_back() -> None:
    task, recipe = make_task("parity"), small_recipe(ema_decay=0.5)
    state = small_state(task, recipe)
    for _ in range(3):
        next(training_steps(state, task, recipe, seed=0))
    own = {name: p.detach().clone() for name, p in state.model.named_parameters()}
    with state.with_final_weights() as model:
        assert all(torch.equal(p, state.average[name]) for name, p in model.named_parameters())
        assert not all(torch.equal(p, own[name]) for name, p in model.named_parameters())
    assert all(torch.equal(p, own[name]) for name, p in state.model.named_parameters())


@given(st.integers(0, 2**70), st.lists(st.one_of(st.integers(), st.text()), max_size=3))
def test_generators_are_named(seed: int, purpose: list) -> None:
    one, same = generator_for(seed, *purpose), generator_for(seed, *purpose)
    assert torch.equal(torch.rand(3, generator=one), torch.rand(3, generator=same))


def test_generators_of_large_seeds_differ() -> None:
    """torch's own seeding keeps 32 bits: seeds 1 and 1 + 2^32 would give the same numbers."""
    draws = {tuple(torch.rand(2, generator=generator_for(seed)).tolist()) for seed in (1, 1 + 2**32, 1 + 2**33)}
    assert len(draws) == 3


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"stps": 5}, "train.stps: no such setting; did you mean 'steps'?"),
        (
            {"optimizer": {"learning_rat": 1}},
            "train.optimizer.learning_rat: no such setting; did you mean 'learning_rate'",
        ),
        ({"steps": 0}, "train.steps: expected a number greater than or equal to 1, got 0"),
        ({"min_length": 50}, "train.min_length: expected at most max_length=40, got 50"),
        ({"supervision": "all"}, "train.supervision: expected 'last' or 'prefix', got 'all'"),
    ],
)
def test_bad_recipes_are_rejected_in_one_sentence(settings: dict, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the sentence is compared below
        validated(Recipe, settings, path="train")
    assert sentence in str(caught.value)


@pytest.mark.unchecked
def test_what_is_no_model_task_or_recipe_is_named() -> None:
    task = make_task("parity")
    model, recipe = make_model("rnn", task, d_model=4), Recipe(steps=1)
    for arguments, sentence in [
        ((nn.Linear(2, 2), task, recipe), "model: expected a model of this package, got Linear; .*wrap"),
        ((model, "parity", recipe), "task: expected a task"),
        ((model, task, {"steps": 1}), r"recipe: expected a Recipe, such as Recipe\(steps=1_000\), got "),
    ]:
        with pytest.raises(ValueError, match=sentence):
            train(*arguments)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"stepz": 3}, "stepz: no such setting; did you mean 'steps'?"),
        ({"steps": -1}, "steps: expected a number greater than or equal to 1, got -1"),
        ({"steps": "abc"}, "steps: expected a valid integer, got 'abc'"),
        (
            {"optimizer": {"name": "adamx"}},
            "optimizer.name: expected 'muon', 'adamw', 'adam' or 'baum-welch', got 'adamx'",
        ),
    ],
)
def test_a_recipe_written_in_python_is_refused_in_the_words_of_the_command_line(settings, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the sentence has brackets
        Recipe(**settings)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_positions_that_a_model_lacks_are_named_before_training_comes_to_them() -> None:
    spec = make_spec("parity", "transformer", {"model": {"learned_positions": 10, "positions": "learned"}})
    recipe = spec.recipe.model_copy(update={"max_length": 40})
    sentence = r"^train.max_length: expected strings of at most 10 symbols, .* got 40 symbols at length 40; lower"
    with pytest.raises(ValueError, match=sentence):
        TrainingState(spec.make_model(), recipe, spec.task)


def test_pads_that_a_model_does_not_read_are_named() -> None:
    spec = make_spec("edit-distance", "gru", {"train": {"steps": 2}})
    with pytest.raises(ValueError, match=r"-1 is the pad, which fills up shorter strings of a batch; use a model that"):
        train(spec.make_model(), spec.task, spec.recipe)


def test_leading_pads_are_few_numbers_for_trees_alone() -> None:
    recipe = Recipe(augmentation={"state_noise": 0, "late_state_noise": 0, "leading_pads": 1_000_000})
    task = make_task("parity")
    check_memory(make_model("regular-gpt", task, d_model=16, num_heads=2), recipe)
    with pytest.raises(ValueError, match=r"^train: expected at most 8,589,934,592 activations in a step"):
        check_memory(make_model("transformer", task), recipe)
