"""The training loop."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.conventions import IGNORE, Diverged
from lengthwise.models.base import RecurrentModel, SequenceModel
from lengthwise.models.capabilities import (
    AcceptsNoise,
    AcceptsPads,
    AnswersNumbers,
    DrawsInTraining,
    FollowsTraining,
    HasHiddenMatrices,
)
from lengthwise.ops.integer_answers import integer_loss
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import Batch, SymbolTask, Task
from lengthwise.threads import one_thread
from lengthwise.training.augmentation import (
    gaussian_noise,
    random_suffixes,
    with_identity_padding,
    with_leading_pads,
)
from lengthwise.training.contraction import excess_growth
from lengthwise.training.muon import Muon
from lengthwise.training.quantization import quantization_is_due, quantize_states
from lengthwise.training.recipe import Recipe
from lengthwise.training.requirements import check_model, check_task

GROWTH_LOSS = 0.3
"""Below this running loss at the longest length reached, `length_sampling="growing"` takes in the next one."""

SHARE_OF_OTHERS = 0.5
"""With `lengths="mostly-balanced"`, how often a length that is not balanced comes, compared with the mean of others."""


MIN_CLIP_NORM = 0.01
"""Gradients are not clipped below this norm: rare mistakes of a net that makes few must still be heard."""


INITIAL_LOSS = 2.0
"""Where the running loss begins: high, so that a lucky batch is not enough."""

NOTABLY = 0.9
"""A loss below this part of the best one so far has fallen."""

SHARE_OF_LATEST = 0.05
"""Of the running loss by which `PaceRecipe` goes, how much the latest step's is."""


class StepRecord(NamedTuple):
    """What one step reports: steps done so far, loss, length before padding, norm of the gradient, rate of Adam.

    The loss is what was minimized: that of the answers and, where the recipe says so, that of inconsistent states.
    """

    step: int
    loss: float
    length: int
    gradient_norm: float
    learning_rate: float


class Growth(NamedTuple):
    """Where lengths grow: how many are reached, shortest first, and the running loss at the longest of these.

    The running loss of a length begins high, so that a lucky batch is not enough to go on.
    """

    num_reached: int = 1
    loss: float = 2.0

    def after(self, loss: float) -> "Growth":
        """What holds after a batch of the longest length reached so far."""
        running = 0.9 * self.loss + 0.1 * loss
        return Growth(self.num_reached + 1) if running < GROWTH_LOSS else Growth(self.num_reached, running)


class TrainingState:
    """All that training changes: weights, their average, the optimizers' moments, lengths reached, steps done.

    `gradient_norm` is the running mean of the norms of gradients, after clipping, `loss` that of the losses of answers.
    `solved_at` is the step after which that was low enough, `best_at` the one after which it was last a tenth below
    `best_loss`, which it then became (`PaceRecipe`). `late_loss` is the sum of the losses over the last tenth of an
    attempt (`RestartRecipe`).
    """

    def __init__(self, model: SequenceModel, recipe: Recipe) -> None:
        check_model(type(model), recipe)
        self.model = model
        self.step = 0
        self.begin(recipe)

    def begin(self, recipe: Recipe) -> None:
        """Begin an attempt with the model's parameters."""
        model = self.model
        self.optimizers = _make_optimizers(model, recipe)
        self.average = {name: p.detach().clone() for name, p in model.named_parameters()} if recipe.ema_decay else {}
        self.growth = Growth()
        self.gradient_norm = recipe.optimizer.clip_norm
        self.late_loss = 0.0
        self.loss = INITIAL_LOSS
        self.best_loss, self.best_at = INITIAL_LOSS, 0
        self.solved_at: int | None = None

    def is_over(self, recipe: Recipe) -> bool:
        """Whether no step remains."""
        if recipe.restarts is None or not self.is_between_attempts(recipe):
            return recipe.is_over(self.step, self.solved_at, self.best_at)
        size = recipe.attempt.steps
        has_succeeded = self.late_loss / (size - _late_from(size)) <= recipe.restarts.max_loss
        return has_succeeded or self.step >= recipe.steps

    def is_between_attempts(self, recipe: Recipe) -> bool:
        """Whether an attempt has ended and none has begun since."""
        return recipe.restarts is not None and self.step > 0 and self.step % recipe.attempt.steps == 0

    def load_final_weights(self) -> None:
        """Put the averaged weights, where there are any, into the model."""
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if name in self.average:
                    parameter.copy_(self.average[name])

    @contextmanager
    def with_final_weights(self) -> Iterator[SequenceModel]:
        """The model as it would be if training ended here; afterwards it has its own weights again."""
        own = [p.detach().clone() for p in self.model.parameters()]
        self.load_final_weights()
        try:
            yield self.model
        finally:
            with torch.no_grad():
                torch._foreach_copy_([p.detach() for p in self.model.parameters()], own)


