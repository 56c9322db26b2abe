"""ONNX, which many runtimes run: one step of a recurrent model, or a loop of steps over whole strings."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lengthwise.export.agreement import agreement
from lengthwise.export.base import EXPORTS, Export, Options
from lengthwise.export.facts import graph_facts
from lengthwise.export.graphs import Graph, default_form, quiet, trace
from lengthwise.files import write_by_rename
from lengthwise.models.base import RecurrentModel, SequenceModel
from lengthwise.runs.stored import load_stored

OPSET = 20
"""The version of ONNX's operators that graphs use."""

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
"""The packages that write and check a file; the extra ``onnx`` installs them."""


@EXPORTS.register("onnx")
class ONNX(Export):
    """An ONNX graph, opset 20, in one file; names of symbols and answers are in its metadata, as JSON.

    In form ``step``, the default for recurrent models, the graph maps ``token`` [batch] and ``state`` [batch, Z] to
    ``logits`` and ``next_state``; a state has Z numbers. In forms ``step`` and ``parts``, the metadata contain
    ``initial_state``, the state before the first symbol. In form ``strings``, the graph of a recurrent model maps
    ``inputs`` [batch, length] to ``logits_of_prefixes`` [batch, length, classes]. In form ``parts`` the graph also
    takes ``state`` and returns ``last_state``, from which the next part of the strings continues. A part has at least
    one symbol. For other models, form ``strings`` returns ``logits``.
    """

    has_weights = True

    @staticmethod
    def write(source: str, out: Path, options: Options) -> list[tuple[str, str]]:
        """Write a model's graph, and compare it with the model on 1,000 strings."""
        options.check_given("onnx", ("form", "max_length"))
        check_installed()
        stored = load_stored(Path(source))
        facts = graph_facts(source, stored)
        content = onnx_model(stored.model, facts, options.form, options.max_length)
        form = options.form or default_form(stored.model)
        run = runner(content, form, stored.model)
        # The graph is compared before the file appears, so that a wrong graph is never written.
        sentence = agreement(stored.model, run, len(json.loads(facts["symbols"])), options.max_length)
        write_by_rename(out, content)
        return [("graph", f"form {form}, {len(content):,} bytes"), ("onnxruntime", sentence), ("wrote", str(out))]


def check_installed() -> None:
    """Raise a ValueError that names the extra `onnx` if one of `PACKAGES` is missing."""
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise ValueError(
            f"onnx: expected the packages {', '.join(PACKAGES)}, got no {missing[0]}; install them with "
            "`pip install 'lengthwise[onnx]'`"
        )


def onnx_model(
    model: SequenceModel, facts: Mapping[str, str], form: str | None = None, max_length: int | None = None
) -> bytes:
    """Return the file of a model's graph: equal bytes for equal weights, without paths or times.

    Raises:
        ValueError: the model does not have this form (`trace`), or ONNX has no operator for a part of the model.
    """
    _check_expressible(model)
    form = form or default_form(model)
    scans = form in ("strings", "parts") and isinstance(model, RecurrentModel)
    traced = trace(model, "step" if scans else form, max_length)  # type: ignore[arg-type]
    with quiet():
        content = _cleaned(_translated(traced), traced)
        if isinstance(model, RecurrentModel):
            first = model.initial_state(1).detach()
            if scans:
                content = _scanned(content, first, in_parts=form == "parts")
            if form != "strings":
                facts = {**facts, "initial_state": json.dumps(first[0].tolist())}
        content.metadata_props.update({**facts, "form": form})
        if max_length is not None:
            content.metadata_props["max_length"] = str(max_length)
        return _serialized(content)


def _check_expressible(model: SequenceModel) -> None:
    """Reject LSTMs with projections: torch's exporter drops projections, and writes a graph that no runtime accepts."""
    for name, part in model.named_modules():
        if isinstance(part, nn.RNNBase) and part.proj_size:
            raise ValueError(
                "model: expected proj_size=0, because the LSTM of ONNX has no projection, got "
                f"proj_size={part.proj_size} in part {name!r}; choose format torch"
            )


def _translated(traced: Graph) -> Any:
    names: dict[str, Any] = {"input_names": traced.inputs, "output_names": traced.outputs}
    try:
        program = torch.onnx.export(traced.program, dynamo=True, opset_version=OPSET, verbose=False, **names)
    except torch.onnx.errors.OnnxExporterError as problem:
        lines = [line for line in str(problem).splitlines() if line.startswith("<class ")] or [str(problem)]
        raise ValueError(
            f"model: expected operations that ONNX has, got an error: {lines[0][:200]}; choose format torch"
        ) from problem
    assert program is not None
    return program.model


def _cleaned(content: Any, traced: Graph) -> Any:
    """Remove the exporter's notes about source files, and name the dimensions of free size."""
    import onnx_ir as ir

    graph = content.graph
    graph.name = f"lengthwise_{traced.form}"
    content.producer_name = "lengthwise"
    # Equal weights have to give equal bytes, even with another version of the exporter.
    content.producer_version = ""
    content.doc_string = None
    content.metadata_props.clear()
    graph.metadata_props.clear()
    values = [*graph.inputs, *graph.initializers.values()]
    for node in ir.traversal.RecursiveGraphIterator(graph):
        node.metadata_props.clear()
        node.doc_string = None
        values += node.outputs
    named = [*graph.inputs, *graph.outputs]
    for value in values:
        value.metadata_props.clear()
        value.doc_string = None
        if value.const_value is None and value not in named:
            value.shape = None  # its sizes have names that change between exports, and equal models need equal bytes
    free = ("batch",) if traced.form == "step" else ("batch", "length")
    for value in named:
        value.shape = ir.Shape([*free, *map(int, list(value.shape)[len(free) :])])
    return content


