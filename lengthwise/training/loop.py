"""The training loop: batches, losses, updates of the weights, and the end of training."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lengthwise.conventions import Diverged
from lengthwise.devices import computing_in, device_of, on_cpu, one_thread
from lengthwise.models.base import SequenceModel, check_is_model
from lengthwise.models.capabilities import FollowsTraining
from lengthwise.models.consistency import check_consistent, check_reads_vectors, check_sizes
from lengthwise.models.weights import first_names
from lengthwise.randomness import draws_without_generator, generator_for, whole_seed
from lengthwise.registry import is_of_package
from lengthwise.tasks.base import SymbolTask, Task, VectorTask, check_is_task
from lengthwise.tasks.consistency import check_task_consistent
from lengthwise.training.batches import Batches, training_lengths
from lengthwise.training.losses import StepLoss
from lengthwise.training.optimizers import make_optimizers
from lengthwise.training.parallel import losses_of
from lengthwise.training.quantization import quantization_is_due, quantize_states
from lengthwise.training.ranks import ALONE, Ranks, check_ranks, rank_errors, whole
from lengthwise.training.recipe import SHARE_OF_LATEST, Recipe
from lengthwise.training.requirements import (
    check_gradients,
    check_longest,
    check_memory,
    check_model,
    check_pieces,
    check_task,
    check_trainable,
)
from lengthwise.training.state_supervision import make_state_head
from lengthwise.validation import check_function, check_kind

GROWTH_LOSS = 0.3
"""`length_sampling="growing"` adds the next length if the running loss at the longest length is below this number."""

SHARE_OF_OTHERS = 0.5
"""The odds of an unbalanced length with `lengths="mostly-balanced"`, relative to the mean odds of a balanced length.

At a balanced length, every class of the task can be the final answer.
"""

MIN_CLIP_NORM = 0.01
"""The lower bound of adaptive clipping, so that the rare large gradients of a nearly solved task still count."""

INITIAL_LOSS = 2.0
"""The first value of a running loss. This value is high, so that one batch of low loss does not count as success."""

IMPROVEMENT_FACTOR = 0.9
"""The running loss counts as improved if it is below this factor times the best running loss."""


class StepRecord(NamedTuple):
    """The report of one step: steps done, loss, length of strings without pads, gradient norm, Adam's learning rate.

    The loss is the loss that training minimizes. It contains the loss of the answers, and the losses that the recipe
    adds: for states that pads change (`late_consistency`), for supervision by states (`StatesRecipe`), and for growing
    intervals (`ContractionRecipe`). It also contains the model's own penalty (`HasPenalty`). The learning rate is 0 for
    Baum-Welch, whose steps have no rate.
    """

    step: int
    loss: float
    length: int
    gradient_norm: float
    learning_rate: float


class Growth(NamedTuple):
    """Progress of `length_sampling="growing"`: the number of lengths reached, and a running loss.

    The running loss is a mean of the latest losses at the longest length reached. For each new length, the running loss
    begins high, so that one lucky batch does not add the next length.
    """

    num_reached: int = 1
    loss: float = INITIAL_LOSS

    def after(self, loss: float) -> "Growth":
        """Return the progress after a batch of strings of the longest length reached; `loss` is the batch's loss."""
        running = 0.9 * self.loss + 0.1 * loss
        return Growth(self.num_reached + 1) if running < GROWTH_LOSS else Growth(self.num_reached, running)


