"""Proof by intervals around the prototypes: each step maps a class's intervals into the intervals of the next class."""

import math

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none
from lengthwise.certification.methods.intervals.evidence import IntervalEvidence
from lengthwise.certification.methods.steps import STEPS, Steps, steps_of
from lengthwise.certification.parts import Level
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction
from lengthwise.models.base import RecurrentModel
from lengthwise.ops.intervals import Intervals
from lengthwise.validation import narrow

MAX_ROUNDS = 60
"""The largest number of rounds of the search."""
MAX_NUMBERS = 1 << 22
"""The largest number of intervals in a round, over all symbols.

These intervals and the numbers computed from them take about 100 MB.
"""
RELATIVE_SLACK, ABSOLUTE_SLACK = 1.05, 1e-5
"""A new interval contains the bounds on all steps to its class.

Its radius is the radius of these bounds times `RELATIVE_SLACK`, plus `ABSOLUTE_SLACK`. So the bounds of the next round
may fit into the interval.
"""
NUM_GROWTH_ROUNDS = 24
"""The number of rounds of power iteration in `growth`."""
GROWTH_RADIUS = 1e-4
"""The radius of the intervals in `growth`. It is so small that a step is nearly linear in these intervals."""


@torch.no_grad()
def invariant_intervals(steps: Steps, table: Int64[Tensor, "K V"], points: Float64[Tensor, "K Z"]) -> Intervals | None:
    """Return intervals around the prototypes such that every step maps them into the intervals of the next class.

    The search starts with the prototypes as points. Each round bounds all steps in the machine's table. If all bounds
    lie within the intervals of their classes, the search ends. Otherwise each class gets slightly wider intervals that
    contain all bounds on steps to this class. If the search succeeds, each state that the float32 model computes is in
    the intervals of its class, for every string, by induction on the length. If the search fails, the result is None.

    Source: Cousot & Cousot, "Abstract interpretation" (POPL 1977), an inductive invariant in the domain of intervals.
    Differs from the source: rounds that widen intervals by 5 % guess the invariant, which is then verified.
    """
    # It does not matter how the intervals were found. The proof is the last comparison alone: the images of the
    # intervals, with all rounding, are inside the intervals.
    enclosures = Intervals.around(points)
    for _ in range(MAX_ROUNDS):
        images = [steps.after(enclosures, symbol) for symbol in range(table.shape[1])]
        # The verified intervals are returned, and not their images, because a checker maps the intervals once more.
        if all(_is_inside(image, enclosures[targets]) for image, targets in zip(images, table.T, strict=True)):
            return enclosures
        enclosures = _around(enclosures, table, images)
        if not bool((enclosures.low.isfinite() & enclosures.high.isfinite()).all()):
            break
    return None


def _is_inside(image: Intervals, enclosures: Intervals) -> bool:
    # Comparing ends involves no rounding, and ends that are NaN are never inside. `Intervals` has already moved the
    # ends outwards to cover the rounding of the net.
    return bool(((image.low >= enclosures.low) & (image.high <= enclosures.high)).all())


def _around(enclosures: Intervals, table: Int64[Tensor, "K V"], images: list[Intervals]) -> Intervals:
    """Return intervals that contain all bounds on steps to each class; classes without steps keep their intervals."""
    # Each image widens the intervals of its target class. So the intervals of a class contain the images of all steps
    # to this class.
    low = torch.full_like(enclosures.low, torch.inf)
    high = torch.full_like(enclosures.high, -torch.inf)
    for image, targets in zip(images, table.T, strict=True):
        index = targets[:, None].expand_as(low)
        low.scatter_reduce_(0, index, image.low, "amin")
        high.scatter_reduce_(0, index, image.high, "amax")
    reached = ~(low > high).any(1, keepdim=True)  # True for NaN: such bounds are kept, and then no comparison holds
    center, radius = (low + high) / 2, RELATIVE_SLACK * (high - low) / 2 + ABSOLUTE_SLACK
    ends = ((center - radius, enclosures.low), (center + radius, enclosures.high))
    return Intervals(*(torch.where(reached, new, old) for new, old in ends))