@one_thread()
def train(model: SequenceModel, task: Task, recipe: Recipe, *, seed: int = 0) -> list[StepRecord]:
    """Train `model` by `recipe`, leave it with its final weights, and return what each step reported.

    Data and noise come from `seed`; the initial weights are the model's own. Runs on one torch thread.

    Example:
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> task = make_task("parity")
        >>> model = make_model("regular-gpt", task, d_model=8, num_heads=2)
        >>> records = train(model, task, Recipe(steps=3, batch_size=4))
        >>> [record.step for record in records]
        [1, 2, 3]
    """
    state = TrainingState(model, recipe)
    records = list(training_steps(state, task, recipe, seed=seed))
    state.load_final_weights()
    return records


def training_steps(state: TrainingState, task: Task, recipe: Recipe, *, seed: int) -> Iterator[StepRecord]:
    """Take the steps that remain, one for each record; the caller may stop, save and go on between any two.

    Data and noise of a step depend on the seed and the step's number alone, so a resumed run equals the
    uninterrupted one. Raises `Diverged` before an update that is not finite: weights are still those from before it.
    """
    lengths, others = training_lengths(task, recipe)
    check_task(task, recipe)
    state.model.train()
    attempt = recipe.attempt
    while not state.is_over(recipe):
        if state.is_between_attempts(recipe):
            state.model.reset_parameters(generator_for(seed, "parameters", "attempt", state.step // attempt.steps))
            state.begin(recipe)
        scheduled = attempt.scheduled(state.step % attempt.steps, state.solved_at)
        if quantization_is_due(state.model, scheduled, attempt.steps):
            _find_codes(state, task, lengths[-1], seed)
        if isinstance(state.model, FollowsTraining):
            state.model.set_progress(scheduled / attempt.steps)
        generator = generator_for(seed, "step", state.step)
        length = _draw_length(state, attempt, scheduled, lengths, others, generator)
        batch = task.sample(recipe.batch_size, length, generator)
        loss, answers = _losses(state, batch, attempt, scheduled, generator)
        record = _update(state, attempt, scheduled, loss, length)
        _note_loss(state, recipe, float(answers.detach()), has_grown=state.growth.num_reached == len(lengths))
        if recipe.length_sampling == "growing" and length == lengths[state.growth.num_reached - 1] != lengths[-1]:
            state.growth = state.growth.after(float(answers.detach()))
        yield record


def _note_loss(state: TrainingState, recipe: Recipe, loss: float, *, has_grown: bool) -> None:
    """Take in the loss of a step's answers, and note when the task is solved by it, at all lengths."""
    state.loss += SHARE_OF_LATEST * (loss - state.loss)
    if state.loss < NOTABLY * state.best_loss:
        state.best_loss, state.best_at = state.loss, state.step
    if recipe.pace is None or state.solved_at is not None or state.loss >= recipe.pace.solved_loss:
        return
    if has_grown or recipe.length_sampling != "growing":
        state.solved_at = state.step


def _late_from(num_steps: int) -> int:
    """The first step of the last tenth."""
    return num_steps - num_steps // 10


def _find_codes(state: TrainingState, task: Task, length: int, seed: int) -> None:
    """Quantize the states of the model as it would be if training ended here, and go on from there."""
    assert isinstance(task, SymbolTask)
    with state.with_final_weights() as model:
        has_codes = quantize_states(model, task, length=length, seed=seed)
    if has_codes:
        state.load_final_weights()


def training_lengths(task: Task, recipe: Recipe) -> tuple[list[int], list[int]]:
    """The lengths that batches are drawn from by the recipe's odds, and those that come now and then besides.

    A ValueError where there is none of the first kind.
    """
    legal = [n for n in range(recipe.min_length, recipe.max_length + 1) if task.is_legal_length(n)]
    balanced = [n for n in legal if task.is_balanced_length(n)]
    first = legal if recipe.lengths == "legal" else balanced
    if not first:
        raise ValueError(
            f"train.max_length: {task.name} has no {'legal' if recipe.lengths == 'legal' else 'balanced'} length "
            f"between {recipe.min_length} and {recipe.max_length}; raise it, or train on lengths 'legal'"
        )
    others = [n for n in legal if n > first[0] and n not in balanced] if recipe.lengths == "mostly-balanced" else []
    return first, others


def _draw_length(
    state: TrainingState,
    recipe: Recipe,
    scheduled: int,
    lengths: list[int],
    others: list[int],
    generator: torch.Generator,
) -> int:
    """One of the lengths, by the recipe's odds; now and then one of the others, each as likely."""
    if recipe.length_sampling == "growing":
        others = [n for n in others if n < lengths[state.growth.num_reached - 1]]
    share = SHARE_OF_OTHERS * len(others) / (len(lengths) + SHARE_OF_OTHERS * len(others))
    if others and float(torch.rand((), generator=generator)) < share:
        return others[int(torch.randint(len(others), (), generator=generator))]
    odds = torch.tensor(recipe.length_odds_at(scheduled, lengths, state.growth.num_reached))
    return lengths[int(odds.multinomial(1, generator=generator))]


def _losses(
    state: TrainingState, batch: Batch, recipe: Recipe, scheduled: int, generator: torch.Generator
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The loss of a step, and the part of it that answers make.

    The other parts, where the recipe has them: how much intervals grow in a step, and how far the states of suffixes of
    half of the strings are from those of the same suffixes with pads (the mean square over all numbers, where each
    state has noise of its own).
    """
    model, weight = state.model, recipe.consistency_at(scheduled)
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
    answers, states = _loss_and_states(model, augmented, recipe.supervision, compared)
    loss = answers
    if contraction := recipe.contraction_at(scheduled):
        assert isinstance(model, RecurrentModel), "check_model rejects others"
        loss = answers + excess_growth(model, augmented.inputs, contraction)
    if not states:
        return loss, answers
    without, with_pads = states
    return loss + weight * (without - with_pads).square().mean(), answers


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


def _update(state: TrainingState, recipe: Recipe, scheduled: int, loss: Tensor, length: int) -> StepRecord:
    state.model.zero_grad()
    loss.backward()
    limit = recipe.optimizer.clip_norm
    if ratio := recipe.optimizer.clip_ratio:
        limit = min(limit, max(MIN_CLIP_NORM, ratio * state.gradient_norm))
    norm = float(torch.nn.utils.clip_grad_norm_(state.model.parameters(), limit))
    value = float(loss.detach())
    if not (math.isfinite(value) and math.isfinite(norm)):
        raise Diverged(
            f"training diverged at step {state.step + 1}: loss {value}, gradient norm {norm}; "
            "lower train.optimizer.learning_rate or train.optimizer.clip_norm"
        )
    state.gradient_norm = 0.95 * state.gradient_norm + 0.05 * min(norm, limit)
    if scheduled >= _late_from(recipe.steps):
        state.late_loss += value
    factor = recipe.rate_factor_at(scheduled)
    for optimizer in state.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["full_rate"] * factor
        optimizer.step()
    state.step += 1
    if state.average:
        _average_in(state, recipe.ema_decay)
    return StepRecord(state.step, value, length, norm, factor * recipe.optimizer.learning_rate)


def _average_in(state: TrainingState, decay: float) -> None:
    """Move the average towards the weights; early on faster, so that it soon forgets the initial weights."""
    decay = min(decay, state.step / (state.step + 10))
    with torch.no_grad():
        torch._foreach_lerp_(list(state.average.values()), [p.detach() for p in state.model.parameters()], 1 - decay)


def _make_optimizers(model: SequenceModel, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Adam or AdamW for all parameters, or Muon for the hidden matrices and AdamW for the rest."""
    settings = recipe.optimizer
    matrices: list[nn.Parameter] = []
    if settings.name == "muon":
        assert isinstance(model, HasHiddenMatrices), "check_model rejects others"
        matrices += model.hidden_matrices
    others = [p for p in model.parameters() if not any(p is matrix for matrix in matrices)]
    kind: type[torch.optim.Adam] = torch.optim.Adam if settings.name == "adam" else torch.optim.AdamW
    decay = settings.weight_decay
    optimizers: list[torch.optim.Optimizer] = [
        kind(others, lr=settings.learning_rate, betas=settings.betas, weight_decay=decay, fused=True)
    ]
    if matrices:
        optimizers.append(Muon(matrices, lr=settings.matrix_learning_rate, weight_decay=decay))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["full_rate"] = group["lr"]
    return optimizers
