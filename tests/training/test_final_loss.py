"""The loss that training ends with."""

import pytest
import torch

from lengthwise import make_model, make_task
from lengthwise.training.final_loss import final_loss
from lengthwise.training.loop import TrainingState
from lengthwise.training.recipe import Recipe


def state_of(name: str, recipe: Recipe, **fields) -> tuple[TrainingState, object]:
    task = make_task(name, **fields)
    return TrainingState(make_model("regular-gpt", task, d_model=8, num_heads=2), recipe), task


def test_it_is_that_of_the_averaged_weights_in_evaluation() -> None:
    recipe = Recipe(max_length=6, batch_size=8)
    state, task = state_of("parity", recipe)
    before = final_loss(state, task, recipe, seed=3)
    with torch.no_grad():
        state.model.readout[1].bias += 5.0 * torch.arange(2)
    assert final_loss(state, task, recipe, seed=3) == before, "the weights of the last step were taken"
    state.average["readout.1.bias"] = state.model.readout[1].bias.detach().clone()
    assert final_loss(state, task, recipe, seed=3) > before
    assert state.model.training


def test_every_length_counts_alike() -> None:
    """A net that answers `out` to all strings errs on strings of even length alone."""
    recipe = Recipe(max_length=9, batch_size=64, ema_decay=0)
    state, task = state_of("bounded-dyck", recipe, depth=2)
    with torch.no_grad():
        state.model.readout[1].weight.zero_()
        state.model.readout[1].bias.copy_(torch.tensor([30.0, 0.0]))
    assert final_loss(state, task, recipe, seed=0) == pytest.approx(30 * 0.5 * 4 / 9, rel=0.2)


def test_of_many_lengths_fifty_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(max_length=400, batch_size=1)
    state, task = state_of("parity", recipe)
    lengths = []
    real = type(task).sample

    def noting(task, batch_size, length, generator):
        lengths.append(length)
        return real(task, batch_size, length, generator)

    monkeypatch.setattr(type(task), "sample", noting)
    final_loss(state, task, recipe, seed=0)
    assert len(lengths) == len(set(lengths)) == 50
    assert (lengths[0], lengths[-1]) == (1, 400)
