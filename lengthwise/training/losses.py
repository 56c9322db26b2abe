"""The loss of a training step: the loss of the answers, and what a recipe adds to it."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.devices import device_of, moved
from lengthwise.models.base import RecurrentModel, SequenceModel, TreeModel
from lengthwise.models.capabilities import (
    AcceptsNoise,
    AcceptsPads,
    AnswersNumbers,
    DrawsInTraining,
    HasPenalty,
    HoldsDistributions,
)
from lengthwise.ops.integer_answers import integer_loss
from lengthwise.tasks.base import Batch, RegularTask, Task
from lengthwise.training.augmentation import (
    gaussian_noise,
    random_suffixes,
    with_identity_padding,
    with_leading_pads,
)
from lengthwise.training.contraction import excess_growth
from lengthwise.training.ranks import ALONE, Ranks
from lengthwise.training.recipe import Recipe
from lengthwise.training.state_supervision import StateHead, combine, draw_pieces, nodes_of


class StepLoss(NamedTuple):
    """The loss that a step minimizes, and its part without penalties: the losses of answers and of states."""

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
    ranks: Ranks = ALONE,
    noise: torch.Generator | None = None,
) -> StepLoss:
    """Return the loss of a step, `scheduled` steps into the recipe's schedule.

    A recipe can add three losses to the answers' loss. The first is the loss of supervision by states (`StatesRecipe`).
    The second is the penalty on the growth of intervals when the model reads a symbol (`ContractionRecipe`). The third
    is the mean squared difference between the states of suffixes and the states of the same suffixes with pads. The
    suffixes come from half of the strings, and each state has its own noise. A model can also add a penalty of its own.

    All numbers are drawn on the CPU for the whole batch, and then moved to the model's device. If several processes
    train, the mean of their losses is the loss of the whole batch. `noise` draws the noise on states (default:
    `generator`).
    """
    weight = recipe.consistency_at(scheduled)
    block = model.pad_block if isinstance(model, AcceptsPads) else 1
    augmented = _augmented(batch, recipe, generator, block)
    compared: list[Tensor] = []
    half = (len(batch.inputs) + 1) // 2
    if weight:
        suffixes = random_suffixes(Batch(batch.inputs[:half], batch.targets[:half]), generator)
        maximum = recipe.augmentation.pads_per_symbol
        padded = with_identity_padding(suffixes, generator, max_per_symbol=maximum, block=block)
        compared = [ranks.rows(suffixes.inputs), ranks.rows(padded.inputs)]
    if isinstance(model, AcceptsNoise) and (deviation := recipe.state_noise_at(scheduled)):
        model = model.perturbed(gaussian_noise(deviation, noise or generator))
    if isinstance(model, DrawsInTraining):
        model = model.drawing(generator)
    states: list[Tensor] = []
    if recipe.optimizer.counts_outcomes:
        learned = likelihood_loss(model, augmented, recipe.supervision, ranks)
    else:
        learned, states = _loss_and_states(model, augmented, recipe.supervision, compared, ranks)
    if recipe.states and head:
        assert isinstance(task, RegularTask), "check_task rejects others"
        assert isinstance(model, TreeModel), "check_model rejects others"
        pieces = draw_pieces(task, recipe.states, generator)
        pieces = moved(_augmented(Batch(pieces, pieces), recipe, generator, block).inputs, device_of(model))
        nodes = combine(model, *nodes_of(model, pieces, head.table), recipe.states, generator)
        learned = learned + recipe.states.weight * head.loss(*nodes, generator)
    minimized = learned + model.penalty() if isinstance(model, HasPenalty) else learned
    if contraction := recipe.contraction_at(scheduled):
        assert isinstance(model, RecurrentModel), "check_model rejects others"
        rows = moved(ranks.rows(augmented.inputs), device_of(model))
        minimized = minimized + excess_growth(model, rows, contraction)
    if states:
        without, with_pads = states
        share = len(without) * ranks.size / half  # 1 for one process
        minimized = minimized + weight * share * (without - with_pads).square().mean()
    return StepLoss(minimized, learned)


def supervised_loss(model: SequenceModel, batch: Batch, supervision: str) -> Float[Tensor, ""]:
    """Return the mean loss over all supervised positions (`"prefix"`), or over the last in each row (`"last"`).

    The loss is the cross-entropy if answers are classes, and the squared error if they are numbers. For models that
    answer with integers, the loss is the cross-entropy over all integers.
    """
    return _loss_and_states(model, batch, supervision, [], ALONE)[0]


def likelihood_loss(model: SequenceModel, batch: Batch, supervision: str, ranks: Ranks = ALONE) -> Float[Tensor, ""]:
    """Return the mean of -log p(answer) over the supervised answers, each given the supervised answers before it.

    With `"last"`, only the last answer of a string is supervised. All paths to this answer count, each with its
    likelihood.
    """
    assert isinstance(model, HoldsDistributions), "check_model rejects others"
    device = device_of(model)
    targets = batch.targets
    if supervision == "last":
        is_last = torch.arange(targets.shape[1]) == batch.last_supervised[:, None]
        targets = targets.where(is_last, IGNORE)
    inputs, targets = (moved(ranks.rows(rows), device) for rows in (batch.inputs, targets))
    # A rank's mean would weigh its rows wrongly, so the loss is divided by the count in all ranks (`_mean_loss`).
    count = max(1, _num_supervised(batch, supervision))
    return -model.answer_log_probabilities(inputs, targets).sum() * (ranks.size / count)


def _loss_and_states(
    model: SequenceModel,
    whole: Batch,
    supervision: str,
    others: Sequence[Int64[Tensor, "_ _"]],
    ranks: Ranks,
) -> tuple[Float[Tensor, ""], list[Float[Tensor, "_ D"]]]:
    """Return the supervised loss of a batch, and the last states of other strings, read in one pass if possible."""
    device = device_of(model)
    others = [moved(strings, device) for strings in others]
    # Masks and counts are computed from targets on the CPU, because on the device each would make the CPU wait.
    positions = ranks.rows(whole.last_supervised)
    batch = Batch(ranks.rows(whole.inputs), ranks.rows(whole.targets))
    inputs, count = moved(batch.inputs, device), _num_supervised(whole, supervision)
    if isinstance(model, AnswersNumbers) or supervision == "prefix":
        supervised = batch.supervised
        if supervision == "last":
            supervised = supervised & (torch.arange(supervised.shape[1]) == positions[:, None])
        targets = batch.targets[supervised]
        if isinstance(model, AnswersNumbers):
            numbers = _select_supervised(model.numbers(inputs).flatten(), supervised)
            share = len(targets) * ranks.size / max(1, count)  # 1 for one process
            if share:
                loss = share * integer_loss(numbers, moved(targets, device), sharpness=model.sharpness)
            else:  # no row of this process is supervised, but gradients have to exist on every process
                loss = 0 * numbers.sum()
        else:
            answers = model(inputs).flatten(0, 1)
            loss = _mean_loss(answers, batch.targets.flatten(), count, ranks)
        return loss, model.last_states(others)
    targets = batch.targets[torch.arange(len(positions)), positions]
    # If every row is supervised at its end, the model computes last states only, which is far cheaper for a tree.
    if bool((positions == batch.inputs.shape[1] - 1).all()):
        states, *rest = model.last_states([inputs, *others])
        return _mean_loss(model.readout(states), targets, count, ranks), rest
    return _mean_loss(model.logits_at(inputs, positions), targets, count, ranks), model.last_states(others)


def _num_supervised(batch: Batch, supervision: str) -> int:
    """Count the targets over which the loss of a batch is the mean."""
    supervised = batch.supervised
    return int((supervised if supervision == "prefix" else supervised.any(1)).sum())


def _select_supervised(answers: Float[Tensor, "N *Y"], supervised: Bool[Tensor, "*M"]) -> Float[Tensor, "K *Y"]:
    """Return the answers at the positions where a mask on the CPU is true."""
    return answers.index_select(0, moved(supervised.flatten().nonzero()[:, 0], answers.device))


def _mean_loss(
    answers: Float[Tensor, "N Y"], targets: Int64[Tensor, " N"] | Float[Tensor, " N"], count: int, ranks: Ranks
) -> Float[Tensor, ""]:
    """Return the mean over supervised targets, whose number in all processes is `count`; 0 if `count` is 0.

    Targets are on the CPU.
    """
    if not count:
        # This zero depends on the answers, so that backward runs and every process takes part in sharing gradients.
        return 0 * answers.sum()
    # A rank's mean would weigh its rows wrongly: ranks have different numbers of supervised positions.
    reduction, share = ("mean", 1.0) if ranks.size == 1 else ("sum", ranks.size / count)
    if not targets.is_floating_point():
        on_device = moved(targets, answers.device)
        return share * F.cross_entropy(answers, on_device, ignore_index=IGNORE, reduction=reduction)
    supervised = ~targets.isnan()
    expected = moved(targets[supervised], answers.device)
    return share * F.mse_loss(_select_supervised(answers[:, 0], supervised), expected, reduction=reduction)


def _augmented(batch: Batch, recipe: Recipe, generator: torch.Generator, pad_block: int) -> Batch:
    augmentation = recipe.augmentation
    inside, before = torch.rand(2, generator=generator).tolist()
    if inside < augmentation.padding:
        maximum = augmentation.pads_per_symbol
        batch = with_identity_padding(batch, generator, max_per_symbol=maximum, block=pad_block)
    if before < augmentation.leading_padding:
        batch = with_leading_pads(batch, augmentation.leading_pads, generator)
    return batch