class TrainingState:
    """Everything that training changes: weights, their average, the optimizers' moments, lengths reached, steps done.

    `gradient_norm` is the running mean of the norms of gradients after clipping. `loss` is the running mean of the loss
    of the answers, plus the loss of supervision by states (`StatesRecipe`). `solved_at` is the number of steps after
    which `loss` was low enough for a solved task (`PaceRecipe`). Whenever `loss` falls a tenth below `best_loss`,
    `best_loss` becomes this loss, and `best_at` becomes the number of steps done.
    """

    def __init__(self, model: SequenceModel, recipe: Recipe, task: Task | None = None, ranks: Ranks = ALONE) -> None:
        # All requirements are checked before the first step, so that a wrong request costs no training.
        check_model(type(model), recipe)
        check_trainable(model)
        check_pieces(model, recipe)
        check_ranks(recipe, ranks)
        if task is not None:
            check_task(task, recipe)
        if isinstance(task, SymbolTask):
            if not is_of_package(type(task)):
                check_task_consistent(task)
            check_consistent(model, task)
            check_sizes(model, task)
            check_longest(model, task, recipe)
        elif isinstance(task, VectorTask):
            check_reads_vectors(model, task)
        self.model, self.ranks = model, ranks
        self.step = 0
        self.state_head = make_state_head(model, task).to(device_of(model)) if recipe.states else None
        self.losses = losses_of(model, self.state_head, ranks)
        self.optimizers = make_optimizers(model, recipe, self.head_parameters)
        self.average = {name: p.detach().clone() for name, p in model.named_parameters()} if recipe.ema_decay else {}
        self.growth = Growth()
        self.gradient_norm = recipe.optimizer.clip_norm
        self.loss = INITIAL_LOSS
        self.best_loss, self.best_at = INITIAL_LOSS, 0
        self.solved_at: int | None = None

    @property
    def head_parameters(self) -> dict[str, nn.Parameter]:
        """The parameters, by name, that are trained together with the model without being part of the model."""
        return {} if self.state_head is None else dict(self.state_head.named_parameters(prefix="state_head"))

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        """All trained parameters, by name."""
        return dict(self.model.named_parameters()) | self.head_parameters

    def is_over(self, recipe: Recipe) -> bool:
        """Return whether training is over, by the steps that are done and by the loss."""
        return recipe.is_over(self.step, self.solved_at, self.best_at)

    def load_final_weights(self) -> None:
        """Put the averaged weights into the model, if an average is kept."""
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if name in self.average:
                    parameter.copy_(self.average[name])

    def final_weights(self) -> dict[str, Tensor]:
        """Return the state dict that the model gets if training ends here.

        If weights are sharded, all processes have to call this.
        """
        own, first = self.model.state_dict(), first_names(self.model)
        final = {name: self.average.get(first.get(name, name), tensor) for name, tensor in own.items()}
        return {name: whole(tensor).detach().clone() for name, tensor in final.items()}

    @contextmanager
    def with_final_weights(self) -> Iterator[SequenceModel]:
        """Yield the model with its final weights, as if training ended here, and restore its own weights afterwards."""
        own = [p.detach().clone() for p in self.model.parameters()]
        self.load_final_weights()
        try:
            yield self.model
        finally:
            with torch.no_grad():
                torch._foreach_copy_([p.detach() for p in self.model.parameters()], own)


@one_thread()
def train(
    model: SequenceModel,
    task: Task,
    recipe: Recipe,
    *,
    seed: int = 0,
    on_step: Callable[[StepRecord], object] = lambda record: None,
) -> list[StepRecord]:
    """Train `model` by `recipe`, leave it with its final weights, and return the record of each step.

    Data and noise come from `seed`; the initial weights are the model's own. Training runs on one torch thread.

    `on_step` is called with the record of each step. If it returns True, training ends, and the model keeps the weights
    of this step. `on_step` may measure the model at these weights. Measuring changes neither the weights nor the data
    of later steps. If `on_step` does not end training, and the recipe keeps an average of the weights (`ema_decay`),
    the final weights are this average. Other rules that end training are settings of the recipe (`PaceRecipe`).

    Example:
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> task = make_task("parity")
        >>> model = make_model("regular-gpt", task, d_model=8, num_heads=2)
        >>> records = train(model, task, Recipe(steps=9, batch_size=4), on_step=lambda record: record.step == 3)
        >>> [record.step for record in records]
        [1, 2, 3]
    """
    check_is_model(model)
    check_is_task(task)
    check_kind("recipe", recipe, Recipe, "a Recipe, such as Recipe(steps=1_000)")
    check_function("on_step", on_step)
    seed = whole_seed(seed)
    check_memory(model, recipe)
    state = TrainingState(model, recipe, task)
    records = list[StepRecord]()
    for record in training_steps(state, task, recipe, seed=seed):
        records.append(record)
        if on_step(record):
            return records  # the average would lag behind weights that are still improving
        model.train()  # `on_step` may have put the model into evaluation mode
    state.load_final_weights()
    return records


