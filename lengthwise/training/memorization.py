"""RNNs, linear or with tanh, that learn to repeat words by gradient descent; many nets of one size train together."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.devices import one_thread

Activation = Literal["identity", "tanh"]
"""The activation of the states: `"identity"` for linear RNNs, `"tanh"` for standard RNNs."""


class Stack(NamedTuple):
    """The parameters of R nets of equal size: W_h, W_x (zeros if W_x is not learned), h_1, W_y and b_y.

    h_1 = first and h_i = W_h h_{i-1} + W_x x_i, where x_i is the symbol before the answer that is read from h_i. With
    tanh, h_i is the tanh of that sum for i >= 2.

    Source: "update on rnn memorization" (20 November 2023), its definition.
    Differs from the source: the source chooses weights, and trains nothing. Here h_1 is also learned, and standard RNNs
        have tanh.
    """

    hidden: Float[Tensor, "R d d"]
    inputs: Float[Tensor, "R d n"]
    first: Float[Tensor, "R d"]
    readout: Float[Tensor, "R n d"]
    bias: Float[Tensor, "R n"]


def draw(count: int, dimension: int, num_symbols: int, generator: torch.Generator) -> Stack:
    """Draw nets of dimension d: W_h is orthogonal (Haar), and W_x, h_1 and W_y are normal with variance 1 / d."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(count, *shape, generator=generator) / math.sqrt(dimension)

    # Q alone is not Haar-distributed, since QR fixes the signs of columns by convention; the signs of R undo that.
    q, r = torch.linalg.qr(torch.randn(count, dimension, dimension, generator=generator))
    hidden = q * r.diagonal(dim1=1, dim2=2).sign()[:, None]
    return Stack(
        hidden,
        normal(dimension, num_symbols),
        normal(dimension),
        normal(num_symbols, dimension),
        torch.zeros(count, num_symbols),
    )


def states_by_definition(hidden: Float[Tensor, "R d d"], added: Float[Tensor, "R d T"]) -> Float[Tensor, "R d T"]:
    """Compute states h_i = W_h h_{i-1} + v_i from h_0 = 0, one step after another; v_i is column i of `added`."""
    state, states = torch.zeros_like(added[:, :, 0]), []
    for v in added.unbind(2):
        state = (hidden @ state[:, :, None])[:, :, 0] + v
        states.append(state)
    return torch.stack(states, 2)


def states(hidden: Float[Tensor, "R d d"], added: Float[Tensor, "R d T"]) -> Float[Tensor, "R d T"]:
    """Compute the states of `states_by_definition` in log_2 T rounds.

    After round m, each state contains the inputs of the last 2^m steps.

    Example:
        >>> half = torch.full((1, 1, 1), 0.5)
        >>> states(half, torch.ones(1, 1, 4)).flatten().tolist()
        [1.0, 1.5, 1.75, 1.875]
    """
    power, reach = hidden, 1
    while reach < added.shape[2]:
        added = added + F.pad(power @ added[:, :, :-reach], (reach, 0))
        power, reach = power @ power, 2 * reach
    return added


def tanh_states(hidden: Float[Tensor, "R d d"], added: Float[Tensor, "R d T"]) -> Float[Tensor, "R d T"]:
    """Compute states h_1 = v_1, then h_i = tanh(W_h h_{i-1} + v_i), step by step; v_i is column i of `added`.

    Example:
        >>> tanh_states(torch.zeros(1, 1, 1), torch.tensor([[[2.0, 0.0]]])).flatten().tolist()
        [2.0, 0.0]
    """
    first, *others = added.unbind(2)
    computed = [first]
    for v in others:
        computed.append(torch.tanh((hidden @ computed[-1][:, :, None])[:, :, 0] + v))
    return torch.stack(computed, 2)


def logits(stack: Stack, letters: Int64[Tensor, "R T"], activation: Activation = "identity") -> Float[Tensor, "R T n"]:
    """Return the logits of all nets at every step, given the letters before each step."""
    one_hot = F.one_hot(letters[:, :-1], stack.inputs.shape[2]).to(stack.inputs.dtype)
    added = torch.cat([stack.first[:, :, None], stack.inputs @ one_hot.mT], 2)
    computed = (tanh_states if activation == "tanh" else states)(stack.hidden, added)
    return (stack.readout @ computed).mT + stack.bias[:, None]


class Descent(NamedTuple):
    """Training settings: Adam's steps, the initial learning rate (which falls to 0 by a cosine), and the clip norm."""

    steps: int = 2_000
    learning_rate: float = 0.02
    clip: float = 1.0


@one_thread()
def descend(
    stack: Stack,
    letters: Int64[Tensor, "R T"],
    descent: Descent,
    *,
    learns_inputs: bool,
    activation: Activation = "identity",
) -> tuple[Stack, Float[Tensor, " R"]]:
    """Train each net on its own letters by cross-entropy; return the trained nets and each net's last loss.

    Without `learns_inputs`, W_x is 0. Nets do not influence one another, because Adam works element by element, and
    gradients are clipped net by net.
    """
    start = stack if learns_inputs else stack._replace(inputs=torch.zeros_like(stack.inputs))
    parameters = [tensor.clone().requires_grad_(learns_inputs or name != "inputs") for name, tensor in _named(start)]
    learned = [parameter for parameter in parameters if parameter.requires_grad]
    optimizer = torch.optim.Adam(learned, lr=descent.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, descent.steps)
    losses = torch.zeros(len(letters))
    for _ in range(descent.steps):
        losses = _losses(logits(Stack(*parameters), letters, activation), letters)
        optimizer.zero_grad()
        # A sum keeps the nets independent: a mean would scale each gradient by the number of nets.
        losses.sum().backward()
        _clip(learned, descent.clip)
        optimizer.step()
        schedule.step()
    return Stack(*(parameter.detach() for parameter in parameters)), losses.detach()


def _named(stack: Stack) -> Sequence[tuple[str, Tensor]]:
    return list(zip(Stack._fields, stack, strict=True))


def _losses(answers: Float[Tensor, "R T n"], letters: Int64[Tensor, "R T"]) -> Float[Tensor, " R"]:
    return F.cross_entropy(answers.mT, letters, reduction="none").mean(1)


@torch.no_grad()
def _clip(parameters: Sequence[Tensor], maximum: float) -> None:
    """Clip the gradient norm of each net at `maximum`, and drop the gradient of a net that overflows."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients]).norm(dim=0)
    scales = torch.where(norms.isfinite(), (maximum / norms).clamp(max=1.0), 0.0)
    for gradient in gradients:
        # One net that overflows must not stop the other nets, which train in the same tensors.
        gradient.nan_to_num_(0.0, 0.0, 0.0).mul_(scales.view(-1, *[1] * (gradient.ndim - 1)))


@torch.no_grad()
def generate(stack: Stack, count: int, activation: Activation = "identity") -> Int64[Tensor, "R T"]:
    """Return the first `count` symbols that each net answers when it reads its own answers."""
    state, symbols = stack.first, []
    for _ in range(count):
        letter = ((stack.readout @ state[:, :, None])[:, :, 0] + stack.bias).argmax(1)
        symbols.append(letter)
        state = (stack.hidden @ state[:, :, None])[:, :, 0] + stack.inputs.gather(
            2, letter[:, None, None].expand(-1, stack.inputs.shape[1], 1)
        )[:, :, 0]
        state = torch.tanh(state) if activation == "tanh" else state
    return torch.stack(symbols, 1)
