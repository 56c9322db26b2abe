"""Generators as torch modules: the linear RNN itself, and standard RNNs with a function between states."""

from typing import Literal

import numpy as np
import torch

from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.models.linear_rnn_generator import LinearRNNGenerator, LinearRNNGeneratorConfig
from lengthwise.models.rnn import RNN, RNNConfig

SMALL = 2.0**-20
"""States of tanh networks are so small that tanh is the identity up to a third of the square of this."""


def as_linear_rnn(generator: LinearGenerator, dtype: torch.dtype = torch.float64) -> LinearRNNGenerator:
    """The model with these weights, its START leading from h_0 = 0 to h_1; real generators of d >= 1 only.

    Example:
        >>> from lengthwise.constructions.memorization.closed_form import rotation
        >>> as_linear_rnn(rotation(2, 1), torch.bfloat16).generate(6).tolist()
        [0, 0, 1, 0, 0, 1]
    """
    _check(generator)
    n = len(generator.symbols)
    model = LinearRNNGenerator(
        LinearRNNGeneratorConfig(d_model=generator.dimension), vocab_size=n + 1, num_classes=n
    ).to(dtype)
    inputs = np.zeros((generator.dimension, n)) if generator.inputs is None else generator.inputs
    _write(model.hidden_weight, generator.hidden)
    _write(model.input_weight, np.concatenate([inputs, generator.first[:, None]], 1))
    _write(model.readout.weight, generator.readout)
    _write(model.readout.bias, generator.bias)
    return model


def as_elman(generator: LinearGenerator, activation: Literal["relu", "tanh"], count: int) -> RNN:
    """A standard RNN, h_i = f(W_h h_{i-1} + W_x x_i + b_h), that says the same in as many dimensions.

    *ReLU* is the identity on positive numbers. With c beyond all that the first `count` states hold, h' = h + c is
    positive and h'_i = W_h h'_{i-1} + W_x x_i + (c - W_h c): a bias b_h is all that is new, and b_y becomes
    b_y - W_y c.
    *tanh* is the identity near 0, up to a share x^2 / 3: states and W_x are scaled by e = 2^-20 and W_y by 1 / e. A
    state loses 3e-13 of its size in a step, so that this one is right for a long time, not indefinitely.
    Every x_i is one-hot, so that b_h stands in all columns of W_x. A softmax changes no argmax.

    Example:
        >>> from lengthwise.constructions.memorization.closed_form import rotation
        >>> from lengthwise.models.linear_rnn_generator import generate_by_definition
        >>> generate_by_definition(as_elman(rotation(2, 1), "relu", 3), 6).tolist()
        [0, 0, 1, 0, 0, 1]

    Source: "update on rnn memorization": "small modifications of our approach allow it to work for the standard RNN".
    Differs from the source: which says no more than that.
    """
    _check(generator)
    n, d = len(generator.symbols), generator.dimension
    model = RNN(RNNConfig(d_model=d, activation=activation), vocab_size=n + 1, num_classes=n).double()
    inputs = np.zeros((d, n)) if generator.inputs is None else generator.inputs.astype(float)
    scale, shift = (SMALL, np.zeros(d)) if activation == "tanh" else (1.0, _beyond(generator, count))
    between = shift - generator.hidden @ shift
    first = scale * generator.first + shift
    start = np.arctanh(first) if activation == "tanh" else first
    _write(model.hidden_weight, generator.hidden)
    _write(model.input_weight, np.concatenate([scale * inputs + between[:, None], start[:, None]], 1))
    _write(model.first_state, np.zeros(d))
    _write(model.readout.weight, generator.readout / scale)
    _write(model.readout.bias, generator.bias - generator.readout @ shift / scale)
    return model


def _beyond(generator: LinearGenerator, count: int) -> np.ndarray:
    """Numbers by which all of these states become positive."""
    if generator.inputs is None:
        states = generator.states(count)
    else:
        said = [generator.symbols.index(symbol) for symbol in generator.generate(count)]
        followed = [generator.first]
        for letter in said[:-1]:
            followed.append(generator.hidden @ followed[-1] + generator.inputs[:, letter])
        states = np.stack(followed)
    shift: np.ndarray = 1.0 - np.minimum(states.min(0), 0)
    return shift


def _check(generator: LinearGenerator) -> None:
    if not generator.dimension:
        raise ValueError("generator: expected at least one dimension, got 0; a bias alone repeats one symbol")
    if np.iscomplexobj(generator.hidden):
        raise ValueError("generator: expected real numbers, got complex ones; take the rotation of the plane")


@torch.no_grad()
def _write(parameter: torch.Tensor, numbers: np.ndarray) -> None:
    parameter.copy_(torch.from_numpy(np.asarray(numbers, np.float64)))
