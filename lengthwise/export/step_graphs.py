"""ONNX graphs of a recurrent model's step and read-out, with the few operations that neural-network verifiers support.

A graph has a batch of 1, no control flow, and only the operations MatMul, Add, Sub, Mul, Div, Sqrt, ReduceMean, Split,
Concat, Tanh, Sigmoid and Relu. The graph of a step belongs to one symbol, so all numbers that depend on the symbol
alone are constants.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lengthwise.layers.recurrent_layer import Topmost
from lengthwise.models.base import RecurrentModel
from lengthwise.models.rnn import RNN
from lengthwise.models.stacked_rnn import BoundedStackedRNN
from lengthwise.models.wrapped import WrappedRNN, chain_of

OPSET, IR_VERSION = 13, 8
"""The version of ONNX's operators and the version of its file format, which most verifiers read."""

Array = np.ndarray[Any, np.dtype[np.float64]]
Value = str | Array
"""The name of a value in a graph, or a constant [1, N], which is computed in float64 while the graph is built."""


class GraphBuilder:
    """An ONNX graph under construction, with one input [1, width]; weights have the dtype of the model."""

    def __init__(self, source: str, width: int, dtype: torch.dtype) -> None:
        self.source, self.width = source, width
        self.dtype = torch.zeros((), dtype=dtype).numpy().dtype
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def constant(self, array: Any) -> str:
        """Add a constant to the graph. A float64 array gets the model's dtype, in which the weights are exact."""
        from onnx import numpy_helper

        name = f"constant_{len(self.initializers)}"
        array = np.asarray(array)
        self.initializers.append(
            numpy_helper.from_array(array.astype(self.dtype) if array.dtype == float else array, name)
        )
        return name

    def node(self, operation: str, *values: Value, num_outputs: int = 1, **attributes: Any) -> list[str]:
        """Add an operation to the graph, and return the names of its outputs."""
        from onnx import helper

        outputs = [f"{operation.lower()}_{len(self.nodes)}_{index}" for index in range(num_outputs)]
        names = [value if isinstance(value, str) else self.constant(value) for value in values]
        self.nodes.append(helper.make_node(operation, names, outputs, **attributes))
        return outputs

    def apply(self, operation: str, *values: Value, **attributes: Any) -> str:
        """Add an operation with one output to the graph, and return the output's name."""
        (output,) = self.node(operation, *values, **attributes)
        return output

    def add(self, *terms: Value) -> Value:
        """Add the sum of `terms` to the graph, and return this sum; constants are summed in advance."""
        constants = [term for term in terms if not isinstance(term, str)]
        values: list[Value] = [term for term in terms if isinstance(term, str)]
        values += [np.asarray(sum(constants))] if constants else []
        total = values[0]
        for term in values[1:]:
            total = self.apply("Add", total, term)
        return total

    def linear(self, value: Value, weight: Tensor, bias: Tensor | None) -> Value:
        """Return W x + b for the value x, the weight W and the bias b, or W x without a bias."""
        matrix = numbers(weight).T
        product = self.apply("MatMul", value, matrix) if isinstance(value, str) else value @ matrix
        return product if bias is None else self.add(product, numbers(bias)[None])

    def normed(self, value: Value, norm: nn.LayerNorm) -> Value:
        """Return the LayerNorm of a value, computed with means, products and a square root."""
        if not isinstance(value, str):
            weight, bias = (None if one is None else one.double() for one in (norm.weight, norm.bias))
            return numbers(
                nn.functional.layer_norm(torch.tensor(value), list(norm.normalized_shape), weight, bias, norm.eps)
            )
        centered = self.apply("Sub", value, self.apply("ReduceMean", value, axes=[1], keepdims=1))
        variance = self.apply("ReduceMean", self.apply("Mul", centered, centered), axes=[1], keepdims=1)
        deviation = self.apply("Sqrt", self.apply("Add", variance, np.array([[norm.eps]])))
        scaled = self.apply("Div", centered, deviation)
        if norm.weight is not None:
            scaled = self.apply("Mul", scaled, numbers(norm.weight)[None])
        return scaled if norm.bias is None else self.add(scaled, numbers(norm.bias)[None])

    def split(self, value: str, sizes: Sequence[int]) -> list[str]:
        """Split a value of the graph into parts of these sizes, and return the parts' names."""
        if len(sizes) == 1:
            return [value]
        return self.node("Split", value, self.constant(np.array(sizes)), num_outputs=len(sizes), axis=1)

    def joined(self, parts: Sequence[Value]) -> str:
        """Concatenate parts, which are values of the graph, and return the result's name."""
        return self.apply("Concat", *parts, axis=1) if len(parts) > 1 else str(parts[0])

    def finished(self, output: str, result: str, width: int) -> bytes:
        """Return the file of the graph, whose only output [1, `width`] is the value `result`."""
        from onnx import checker, helper

        # The last value is renamed, because verifiers do not read the operation Identity.
        for node in self.nodes:
            for names in (node.input, node.output):
                names[:] = [output if name == result else name for name in names]
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        first, last = (
            helper.make_tensor_value_info(name, kind, [1, size])
            for name, size in ((self.source, self.width), (output, width))
        )
        graph = helper.make_graph(self.nodes, output, [first], [last], self.initializers)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="lengthwise")
        checker.check_model(model)
        content: bytes = model.SerializeToString(deterministic=True)
        return content