@torch.no_grad()
def growth(steps: Steps, table: Int64[Tensor, "K V"], points: Float64[Tensor, "K Z"]) -> float:
    """Return the long-run factor by which small intervals around prototypes grow per step.

    The factor is an estimate, by power iteration, of the largest eigenvalue of the map from radii before a step to
    radii after it. If the factor is below 1, the intervals shrink. The factor is only shown in a message, and
    proves nothing.
    """
    radius, factors = torch.ones_like(points), []
    for _ in range(NUM_GROWTH_ROUNDS):
        enclosures = Intervals(points - GROWTH_RADIUS * radius, points + GROWTH_RADIUS * radius)
        largest = torch.zeros_like(points)
        for symbol, targets in enumerate(table.T):
            image = steps.after(enclosures, symbol).radius / GROWTH_RADIUS
            largest.scatter_reduce_(0, targets[:, None].expand_as(image), image, "amax")
        factors.append(float(largest.max()))
        if not 0 < factors[-1] < float("inf"):
            return factors[-1]
        radius = largest / factors[-1]
    # The first half of the rounds depends on the initial radii. The mean of the second half smooths alternating
    # factors.
    return float(torch.tensor(factors[NUM_GROWTH_ROUNDS // 2 :]).log().mean().exp())


@PROVERS.register("intervals")
class IntervalProver(Prover):
    """A search for intervals (`invariant_intervals`) around the prototypes, or around prototypes of finer classes."""

    reader = "recurrent"
    max_halvings = 6

    @classmethod
    def reaches(cls, model: RecurrentModel) -> Level:
        """Return `proved` for the kinds of models in `STEPS`; the steps of other kinds have no bounds."""
        return "proved" if any(type(model) is steps.kind for steps in STEPS.values()) else "extracted"

    @torch.no_grad()
    def prove(self, model: RecurrentModel, extraction: Extraction) -> IntervalEvidence:
        steps, machine = steps_of(model), narrow(extraction.fine, Transducer)
        table, points = torch.tensor(machine.semiautomaton.table), extraction.prototypes.double()
        if (size := table.numel() * points.shape[1]) > MAX_NUMBERS:
            raise ValueError(
                f"extraction: expected at most {MAX_NUMBERS:,} intervals in a round, got {size:,}; train a net with "
                "fewer units"
            )
        enclosures = invariant_intervals(steps, table, points)
        # The induction starts here: the first state must be in the intervals of the machine's start.
        if enclosures and not _is_inside(
            Intervals.around(model.initial_state(1).double()), enclosures[[machine.start]]
        ):
            raise ValueError(
                "extraction: expected the model's first state in the intervals of the machine's start state, got a "
                "state outside these intervals; extract the machine from this model"
            )
        outputs = torch.tensor(machine.outputs)
        answered = outputs != IGNORE
        # Intervals of a class without an answer may contain several answers, so only the other classes are compared.
        margin = steps.margin(enclosures[answered], outputs[answered]) if enclosures else -math.inf
        if enclosures is None or not margin > 0:  # a margin that is NaN also ends here
            fault = "may contain states with different answers" if enclosures else "were not found"
            factor = growth(steps, table, points)
            needed = "; a proof needs a factor below 1, which training with `contraction` can reach" * (factor >= 1)
            grow = (
                f"change in length by a factor of {factor:.3g} per step{needed}"
                if math.isfinite(factor)
                else "have no bounds after a step"
            )
            raise Unproved(
                f"invariant intervals around the prototypes (the model's steps map them into one another) {fault}; "
                f"short intervals {grow}"
            )
        self.sets = {"low": enclosures.low, "high": enclosures.high}
        return IntervalEvidence(
            num_prototypes=len(points), radius=float(enclosures.radius.max()), logit_margin=finite_or_none(margin)
        )
