"""Lengths of training strings: balanced, sampled, and raised by a curriculum or with the loss."""

import math
from pathlib import Path

import pytest
from small_training import small_recipe, small_state

from lengthwise.models import make_model
from lengthwise.presets import PRESETS
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.training.checkpoint import load_checkpoint, save_checkpoint
from lengthwise.training.loop import (
    Growth,
    TrainingState,
    train,
    training_lengths,
    training_steps,
)
from lengthwise.training.recipe import Recipe


def smallest_state(task, recipe: Recipe) -> TrainingState:
    return TrainingState(make_model("regular-gpt", task, d_model=2, num_heads=1), recipe)


@pytest.mark.unchecked
def test_lengths_are_balanced_and_sampled_as_the_recipe_says() -> None:
    dyck = make_task("bounded-dyck", depth=2)
    assert training_lengths(dyck, small_recipe(lengths="balanced")) == ([2, 4, 6, 8, 10, 12], [])
    assert training_lengths(dyck, small_recipe(lengths="legal")) == (list(range(1, 13)), [])
    assert training_lengths(dyck, small_recipe()) == ([2, 4, 6, 8, 10, 12], [1, 3, 5, 7, 9, 11])
    recipe = Recipe(steps=60, batch_size=1, max_length=4, ema_decay=0)
    lengths = [record.length for record in training_steps(smallest_state(dyck, recipe), dyck, recipe, seed=0)]
    assert set(lengths[:30]) == {2, 3, 4}, "a length below all balanced ones in the first half"
    assert set(lengths[30:]) == {1, 2, 3, 4}
    task = make_task("parity")
    for sampling, share in (("uniform", 0.5), ("log-uniform", math.log(21) / math.log(41))):
        recipe = Recipe(steps=60, batch_size=1, length_sampling=sampling, max_length=40, ema_decay=0)
        state = smallest_state(task, recipe)
        short = [record.length <= 20 for record in training_steps(state, task, recipe, seed=0)]
        assert sum(short) / 60 == pytest.approx(share, abs=0.13)


def test_lengths_rise_by_a_curriculum() -> None:
    recipe = Recipe(**PRESETS["xu2024-in-context"].train)
    lengths = list(range(26, 102))
    for step, length in ((0, 26), (4_999, 26), (5_000, 31), (74_999, 96), (75_000, 101), (199_999, 101)):
        odds = recipe.length_odds_at(step, lengths)
        assert odds.index(1.0) == lengths.index(length)
        assert sum(odds) == 1.0
    assert Recipe(rise={"by": 2, "every": 1}, min_length=3).length_odds_at(1, [3, 4, 6]) == [0.0, 1.0, 0.0]


def test_no_string_is_longer_than_the_curriculum_has_come_to() -> None:
    task = make_task("bounded-dyck", depth=2)
    settings = {"min_length": 2, "max_length": 20, "steps": 15, "batch_size": 2, "rise": {"by": 2, "every": 5}}
    recipe = make_spec("bounded-dyck", "gru", {"train": settings}).recipe
    records = train(make_model("gru", task, d_model=4), task, recipe)
    assert [record.length <= 2 + 2 * ((record.step - 1) // 5) for record in records] == [True] * 15
    for sampling in ("growing", "uniform"):
        with pytest.raises(ValueError, match=r"^length_sampling: expected its default, 'short-first', .* with rise="):
            Recipe(rise={"by": 2}, length_sampling=sampling)


def test_a_recipe_without_a_curriculum_is_written_down_as_before_there_were_any() -> None:
    assert "rise" not in Recipe().model_dump(mode="json")
    rising = Recipe(rise={"by": 2})
    assert Recipe(**rising.model_dump(mode="json")) == rising


def test_short_strings_come_first() -> None:
    recipe = Recipe(steps=100, length_sampling="short-first")
    assert recipe.length_odds_at(0, [1, 2, 4]) == [1.0, 0.5, 0.25]
    assert recipe.length_odds_at(25, [1, 4]) == [1.0, 0.5]
    assert recipe.length_odds_at(50, [1, 4]) == [1.0, 1.0]
    assert recipe.length_odds_at(100, [1, 2, 4]) == [1.0, 2.0, 4.0]


@pytest.mark.unchecked
def test_lengths_grow_when_the_loss_at_the_longest_is_small() -> None:
    task, recipe = make_task("parity"), small_recipe(steps=400, length_sampling="growing", max_length=3)
    state = small_state(task, recipe)
    reached, running = 1, 2.0
    for record in training_steps(state, task, recipe, seed=0):
        assert record.length <= reached
        if record.length == reached < 3:
            running = 0.9 * running + 0.1 * record.loss
            if running < 0.3:
                reached, running = reached + 1, 2.0
        assert state.growth.num_reached == reached
        if reached == 3:
            return
    pytest.fail("lengths did not grow to the longest")


def test_a_checkpoint_keeps_how_far_lengths_have_grown(tmp_path: Path) -> None:
    task, recipe = make_task("parity"), small_recipe(length_sampling="growing")
    state = small_state(task, recipe)
    assert [record.length for record in training_steps(state, task, recipe, seed=0)] == [1] * 30
    state.growth = Growth(5, state.growth.loss / 3)
    save_checkpoint(state, tmp_path / "checkpoint", "a")
    again = small_state(task, recipe)
    load_checkpoint(again, tmp_path / "checkpoint", "a")
    assert again.growth == state.growth


def test_a_length_that_is_not_learned_holds_growth_up() -> None:
    recipe = small_recipe(length_sampling="growing")
    assert recipe.length_odds_at(0, [1, 3, 5], 2) == [1.0, 3.0, 0.0]
    growth = Growth()
    for _ in range(1000):
        growth = growth.after(0.31)
    assert growth.num_reached == 1
