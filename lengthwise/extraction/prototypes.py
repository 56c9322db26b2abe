"""Prototypes: states of a model that represent classes of states."""

import math

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.models.base import SequenceModel
from lengthwise.ops.answers import answers_of


class NotFinite(ValueError):
    """An error for states that are infinite or NaN, or that form more classes than the limits allow."""


class Prototypes:
    """A growing set of states that represent classes.

    A state becomes the prototype of a new class if no prototype within the radius has the same answer. Each of the
    `given` states is a class that no other state joins. At most `maximum` other classes may be added.
    """

    def __init__(self, model: SequenceModel, given: Float[Tensor, "G D"], *, radius: float, maximum: int) -> None:
        _check_finite(given)
        if not math.isfinite(radius):
            raise NotFinite("model: its states are so far apart that distances between them are infinite")
        self.model = model
        self.states = given
        self.num_given = len(given)
        self.max_distance = 0.0
        self._radius = radius
        self._max = maximum

    def join(self, states: Float[Tensor, "N D"]) -> Int64[Tensor, " N"]:
        """Return the class of each state, after prototypes are added for states that are not near a known prototype.

        A state joins the class of the nearest prototype that has the same answer, if this prototype is within the
        radius. Otherwise the state becomes the prototype of a new class.

        Raises:
            NotFinite: more than `maximum` classes are needed besides the classes of given prototypes; or a state or
                one of its logits is not finite.
        """
        _check_finite(states)
        answers = answers_of(self.model.readout(states))
        if bool((answers < 0).any()):
            raise NotFinite("model: a logit of a state is not finite")
        nearest, distances = nearest_prototypes(self.model, states, self.states[self.num_given :])
        classes = torch.where(distances <= self._radius, nearest + self.num_given, -1)
        # A new prototype (`founder`) changes which states are still without a class. So new prototypes are added one by
        # one, in a fixed order.
        while bool((classes < 0).any()):
            founder = int((classes < 0).int().argmax())
            if len(self.states) - self.num_given == self._max:
                raise NotFinite(
                    f"model: its states do not close within {self._max} classes of radius {self._radius:.3g}"
                )
            is_near = (states - states[founder]).norm(dim=1) <= self._radius
            classes[(classes < 0) & is_near & (answers == answers[founder])] = len(self.states)
            self.states = torch.cat([self.states, states[founder : founder + 1]])
        self.max_distance = max(self.max_distance, float((states - self.states[classes]).norm(dim=1).max()))
        return classes

    @property
    def outputs(self) -> Int64[np.ndarray, " K"]:
        """Return the answer of each prototype; `IGNORE` for a given prototype whose logits are not finite."""
        answers = answers_of(self.model.readout(self.states))
        outputs: np.ndarray = torch.where(answers < 0, IGNORE, answers).numpy()
        return outputs

    def gap(self, classes: Int64[np.ndarray, " K"]) -> float:
        """Return the smallest distance of two computed prototypes of different classes; infinity if no pair exists."""
        computed = self.states[self.num_given :]
        their_classes = torch.from_numpy(classes[self.num_given :])
        exact = "donot_use_mm_for_euclid_dist"  # the mode with matrix products has errors of thousandths
        distances = torch.cdist(computed, computed, compute_mode=exact)
        apart = distances[their_classes[:, None] != their_classes]
        return float(apart.min()) if len(apart) else float("inf")


def _check_finite(states: Float[Tensor, "N D"]) -> None:
    if not bool(states.isfinite().all()):
        raise NotFinite("model: a state is infinite or NaN")


def nearest_prototypes_by_definition(
    model: SequenceModel, states: Float[Tensor, "N D"], prototypes: Float[Tensor, "P D"]
) -> tuple[Int64[Tensor, " N"], Float[Tensor, " N"]]:
    """Return the result of `nearest_prototypes`, from the distances of all states from all prototypes."""
    answers, their_answers = (answers_of(model.readout(points)) for points in (states, prototypes))
    distances = (states[:, None] - prototypes).norm(dim=2)
    distances[(answers[:, None] != their_answers) | ~distances.isfinite()] = torch.inf
    nearest = torch.cat([distances, distances.new_full((len(states), 1), torch.inf)], 1).min(1)
    return nearest.indices.masked_fill(nearest.values.isinf(), len(prototypes)), nearest.values


def nearest_prototypes(
    model: SequenceModel, states: Float[Tensor, "N D"], prototypes: Float[Tensor, "P D"]
) -> tuple[Int64[Tensor, " N"], Float[Tensor, " N"]]:
    """Return for each state the index and the distance of the nearest prototype with the same answer.

    In two cases, the index is the number of prototypes, and the distance is infinite. Either no prototype gives the
    state's answer, or the state or one of its logits is not finite. If two prototypes are about equally near, either
    may be returned. The distance is computed from differences, so its only error is rounding.
    """
    answers, their_answers = (answers_of(model.readout(points)) for points in (states, prototypes))
    # The extra row stands for "no prototype": its answer -1 is never a state's.
    candidates = torch.cat([prototypes, prototypes.new_zeros(1, prototypes.shape[1])])
    is_other = answers[:, None] != torch.cat([their_answers, their_answers.new_full((1,), -1)])
    # (|x - p|^2 - |x|^2) / 2 = |p|^2 / 2 - x p: for one state x, these numbers are ordered like its distances to
    # prototypes p. They need only one matrix product, while differences would need an array of all pairs and all
    # numbers.
    order = torch.addmm(candidates.square().sum(1) / 2, states, candidates.mT, alpha=-1)
    nearest = order.masked_fill_(is_other | (answers < 0)[:, None], torch.inf).min(1)
    # index_select copies rows several times as fast as an index in brackets.
    distances = (states - candidates.index_select(0, nearest.indices)).norm(dim=1)
    is_none = ~(nearest.values.isfinite() & distances.isfinite())
    return nearest.indices.masked_fill(is_none, len(prototypes)), distances.masked_fill(is_none, torch.inf)


def largest_finite(distances: Float[Tensor, " N"]) -> float:
    """Return the largest finite distance, or 0 if no distance is finite."""
    return max(0.0, float(distances.where(distances.isfinite(), 0.0).max()))
