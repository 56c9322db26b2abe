"""Pads, suffixes and noise that a recipe adds to strings and states, and the comparison of states."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_training import SMALL, small_recipe, small_state

from lengthwise.conventions import IGNORE, PAD
from lengthwise.models import make_model
from lengthwise.randomness import generator_for
from lengthwise.tasks import Batch, make_task
from lengthwise.training import losses
from lengthwise.training.augmentation import (
    gaussian_noise,
    random_suffixes,
    with_identity_padding,
    with_leading_pads,
)
from lengthwise.training.loop import (
    train,
    training_steps,
)
from lengthwise.training.recipe import Recipe


@given(st.integers(1, 30), st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0.5, 1.0, 3.0]))
def test_identity_padding_keeps_the_string_and_repeats_the_answer(
    length: int, seed: int, block: int, maximum: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    task = make_task("parity")
    batch = task.sample(5, length, generator)
    padded = with_identity_padding(batch, generator, max_per_symbol=maximum, block=block)
    num_pads = padded.inputs.shape[1] - length
    assert num_pads == 0 or num_pads % block == -length % block
    assert 0 <= num_pads - (-length % block if num_pads else 0) <= maximum * length
    for row in range(5):
        symbols = padded.inputs[row] != PAD
        assert torch.equal(padded.inputs[row][symbols], batch.inputs[row])
        assert torch.equal(padded.targets[row][symbols], batch.targets[row])
        answer = IGNORE
        for position in range(length + num_pads):
            answer = int(padded.targets[row, position]) if symbols[position] else answer
            is_supervised = symbols[position] or (position + 1) % block == 0
            assert int(padded.targets[row, position]) == (answer if is_supervised else IGNORE)


def test_padding_in_blocks_keeps_chunks_whole() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.arange(1, 21).expand(200, 20)
    chunks = {tuple(chunk) for chunk in inputs[0].reshape(-1, 4).tolist()} | {(PAD,) * 4}
    for _ in range(20):
        padded = with_identity_padding(Batch(inputs, inputs), generator, block=4).inputs
        assert {tuple(chunk) for chunk in padded.reshape(-1, 4).tolist()} <= chunks
    ragged = with_identity_padding(Batch(inputs[:, 1:], inputs[:, 1:]), generator, block=4).inputs
    assert {tuple(chunk) for chunk in ragged.reshape(-1, 4).tolist()} == chunks - {(1, 2, 3, 4)} | {(PAD, 2, 3, 4)}


def test_identity_padding_draws_positions_again_for_every_string() -> None:
    generator = torch.Generator().manual_seed(0)
    batch = make_task("parity").sample(200, 20, generator)
    pads = next(p for p in (with_identity_padding(batch, generator).inputs == PAD for _ in range(99)) if p[0].sum() > 5)
    assert (pads.sum(1) == pads[0].sum()).all()
    assert pads.float().mean(0).std() < 0.1
    assert len({tuple(row) for row in pads.tolist()}) > 150


def test_leading_pads_stand_in_front_and_are_unsupervised() -> None:
    generator = torch.Generator().manual_seed(0)
    batch = make_task("parity").sample(3, 7, generator)
    numbers = []
    for _ in range(300):
        padded = with_leading_pads(batch, 64, generator)
        numbers.append(padded.inputs.shape[1] - 7)
        assert (padded.inputs[:, :-7] == PAD).all()
        assert (padded.targets[:, :-7] == IGNORE).all()
        assert torch.equal(padded.inputs[:, -7:], batch.inputs)
    assert min(numbers) == 1
    assert 32 < max(numbers) <= 64
    assert 0.4 < sum(number < 8 for number in numbers) / 300 < 0.6  # log-uniform: half lie below the root


def test_there_are_as_many_pads_as_the_recipe_says() -> None:
    generator = torch.Generator().manual_seed(0)
    batch = make_task("parity").sample(1, 10, generator)
    numbers = {with_identity_padding(batch, generator, max_per_symbol=3.0).inputs.shape[1] - 10 for _ in range(500)}
    assert numbers == set(range(31))


def test_suffixes_have_every_length() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.arange(12).reshape(2, 6)
    suffixes = [random_suffixes(Batch(inputs, inputs + 1), generator) for _ in range(100)]
    assert {suffix.inputs.shape[1] for suffix in suffixes} == set(range(1, 7))
    for suffix in suffixes:
        assert torch.equal(suffix.inputs, inputs[:, -suffix.inputs.shape[1] :])
        assert torch.equal(suffix.targets, suffix.inputs + 1)


@pytest.mark.unchecked
@pytest.mark.slow
def test_consistency_brings_the_states_of_one_string_together() -> None:
    task, generator = make_task("parity"), generator_for(0, "strings")
    batch = task.sample(200, 9, generator)
    padded = with_identity_padding(batch, generator, max_per_symbol=3.0).inputs
    differences = [0.0, 0.0]
    for seed in (0, 1):
        for position, consistency in enumerate((0.0, 1.0)):
            model = make_model("regular-gpt", task, seed=seed, **SMALL)
            train(model, task, small_recipe(steps=200, late_consistency=consistency), seed=seed)
            with torch.no_grad():
                states, with_pads = model.last_state(batch.inputs), model.last_state(padded)
            differences[position] += float((states - with_pads).square().mean())
    assert differences[1] < 0.5 * differences[0]


def test_states_of_suffixes_of_half_of_the_strings_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def recorded(batch: Batch, generator: torch.Generator, **settings) -> Batch:
        calls.append((tuple(batch.inputs.shape), settings))
        return with_identity_padding(batch, generator, **settings)

    monkeypatch.setattr(losses, "with_identity_padding", recorded)
    augmentation = {"padding": 0.0, "pads_per_symbol": 3.0}
    recipe = small_recipe(min_length=12, batch_size=9, late_consistency=1.0, augmentation=augmentation)
    list(training_steps(small_state(make_task("parity"), recipe), make_task("parity"), recipe, seed=0))
    assert len(calls) == 15
    assert {rows for (rows, _), _ in calls} == {5}
    assert len({length for (_, length), _ in calls}) > 5
    assert all(settings == {"max_per_symbol": 3.0, "block": 2} for _, settings in calls)


@pytest.mark.unchecked
def test_consistency_is_part_of_the_loss_but_does_not_hold_growth_up(monkeypatch: pytest.MonkeyPatch) -> None:
    read = losses._loss_and_states

    def far_apart(*arguments) -> tuple[torch.Tensor, list[torch.Tensor]]:
        answers, states = read(*arguments)
        return answers, [0 * state + position * 2**0.5 for position, state in enumerate(states)]

    monkeypatch.setattr(losses, "_loss_and_states", far_apart)
    task = make_task("parity")
    recipe = small_recipe(steps=400, length_sampling="growing", max_length=3, late_consistency=3.0)
    state = small_state(task, recipe)
    state.step = 200
    for record in training_steps(state, task, recipe, seed=0):
        assert record.loss >= 6
        if state.growth.num_reached > 1:
            return
    pytest.fail("lengths did not grow")


def test_noise_has_the_given_deviation() -> None:
    noise = gaussian_noise(0.3, torch.Generator().manual_seed(0))
    drawn = noise(torch.zeros(100, 100))
    assert float(drawn.std()) == pytest.approx(0.3, rel=0.03)


def test_half_way_noise_changes_and_states_are_compared() -> None:
    recipe = Recipe(steps=10, late_consistency=2.0, augmentation={"state_noise": 0.1, "late_state_noise": 0.4})
    assert [recipe.state_noise_at(step) for step in (0, 4, 5, 9)] == [0.1, 0.1, 0.4, 0.4]
    assert [recipe.consistency_at(step) for step in (0, 4, 5, 9)] == [0.0, 0.0, 2.0, 2.0]
