"""Codes are found when they should, from states alone, and stay as they are."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.models import make_model
from lengthwise.models.codebook_gpt import CodebookGPT
from lengthwise.ops.tree_attention import last_state
from lengthwise.tasks import Batch, make_task
from lengthwise.training.checkpoint import load_checkpoint, load_final_weights, save_checkpoint
from lengthwise.training.loop import TrainingState, training_steps
from lengthwise.training.quantization import RETRY_EVERY, quantization_is_due, quantize_states
from lengthwise.training.recipe import PaceRecipe, Recipe

SMALL = {"d_model": 16, "num_heads": 2}
GENTLE = {"learning_rate": 1e-4, "matrix_learning_rate": 1e-3}
"""Rates at which states that close go on doing so."""

PARITY = make_task("parity")


def make(**config) -> CodebookGPT:
    """An untrained model in which constants make up much of every state: its states close, in nine classes."""
    model = make_model("codebook-gpt", PARITY, seed=3, **SMALL | config)
    constants = torch.randn(16, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        model.layers[0].feed_forwards[1].narrow.bias.copy_(constants)
    return model


@given(st.integers(1, 700), st.floats(0, 0.99))
def test_codes_are_looked_for_from_a_share_of_training_on(steps: int, share: float) -> None:
    model = make(quantize_after=share)
    due = [step for step in range(steps) if quantization_is_due(model, step - 1, step, steps)]
    assert due == list(range(int(share * steps), steps, RETRY_EVERY))


@pytest.mark.parametrize("contract_steps", [200, 300, 500, 700, 2_000])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.9])
def test_codes_are_looked_for_as_often_where_the_schedule_jumps_or_stands_still(
    contract_steps: int, share: float
) -> None:
    """Once in every hundred steps of the schedule, from the share on, and twice in none."""
    model, recipe = make(quantize_after=share), Recipe(steps=6_000, pace=PaceRecipe(contract_steps=contract_steps))
    solved, begin = 1_000, int(share * 6_000)
    scheduled = [recipe.scheduled(step, solved if step >= solved else None) for step in range(solved + contract_steps)]
    pairs = list(zip([-1, *scheduled], scheduled, strict=False))
    due = [step for before, step in pairs if quantization_is_due(model, before, step, 6_000)]
    assert due == sorted(set(due))
    assert [(step - begin) // RETRY_EVERY for step in due] == sorted(
        {(step - begin) // RETRY_EVERY for step in scheduled if step >= begin}
    )


def test_who_has_codes_or_wants_none_gets_none() -> None:
    model = make(quantize_after=0.0)
    assert quantization_is_due(model, -1, 0, 10)
    model.codebook.fill(torch.eye(16))
    assert not quantization_is_due(model, -1, 0, 10)
    assert not quantization_is_due(make_model("regular-gpt", PARITY, **SMALL), -1, 0, 10)


def test_every_state_is_near_the_code_it_becomes() -> None:
    """The states of all nodes, before and after: what extraction joined within half the norm is joined again."""
    model = make()
    inputs = PARITY.sample(64, 40, torch.Generator().manual_seed(5)).inputs
    assert quantize_states(model, PARITY, length=40, seed=0)
    codes = model.codebook.known
    nodes: list[torch.Tensor] = []

    def watch(states: torch.Tensor) -> torch.Tensor:
        nodes.append(states.reshape(-1, 16))
        return states

    with torch.no_grad():
        unquantized = model.tree._replace(layers=[model.tree.layers[0].layer])
        last_state(inputs + 1, unquantized, watch, table_rows=0)
    assert float(torch.cdist(torch.cat(nodes), codes).amin(1).max()) <= 0.5 * 16**0.5
    assert 1 < len(codes) <= 64


def test_codes_come_from_strings_and_states_alone() -> None:
    """Not from the task's machine, nor from its answers."""

    class Mute(type(PARITY)):
        @property
        def transducer(self):
            raise AssertionError("the machine was looked at")

        def solve(self, inputs):
            raise AssertionError("answers were asked for")

        def sample(self, batch_size, length, generator) -> Batch:
            inputs = PARITY.sample(batch_size, length, generator).inputs
            return Batch(inputs, torch.full_like(inputs, -77))

    one, other = make(), make()
    assert quantize_states(one, Mute(), length=40, seed=0)
    assert quantize_states(other, PARITY, length=40, seed=0)
    assert torch.equal(one.codebook.known, other.codebook.known)


def test_states_that_do_not_close_become_no_codes() -> None:
    model = make(max_codes=1)
    assert not quantize_states(model, PARITY, length=40, seed=0)
    assert not model.codebook.count


def steps_of(state: TrainingState, recipe: Recipe, last: int) -> None:
    for _ in training_steps(state, PARITY, recipe, seed=0):
        if state.step == last:
            return


def test_training_quantizes_the_averaged_weights_and_goes_on_from_them() -> None:
    recipe = Recipe(steps=20, batch_size=8, max_length=8, ema_decay=0.9, optimizer=GENTLE)
    state = TrainingState(make(quantize_after=0.5), recipe)
    steps_of(state, recipe, 10)
    assert not state.model.codebook.count
    averaged = {name: average.clone() for name, average in state.average.items()}
    assert any(not torch.equal(p, averaged[name]) for name, p in state.model.named_parameters())
    expected = make()
    expected.load_state_dict(expected.state_dict() | averaged)
    assert quantize_states(expected, PARITY, length=8, seed=0)
    weights = []

    def sample(*arguments) -> Batch:
        weights.append({name: p.detach().clone() for name, p in state.model.named_parameters()})
        return PARITY.sample(*arguments)

    task = PARITY.model_copy()
    object.__setattr__(task, "sample", sample)
    next(training_steps(state, task, recipe, seed=0))
    assert torch.equal(state.model.codebook.known, expected.codebook.known)
    assert all(torch.equal(weights[-1][name], averaged[name]) for name in averaged)
    codes = state.model.codebook.known.clone()
    steps_of(state, recipe, 20)
    assert torch.equal(state.model.codebook.known, codes)


@pytest.fixture(scope="module")
def undisturbed() -> TrainingState:
    """Return the state after 20 steps, which tests only read."""
    state = TrainingState(make(quantize_after=0.5), UP_TO_20)
    steps_of(state, UP_TO_20, 20)
    return state


UP_TO_20 = Recipe(steps=20, batch_size=8, max_length=8, optimizer=GENTLE)


@pytest.mark.parametrize("stop", [9, 10, 11])
def test_codes_survive_a_checkpoint(stop: int, undisturbed: TrainingState, tmp_path: Path) -> None:
    """Stopped before codes are looked for, at that step, and after: weights and codes are those of one go."""
    whole, recipe = undisturbed, UP_TO_20
    first, second = (TrainingState(make(quantize_after=0.5), recipe) for _ in range(2))
    assert whole.model.codebook.count
    steps_of(first, recipe, stop)
    assert bool(first.model.codebook.count) == (stop > 10)
    save_checkpoint(first, tmp_path / "checkpoint", "a")
    load_checkpoint(second, tmp_path / "checkpoint", "a")
    steps_of(second, recipe, 20)
    ours, theirs = whole.model.state_dict(), second.model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    save_checkpoint(second, tmp_path / "checkpoint", "a")
    final = make(quantize_after=0.5)
    load_final_weights(final, tmp_path / "checkpoint", "a")
    assert torch.equal(final.codebook.known, whole.model.codebook.known)