def training_steps(state: TrainingState, task: Task, recipe: Recipe, *, seed: int) -> Iterator[StepRecord]:
    """Run the remaining steps and yield a record of each; the caller may stop, save and resume between any two steps.

    Data and noise of a step depend on the seed and the step's number alone, so a resumed run equals the
    uninterrupted one. Raises `Diverged` before an update that is not finite, so the weights stay finite.
    """
    lengths, others = training_lengths(task, recipe)
    check_task(task, recipe)
    batches = Batches(task, recipe, seed=seed)
    # A model that was read from a file is in eval mode.
    state.model.train()
    while not state.is_over(recipe):
        scheduled = recipe.scheduled(state.step, state.solved_at)
        was_solved = state.solved_at is not None and state.step > state.solved_at
        before = recipe.scheduled(state.step - 1, state.solved_at if was_solved else None) if state.step else -1
        if quantization_is_due(state.model, before, scheduled, recipe.steps):
            _find_codes(state, task, lengths[-1], seed)
        # Temperatures follow the schedule, not the step: with a `PaceRecipe`, the schedule has a speed of its own.
        if isinstance(state.model, FollowsTraining):
            state.model.set_progress(scheduled / recipe.steps)
        generator = generator_for(seed, "step", state.step)
        length = _draw_length(state.growth, recipe, scheduled, lengths, others, generator)
        batch = batches.draw(scheduled, length, generator)
        # Every rank has to draw the same batch from `generator`, but its own noise for its rows of the batch.
        rank_key = ("step", state.step, "rank", state.ranks.rank)
        noise = generator if state.ranks.size == 1 else generator_for(seed, *rank_key)
        with rank_errors(state.ranks), draws_without_generator(device_of(state.model), seed, *rank_key):
            with computing_in(recipe.precision, device_of(state.model)):
                losses = state.losses(batch, task, recipe, scheduled, generator, noise)
            with computing_in("float32", device_of(state.model)):
                record, learned = _update(state, recipe, scheduled, losses, length)
        _note_loss(state, recipe, learned, has_grown=state.growth.num_reached == len(lengths))
        if recipe.length_sampling == "growing" and length == lengths[state.growth.num_reached - 1] != lengths[-1]:
            state.growth = state.growth.after(learned)
        yield record


def _note_loss(state: TrainingState, recipe: Recipe, loss: float, *, has_grown: bool) -> None:
    """Update the running loss and the best loss, and note the step at which the task is solved at all lengths.

    With many classes the first loss can exceed `INITIAL_LOSS`. The running loss and the best loss then begin with the
    first loss.
    """
    if state.step == 1 and loss > state.loss:
        state.loss = state.best_loss = loss
    state.loss += (recipe.pace.latest if recipe.pace else SHARE_OF_LATEST) * (loss - state.loss)
    if state.loss < IMPROVEMENT_FACTOR * state.best_loss:
        state.best_loss, state.best_at = state.loss, state.step
    if recipe.pace is None or state.solved_at is not None or state.loss >= recipe.pace.solved_loss:
        return
    if has_grown or recipe.length_sampling != "growing":
        state.solved_at = state.step


def _find_codes(state: TrainingState, task: Task, length: int, seed: int) -> None:
    """Quantize the states of the final weights, as if training ended here, and continue from these weights."""
    assert isinstance(task, SymbolTask)
    with state.with_final_weights() as model, on_cpu(model):
        has_codes = quantize_states(model, task, length=length, seed=seed)
    if has_codes:
        state.load_final_weights()


