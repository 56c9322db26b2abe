"""Training that goes by what it has reached: when it contracts states, when it gives up, and by which schedule."""

from functools import cache
from pathlib import Path

import pytest
import torch

from lengthwise.extraction.readers.one_hot import one_hot_columns
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.runs.spec import RunSpec, make_spec, merge
from lengthwise.training.checkpoint import load_checkpoint, read_notes, save_checkpoint
from lengthwise.training.loop import TrainingState, _note_loss, training_steps
from lengthwise.training.recipe import PaceRecipe, Recipe


def parity(**pace) -> RunSpec:
    """Small nets on short strings."""
    settings = {
        "model": {"d_model": 6, "block_dim": 6},
        "train": {"steps": 500, "batch_size": 16, "min_length": 1, "max_length": 8, "pace": pace},
    }
    return make_spec("parity", "block-linear-rnn", settings, preset="machine")


def trained(spec: RunSpec) -> tuple[TrainingState, list[int]]:
    """The state after all steps, and how many there were."""
    state = TrainingState(spec.make_model(), spec.recipe)
    return state, [record.step for record in training_steps(state, spec.task, spec.recipe, seed=0)]


@cache
def solved() -> tuple[RunSpec, TrainingState, list[int]]:
    """Return a run whose loss becomes low, with its state after all steps, which tests only read."""
    spec = parity(solved_loss=0.6, contract_steps=40, patience=400)
    return spec, *trained(spec)


@pytest.mark.parametrize(("steps", "contract_steps", "contract_after"), [(1_000, 200, 0.5), (97, 13, 0.4), (2, 1, 0.0)])
def test_the_schedule_is_run_through_once_and_in_order(steps: int, contract_steps: int, contract_after: float) -> None:
    pace = PaceRecipe(contract_steps=contract_steps, contract_after=contract_after)
    recipe = Recipe(steps=steps, pace=pace)
    begin, learning = round(contract_after * steps), steps - contract_steps
    before = [recipe.scheduled(step) for step in range(learning)]
    assert before == sorted(before)
    assert not before or (before[0], before[-1] < max(1, begin)) == (0, True)
    for solved_at in (1, learning):
        after = [recipe.scheduled(step, solved_at) for step in range(solved_at, solved_at + contract_steps)]
        assert after == sorted(after)
        assert after[0] == begin
        assert after[-1] < steps
        assert not recipe.is_over(solved_at + contract_steps - 1, solved_at)
        assert recipe.is_over(solved_at + contract_steps, solved_at)


def test_states_contract_once_the_loss_is_low() -> None:
    _, state, steps = solved()
    assert state.solved_at is not None
    assert steps == list(range(1, state.solved_at + 41))
    assert steps[-1] < 460, "it ended before its steps"
    assert isinstance(state.model, BlockLinearRNN)
    assert one_hot_columns(state.model) is not None


def test_progress_above_the_first_mean_is_progress() -> None:
    """Of 40 answers the loss begins near 3.7: it has to fall by a tenth, not below what means begin with."""
    spec = make_spec("cycle-navigation", "block-linear-rnn", {"task": {"size": 40}}, preset="machine")
    state = TrainingState(spec.make_model(), spec.recipe)
    for step in range(1, 401):
        state.step = step
        _note_loss(state, spec.recipe, 3.7 * 0.999**step, has_grown=True)
    assert state.loss > 2.4
    assert state.best_at > 200
    assert not state.is_over(spec.recipe)


def test_a_loss_that_stays_up_ends_training_without_contraction() -> None:
    spec = parity(solved_loss=1e-9, contract_steps=40, patience=10_000)
    state, steps = trained(spec._replace(recipe=spec.recipe.model_copy(update={"steps": 60})))
    assert (state.solved_at, len(steps)) == (None, 20)
    assert isinstance(state.model, BlockLinearRNN)
    assert one_hot_columns(state.model) is None


def test_patience_ends_training_after_steps_in_which_the_loss_has_not_fallen_by_a_tenth() -> None:
    spec = make_spec(
        "parity",
        "block-linear-rnn",
        {
            "model": {"d_model": 1, "block_dim": 1},
            "train": {"steps": 500, "batch_size": 16, "max_length": 8, "min_length": 1, "pace": {"patience": 30}},
        },
        preset="machine",
    )
    state, steps = trained(spec)  # one state knows nothing: the loss stays at that of a guess
    assert len(steps) == state.best_at + 30 < 200
    assert 0.69 < state.best_loss < 0.69 / 0.9 + 0.05


def test_a_checkpoint_keeps_where_training_is_and_what_was_noted(tmp_path: Path) -> None:
    spec, whole, steps = solved()
    assert whole.solved_at is not None
    for stop in (whole.solved_at - 10, whole.solved_at + 20):
        first, second = (TrainingState(spec.make_model(), spec.recipe) for _ in range(2))
        for record in training_steps(first, spec.task, spec.recipe, seed=0):
            if record.step == stop:
                break
        save_checkpoint(first, tmp_path / "checkpoint", "id", {"attempts": "[1]"})
        assert read_notes(tmp_path / "checkpoint", "id") == {"attempts": "[1]"}
        with pytest.raises(ValueError, match="belongs to another specification"):
            read_notes(tmp_path / "checkpoint", "other")
        load_checkpoint(second, tmp_path / "checkpoint", "id")
        assert (second.loss, second.best_loss, second.best_at) == (first.loss, first.best_loss, first.best_at)
        rest = [record.step for record in training_steps(second, spec.task, spec.recipe, seed=0)]
        assert rest == steps[stop:]
        for one, other in zip(whole.model.parameters(), second.model.parameters(), strict=True):
            assert torch.equal(one, other)


def test_at_a_constant_rate_a_pace_decides_when_training_ends_and_nothing_else() -> None:
    settings = {"model": {"d_model": 16, "num_heads": 2}, "train": {"batch_size": 16, "max_length": 6}}
    pace = {"solved_loss": 1.2, "contract_steps": 7, "patience": 200}  # the running loss begins at 2
    paced, free = (
        make_spec("parity", "regular-gpt", merge(settings, {"train": train}), preset="chi2023")
        for train in ({"steps": 200, "pace": pace}, {"steps": 200})
    )
    first, second = (TrainingState(spec.make_model(), spec.recipe) for spec in (paced, free))
    records = list(training_steps(first, paced.task, paced.recipe, seed=0))
    assert first.solved_at is not None
    assert [record.step for record in records] == list(range(1, first.solved_at + 8))
    others = training_steps(second, free.task, free.recipe, seed=0)
    assert records == [next(others) for _ in records]
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_pace_without_steps_to_learn_in_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"pace.contract_steps: expected fewer than steps=300, got 300; lower contract_steps or"
    ):
        Recipe(steps=300, pace=PaceRecipe(contract_steps=300))