def _scanned(content: Any, first: torch.Tensor, *, in_parts: bool) -> Any:
    """Return a graph that loops over the symbols of whole strings, with the graph of a step as the loop's body."""
    import onnx_ir as ir

    body = content.graph
    (token, state), (logits, after) = body.inputs, body.outputs
    state_type, token_type = ir.TensorType(state.dtype), ir.TensorType(token.dtype)
    weights = dict(body.initializers)
    body.initializers.clear()
    body.inputs[:], body.outputs[:] = [state, token], [after, logits]
    body.name = "step"
    inputs = ir.Value(name="inputs", shape=ir.Shape(["batch", "length"]), type=token_type)
    given = ir.Value(name="state", shape=ir.Shape(["batch", first.shape[1]]), type=state_type)
    states, nodes, constants = (given, [], []) if in_parts else _first_states(inputs, first)
    loop = ir.node(
        "Scan",
        [states, inputs],
        {"body": body, "num_scan_inputs": 1, "scan_input_axes": [1], "scan_output_axes": [1]},
        num_outputs=2,
    )
    last, answers = loop.outputs
    loop.name = "symbols"
    last.name = "last_state"
    answers.name = "logits_of_prefixes"
    answers.shape, answers.type = ir.Shape(["batch", "length", int(logits.shape[1])]), state_type
    last.shape, last.type = ir.Shape(["batch", first.shape[1]]), state_type
    graph = ir.Graph(
        [inputs, given] if in_parts else [inputs],
        [answers, last] if in_parts else [answers],
        nodes=[*nodes, loop],
        initializers=[*constants, *weights.values()],
        opset_imports=content.opset_imports,
        name="lengthwise_parts" if in_parts else "lengthwise_strings",
    )
    return ir.Model(graph, ir_version=content.ir_version, producer_name="lengthwise")


def _first_states(inputs: Any, first: torch.Tensor) -> tuple[Any, list[Any], list[Any]]:
    """Return the state before the first symbol, once for each string, with the nodes and constants that compute it."""
    import onnx_ir as ir

    beginning = ir.Value(name="initial_state", const_value=ir.tensor(first.numpy(), name="initial_state"))
    width = ir.Value(name="width", const_value=ir.tensor([first.shape[1]], name="width"))
    batch = ir.node("Shape", [inputs], {"start": 0, "end": 1})
    shape = ir.node("Concat", [batch.outputs[0], width], {"axis": 0})
    states = ir.node("Expand", [beginning, shape.outputs[0]])
    for node, name in ((batch, "batch_size"), (shape, "shape_of_states"), (states, "first_states")):
        node.outputs[0].name = node.name = name
    return states.outputs[0], [batch, shape, states], [beginning, width]


def _serialized(content: Any) -> bytes:
    import onnx_ir as ir

    content_as_bytes: bytes = ir.to_proto(content).SerializeToString(deterministic=True)
    return content_as_bytes


def runner(content: bytes, form: str, model: SequenceModel) -> Any:
    """Return a function from symbols [batch, length] to logits [batch, length, answers], which runs in onnxruntime."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    way_out = "; choose format torch"
    # onnxruntime lacks many operators for float64 and bfloat16.
    if any(weight.dtype in (torch.float64, torch.bfloat16) for weight in model.parameters()):
        way_out = "; convert the model to float32 by model.float()"
    with _sentence(way_out):
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    dtype = model.initial_state(1).detach().numpy().dtype if isinstance(model, RecurrentModel) else np.float32
    first = np.array(json.loads(session.get_modelmeta().custom_metadata_map.get("initial_state", "[]")))

    def run(values: dict[str, Any]) -> Any:
        with _sentence(way_out):
            return session.run(None, values)

    def start(count: int) -> Any:
        return np.tile(first.astype(dtype), (count, 1))

    def by_step(inputs: Any) -> Any:
        state, answers = start(len(inputs)), []
        for token in inputs.T:
            logits, state = run({"token": np.ascontiguousarray(token), "state": state})
            answers.append(logits)
        return np.stack(answers, 1)

    def at_once(inputs: Any) -> Any:
        return run({"inputs": inputs, **({"state": start(len(inputs))} if form == "parts" else {})})[0]

    return by_step if form == "step" else at_once


@contextmanager
def _sentence(way_out: str) -> Iterator[None]:
    """Turn an error of onnxruntime into a ValueError of one sentence; these errors have no common base class."""
    try:
        yield
    except Exception as problem:
        if not type(problem).__module__.startswith("onnxruntime"):
            raise
        lines = str(problem).strip().splitlines() or [type(problem).__name__]
        raise ValueError(
            f"model: expected a graph that onnxruntime runs, got a graph that it rejects ({lines[0][-200:]}){way_out}"
        ) from None