def numbers(tensor: Tensor) -> Array:
    """Return the numbers of a tensor in float64."""
    array: Array = tensor.detach().double().numpy()
    return array


def step_graph(model: RecurrentModel, symbol: int) -> bytes:
    """Return the graph from ``state`` to ``next_state`` for one symbol. A state [1, Z] has Z numbers.

    Raises:
        ValueError: the model is not an `rnn`, `gru`, `lstm` or net from `wrap`.
    """
    first = model.initial_state(1)
    graph = GraphBuilder("state", first.shape[1], first.dtype)
    for kind, step in STEPS.items():
        if isinstance(model, kind):
            return graph.finished("next_state", graph.joined(step(graph, model, symbol)), first.shape[1])
    raise ValueError(
        f"model: expected an rnn, a gru, an lstm or a wrapped net, got {model.name}; choose one of these nets"
    )


def answer_graph(model: RecurrentModel) -> bytes:
    """Return the graph from ``state`` [1, Z] to ``logits`` [1, Y]; a state has Z numbers, and there are Y answers."""
    first = model.initial_state(1)
    graph = GraphBuilder("state", first.shape[1], first.dtype)
    value: Any = "state"
    for part in chain_of(model.readout):
        if isinstance(part, Topmost):
            below = graph.width - part.width
            value = graph.split("state", [below, part.width] if below else [part.width])[-1]
        elif isinstance(part, nn.Linear):
            value = graph.linear(value, part.weight, part.bias)
        elif isinstance(part, nn.LayerNorm):
            value = graph.normed(value, part)
        elif isinstance(part, nn.ReLU | nn.Tanh | nn.Sigmoid):
            value = graph.apply({nn.ReLU: "Relu", nn.Tanh: "Tanh", nn.Sigmoid: "Sigmoid"}[type(part)], value)
    with torch.no_grad():
        num_classes = model.readout(first).shape[-1]
    return graph.finished("logits", value, num_classes)


def rnn_step(graph: GraphBuilder, model: RNN, symbol: int) -> list[Value]:
    """Return the next state of Elman's network, whose input is a one-hot vector."""
    core = model.recurrence
    one_hot = np.eye(core.input_size)[[symbol]]
    return [rnn_cell(graph, core, 0, one_hot, graph.source)]


