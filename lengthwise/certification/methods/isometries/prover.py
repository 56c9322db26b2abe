"""Up to which length the states of a recurrence that preserves distances stay close to the prototypes of a machine."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float64, Int64
from torch import Tensor, nn

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none
from lengthwise.certification.methods.isometries.evidence import IsometryEvidence
from lengthwise.certification.methods.steps import READOUT, hidden_features, margin
from lengthwise.certification.methods.usual_parts import check_usual
from lengthwise.certification.parts import Level
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction
from lengthwise.layers.block_linear import BlockLinearLayer
from lengthwise.models.base import RecurrentModel
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.ops.intervals import LARGEST, SMALLEST, ULPS, UNIT, Intervals

MAX_LENGTH = 1 << 40
HALVINGS = 60
TO_SPARE = 0.05
"""The share of the largest balls that their radius leaves free, and of the radius that drifts leave free.

The separate checker has bounds that are a little wider. In the largest balls themselves the logit margin is 0.
"""


class Drift(NamedTuple):
    """What moves states of norm `size` away from prototypes: `error` and `rounding` at every step, both times growth.

    `error`: how far a step leads from a prototype to the next one, in real numbers; `rounding`: of a product, relative
    to the norms of its factors; `growth`: by how much at most a step enlarges a distance.
    """

    error: float
    rounding: float
    growth: float
    size: float

    def after(self, length: int) -> float:
        """How far a state can be from its prototype: e (g^n - 1) / (g - 1) + s g^n ((1 + r)^n - 1).

        The first term is what n steps, each wrong by e, come to in real numbers. Of the second: if a product of m
        factors is computed up to g^m ((1 + r)^(m-1) - 1), two of them are multiplied up to the same expression of both
        numbers together, in whatever order that is, so that chunks of matrices may be multiplied first.
        """
        stretched = length * math.log(self.growth)
        if stretched + length * math.log1p(self.rounding) > 700:
            return math.inf
        steps = length if self.growth == 1 else math.expm1(stretched) / (self.growth - 1)
        return self.error * steps + self.size * math.exp(stretched) * math.expm1(length * math.log1p(self.rounding))


@torch.no_grad()
def transition_bounds(model: BlockLinearRNN) -> tuple[Float64[Tensor, "V N S S"], Float64[Tensor, "V N"]]:
    """The blocks of all symbols' matrices in real numbers, and how far float32's can be from them (Frobenius)."""
    (layer,) = model.layers
    assert isinstance(layer, BlockLinearLayer)
    width = layer.blocks[1]
    matrices = layer.transitions(model.embedding.weight.double())
    # Twice: a norm of S squares and a quotient, half a unit each; then two products and a difference.
    identity = torch.eye(width)
    subtracted = (identity - matrices).abs()
    units = (width + 8) / 2 + (2 * ULPS if layer.temperature else 0)
    is_identity = ~subtracted.flatten(-2).any(-1)
    rounded = UNIT * torch.linalg.matrix_norm(units * subtracted + identity / 2)
    return matrices, torch.where(is_identity, 0.0, rounded)


@torch.no_grad()
def drift_of(model: BlockLinearRNN, table: Int64[Tensor, "K V"], points: Float64[Tensor, "K D"]) -> Drift:
    """How far the model's states can drift from the prototypes of a machine's states."""
    (layer,) = model.layers
    assert isinstance(layer, BlockLinearLayer)
    matrices, rounded = (bounds[: table.shape[1]] for bounds in transition_bounds(model))
    width = layer.blocks[1]
    largest = torch.linalg.matrix_norm(matrices, ord=2) + rounded
    states = points.unflatten(-1, layer.blocks)
    images = torch.einsum("vnij,knj->kvni", matrices, states)
    missed = torch.linalg.vector_norm((images - states[table]).flatten(2), dim=-1)
    moved = torch.linalg.vector_norm(rounded * torch.linalg.vector_norm(states, dim=-1)[:, None], dim=-1)
    return Drift(
        error=float((missed + moved).max()) * (1 + 1e-9) + SMALLEST,
        rounding=width * (width + 1) * UNIT / 2,
        growth=max(1.0, float(largest.max())),
        size=float(torch.linalg.vector_norm(layer.first_state.double())),
    )


def longest(drift: Drift, radius: float) -> int:
    """The largest length up to which states are within the radius."""
    low, high = 0, MAX_LENGTH
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if drift.after(middle) <= radius else (low, middle - 1)
    return low


@PROVERS.register("isometries")
class IsometryProver(Prover):
    """Finds balls that hold one answer each, and how many steps a state stays in them (`Drift`)."""

    reader = "recurrent"

    @classmethod
    def applies_to(cls, model: RecurrentModel) -> bool:
        return type(model) is BlockLinearRNN and model.config.columns == "reflected"

    @classmethod
    def reaches(cls, model: RecurrentModel) -> Level:
        return "bounded"

    @torch.no_grad()
    def prove(self, model: RecurrentModel, extraction: Extraction) -> IsometryEvidence:
        check_isometric(model)
        assert isinstance(model, BlockLinearRNN)
        machine = extraction.fine
        assert isinstance(machine, Transducer)
        points, outputs = extraction.prototypes.double(), torch.tensor(machine.outputs)
        if not torch.equal(extraction.prototypes[machine.start], model.initial_state(1)[0]):
            raise ValueError("extraction: its first prototype is not the model's first state; extract from this model")
        answered = outputs != IGNORE
        balls = Balls(model.readout, points[answered], outputs[answered])
        radius = (1 - TO_SPARE) * balls.largest()
        drift = drift_of(model, torch.tensor(machine.semiautomaton.table), points)
        if not (length := longest(drift, (1 - TO_SPARE) * radius)):
            raise Unproved(
                f"its states drift {drift.after(1):.2g} a step from their prototypes, and balls of radius {radius:.2g} "
                "hold several answers"
            )
        self.sets = {"points": points, "radius": torch.tensor(radius, dtype=torch.float64)}
        return IsometryEvidence(
            num_prototypes=len(points),
            radius=radius,
            # At the largest radius a margin is what the bisection left; at the prototypes it is a property of the net.
            logit_margin=finite_or_none(balls.margin(0.0)),
            drift=drift.after(1),
            max_length=length,
        )


class Balls:
    """Balls around prototypes, each with its answer."""

    def __init__(self, readout: nn.Module, points: Float64[Tensor, "K D"], outputs: Int64[Tensor, " K"]) -> None:
        if not isinstance(readout, nn.Sequential):
            raise ValueError(f"model: bounds are known for its usual read-out, got a {type(readout).__name__}")
        self.readout = readout
        self.points = points
        self.outputs = outputs

    def margin(self, radius: float) -> float:
        """By how much the logit of each one's answer exceeds every other one in its whole ball, at least."""
        last = self.readout[-1]
        assert isinstance(last, nn.Linear)
        features = hidden_features(self.readout, Intervals.around(self.points, radius))
        return margin(last, features, self.outputs)

    def largest(self) -> float:
        """A radius, close to the largest, at which the margin is positive; 0 if there is none."""
        low, high = 0.0, float(self.points.abs().max())
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.margin(middle) > 0 else (low, middle)
        return low


