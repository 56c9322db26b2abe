r"""A looped transformer as exact weights, evaluated in rationals or in float64.

A block is X' = X + Attn(X), then X' + FF(X'), without normalization, on T tokens, which are rows of D numbers:

    Attn(X) = sum_h softmax((X Q_h^T) (X K_h^T)^T / temperature) (X V_h^T) O_h^T
    FF(X) = ReLU(X W_1^T + b_1) W_2^T + b_2

The sum is over the attention heads h. A looped transformer applies an affine map to every token, one block R times, and
another affine map. With `scales` eta, loop t has eta_t * FF(X') instead of FF(X').

`evaluate_exactly` computes in Python's integers and fractions, with a softmax of temperature 0, which gives equal
weight to the largest scores and no weight to other scores. `evaluate` computes in float64, with an ordinary softmax. It
rejects weights whose float64 sums would not be exact.

Source: Xu and Sato (2024), eq. (1) to (6), and section 4.1 for the scales.
Differs from the source: tokens are rows, not columns; the temperature is an argument instead of part of the weights.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from lengthwise.ops.shapes import check_tensors
from lengthwise.validation import check_kind

Number = int | Fraction

FLOAT_BITS = 52
"""The largest size of a weight, in bits. If a 1 is added to a larger weight, float64 may round the 1 away."""


class Affine(NamedTuple):
    """The map x -> x W^T + b on every token; numbers are integers and fractions, in arrays of dtype object."""

    weight: Shaped[np.ndarray, "Y X"]
    bias: Shaped[np.ndarray, " Y"]


class Head(NamedTuple):
    """An attention head of size S: the matrices Q (`query`), K (`key`), V (`value`) and O (`output`)."""

    query: Shaped[np.ndarray, "S D"]
    key: Shaped[np.ndarray, "S D"]
    value: Shaped[np.ndarray, "S D"]
    output: Shaped[np.ndarray, "D S"]


class LoopedBlock(NamedTuple):
    """The block that is looped: attention heads (possibly none), and a feed-forward layer with maps `up` and `down`."""

    heads: tuple[Head, ...]
    up: Affine
    down: Affine


class LoopedNetwork(NamedTuple):
    """The network that computes ``read_out(block^num_loops(read_in(x)))``.

    `scales` contains the factor eta_t of every loop t, or is None if all factors are 1.
    """

    read_in: Affine
    block: LoopedBlock
    read_out: Affine
    num_loops: int
    scales: Shaped[np.ndarray, "R D"] | None = None


class Sizes(NamedTuple):
    """The size of a network. `num_weights` counts the weights of the block, which all loops share."""

    state_dim: int
    num_heads: int
    head_dim: int
    width: int
    num_loops: int
    num_weights: int


def sizes_of(network: LoopedNetwork) -> Sizes:
    """Return the sizes of a network; `width` counts the hidden units of the feed-forward layer."""
    heads, up, down = network.block
    width, state_dim = up.weight.shape
    arrays = [array for layer in (*heads, up, down) for array in layer]
    head_dim = len(heads[0].query) if heads else 0
    return Sizes(state_dim, len(heads), head_dim, width, network.num_loops, sum(array.size for array in arrays))


def evaluate_exactly(
    network: LoopedNetwork, inputs: Shaped[np.ndarray, "B T X"] | Sequence[Any]
) -> Shaped[np.ndarray, "B T Y"]:
    """Return the outputs for B sequences of T tokens, in integers and fractions; a float counts as its exact fraction.

    Raises:
        ValueError: the inputs do not have shape [B, T, X] with T of at least 1.

    Example:
        >>> from lengthwise.constructions.looped import quantizer
        >>> evaluate_exactly(quantizer(num_bins=4), [[[0], [Fraction(1, 4)], [Fraction(2, 3)], [1]]]).tolist()
        [[[0], [1], [2], [3]]]
    """
    given = np.asarray(inputs, dtype=object)
    _check_inputs(network, given.shape)
    numbers = _exact(given)
    heads, up, down = network.block
    layers = [tuple(_Sparse(matrix) for matrix in head) for head in heads]
    state = _Sparse(*network.read_in)(numbers)
    # ReLU and attention of temperature 0 are homogeneous: scaling states and biases makes most of them integers.
    scale = math.lcm(*(number.denominator for number in state.flat))
    state = _simple(state * scale)
    up_rows, down_rows = (_Sparse(weight, bias * scale) for weight, bias in (up, down))
    for loop in range(network.num_loops):
        state = state + sum(_attention(state, layer) for layer in layers)
        change = down_rows(np.maximum(up_rows(state), 0))
        state = _simple(state + (change if network.scales is None else change * network.scales[loop]))
    outputs: np.ndarray = _simple(_Sparse(*network.read_out)(state * Fraction(1, scale)))
    return outputs


@torch.no_grad()
def evaluate(
    network: LoopedNetwork, inputs: Float[Tensor, "B T X"], temperature: float = 1e-3
) -> Float[Tensor, "B T Y"]:
    """Return the outputs in float64, with softmax at a temperature far below the differences of scores.

    At the default temperature, scores that differ by 1 give softmax weights of exactly 1 and 0.

    Raises:
        ValueError: the inputs have the wrong shape or dtype, the temperature is not a positive number, or a weight of
            the block or of `read_in` is not an integer of at most 2^52 over a power of 2.

    Example:
        >>> from lengthwise.constructions.looped import quantizer
        >>> points = torch.tensor([0.0, 0.25, 0.66, 1.0], dtype=torch.float64)
        >>> evaluate(quantizer(num_bins=4), points[None, :, None]).flatten().tolist()
        [0.0, 1.0, 2.0, 3.0]
    """
    check_tensors(inputs=inputs)
    _check_inputs(network, tuple(inputs.shape))
    if inputs.dtype != torch.float64:
        raise ValueError(f"inputs: expected float64, got {inputs.dtype}; call .double()")
    if not 0 < temperature < float("inf"):
        raise ValueError(
            f"temperature: expected a positive number, got {temperature}; for temperature 0, call evaluate_exactly"
        )
    heads, (up, up_bias), (down, down_bias) = network.block
    for array in (up, up_bias, down, down_bias, network.read_in.weight, network.read_in.bias):
        _check_exact(array)
    layers = [tuple(_float(matrix) for matrix in head) for head in heads]
    w_1, b_1, w_2, b_2 = (_float(array) for array in (up, up_bias, down, down_bias))
    scales = None if network.scales is None else _float(network.scales)
    state = inputs @ _float(network.read_in.weight).T + _float(network.read_in.bias)
    for loop in range(network.num_loops):
        state = state + sum(_soft_attention(state, layer, temperature) for layer in layers)
        change = torch.relu(state @ w_1.T + b_1) @ w_2.T + b_2
        state = state + (change if scales is None else change * scales[loop])
    return state @ _float(network.read_out.weight).T + _float(network.read_out.bias)


def _soft_attention(state: Tensor, head: Sequence[Tensor], temperature: float) -> Tensor:
    query, key, value, output = head
    scores = (state @ query.T) @ (state @ key.T).mT
    return torch.softmax(scores / temperature, -1) @ (state @ value.T) @ output.T


class _Sparse:
    """An affine map of NumPy object arrays, which skips the zeros in its weight matrix; most weights are zeros."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        constants = [0] * len(weight) if bias is None else list(bias)
        self.rows = [
            (constant, [(j, row[j]) for j in np.flatnonzero(row)])
            for row, constant in zip(weight, constants, strict=True)
        ]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        outputs = np.empty((*x.shape[:-1], len(self.rows)), dtype=object)
        columns = list(np.moveaxis(x, -1, 0))
        for i, (constant, terms) in enumerate(self.rows):
            summands = [columns[j] if weight == 1 else weight * columns[j] for j, weight in terms]
            outputs[..., i] = reduce(add, [*summands, constant] if constant or not summands else summands)
        return outputs


