"""Error curves: the squared error of in-context predictions, against the number of examples before a prediction."""

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from lengthwise.devices import device_of, moved, one_thread
from lengthwise.models.base import SequenceModel, check_is_model, eval_mode
from lengthwise.models.consistency import check_reads_vectors
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import VectorTask, check_is_task
from lengthwise.validation import FrozenRecord, whole_number

NUM_RESAMPLES = 1_000
"""The number of times that prompts are drawn with replacement, for the bootstrap interval of a mean."""

QUANTILES = (0.05, 0.95)
"""The two quantiles of the resampled means at which an interval begins and ends."""

MAX_PROMPTS = 100_000
"""The largest number of prompts; more are probably a mistake."""

MAX_PROMPTS_PER_CHUNK = 256
"""The largest number of prompts that a model reads at once."""


class ErrorPoint(FrozenRecord):
    """A point of an error curve: the mean squared error after `num_examples` examples, and its bootstrap interval."""

    num_examples: int = Field(ge=0)
    error: float
    low: float
    high: float


class ErrorCurve(FrozenRecord):
    """The errors at all supervised positions of prompts of one length, in order.

    `baseline` is the error of the best constant answer. `input_dim` is the dimension of the inputs, by which some
    papers divide errors.
    """

    length: int
    num_prompts: int = Field(ge=1)
    input_dim: int = Field(ge=1)
    baseline: float
    points: tuple[ErrorPoint, ...] = Field(min_length=1)

    @property
    def last(self) -> ErrorPoint:
        """Return the error at the last position, after all other examples."""
        return self.points[-1]

    @property
    def mean(self) -> float:
        """Return the mean error over all positions."""
        return sum(point.error for point in self.points) / len(self.points)


@one_thread()
def error_curve(
    model: SequenceModel, task: VectorTask, length: int, *, num_prompts: int = 1_280, seed: int = 0
) -> ErrorCurve:
    """Measure the squared error at each supervised position of prompts of one length.

    The prompts do not depend on the model. An interval reaches from the 5 % to the 95 % quantile of a bootstrap over
    prompts. The interval of a single prompt has width 0, because all its resamples are equal.

    Raises:
        ValueError: the task has no prompts of this length; `num_prompts` is not in 1 ... `MAX_PROMPTS`; or the answers
            of the model or the task are classes.

    Source: Garg et al., "What can transformers learn in-context?" (NeurIPS 2022), and its code.
    Differs from the source: errors are not divided by the dimension of the inputs.
    """
    check_is_model(model)
    check_is_task(task)
    if not isinstance(task, VectorTask):
        raise ValueError(
            f"task: expected a task whose answers are numbers, got {task.name}, whose answers are classes; "
            "use length_curve"
        )
    check_reads_vectors(model, task)
    task.check_length(length)
    num_prompts = whole_number("num_prompts", num_prompts, 1, MAX_PROMPTS)
    batch = task.sample(num_prompts, length, generator_for(seed, "evaluation", length))
    device = device_of(model)
    with eval_mode(model):
        parts = batch.inputs.split(MAX_PROMPTS_PER_CHUNK)
        answers = torch.cat([model(moved(part, device))[..., 0].to(part) for part in parts])
    positions = batch.supervised.all(0)
    errors = (answers - batch.targets)[:, positions].square().double()
    low, high = bootstrap_interval(errors, generator_for(seed, "bootstrap", length)).tolist()
    points = zip(errors.mean(0).tolist(), low, high, strict=True)
    return ErrorCurve(
        length=length,
        num_prompts=num_prompts,
        input_dim=task.input_dim,
        baseline=task.baseline(length),
        points=tuple(
            ErrorPoint(num_examples=count, error=error, low=low, high=high)
            for count, (error, low, high) in enumerate(points)
        ),
    )


def bootstrap_interval(values: Float[Tensor, "N P"], generator: torch.Generator) -> Float[Tensor, "2 P"]:
    """Return the bootstrap interval of each column's mean: the middle 90 % of the means over resampled rows."""
    means = []
    for _ in range(NUM_RESAMPLES):
        draw = torch.randint(len(values), (len(values),), generator=generator)
        # One product of counts and values is enough, while an index would copy all drawn rows.
        means.append(torch.bincount(draw, minlength=len(values)).to(values.dtype) @ values / len(values))
    quantiles = torch.tensor(QUANTILES, dtype=values.dtype)
    return torch.quantile(torch.stack(means), quantiles, dim=0)
