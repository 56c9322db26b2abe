"""Generators as torch modules: the linear RNN itself, and standard RNNs with a ReLU or tanh between states."""

from typing import Literal

import numpy as np
import torch

from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.models.linear_rnn_generator import LinearRNNGenerator, LinearRNNGeneratorConfig
from lengthwise.models.rnn import RNN, RNNConfig
from lengthwise.validation import check_kind

SCALE = 2.0**-20
"""The scale of the states of tanh networks; tanh is then the identity up to a relative error of SCALE^2 / 3."""


def as_linear_rnn(generator: LinearGenerator, dtype: torch.dtype = torch.float64) -> LinearRNNGenerator:
    """Return a real generator of dimension 1 or more as a model with the same weights.

    The model's start symbol leads from h_0 = 0 to the first state, h_1. Weights are rounded to `dtype`. If the
    generator needs numbers with more digits, as `digits` does for long words, the model generates a different word.

    Raises:
        ValueError: the generator has complex numbers, dimension 0, or numbers that float64 cannot represent.

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
    """Return a standard RNN, h_i = f(W_h h_{i-1} + W_x x_i + b_h), with the generator's output and dimension.

    *ReLU* is the identity on positive numbers. A shift c makes the first `count` states positive. The shifted state
    h' = h + c satisfies h'_i = W_h h'_{i-1} + W_x x_i + (c - W_h c). The only new parameter is the bias b_h, and b_y
    becomes b_y - W_y c.

    *tanh* is the identity near 0, up to a relative error of x^2 / 3. So states and W_x are scaled by 2^-20, and W_y by
    2^20. Each step shrinks the state by about 3e-13 of its size, so the output is correct for a long time, but not
    indefinitely.

    Every x_i is one-hot, so b_h is added to all columns of W_x. A softmax after the logits would change no argmax.

    Example:
        >>> from lengthwise.constructions.memorization.closed_form import rotation
        >>> from lengthwise.models.linear_rnn_generator import generate_by_definition
        >>> generate_by_definition(as_elman(rotation(2, 1), "relu", 3), 6).tolist()
        [0, 0, 1, 0, 0, 1]

    Source: "update on rnn memorization": "small modifications of our approach allow it to work for the standard RNN".
    Differs from the source: the source gives no details.
    """
    _check(generator)
    n, d = len(generator.symbols), generator.dimension
    model = RNN(RNNConfig(d_model=d, activation=activation), vocab_size=n + 1, num_classes=n).double()
    inputs = np.zeros((d, n)) if generator.inputs is None else generator.inputs.astype(float)
    scale, shift = (SCALE, np.zeros(d)) if activation == "tanh" else (1.0, _shift(generator, count))
    between = shift - generator.hidden @ shift
    first = np.asarray(scale * generator.first + shift, np.float64)
    # START's column becomes h_1 only after the activation.
    start = np.arctanh(first) if activation == "tanh" else first
    _write(model.hidden_weight, generator.hidden)
    _write(model.input_weight, np.concatenate([scale * inputs + between[:, None], start[:, None]], 1))
    _write(model.first_state, np.zeros(d))
    _write(model.readout.weight, generator.readout / scale)
    _write(model.readout.bias, generator.bias - generator.readout @ shift / scale)
    return model


def _shift(generator: LinearGenerator, count: int) -> np.ndarray:
    """Return a vector whose sum with each of the first `count` states is positive in every coordinate."""
    if generator.inputs is None:
        states = generator.states(count)
    else:
        letters = [generator.symbols.index(symbol) for symbol in generator.generate(count)]
        trajectory = [generator.first]
        for letter in letters[:-1]:
            trajectory.append(generator.hidden @ trajectory[-1] + generator.inputs[:, letter])
        states = np.stack(trajectory)
    shift: np.ndarray = 1.0 - np.minimum(states.min(0), 0)
    return shift


def _check(generator: LinearGenerator) -> None:
    check_kind("generator", generator, LinearGenerator, "a LinearGenerator")
    if not generator.dimension:
        raise ValueError(
            "generator: expected at least one dimension, got 0; give the generator of a word with at least two "
            "different symbols"
        )
    if np.iscomplexobj(generator.hidden):
        raise ValueError(
            "generator: expected real numbers, got complex numbers; give a real generator, such as one from rotation "
            "or memorize"
        )


@torch.no_grad()
def _write(parameter: torch.Tensor, numbers: np.ndarray) -> None:
    try:
        rounded = np.asarray(numbers, np.float64)
    except OverflowError:
        raise ValueError(
            "generator: expected numbers that float64 can represent, got larger numbers; call generator.generate "
            "instead"
        ) from None
    parameter.copy_(torch.from_numpy(rounded))
