"""A penalty on intervals that grow when a model reads a symbol, so that errors of states shrink at each step."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.models.base import RecurrentModel
from lengthwise.models.capabilities import BoundsSteps
from lengthwise.ops.intervals import Intervals
from lengthwise.training.recipe import ContractionRecipe


def growth(model: RecurrentModel, inputs: Int64[Tensor, "B T"], radius: float) -> Float[Tensor, "B T D"]:
    """Return the factor by which a step of the model multiplies the uncertainty `radius` of each state coordinate.

    If all factors are at most 1, a step maps intervals of this radius around the states into intervals of this radius
    around the next states. The gradient also flows into the states, so that units can saturate and weights need not
    shrink.
    """
    assert isinstance(model, BoundsSteps)
    after = torch.cat(list(model.states(inputs)), 1)
    before = torch.cat([model.initial_state(len(inputs))[:, None], after[:, :-1]], 1)
    # Interval arithmetic encloses the step for all states within the radius, including states that no string reaches.
    return model.bounds_after(Intervals.around(before, radius), inputs).radius / radius


def excess_growth(model: RecurrentModel, inputs: Int64[Tensor, "B T"], recipe: ContractionRecipe) -> Float[Tensor, ""]:
    """Return the recipe's `weight` times the mean of max(0, g - `max_growth`) over the factors g of `growth`."""
    excess = growth(model, inputs, recipe.radius) - recipe.max_growth
    return recipe.weight * excess.clamp(min=0).mean()
