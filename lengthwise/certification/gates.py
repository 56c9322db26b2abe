"""Errors of the gates and sums inside torch's recurrent layers, which have their own kernels.

Weights are set so that each number of the state is one function of one argument. The argument enters through one gate,
or is the state itself. Biases far from zero open or close the other gates that could change the result.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from lengthwise.certification.sweeps import Array, MeasuredError, cancelling_products, error, points, sigmoid, wide
from lengthwise.ops.intervals import ULPS

Kind = Literal["LSTM", "GRU", "RNN"]
CLOSED_BIAS, OPEN_BIAS = -200.0, 200.0
"""The biases that bring a gate's output close to 0 (a closed gate) and to 1 (an open gate)."""

SMALL_SCALE = 2.0**-12
"""A scale so small that tanh hardly changes the relative error of an argument of this size."""

UNITS_PER_GATE = 13
"""The number of state units that are used to measure each gate.

This number is not a multiple of the number of entries in a CPU's vector register. So kernels also process a remainder.
"""


@dataclass(frozen=True)
class Gate:
    """One function inside a recurrent cell, and the settings with which the cell's output shows the function's result.

    `index` is the number of the gate that the function's argument enters (see `GATES`); None if the argument is the
    cell's state. `biases` maps the numbers of other gates to their biases. `state` is the state before the step. If
    `is_cell_state` is True, the result is the cell state of an LSTM, not its output. `factor` is the number that a
    reset gate multiplies before a tanh, or None.
    """

    function: Literal["sigmoid", "tanh"]
    index: int | None
    biases: Mapping[int, float]
    state: float = 0.0
    is_cell_state: bool = False
    factor: float | None = None


GATES: Mapping[Kind, tuple[Gate, ...]] = MappingProxyType(
    {
        "LSTM": (
            Gate("sigmoid", 0, {1: CLOSED_BIAS, 2: OPEN_BIAS}, is_cell_state=True),
            Gate("sigmoid", 1, {0: CLOSED_BIAS}, state=1.0, is_cell_state=True),
            Gate("tanh", 2, {0: OPEN_BIAS, 1: CLOSED_BIAS}, is_cell_state=True),
            Gate("sigmoid", 3, {0: CLOSED_BIAS, 1: OPEN_BIAS}, state=100.0),
            Gate("tanh", None, {0: CLOSED_BIAS, 1: OPEN_BIAS, 3: OPEN_BIAS}),
        ),
        "GRU": (
            Gate("sigmoid", 0, {1: CLOSED_BIAS}, factor=SMALL_SCALE),
            Gate("sigmoid", 1, {}, state=1.0),
            Gate("tanh", 2, {0: OPEN_BIAS, 1: CLOSED_BIAS}),
        ),
        "RNN": (Gate("tanh", 0, {}),),
    }
)
"""The measured functions inside each kind of cell.

Gates are numbered in the order of torch's weights: input, forget, cell and output in an LSTM, and reset, update and new
in a GRU.
"""

SHAPES = ((64, 1), (64, 3), (1, 1))
"""The measured pairs of batch size and length. One step, a sequence and a single string have different kernels."""


def empty_cell(kind: Kind, width: int, dtype: torch.dtype) -> nn.RNNBase:
    """Return a torch layer whose weights are 0; torch's global generator stays as it is."""
    kinds: dict[Kind, Callable[..., nn.RNNBase]] = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}
    # The cell's constructor draws weights, which must not change the numbers that a caller draws next.
    with torch.random.fork_rng(devices=[]):
        cell = kinds[kind](width, width, batch_first=True, dtype=dtype)
    for parameter in cell.requires_grad_(False).parameters():
        parameter.zero_()
    return cell.eval()


