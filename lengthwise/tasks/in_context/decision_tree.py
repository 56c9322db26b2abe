"""In-context regression on decision trees: predict a tree's value at a point from its values at earlier points."""

from typing import Annotated, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from pydantic import Field, model_validator
from torch import Tensor

from lengthwise.tasks.base import TASKS, Batch, VectorTask


class Trees(NamedTuple):
    """Full binary trees: the coordinate that each inner node compares with 0, level by level, and values of leaves."""

    coordinates: Int64[Tensor, "B I"]
    leaves: Float[Tensor, "B L"]


@TASKS.register("decision-tree")
class DecisionTree(VectorTask):
    """In-context regression on random decision trees, one tree for each sequence, without noise.

    A tree is full and has depth `depth`. Each inner node compares one coordinate of a point x with 0. The point goes to
    the right if this coordinate is above 0, and otherwise to the left. The number at the leaf that x reaches is the
    value y. The coordinates that nodes compare are uniform; leaves and points are standard normal.

    With P = `length`, the sequence is x_1, (y_1, 0, ..., 0), x_2, ..., x_P: 2 P - 1 vectors of `dims` numbers. The
    target at x_i is y_i, and NaN at other positions. With `active_dims`, nodes compare only the first `active_dims`
    coordinates, and all other coordinates of points are 0. A curriculum raises `active_dims` together with the length.

    `length` is the number of points, at most `max_points`. `baseline` is the error of always predicting 0, the mean of
    all values. This error is 1, the variance of the numbers at leaves. `mean_so_far` and `nearest_neighbor` are simple
    learners to compare with. Values and errors are not scaled; the source's figures show errors divided by `dims`.

    Raises:
        ValueError: a field is out of its range, or `active_dims` is above `dims`.

    Example:
        >>> task = DecisionTree(depth=2, dims=5)
        >>> inputs, targets = task.sample(8, 26, torch.Generator().manual_seed(0))
        >>> inputs.shape, targets.shape
        (torch.Size([8, 51, 5]), torch.Size([8, 51]))
        >>> bool((targets[:, 0] == inputs[:, 1, 0]).all())
        True

    Source: Garg et al., "What Can Transformers Learn In-Context? A Case Study of Simple Function Classes" (arXiv
        2208.01066), section 4, as used by Xu and Sato, "On Expressive Power of Looped Transformers: Theoretical
        Analysis and Enhancement via Timestep Encoding" (arXiv 2410.01405), appendix C.3.
    Differs from the source: the last y, after which nothing is predicted, is left out. In the curriculum of Garg et
        al., nodes compare any of the `dims` coordinates, so coordinates that are 0 always lead to the left. The code of
        Xu and Sato has no curriculum over coordinates.
    """

    depth: Annotated[int, Field(ge=1, le=12)] = 4
    dims: Annotated[int, Field(ge=1, le=1_000)] = 20
    max_points: Annotated[int, Field(ge=1, le=10_000)] = 101
    active_dims: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _has_the_active_dims(self) -> "DecisionTree":
        if self.active_dims is not None and self.active_dims > self.dims:
            raise ValueError(
                f"active_dims: expected at most dims={self.dims}, got {self.active_dims}; lower active_dims, or raise "
                "dims"
            )
        return self

    @property
    def input_dim(self) -> int:
        """Return the number of coordinates of a point."""
        return self.dims

    def is_legal_length(self, length: int) -> bool:
        """Return whether there are 1 to `max_points` points."""
        return 1 <= length <= self.max_points

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw a tree and points for each sequence."""
        active = self.active_dims or self.dims
        trees = Trees(
            torch.randint(active, (batch_size, 2**self.depth - 1), generator=generator),
            torch.randn(batch_size, 2**self.depth, generator=generator),
        )
        inputs = torch.zeros(batch_size, 2 * length - 1, self.dims)
        inputs[:, ::2, :active] = torch.randn(batch_size, length, active, generator=generator)
        values = tree_values(trees, inputs[:, ::2])
        inputs[:, 1::2, 0] = values[:, :-1]
        return Batch(inputs, _at_points(values))

    def baseline(self, length: int) -> float:
        """Return 1, the error of always predicting 0: the numbers at leaves have mean 0 and variance 1."""
        return 1.0


def tree_values(trees: Trees, points: Float[Tensor, "B P V"]) -> Float[Tensor, "B P"]:
    """Return the value of each row's tree at each of the row's points."""
    depth = trees.leaves.shape[1].bit_length() - 1
    nodes = torch.zeros(points.shape[:2], dtype=torch.int64)
    for _ in range(depth):
        compared = points.gather(2, trees.coordinates.gather(1, nodes)[..., None])[..., 0]
        nodes = 2 * nodes + 1 + (compared > 0)
    return trees.leaves.gather(1, nodes - trees.coordinates.shape[1])


def tree_values_by_definition(trees: Trees, points: Float[Tensor, "B P V"]) -> Float[Tensor, "B P"]:
    """Return the same values as `tree_values`, computed point by point."""
    values = torch.empty(points.shape[:2])
    num_inner = trees.coordinates.shape[1]
    for row in range(len(points)):
        for position, point in enumerate(points[row]):
            node = 0
            while node < num_inner:
                node = 2 * node + (2 if point[trees.coordinates[row, node]] > 0 else 1)
            values[row, position] = trees.leaves[row, node - num_inner]
    return values


def mean_so_far(inputs: Float[Tensor, "B T V"]) -> Float[Tensor, "B T"]:
    """Return the mean of all values before each point, and 0 for the first point; NaN at positions of values."""
    values = inputs[:, 1::2, 0]
    return _at_points(F.pad(values.cumsum(1) / torch.arange(1, values.shape[1] + 1), (1, 0)))


def nearest_neighbor(inputs: Float[Tensor, "B T V"]) -> Float[Tensor, "B T"]:
    """Return the value of each point's nearest earlier point, and 0 for the first point.

    The result has NaN at positions of values, like targets. Distances are Euclidean, over all coordinates.
    """
    points, values = inputs[:, ::2], inputs[:, 1::2, 0]
    if points.shape[1] == 1:
        return torch.zeros(len(inputs), 1)
    # Distances by matrix products have larger rounding errors, and could give a different neighbor.
    distances = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    later = torch.ones(distances.shape[1:], dtype=torch.bool).triu()
    nearest = distances.masked_fill(later, torch.inf)[:, 1:, :-1].argmin(2)
    return _at_points(F.pad(values.gather(1, nearest), (1, 0)))


def nearest_neighbor_by_definition(inputs: Float[Tensor, "B T V"]) -> Float[Tensor, "B T"]:
    """Return the same answers as `nearest_neighbor`, computed point by point."""
    answers = torch.full(inputs.shape[:2], torch.nan)
    answers[:, 0] = 0
    for row, sequence in enumerate(inputs):
        for position in range(2, len(sequence), 2):
            distances = (sequence[:position:2] - sequence[position]).square().sum(1)
            answers[row, position] = sequence[2 * int(distances.argmin()) + 1, 0]
    return answers


def _at_points(values: Float[Tensor, "B P"]) -> Float[Tensor, "B T"]:
    """Return numbers at the positions of points in a sequence, and NaN at the positions of values."""
    answers = torch.full((len(values), 2 * values.shape[1] - 1), torch.nan)
    answers[:, ::2] = values
    return answers
