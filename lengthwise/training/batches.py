"""The strings that a step trains on: drawn for this step alone, or taken from a fixed training set."""

from itertools import chain

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.conventions import PAD
from lengthwise.devices import one_thread
from lengthwise.evaluation.length_curve import LengthPoint, answered_point, labeled
from lengthwise.models.base import SequenceModel, eval_mode
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import Batch, SymbolTask, Task
from lengthwise.tasks.given.task import ExamplesTask
from lengthwise.text.language import LanguageTask
from lengthwise.training.recipe import Recipe
from lengthwise.validation import validated

MAX_SCORED = 4_000
"""The largest number of strings of a training set that are graded, at each length."""


def task_at(task: Task, recipe: Recipe, step: int) -> Task:
    """Return the task at a step, with one field changed by the recipe's curriculum for the task (`TaskRiseRecipe`).

    Example:
        >>> from lengthwise.tasks import make_task
        >>> rise = {"field": "active_dims", "start": 2, "stop": 5, "every": 10}
        >>> task_at(make_task("decision-tree", dims=5), Recipe(task_rise=rise), 20).active_dims
        4
    """
    if recipe.task_rise is None:
        return task
    fields = {name: getattr(task, name) for name in type(task).model_fields}
    changed = {**fields, recipe.task_rise.field: recipe.task_rise.value_at(step)}
    return validated(type(task), changed, path="task")


def check_lengths(task: Task, recipe: Recipe) -> None:
    """Raise a ValueError unless the recipe allows a balanced length or, with lengths "legal", a legal length.

    The task has strings of every legal length. At a balanced length, every class of the task occurs.
    """
    kind, is_first = f"every class of {task.name} occurs", task.is_balanced_length
    if recipe.lengths == "legal":
        kind, is_first = f"{task.name} has strings", task.is_legal_length
    if not any(task.is_legal_length(n) and is_first(n) for n in range(recipe.min_length, recipe.max_length + 1)):
        raise ValueError(
            f"train.max_length: expected a length between {recipe.min_length} and {recipe.max_length} at which {kind}, "
            f"got none; {_way_out(task, recipe)}"
        )


def training_lengths(task: Task, recipe: Recipe) -> tuple[list[int], list[int]]:
    """Return the lengths that `length_sampling` draws from, and the lengths that are drawn occasionally.

    At a length of the second kind, some class of the task cannot occur.

    Raises:
        ValueError: the recipe allows no length from which `length_sampling` could draw.
    """
    check_lengths(task, recipe)
    legal = [n for n in range(recipe.min_length, recipe.max_length + 1) if task.is_legal_length(n)]
    balanced = [n for n in legal if task.is_balanced_length(n)]
    first = legal if recipe.lengths == "legal" else balanced
    # At an unbalanced length, some class is missing. Without strings of such lengths, a net cannot learn that such
    # strings are outside the language.
    others = sorted(set(legal) - set(balanced)) if recipe.lengths == "mostly-balanced" else []
    return first, others


def _way_out(task: Task, recipe: Recipe) -> str:
    if isinstance(task, LanguageTask):
        num_tokens = len(task.tokens("train"))
        return f"its training split has {num_tokens:,} tokens, so choose shorter lengths, or give a longer text"
    if isinstance(task, ExamplesTask):
        lengths = task.examples.lengths
        return (
            f"set train.min_length and train.max_length within {lengths.min()} to {lengths.max():,}, the lengths of "
            "its examples, or use the preset 'examples'"
        )
    return "choose other lengths" if recipe.lengths == "legal" else "raise train.max_length, or set lengths to 'legal'"


def training_set(task: Task, recipe: Recipe, length: int, *, seed: int) -> Batch:
    """Return the fixed strings of a length that a recipe with `num_examples` trains on, drawn from `seed`.

    Raises:
        ValueError: the recipe has no fixed training set.

    Example:
        >>> from lengthwise.tasks import make_task
        >>> recipe = Recipe(num_examples=100)
        >>> strings, again = (training_set(make_task("parity"), recipe, 5, seed=0) for _ in range(2))
        >>> strings.inputs.shape, torch.equal(strings.inputs, again.inputs)
        (torch.Size([100, 5]), True)
    """
    if recipe.num_examples is None:
        raise ValueError(
            "recipe: expected a recipe with num_examples, got one that draws new strings for each step; set "
            "num_examples"
        )
    return draw_batch(task, recipe, recipe.num_examples, length, generator_for(seed, "training set", length))


def draw_batch(task: Task, recipe: Recipe, count: int, length: int, generator: torch.Generator) -> Batch:
    """Draw strings of a length, with the targets of all prefixes if the recipe supervises all prefixes."""
    draw = task.sample_all_answers if recipe.supervision == "prefix" else task.sample
    return draw(count, length, generator)


class Batches:
    """The batches of a training run: each batch depends only on the task, the seed, the step and the recipe.

    Differs from the source (Xu and Sato (2024), Appendix C): the source reads each of a million strings 100 times.
        Here, with `num_examples`, every string of a batch is drawn with replacement. The batch of a step then does not
        depend on the steps before it.
    """

    def __init__(self, task: Task, recipe: Recipe, *, seed: int) -> None:
        self.task = task
        self.recipe = recipe
        self.seed = seed
        self._sets: dict[tuple[Task, int], Batch] = {}

    def draw(self, step: int, length: int, generator: torch.Generator) -> Batch:
        """Return the strings of a step, all of one length; `generator` is a new generator for this step."""
        task, count = task_at(self.task, self.recipe, step), self.recipe.num_examples
        if count is None:
            return draw_batch(task, self.recipe, self.recipe.batch_size, length, generator)
        # Sets are made when a length is first drawn, because a curriculum may never reach the long lengths.
        if (task, length) not in self._sets:
            self._sets[task, length] = training_set(task, self.recipe, length, seed=self.seed)
        return _select_rows(
            self._sets[task, length], torch.randint(count, (self.recipe.batch_size,), generator=generator)
        )


@one_thread()
def examples_answered(model: SequenceModel, task: SymbolTask, recipe: Recipe, *, seed: int) -> tuple[LengthPoint, ...]:
    """Grade a model's final answers on the first `MAX_SCORED` strings of the fixed training set at each length.

    Raises:
        ValueError: the recipe has no fixed training set.

    Example:
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> task, recipe = make_task("parity"), Recipe(max_length=2, num_examples=8)
        >>> points = examples_answered(make_model("gru", task), task, recipe, seed=0)
        >>> [(point.length, point.num_strings) for point in points]
        [(1, 8), (2, 8)]
    """
    points = []
    with eval_mode(model):
        for length in sorted(chain(*training_lengths(task, recipe))):
            strings = training_set(task, recipe, length, seed=seed)
            scored = Batch(strings.inputs[:MAX_SCORED], strings.targets[:MAX_SCORED])
            points.append(answered_point(model, task, labeled(scored), length))
    return tuple(points)


def _select_rows(strings: Batch, rows: Int64[Tensor, " B"]) -> Batch:
    """Select rows, and drop the columns at the end that contain only pads in these rows."""
    inputs, targets = strings.inputs[rows], strings.targets[rows]
    if inputs.is_floating_point():
        return Batch(inputs, targets)
    # A user's examples may have several lengths, and are padded to the longest, which need not be a drawn row.
    width = int((inputs != PAD).sum(1).max())
    return Batch(inputs[:, :width].contiguous(), targets[:, :width].contiguous())
