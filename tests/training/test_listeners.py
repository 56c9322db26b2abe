"""Functions called after each step: what they see, how they end training, and that they change nothing else."""

import pytest
import torch
from small_training import SMALL, small_recipe
from torch import nn

from lengthwise.evaluation.length_curve import length_curve
from lengthwise.models import SequenceModel, make_model
from lengthwise.tasks import make_task
from lengthwise.training.loop import StepRecord, TrainingState, train, training_steps

TASK = make_task("parity")


def model() -> SequenceModel:
    return make_model("regular-gpt", TASK, **SMALL)


def equal(first: nn.Module, second: nn.Module) -> bool:
    return all(torch.equal(one, other) for one, other in zip(first.parameters(), second.parameters(), strict=True))


def test_measuring_after_each_step_changes_no_bit() -> None:
    alone, measured = model(), model()
    recipe = small_recipe(steps=5, ema_decay=0.5)
    accuracies = []

    def measure(record: StepRecord) -> None:
        torch.rand(3)
        measured.eval()  # and it is never put back into training
        accuracies.append(length_curve(measured, TASK, [5], num_strings=4).mean())

    torch.manual_seed(0)
    records = train(alone, TASK, recipe)
    assert train(measured, TASK, recipe, on_step=measure) == records
    assert len(accuracies) == 5
    assert equal(alone, measured)


def test_training_that_a_function_ends_keeps_the_weights_that_it_saw() -> None:
    """Their average would lag behind, if the net still improves; and they are as in a loop of the user's own."""
    recipe = small_recipe(steps=9, ema_decay=0.5)
    ended, own = model(), model()
    seen: list[StepRecord] = []

    def at_three(record: StepRecord) -> bool:
        seen.append(record)
        return record.step == 3

    records = train(ended, TASK, recipe, on_step=at_three)
    assert records == seen
    assert [record.step for record in records] == [1, 2, 3]
    state = TrainingState(own, recipe, TASK)
    steps = training_steps(state, TASK, recipe, seed=0)
    assert [next(steps) for _ in range(3)] == records
    assert equal(ended, own)
    state.load_final_weights()
    assert not equal(ended, own)


def test_an_error_of_the_function_is_raised_as_it_is() -> None:
    def fails(record: StepRecord) -> None:
        raise KeyError(record.step)

    with pytest.raises(KeyError, match="1"):
        train(model(), TASK, small_recipe(steps=2), on_step=fails)


@pytest.mark.unchecked
def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ValueError, match="on_step: expected a function, got 3; give one"):
        train(model(), TASK, small_recipe(steps=2), on_step=3)
