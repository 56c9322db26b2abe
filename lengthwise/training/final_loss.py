"""The loss of the final weights of a training run, on strings of all lengths."""

from statistics import fmean

from lengthwise.devices import one_thread
from lengthwise.models.base import eval_mode
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import Task
from lengthwise.training.batches import draw_batch, training_lengths
from lengthwise.training.loop import TrainingState
from lengthwise.training.losses import supervised_loss
from lengthwise.training.recipe import Recipe

MAX_LENGTHS = 50
"""The largest number of lengths that are measured. The shortest and the longest length are always measured."""


@one_thread()
def final_loss(state: TrainingState, task: Task, recipe: Recipe, *, seed: int) -> float:
    """Return the mean loss of the final weights, as if training ended now, over a new batch at each measured length.

    Unlike the losses of training steps, this loss contains no noise and no pads, and every length counts the same.
    """
    first, others = training_lengths(task, recipe)
    lengths = sorted(first + others)
    count = min(len(lengths), MAX_LENGTHS)
    # A recipe may allow thousands of lengths, and a batch of each would take longer than training.
    taken = [lengths[round(index * (len(lengths) - 1) / max(1, count - 1))] for index in range(count)]
    batches = (
        draw_batch(task, recipe, recipe.batch_size, length, generator_for(seed, "final loss", length))
        for length in taken
    )
    with state.with_final_weights() as model, eval_mode(model):
        return fmean(float(supervised_loss(model, batch, recipe.supervision)) for batch in batches)