def check_isometric(model: RecurrentModel) -> None:
    """Reject a model other than those whose steps are bounded here.

    Raises:
        ValueError: it is not a `BlockLinearRNN` of one layer of columns `"reflected"` without hidden units; it has
            parts of its own, or numbers so small or large that float32 has no digits for them.
    """
    assert isinstance(model, BlockLinearRNN)
    if (model.config.columns, model.config.num_layers, model.config.hidden) != ("reflected", 1, 0):
        raise ValueError(
            "model: drifts are known for one layer of columns 'reflected' without hidden units, got "
            f"{model.config.num_layers} of {model.config.columns!r} with {model.config.hidden}"
        )
    kinds: set[type[nn.Module]] = {BlockLinearLayer, nn.ModuleList, nn.Sequential, nn.Identity, nn.Embedding}
    check_usual(model, kinds | set(READOUT))
    (layer,) = model.layers
    assert isinstance(layer, BlockLinearLayer)
    adds_inputs = layer.holds_inputs or layer.input_map is not None
    if layer.columns != "reflected" or adds_inputs or len(layer.transition_map):
        raise ValueError(f"model: expected a layer with columns 'reflected', as configured, got {layer.columns!r}")
    if names := [type(norm).__name__ for norm in model.norms if type(norm) is not nn.Identity]:
        raise ValueError(f"model: expected no norm in front of its layer, as configured, got a {names[0]}")
    directions = model.embedding.weight.unflatten(-1, (layer.blocks[0], -1))[..., :-1]
    sizes = torch.cat([directions.norm(dim=-1).flatten(), layer.first_state.norm()[None]])
    if not bool(((sizes > 1e-6) & (sizes < LARGEST)).all()):
        raise ValueError("model: expected directions and a first state of norms between 1e-6 and 1e15, got others")
