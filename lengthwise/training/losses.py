"""What a training step minimizes: the loss of answers, and what a recipe adds to it."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.models.base import RecurrentModel, SequenceModel, TreeModel
from lengthwise.models.capabilities import AcceptsNoise, AcceptsPads, AnswersNumbers, DrawsInTraining
from lengthwise.ops.integer_answers import integer_loss
from lengthwise.tasks.base import Batch, RegularTask, Task
from lengthwise.training.augmentation import (
    gaussian_noise,
    random_suffixes,
    with_identity_padding,
    with_leading_pads,
)
from lengthwise.training.contraction import excess_growth
from lengthwise.training.recipe import Recipe
from lengthwise.training.state_supervision import StateHead, combine, draw_pieces, nodes_of


class StepLoss(NamedTuple):
    """What a step minimizes, and the part of it by which a recipe judges what was learned: answers, and states."""

    minimized: Float[Tensor, ""]
    learned: Float[Tensor, ""]


def step_loss(
    model: SequenceModel,
    head: StateHead | None,
    batch: Batch,
    task: Task,
    recipe: Recipe,
    scheduled: int,
    generator: torch.Generator,
) -> StepLoss:
    """The loss of a step, `scheduled` steps into the recipe's schedule.

    Parts besides the answers', where the recipe has them: what pieces do to the states of the task's machine; how much
    intervals grow in a step; and how far the states of suffixes of half of the strings are from those of the same
    suffixes with pads (the mean square over all numbers, where each state has noise of its own).
    """
    weight = recipe.consistency_at(scheduled)
    block = model.pad_block if isinstance(model, AcceptsPads) else 1
    augmented = _augmented(batch, recipe, generator, block)
    compared: list[Tensor] = []
    if weight:
        half = (len(batch.inputs) + 1) // 2
        suffixes = random_suffixes(Batch(batch.inputs[:half], batch.targets[:half]), generator)
        maximum = recipe.augmentation.pads_per_symbol
        padded = with_identity_padding(suffixes, generator, max_per_symbol=maximum, block=block)
        compared = [suffixes.inputs, padded.inputs]
    if isinstance(model, AcceptsNoise) and (deviation := recipe.state_noise_at(scheduled)):
        model = model.perturbed(gaussian_noise(deviation, generator))
    if isinstance(model, DrawsInTraining):
        model = model.drawing(generator)
    learned, states = _loss_and_states(model, augmented, recipe.supervision, compared)
    if recipe.states and head:
        assert isinstance(task, RegularTask), "check_task rejects others"
        assert isinstance(model, TreeModel), "check_model rejects others"
        pieces = draw_pieces(task, recipe.states, generator)
        pieces = _augmented(Batch(pieces, pieces), recipe, generator, block).inputs
        nodes = combine(model, *nodes_of(model, pieces, head.table), recipe.states, generator)
        learned = learned + recipe.states.weight * head.loss(*nodes, generator)
    minimized = learned
    if contraction := recipe.contraction_at(scheduled):
        assert isinstance(model, RecurrentModel), "check_model rejects others"
        minimized = minimized + excess_growth(model, augmented.inputs, contraction)
    if states:
        without, with_pads = states
        minimized = minimized + weight * (without - with_pads).square().mean()
    return StepLoss(minimized, learned)


def supervised_loss(model: SequenceModel, batch: Batch, supervision: str) -> Float[Tensor, ""]:
    """Mean loss over each row's last supervised position (`"last"`) or over all supervised ones (`"prefix"`).

    Cross-entropy where answers are classes (of all integers where the model's are numbers), squared error where they
    are numbers.
    """
    return _loss_and_states(model, batch, supervision, [])[0]


def _loss_and_states(
    model: SequenceModel,
    batch: Batch,
    supervision: str,
    others: Sequence[Int64[Tensor, "_ _"]],
) -> tuple[Float[Tensor, ""], list[Float[Tensor, "_ D"]]]:
    """The supervised loss of a batch, and the last states of other strings, read together where that is possible."""
    if isinstance(model, AnswersNumbers):
        return _number_loss(model, batch, supervision), model.last_states(others)
    if supervision == "prefix":
        loss = _mean_loss(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
        return loss, model.last_states(others)
    positions = batch.last_supervised
    targets = batch.targets[torch.arange(len(positions)), positions]
    if bool((positions == batch.inputs.shape[1] - 1).all()):
        states, *rest = model.last_states([batch.inputs, *others])
        return _mean_loss(model.readout(states), targets), rest
    return _mean_loss(model.logits_at(batch.inputs, positions), targets), model.last_states(others)


def _number_loss(model: AnswersNumbers, batch: Batch, supervision: str) -> Float[Tensor, ""]:
    """Where numbers stand for classes."""
    numbers, supervised = model.numbers(batch.inputs), batch.supervised
    if supervision == "last":
        supervised = supervised & (torch.arange(numbers.shape[1]) == batch.last_supervised[:, None])
    return integer_loss(numbers[supervised], batch.targets[supervised], sharpness=model.sharpness)


def _mean_loss(answers: Float[Tensor, "N Y"], targets: Int64[Tensor, " N"] | Float[Tensor, " N"]) -> Float[Tensor, ""]:
    """Over the targets that are supervised."""
    if not targets.is_floating_point():
        return F.cross_entropy(answers, targets, ignore_index=IGNORE)
    supervised = ~targets.isnan()
    return F.mse_loss(answers[supervised, 0], targets[supervised])


def _augmented(batch: Batch, recipe: Recipe, generator: torch.Generator, pad_block: int) -> Batch:
    augmentation = recipe.augmentation
    inside, before = torch.rand(2, generator=generator).tolist()
    if inside < augmentation.padding:
        maximum = augmentation.pads_per_symbol
        batch = with_identity_padding(batch, generator, max_per_symbol=maximum, block=pad_block)
    if before < augmentation.leading_padding:
        batch = with_leading_pads(batch, augmentation.leading_pads, generator)
    return batch