def gate_errors(kind: Kind, function: str, dtype: torch.dtype) -> Iterator[MeasuredError]:
    """Yield the errors of `function` ("sigmoid" or "tanh") in all gates of a cell that compute this function."""
    gates = [gate for gate in GATES[kind] if gate.function == function]
    width = UNITS_PER_GATE * len(gates)
    cell = empty_cell(kind, width, dtype)
    slices = [slice(start, start + UNITS_PER_GATE) for start in range(0, width, UNITS_PER_GATE)]
    for gate, part in zip(gates, slices, strict=True):
        _pass_through(cell, gate, part)
    numbers = points(104.0 if function == "sigmoid" else 20.0, dtype)
    exact = sigmoid if function == "sigmoid" else np.tanh
    for batch, length in SHAPES:
        size = batch * width
        # A call with a single string measures only a few points. To save time, only eight such calls are made.
        for chunk in numbers[: 8 * size if batch == 1 else None].split(size):
            arguments = torch.cat([chunk, chunk.new_zeros(size - len(chunk))]).view(batch, width)
            results = _results(cell, gates, slices, arguments, length)
            for gate, result, part in zip(gates, results, slices, strict=True):
                right: Array = exact(wide(arguments[:, part]))
                right = right if gate.factor is None else np.tanh(gate.factor * right)
                yield MeasuredError(error(result, right, np.abs(right)), ULPS)


def _pass_through(cell: nn.RNNBase, gate: Gate, part: slice) -> None:
    """Set the weights so that a part of the state is the result of a gate."""
    width = cell.hidden_size
    numbers = torch.arange(width)[part]
    weight, bias = cell.get_parameter("weight_ih_l0"), cell.get_parameter("bias_ih_l0")
    if gate.index is not None:
        weight[gate.index * width + numbers, numbers] = 1.0
    for index, value in gate.biases.items():
        bias[index * width + numbers] = value
    if gate.factor is not None:
        cell.get_parameter("bias_hh_l0")[2 * width + numbers] = gate.factor


def _results(
    cell: nn.RNNBase, gates: list[Gate], slices: list[slice], numbers: Tensor, length: int
) -> Iterator[Tensor]:
    """Yield each gate's results at the last step for arguments [B, D]: D numbers for each of B strings.

    If there are earlier steps, their inputs are large numbers, which open the gates.
    """
    state = torch.empty_like(numbers)
    for gate, part in zip(gates, slices, strict=True):
        state[:, part] = numbers[:, part] if gate.index is None else gate.state
    inputs = numbers[:, None].repeat(1, length, 1)
    inputs[:, :-1] = OPEN_BIAS
    if isinstance(cell, nn.LSTM):
        outputs, (_, cell_state) = cell(inputs, (torch.zeros_like(state)[None], state[None]))
    else:
        outputs, _ = cell(inputs, state[None])
        cell_state = outputs.mT
    for gate, part in zip(gates, slices, strict=True):
        yield (cell_state[0] if gate.is_cell_state else outputs[:, -1])[:, part]


def sum_errors(kind: Kind, dtype: torch.dtype) -> Iterator[MeasuredError]:
    """Yield the errors of the sums W x + b + U h, for an input x and a state h of a cell.

    The cell returns tanh of each sum. The sums are so small that tanh adds little to the error.
    """
    gate = next(gate for gate in GATES[kind] if gate.function == "tanh")
    assert gate.index is not None
    for width in (8, 33):
        cell = empty_cell(kind, width, dtype)
        _pass_through(cell, gate, slice(width))
        products = cancelling_products(8, width, 2 * width, dtype).scaled(SMALL_SCALE)
        rows = slice(gate.index * width, (gate.index + 1) * width)
        for name, matrix in zip(("weight_ih_l0", "weight_hh_l0"), products.rows.split(width, 1), strict=True):
            cell.get_parameter(name)[rows] = matrix
        cell.get_parameter("bias_ih_l0")[rows] = products.bias
        inputs, hidden = products.vectors.split(width, 1)
        states = (hidden[None], torch.zeros_like(hidden)[None]) if kind == "LSTM" else hidden[None]
        outputs, after = cell(inputs[:, None], states)
        result = after[1][0] if gate.is_cell_state else outputs[:, 0]
        yield MeasuredError(error(result, np.tanh(products.sums), products.sizes), products.assumed)