def _draw_length(
    growth: Growth, recipe: Recipe, scheduled: int, lengths: list[int], others: list[int], generator: torch.Generator
) -> int:
    """Draw one of `lengths` by the recipe's odds, or occasionally one of `others`, which are equally likely."""
    if not recipe.is_late(scheduled):
        others = [n for n in others if n > lengths[0]]
    if recipe.rise is not None:
        others = [n for n in others if n <= recipe.risen_at(scheduled)]
    if recipe.length_sampling == "growing":
        others = [n for n in others if n < lengths[growth.num_reached - 1]]
    share = SHARE_OF_OTHERS * len(others) / (len(lengths) + SHARE_OF_OTHERS * len(others))
    if others and float(torch.rand((), generator=generator)) < share:
        return others[int(torch.randint(len(others), (), generator=generator))]
    odds = torch.tensor(recipe.length_odds_at(scheduled, lengths, growth.num_reached))
    return lengths[int(odds.multinomial(1, generator=generator))]


def _update(
    state: TrainingState, recipe: Recipe, scheduled: int, losses: StepLoss, length: int
) -> tuple[StepRecord, float]:
    """Update the weights if loss and gradient are finite; return the step's record and its loss without penalties."""
    for optimizer in state.optimizers:
        optimizer.zero_grad()
    losses.minimized.backward()
    # Only a backward pass shows whether the model's code makes sparse gradients.
    check_gradients(state.parameters)
    limit = _gradient_limit(state, recipe)
    norm, value, learned = _on_host(state, torch.nn.utils.clip_grad_norm_(state.parameters.values(), limit), losses)
    # The update is rejected before it is made: the last good weights and the checkpoint stay usable.
    if not (math.isfinite(value) and math.isfinite(norm)):
        raise Diverged(
            f"training diverged at step {state.step + 1}: loss {value}, gradient norm {norm}; "
            "lower train.optimizer.learning_rate or train.optimizer.clip_norm"
        )
    # The clipped norm enters the mean, so that one huge gradient does not raise the limit of the next steps.
    state.gradient_norm = 0.95 * state.gradient_norm + 0.05 * min(norm, limit)
    factor = recipe.rate_factor_at(scheduled)
    for optimizer in state.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["full_rate"] * factor
        optimizer.step()
    state.step += 1
    if state.average:
        _average_in(state, recipe.ema_decay)
    rate = 0.0 if recipe.optimizer.counts_outcomes else factor * recipe.optimizer.learning_rate
    return StepRecord(state.step, value, length, norm, rate), learned


def _gradient_limit(state: TrainingState, recipe: Recipe) -> float:
    """Return the norm at which the gradient of this step is clipped."""
    # The gradients of Baum-Welch are counts. A step uses only their proportions, so no step is too long.
    if recipe.optimizer.counts_outcomes:
        return math.inf
    # The limit is relative to earlier norms, because a gradient a hundred times as large would dominate the momentum of
    # many steps.
    if ratio := recipe.optimizer.clip_ratio:
        return min(recipe.optimizer.clip_norm, max(MIN_CLIP_NORM, ratio * state.gradient_norm))
    return recipe.optimizer.clip_norm


def _on_host(state: TrainingState, norm: Tensor, losses: StepLoss) -> tuple[float, float, float]:
    """Return the gradient's norm and the losses as numbers."""
    # All three numbers are moved in one transfer, because each transfer makes the CPU wait for the device.
    total_norm: float
    total_norm, *own_losses = torch.stack([whole(norm), *(loss.detach() for loss in losses)]).tolist()
    minimized, learned = state.ranks.mean(*own_losses)
    return total_norm, minimized, learned


def _average_in(state: TrainingState, decay: float) -> None:
    """Move the average towards the weights; faster in early steps, so that the average soon forgets initial weights."""
    # With a constant decay of 0.99, the initial weights would still have the weight e^-1 after 100 steps.
    decay = min(decay, state.step / (state.step + 10))
    with torch.no_grad():
        torch._foreach_lerp_(list(state.average.values()), [p.detach() for p in state.model.parameters()], 1 - decay)
