"""Changes during training that explain a jump of the loss, in words."""

from bisect import bisect_left
from typing import NamedTuple

from lengthwise.presets.base import Settings
from lengthwise.training.recipe import Recipe


class Change(NamedTuple):
    """The noise and losses that are added to training after `step` steps, each as a phrase."""

    step: int
    additions: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """A sentence for readers of a loss curve: the step after which training adds noise or losses."""
        return f"After step {self.step:,} training adds {' and '.join(self.additions)}, and the loss may jump."


def late_change(train: Settings) -> Change | None:
    """Return a recipe's first change of noise or losses during training, or None. `train` is a specification's section.

    The result is None if nothing changes, or if the loss decides when the change comes (`PaceRecipe`).

    Example:
        >>> late_change({"steps": 6000})
        Change(step=3000, additions=('state noise of 0.3 (before: 0.1)', 'consistency loss x 1'))
        >>> late_change({"late_consistency": 0.0, "augmentation": {"late_state_noise": 0.1}}) is None
        True
        >>> late_change({"steps": 1000, "contraction": {}})
        Change(step=300, additions=('contraction loss x 0.5',))
    """
    recipe = Recipe.model_validate(train)
    if recipe.pace is not None:
        return None

    def parts(step: int) -> tuple[float, float, float]:
        contraction = recipe.contraction_at(step)
        return recipe.state_noise_at(step), recipe.consistency_at(step), contraction.weight if contraction else 0.0

    step = bisect_left(range(recipe.steps), True, key=lambda step: parts(step) != parts(0))
    if step == recipe.steps:
        return None
    noise, weight, contracting = parts(0)
    late_noise, late_weight, late_contracting = parts(step)
    additions = []
    if late_noise != noise:
        additions.append(f"state noise of {late_noise:g} (before: {noise:g})")
    if late_weight != weight:
        additions.append(f"consistency loss x {late_weight:g}")
    if late_contracting != contracting:
        additions.append(f"contraction loss x {late_contracting:g}")
    return Change(step, tuple(additions))
