"""A penalty on the growth of intervals in a step, which makes recurrent models contract."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.models.base import RecurrentModel
from lengthwise.models.capabilities import BoundsSteps
from lengthwise.ops.intervals import Intervals
from lengthwise.training.recipe import ContractionRecipe


def growth(model: RecurrentModel, inputs: Int64[Tensor, "B T"], radius: float) -> Float[Tensor, "B T D"]:
    """Return by how much a step multiplies the uncertainty of each number, if the state before is known up to `radius`.

    If the growth is at most 1 everywhere, a step maps intervals of this radius around these states into such
    intervals. The gradient also flows into the states: units can saturate where sums grow, and weights need not shrink.
    """
    assert isinstance(model, BoundsSteps)
    after = torch.cat(list(model.states(inputs)), 1)
    before = torch.cat([model.initial_state(len(inputs))[:, None], after[:, :-1]], 1)
    # Interval arithmetic encloses the step for all states in the radius, including states that no string reaches.
    return model.bounds_after(Intervals.around(before, radius), inputs).radius / radius


def excess_growth(model: RecurrentModel, inputs: Int64[Tensor, "B T"], recipe: ContractionRecipe) -> Float[Tensor, ""]:
    """Return the mean over all numbers of max(0, g - max_growth), times the recipe's weight."""
    excess = growth(model, inputs, recipe.radius) - recipe.max_growth
    return recipe.weight * excess.clamp(min=0).mean()
