"""Intervals around the classes of a machine that every step of a recurrent model maps into one another."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finer_extractions, finite_or_none
from lengthwise.certification.methods.intervals.evidence import IntervalEvidence
from lengthwise.certification.methods.steps import STEPS, Steps, steps_of
from lengthwise.certification.parts import Level
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction, Reader
from lengthwise.models.base import RecurrentModel
from lengthwise.ops.intervals import Intervals

MAX_ROUNDS = 60
MAX_HALVINGS = 6
"""How often the radius of classes is halved where their enclosures do not close."""
MAX_NUMBERS = 1 << 22
"""Numbers that the enclosures of a round may have, over all symbols: about 100 MB with what is computed from them."""
FACTOR, MORE = 1.05, 1e-5
"""By how much enclosures are made larger than they need be."""
GROWTH_ROUNDS = 24
SMALL = 1e-4
"""The radius at which growth is measured: intervals so short that a step is nearly linear in them."""


@torch.no_grad()
def invariant_intervals(steps: Steps, table: Int64[Tensor, "K V"], points: Float64[Tensor, "K Z"]) -> Intervals | None:
    """Intervals around the prototypes of the classes such that every step maps them into one another, or None.

    The search starts with the prototypes as points. Each round bounds all steps of the table and takes for each class
    intervals, a little longer than need be, that hold what leads to it, until all bounds lie within the intervals they
    were computed from. By induction on the length every state that the float32 model computes then lies in the
    intervals of its class, for every string.

    Source: Cousot & Cousot, "Abstract interpretation" (POPL 1977), an inductive invariant in the domain of intervals.
    Differs from the source: the invariant is guessed from rounds that are widened by a twentieth, and then verified.
    """
    enclosures = Intervals.around(points)
    for _ in range(MAX_ROUNDS):
        images = [steps.after(enclosures, symbol) for symbol in range(table.shape[1])]
        if all(_is_inside(image, enclosures[targets]) for image, targets in zip(images, table.T, strict=True)):
            return enclosures
        enclosures = _around(enclosures, table, images)
        if not bool((enclosures.low.isfinite() & enclosures.high.isfinite()).all()):
            break
    return None


def _is_inside(image: Intervals, enclosures: Intervals) -> bool:
    return bool(((image.low >= enclosures.low) & (image.high <= enclosures.high)).all())


def _around(enclosures: Intervals, table: Int64[Tensor, "K V"], images: list[Intervals]) -> Intervals:
    """For each class intervals that hold all that leads to it; where nothing does they stay as they are."""
    low, high = torch.full_like(enclosures.low, torch.inf), torch.full_like(enclosures.high, -torch.inf)
    for image, targets in zip(images, table.T, strict=True):
        index = targets[:, None].expand_as(low)
        low.scatter_reduce_(0, index, image.low, "amin")
        high.scatter_reduce_(0, index, image.high, "amax")
    reached = ~(low > high).any(1, keepdim=True)  # by bounds that are no numbers, too
    center, radius = (low + high) / 2, FACTOR * (high - low) / 2 + MORE
    ends = ((center - radius, enclosures.low), (center + radius, enclosures.high))
    return Intervals(*(torch.where(reached, new, old) for new, old in ends))


@torch.no_grad()
def growth(steps: Steps, table: Int64[Tensor, "K V"], points: Float64[Tensor, "K Z"]) -> float:
    """By how much short intervals around prototypes grow in a step, in the long run; below 1 they shrink.

    The largest eigenvalue, by power iteration, of the map from the radii of all enclosures to those of enclosures of
    what they are mapped to.
    """
    radius, factors = torch.ones_like(points), []
    for _ in range(GROWTH_ROUNDS):
        enclosures = Intervals(points - SMALL * radius, points + SMALL * radius)
        largest = torch.zeros_like(points)
        for symbol, targets in enumerate(table.T):
            image = steps.after(enclosures, symbol).radius / SMALL
            largest.scatter_reduce_(0, targets[:, None].expand_as(image), image, "amax")
        factors.append(float(largest.max()))
        if not 0 < factors[-1] < float("inf"):
            return factors[-1]
        radius = largest / factors[-1]
    return float(torch.tensor(factors[GROWTH_ROUNDS // 2 :]).log().mean().exp())


@PROVERS.register("intervals")
class IntervalProver(Prover):
    """Looks for intervals (`invariant_intervals`) around the prototypes, or around those of smaller classes."""

    reader = "recurrent"

    @classmethod
    def reaches(cls, model: RecurrentModel) -> Level:
        """Steps of the kinds in `STEPS` are bounded, others are not."""
        return "proved" if any(type(model) is steps.kind for steps in STEPS.values()) else "extracted"

    def candidates(
        self, reader: Reader[Any], extraction: Extraction, radius: float
    ) -> Iterator[tuple[Extraction, float]]:
        """The extraction and those of smaller classes."""
        return finer_extractions(reader, extraction, radius, MAX_HALVINGS)

    @torch.no_grad()
    def prove(self, model: RecurrentModel, extraction: Extraction) -> IntervalEvidence:
        steps, machine = steps_of(model), extraction.fine
        assert isinstance(machine, Transducer)
        table, points = torch.tensor(machine.semiautomaton.table), extraction.prototypes.double()
        if (size := table.numel() * points.shape[1]) > MAX_NUMBERS:
            raise ValueError(f"extraction: expected at most {MAX_NUMBERS:,} intervals in a round, got {size:,}")
        enclosures = invariant_intervals(steps, table, points)
        if enclosures and not _is_inside(
            Intervals.around(model.initial_state(1).double()), enclosures[[machine.start]]
        ):
            raise ValueError("extraction: its first prototype is not the model's first state; extract from this model")
        outputs = torch.tensor(machine.outputs)
        answered = outputs != IGNORE
        margin = steps.margin(enclosures[answered], outputs[answered]) if enclosures else -math.inf
        if enclosures is None or not margin > 0:  # nor where it is no number
            ending = "hold states of different answers" if enclosures else "were not found"
            factor = growth(steps, table, points)
            grow = f"grow {factor:.3g}-fold a step" if math.isfinite(factor) else "have no bounds after a step"
            raise Unproved(
                f"intervals around its prototypes that the model maps into one another {ending}; short ones {grow}"
            )
        self.sets = {"low": enclosures.low, "high": enclosures.high}
        return IntervalEvidence(
            num_prototypes=len(points), radius=float(enclosures.radius.max()), logit_margin=finite_or_none(margin)
        )