def stacked_step(graph: GraphBuilder, model: BoundedStackedRNN, symbol: int) -> list[Value]:
    """Return the next state of a `gru` or `lstm`. Each layer has a norm and a residual connection."""
    width, layers = model.config.d_model, list(model.layers)
    parts = graph.split(graph.source, [width] * (graph.width // width))
    features: Value = numbers(model.embedding.weight[symbol])[None]
    after: list[Value] = []
    for norm, layer in zip(model.norms, layers, strict=True):
        entering, core = graph.normed(features, norm), layer.cell  # type: ignore[arg-type]
        assert isinstance(core, nn.RNNBase)
        if isinstance(core, nn.LSTM):
            latest = [*lstm_cell(graph, core, 0, entering, parts.pop(0), parts.pop(0))]
        else:
            latest = [gru_cell(graph, core, 0, entering, parts.pop(0))]
        features = graph.add(features, latest[0])
        after += latest
    return [*after, features]


def wrapped_step(graph: GraphBuilder, model: WrappedRNN, symbol: int) -> list[Value]:
    """Return the next state of a net from `wrap`: the outputs of all layers; in an LSTM, all cell states come first."""
    core = model.core
    size = model.config.hidden_size
    layers = model.config.num_layers
    assert isinstance(core, nn.RNNBase)
    parts = graph.split(graph.source, [size] * (graph.width // size))
    before, hidden = parts[:-layers], parts[-layers:]
    features: Value = numbers(model.embedding.weight[symbol])[None]  # type: ignore[index]
    contents: list[Value] = []
    outputs: list[Value] = []
    for layer in range(layers):
        if isinstance(core, nn.LSTM):
            features, content = lstm_cell(graph, core, layer, features, hidden[layer], before[layer])
            contents.append(content)
        else:
            cell = gru_cell if isinstance(core, nn.GRU) else rnn_cell
            features = cell(graph, core, layer, features, hidden[layer])
        outputs.append(features)
    return [*contents, *outputs]


def rnn_cell(graph: GraphBuilder, core: nn.RNNBase, layer: int, features: Value, hidden: str) -> str:
    """Return the next state h' = f(W x + U h + b) for input x and state h, where f is the core's nonlinearity."""
    return graph.apply(str(core.nonlinearity).capitalize(), graph.add(*_terms(graph, core, layer, features, hidden, 0)))


def gru_cell(graph: GraphBuilder, core: nn.RNNBase, layer: int, features: Value, hidden: str) -> str:
    """Return h' = n + z (h - n) for r, z = sigmoid(W x + U h + b) and n = tanh(W x + b + r (U h + b)).

    The input is x, and the state is h. Each gate has its own weights W and U and biases b.
    """
    of_input, of_state = zip(*(_terms(graph, core, layer, features, hidden, gate) for gate in range(3)), strict=True)
    reset, update = (graph.apply("Sigmoid", graph.add(of_input[gate], of_state[gate])) for gate in range(2))
    new = graph.apply("Tanh", graph.add(of_input[2], graph.apply("Mul", reset, of_state[2])))
    return graph.apply("Add", new, graph.apply("Mul", update, graph.apply("Sub", hidden, new)))


def lstm_cell(
    graph: GraphBuilder, core: nn.RNNBase, layer: int, features: Value, hidden: str, content: str
) -> tuple[str, str]:
    """Return h' = o tanh(c') and c' = f c + i g for i, f, o = sigmoid(W x + U h + b) and g = tanh(W x + U h + b).

    The input is x, the hidden state is h, and the cell state is c. Each gate has its own W, U and b.
    """
    enter, forget, new, leave = (
        graph.apply("Tanh" if gate == 2 else "Sigmoid", graph.add(*_terms(graph, core, layer, features, hidden, gate)))
        for gate in range(4)
    )
    kept = graph.apply("Add", graph.apply("Mul", forget, content), graph.apply("Mul", enter, new))
    return graph.apply("Mul", leave, graph.apply("Tanh", kept)), kept


def _terms(
    graph: GraphBuilder, core: nn.RNNBase, layer: int, features: Value, hidden: str, gate: int
) -> tuple[Value, Value]:
    """Return W x + b and U h + b of one gate for input x and state h, each with its own bias b.

    Each gate has its own products, so that no graph has to split gates.
    """
    rows = slice(gate * core.hidden_size, (gate + 1) * core.hidden_size)
    of_input, of_state = (
        graph.linear(
            value,
            core.get_parameter(f"weight_{kind}_l{layer}")[rows],
            core.get_parameter(f"bias_{kind}_l{layer}")[rows] if core.bias else None,
        )
        for kind, value in (("ih", features), ("hh", hidden))
    )
    return of_input, of_state


STEPS: dict[type[RecurrentModel], Callable[[GraphBuilder, Any, int], list[Value]]] = {
    RNN: rnn_step,
    BoundedStackedRNN: stacked_step,
    WrappedRNN: wrapped_step,
}