def _attention(state: np.ndarray, head: Sequence[_Sparse]) -> np.ndarray:
    """Return the result of attention at temperature 0: the mean of the values that have the largest score."""
    query, key, value, output = head
    scores = (query(state)[..., :, None, :] * key(state)[..., None, :, :]).sum(-1)
    chosen = (scores == scores.max(-1, keepdims=True)).astype(object) * 1
    total = (chosen[..., None] * value(state)[..., None, :, :]).sum(-2)
    return output(_quotient(total, chosen.sum(-1, keepdims=True)))


def _exact_number(number: Any) -> Number:
    exact = number if isinstance(number, int | Fraction) else Fraction(number)
    return exact.numerator if exact.denominator == 1 else exact


_exact = np.frompyfunc(_exact_number, 1, 1)
_quotient = np.frompyfunc(lambda total, count: Fraction(total, count) if total % count else total // count, 2, 1)
_simple = np.frompyfunc(lambda number: number.numerator if number.denominator == 1 else number, 1, 1)


def _float(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array.astype(np.float64))


def _check_inputs(network: LoopedNetwork, shape: tuple[int, ...]) -> None:
    check_kind("network", network, LoopedNetwork, "a LoopedNetwork")
    expected = network.read_in.weight.shape[1]
    if len(shape) != 3 or not shape[1] or shape[2] != expected:
        raise ValueError(
            f"inputs: expected shape [B, T, {expected}] with T of at least 1, got {list(shape)}; give each token as a "
            "row"
        )


def _check_exact(array: np.ndarray) -> None:
    for number in array.flat:
        exact = Fraction(number)
        # Only fractions over a power of two are float64 numbers.
        if abs(exact.numerator) > 2**FLOAT_BITS or exact.denominator.bit_count() != 1:
            raise ValueError(
                f"network: expected weights that are integers up to 2^{FLOAT_BITS} over a power of 2, got a weight "
                f"with {exact.numerator.bit_length()} bits in the numerator and {exact.denominator.bit_length()} in "
                "the denominator; use evaluate_exactly"
            )
