"""The contract of layers in a stacked recurrent network, and the gate that state-space layers share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.layers.initialization import draw_linears
from lengthwise.ops.answer_likelihood import MIN_PROBABILITY
from lengthwise.ops.intervals import Intervals
from lengthwise.ops.shapes import check_shape, check_tensors
from lengthwise.validation import check_kind, check_sizes

Features = Float[Tensor, "B T D"]
"""The features that a layer reads or returns: D numbers at each position of each string."""

State = Float[Tensor, "B Z"]
"""The state of a layer: Z numbers for each string."""

Table = Float[Tensor, "R D"]
Rows = Int64[Tensor, "B T"]
"""The row of a `Table` of features at each position of each string."""


class RecurrentLayer(nn.Module, ABC):
    """A map from the features of some positions, and the state before them, to outputs and the state after them.

    A state is `state_size` real numbers for each string, with complex numbers as pairs. A layer must return the same
    results for several positions at once as for one position after another. If a layer sets `d_model`, the width D of
    its features, calls refuse features of another width.
    """

    state_size: int
    d_model: int

    def __call__(self, features: Features, state: State) -> tuple[Features, State]:
        """Return the results of `forward`, after a check of the shapes of its arguments."""
        if not torch.compiler.is_exporting():  # in an export, sizes may be symbols instead of numbers
            self._check(features, state)
        results: tuple[Features, State] = super().__call__(features, state)
        return results

    def _check(self, features: Features, state: State) -> None:
        check_tensors(features=features, state=state)
        width = getattr(self, "d_model", "D")
        if features.ndim != 3 or not features.shape[1] or width not in ("D", features.shape[2]):
            raise ValueError(
                f"features: expected shape [B, T, {width}] with T of at least 1, got {list(features.shape)}; give the "
                "features of each string and position"
            )
        a_state = "give one state for each string, as from initial_state"
        check_shape("state", state, (len(features), self.state_size), a_state)

    @abstractmethod
    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again."""

    def initial_state(self, like: Float[Tensor, "B D"]) -> Float[Tensor, "B Z"]:
        """Return the state before the first symbol for each string in `like`; by default, states are zeros."""
        return like.new_zeros(len(like), self.state_size)

    @abstractmethod
    def forward(self, features: Features, state: State) -> tuple[Features, State]: ...


class TabledLayer(RecurrentLayer):
    """A recurrent layer that computes parts of a step, such as transitions, only from the features at its position.

    The lowest layer of a net computes these parts once for each symbol, not at each position. For this, a `table` has a
    row of features for each symbol or position, and `rows` contains the row of each position.
    """

    @abstractmethod
    def through_rows(self, table: Table, rows: Rows, state: State) -> tuple[Features, State]:
        """Return ``forward(table[rows], state)``."""

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        num_rows = features.shape[0] * features.shape[1]
        rows = torch.arange(num_rows, device=features.device).view(features.shape[:2])
        return self.through_rows(features.flatten(0, 1), rows, state)


def at_rows(tensors: Sequence[Float[Tensor, "R *_"]], rows: Int64[Tensor, "B T"]) -> list[Float[Tensor, "B T *_"]]:
    """Return, from each table, the row of every position; one joint look-up is faster than one for each table."""
    looked_up = F.embedding(rows, torch.cat([tensor.flatten(1) for tensor in tensors], 1))
    parts = looked_up.split([tensor[0].numel() for tensor in tensors], -1)
    return [part.unflatten(-1, tensor.shape[1:]) for part, tensor in zip(parts, tensors, strict=True)]


class BoundedLayer(RecurrentLayer):
    """A recurrent layer that can compute bounds on its outputs and next state from intervals of features and state."""

    @abstractmethod
    def bounds(self, features: Intervals, state: Intervals) -> tuple[Intervals, Intervals]:
        """Return intervals that contain the outputs [*N, D] and the states [*N, Z] after one step."""


