"""The search for the largest length up to which a recurrence's states stay close to prototypes.

In real numbers, no step of the recurrence enlarges the distance between two states. Rounding can enlarge it a little.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float64, Int64
from torch import Tensor, nn

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none, foreign_extraction
from lengthwise.certification.methods.isometries.evidence import IsometryEvidence
from lengthwise.certification.methods.steps import READOUT, hidden_features, margin
from lengthwise.certification.methods.usual_parts import check_usual, unlike_settings
from lengthwise.certification.parts import Level
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction
from lengthwise.layers.block_linear import BlockLinearLayer
from lengthwise.models.base import RecurrentModel
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.ops.intervals import LARGEST, SMALLEST, ULPS, UNIT, Intervals
from lengthwise.validation import narrow, type_in_words

MAX_LENGTH = 1 << 40
"""The largest length of a proof, in symbols."""
NUM_BISECTIONS = 60
"""The number of bisections of the radius of balls."""
FREE_FRACTION = 0.05
"""The radius of balls is smaller than the largest radius with a positive logit margin by this fraction.

The drift of states must be smaller than the radius of the balls by the same fraction. Without this slack, the separate
checker could reject the proof, because its bounds are a little wider.
"""


class Drift(NamedTuple):
    """The amounts by which steps move states of norm `size` away from their prototypes.

    `error`: the largest distance from the next prototype to the image of a prototype under a rounded matrix.
    `rounding`: the rounding error of a product, relative to the norms of its factors. `growth`: the largest factor by
    which a step enlarges a distance.

    Example:
        >>> drift = Drift(error=1e-6, rounding=1e-7, growth=1.0, size=1.0)
        >>> [round(drift.after(length), 6) for length in (1, 1000)]
        [1e-06, 0.0011]
    """

    error: float
    rounding: float
    growth: float
    size: float

    def after(self, length: int) -> float:
        """Return a bound on the distance of a state from its prototype after `length` steps.

        The bound is e (g^n - 1) / (g - 1) + s g^n ((1 + r)^n - 1). The letters e, r, g and s are the four fields in
        their order, and n is the length. The first term sums the errors of n steps, without rounding of products. Each
        error is at most e, and each later step enlarges it by a factor of at most g.

        The second term is the rounding of products. After n steps, a state is the product of n + 1 factors: n matrices
        of norm at most g, and the first state, of norm s. A product of m matrices has an error of at most
        g^m ((1 + r)^(m-1) - 1). The proof is by induction on m. A single matrix has error 0. A product of a matrices,
        times a product of b matrices, rounds once more. So the bound for m = a + b follows from
        (1 + r)^(a-1) (1 + r)^(b-1) (1 + r) = (1 + r)^(a+b-1). This holds in any order of multiplication. The product
        with the first state also rounds once. So the second term has the factor s and the power (1 + r)^n.
        """
        stretched = length * math.log(self.growth)
        if stretched + length * math.log1p(self.rounding) > 700:  # float64 overflows at e^709
            return math.inf
        steps = length if self.growth == 1 else math.expm1(stretched) / (self.growth - 1)
        return self.error * steps + self.size * math.exp(stretched) * math.expm1(length * math.log1p(self.rounding))


@torch.no_grad()
def transition_bounds(model: BlockLinearRNN) -> tuple[Float64[Tensor, "V N S S"], Float64[Tensor, "V N"]]:
    """Return the blocks of all symbols' matrices, and bounds on the errors of the float32 blocks.

    The blocks are exact up to float64 rounding. Errors are measured in the Frobenius norm.
    """
    (layer,) = (narrow(part, BlockLinearLayer) for part in model.layers)
    width = layer.blocks[1]
    matrices = layer.transitions(model.embedding.weight.double())
    # A block is I - b k k^T, with a number b and a direction k of S numbers that was divided by its norm. Each
    # operation has an error of half a unit. Each of the two factors k needs squares, a sum of S terms, a root and a
    # quotient. Two products and a difference follow.
    identity = torch.eye(width)
    subtracted = (identity - matrices).abs()
    units = (width + 8) / 2 + (2 * ULPS if layer.temperature else 0)
    # Float32 computes the identity minus a zero matrix without error.
    is_identity = ~subtracted.flatten(-2).any(-1)
    rounded = UNIT * torch.linalg.matrix_norm(units * subtracted + identity / 2)
    return matrices, torch.where(is_identity, 0.0, rounded)


@torch.no_grad()
def drift_of(model: BlockLinearRNN, table: Int64[Tensor, "K V"], points: Float64[Tensor, "K D"]) -> Drift:
    """Return the drift of the model's states from the prototypes of a machine's states."""
    (layer,) = (narrow(part, BlockLinearLayer) for part in model.layers)
    matrices, rounded = (bounds[: table.shape[1]] for bounds in transition_bounds(model))
    width = layer.blocks[1]
    # A float32 matrix is within `rounded` of the exact matrix in Frobenius norm, and so also in spectral norm.
    largest = torch.linalg.matrix_norm(matrices, ord=2) + rounded
    states = points.unflatten(-1, layer.blocks)
    # `missed` is the distance of a prototype's image from the next prototype, in real numbers. `moved` is the
    # difference that a rounded matrix makes. `largest` exceeds 1 only by rounding, because exact blocks do not enlarge
    # distances.
    images = torch.einsum("vnij,knj->kvni", matrices, states)
    missed = torch.linalg.vector_norm((images - states[table]).flatten(2), dim=-1)
    moved = torch.linalg.vector_norm(rounded * torch.linalg.vector_norm(states, dim=-1)[:, None], dim=-1)
    # 1e-9 and SMALLEST cover the rounding of these float64 norms. `rounding` bounds the error of a product of two S x S
    # blocks A and B, relative to |A| |B|. Each entry of A B has an error of at most (S + 1) / 2 units of the same entry
    # of abs(A) abs(B). The norm of abs(A) abs(B) is at most S |A| |B|.
    return Drift(
        error=float((missed + moved).max()) * (1 + 1e-9) + SMALLEST,
        rounding=width * (width + 1) * UNIT / 2,
        growth=max(1.0, float(largest.max())),
        size=float(torch.linalg.vector_norm(layer.first_state.double())),
    )


def longest(drift: Drift, radius: float) -> int:
    """Return the largest length, up to `MAX_LENGTH` symbols, for which states stay within `radius` of prototypes.

    Example:
        >>> longest(Drift(error=0.001, rounding=0.0, growth=1.0, size=1.0), radius=0.1005)
        100
    """
    # Bisection is valid, because the bound on the distance never falls as the length grows.
    low, high = 0, MAX_LENGTH
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if drift.after(middle) <= radius else (low, middle - 1)
    return low


@PROVERS.register("isometries")
class IsometryProver(Prover):
    """A search for balls around prototypes, and for the number of steps after which states are still in their balls.

    If a prototype has an answer, the net must give this answer everywhere in the prototype's ball.
    """

    reader = "recurrent"

    @classmethod
    def applies_to(cls, model: RecurrentModel) -> bool:
        return type(model) is BlockLinearRNN and model.config.columns == "reflected"

    @classmethod
    def reaches(cls, model: RecurrentModel) -> Level:
        return "bounded"

    @torch.no_grad()
    def prove(self, model: BlockLinearRNN, extraction: Extraction) -> IsometryEvidence:
        check_isometric(model)
        machine = narrow(extraction.fine, Transducer)
        points, outputs = extraction.prototypes.double(), torch.tensor(machine.outputs)
        # The first state must equal its prototype bit for bit: the drift at length 0 counts as 0.
        if not torch.equal(extraction.prototypes[machine.start], model.initial_state(1)[0]):
            raise foreign_extraction(
                "expected the model's first state as the prototype of the machine's start state, got another prototype"
            )
        answered = outputs != IGNORE
        balls = Balls(model.readout, points[answered], outputs[answered])
        # Both factors leave slack for the separate checker, whose bounds are a little wider (`FREE_FRACTION`).
        radius = (1 - FREE_FRACTION) * balls.largest()
        drift = drift_of(model, torch.tensor(machine.semiautomaton.table), points)
        if not (length := longest(drift, (1 - FREE_FRACTION) * radius)):
            raise Unproved(
                f"the model's states drift {drift.after(1):.2g} from their prototypes in the first step, but a proof "
                f"allows {1 - FREE_FRACTION:.2g} times {radius:.2g}, the distance up to which the answers are certain"
            )
        self.sets = {"points": points, "radius": torch.tensor(radius, dtype=torch.float64)}
        return IsometryEvidence(
            num_prototypes=len(points),
            radius=radius,
            # If there are several answers, the margin at the largest radius is almost 0, whatever the net is. The
            # margin at the prototypes depends on the net.
            logit_margin=finite_or_none(balls.margin(0.0)),
            drift=drift.after(1),
            max_length=length,
        )


class Balls:
    """Balls around prototypes, each with the answer that must have the largest logit inside."""

    def __init__(self, readout: nn.Module, points: Float64[Tensor, "K D"], outputs: Int64[Tensor, " K"]) -> None:
        if not isinstance(readout, nn.Sequential):
            raise unlike_settings(f"expected an nn.Sequential as model.readout, got {type_in_words(readout)}")
        self.readout = readout
        self.points = points
        self.outputs = outputs

    def margin(self, radius: float) -> float:
        """Return a lower bound on the logit margin in balls of this radius around all prototypes.

        The bound is computed in the boxes that contain the balls.
        """
        # A box with this half width contains the ball, so the margin in the box is at most the margin in the ball.
        features = hidden_features(self.readout, Intervals.around(self.points, radius))
        return margin(narrow(self.readout[-1], nn.Linear), features, self.outputs)

    def largest(self) -> float:
        """Return a radius at which `margin` is positive, or 0 if the search finds no such radius.

        No radius above the largest absolute number of the prototypes is tried. The result is just below the largest
        radius with a positive margin, or just below this limit.
        """
        # At this limit, every box contains the origin, where at most one answer has the largest logit. So boxes with
        # different answers do not all have a positive margin. If all answers are equal, the margin may be positive even
        # at the limit.
        low, high = 0.0, float(self.points.abs().max())
        for _ in range(NUM_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.margin(middle) > 0 else (low, middle)
        return low


def check_isometric(model: BlockLinearRNN) -> None:
    """Reject a model for whose steps this prover has no bounds.

    Raises:
        ValueError: the model has several layers, hidden units, or other columns than `"reflected"`. A part has no
            bounds, or is not as configured. The norm of a direction or of the first state is not between 1e-6 and
            `LARGEST`.
    """
    if (model.config.columns, model.config.num_layers, model.config.hidden) != ("reflected", 1, 0):
        raise ValueError(
            "model: expected num_layers=1, columns='reflected' and hidden=0, got "
            f"num_layers={model.config.num_layers}, columns={model.config.columns!r}, hidden={model.config.hidden}; "
            "train a model with the expected settings"
        )
    kinds: set[type[nn.Module]] = {BlockLinearLayer, nn.ModuleList, nn.Sequential, nn.Identity, nn.Embedding}
    check_usual(model, kinds | set(READOUT))
    (layer,) = (narrow(part, BlockLinearLayer) for part in model.layers)
    adds_inputs = layer.holds_inputs or layer.input_map is not None
    if layer.columns != "reflected" or adds_inputs or len(layer.transition_map):
        raise unlike_settings(
            "expected columns 'reflected', no added inputs and no hidden units in the model's layer, got columns "
            f"{layer.columns!r}, {'' if adds_inputs else 'no '}added inputs and "
            f"{'' if len(layer.transition_map) else 'no '}hidden units"
        )
    if names := [type(norm).__name__ for norm in model.norms if type(norm) is not nn.Identity]:
        raise unlike_settings(f"expected only nn.Identity in model.norms, got {names[0]}")
    directions = model.embedding.weight.unflatten(-1, (layer.blocks[0], -1))[..., :-1]
    # A norm above 1e-6 is the root of a sum above 1e-12. Squares that are too small for float32 then lose far less than
    # one rounding of this sum. A sum of squares below `LARGEST` squared does not overflow.
    sizes = torch.cat([directions.norm(dim=-1).flatten(), layer.first_state.norm()[None]])
    if not bool(((sizes > 1e-6) & (sizes < LARGEST)).all()):
        raise ValueError(
            "model: expected reflection directions and a first state of norm 1e-6 to 1e15, got other norms; scale "
            "these vectors"
        )