class Gated(RecurrentLayer):
    """A recurrent layer, then a GELU, a linear map to halves a and b of width D each, and the gate a * sigmoid(b).

    Source: the code published with Gu et al., "Efficiently modeling long sequences with structured state spaces" (ICLR
        2022).
    Differs from the source: it has no dropout.
    """

    def __init__(self, layer: RecurrentLayer, *, d_model: int) -> None:
        super().__init__()
        check_kind("layer", layer, RecurrentLayer, "a recurrent layer")
        check_sizes(d_model=d_model)
        self.d_model = d_model
        self.layer = layer
        self.widen = nn.Linear(d_model, 2 * d_model)
        self.state_size = layer.state_size

    def reset_parameters(self, generator: torch.Generator) -> None:
        self.layer.reset_parameters(generator)
        draw_linears(self.widen, generator)

    def initial_state(self, like: Float[Tensor, "B D"]) -> Float[Tensor, "B Z"]:
        return self.layer.initial_state(like)

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        outputs, state = self.layer(features, state)
        return F.glu(self.widen(F.gelu(outputs)), -1), state


class Topmost(nn.Module):
    """A module that returns the last `width` numbers of a state, which belong to the topmost layer.

    With `copies`, it returns a copy, because a user's in-place module, such as `nn.ReLU(inplace=True)`, may write into
    the result.
    """

    def __init__(self, width: int, *, copies: bool = False) -> None:
        super().__init__()
        check_sizes(width=width)
        self.width, self.copies = width, copies

    def forward(self, states: Float[Tensor, "*M _"]) -> Float[Tensor, "*M D"]:
        topmost = states[..., -self.width :]
        return topmost.clone() if self.copies else topmost


def hidden_layer_readout(width: int, hidden: int, num_classes: int) -> nn.Sequential:
    """Return a read-out of the topmost `width` numbers of a state: a norm and a hidden layer with ReLU."""
    check_sizes(width=width, hidden=hidden, num_classes=num_classes)
    return nn.Sequential(
        Topmost(width), nn.LayerNorm(width), nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, num_classes)
    )


def as_complex(pairs: Float[Tensor, "*M 2"]) -> Tensor:
    """Return complex numbers from pairs of real numbers.

    Complex parameters are stored as pairs, because `Module.double` skips complex parameters.
    """
    return torch.view_as_complex(pairs)


def packed(state: Tensor) -> Float[Tensor, "B Z"]:
    """Return a state of complex numbers as real numbers, a pair of real part and imaginary part for each number."""
    return torch.view_as_real(state).flatten(1)


def unpacked(state: Float[Tensor, "B Z"], *shape: int) -> Tensor:
    """Return the complex numbers of a `packed` state, as [B, *shape]."""
    # The state may be a slice of a larger state, and then it is not contiguous.
    return torch.view_as_complex(state.contiguous().reshape(-1, *shape, 2))


class MixtureReadout(nn.Module):
    """A read-out log p(y) with p(y) = sum_s x_s q_s(y), for a distribution x over states.

    Each state s has a distribution q_s = softmax(w_s) over answers. An answer is nearly certain only if nearly all of x
    lies in states that are nearly certain of this answer. So a net cannot spread an answer over several entries of x.
    Training thus makes each entry of x the probability of a state of a machine. Probabilities below 1e-30 count as
    1e-30.

    Source: Bengio and Frasconi (1995), An Input Output HMM Architecture. This read-out gives the outputs of that model,
        and stochastic columns of `BlockLinearLayer` give its transitions.
    Differs from the source: distributions of answers depend only on the state, and gradient descent can also train the
        parameters.
    """

    def __init__(self, num_states: int, num_classes: int) -> None:
        super().__init__()
        check_sizes(num_states=num_states, num_classes=num_classes)
        self.weight = nn.Parameter(torch.empty(num_states, num_classes))

    def reset_parameters(self, generator: torch.Generator, *, alignment: float = 0.0) -> None:
        """Draw logits from N(0, 1); in each state s, add `alignment` to the logit of class s mod Y, for Y classes."""
        nn.init.normal_(self.weight, generator=generator)
        if alignment:
            states = torch.arange(len(self.weight))
            with torch.no_grad():
                self.weight[states, states % self.weight.shape[1]] += alignment

    def forward(self, states: Float[Tensor, "*M D"]) -> Float[Tensor, "*M Y"]:
        return (states @ self.weight.softmax(-1)).clamp(min=MIN_PROBABILITY).log()
