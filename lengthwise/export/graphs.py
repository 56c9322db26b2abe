"""Models as graphs: one step of a recurrent model, or the answers to whole strings, for any number of strings.

A graph has no checks of its inputs, and no shortcuts that depend on the values of tensors. Models leave both out while
``torch.compiler.is_exporting()`` is True. Everything that depends on parameters alone is computed here and becomes a
constant.
"""

import copy
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor, fx, nn
from torch._higher_order_ops.scan import scan
from torch.export import Dim, ExportedProgram

from lengthwise.export.base import Form
from lengthwise.models.base import RecurrentModel, SequenceModel, eval_mode
from lengthwise.models.capabilities import AnswersUpTo

EXAMPLE_SIZE = 3
"""The number of strings on which models are traced, and of symbols in each. Graphs take any number of both."""


class Graph(NamedTuple):
    """A traced model: a program of `torch.export`, and the names of its inputs and outputs.

    `max_length` is the length of the longest strings that the program takes, or None if it takes any length.
    """

    program: ExportedProgram
    form: Form
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    max_length: int | None = None


def default_form(model: SequenceModel) -> Form:
    """Return "step" if the model can run step by step, because graphs of one step need the fewest operators.

    For all other models, return "strings".
    """
    return "step" if isinstance(model, RecurrentModel) else "strings"


def trace(model: SequenceModel, form: Form | None = None, max_length: int | None = None) -> Graph:
    """Trace a model as a graph.

    Args:
        form: `"step"` maps symbols [B] and states [B, Z] to logits [B, Y] and states; `"strings"` maps symbols [B, T]
            to logits [B, T, Y]. The sizes are B strings, T symbols, Z numbers of a state and Y answers. The default
            is `default_form`.
        max_length: the length of the longest strings, for models whose graphs grow with the length (`AnswersUpTo`).

    Raises:
        ValueError: the model does not have this form, or cannot be traced; or `max_length` is missing, too small, or
            without effect.
    """
    form = form or default_form(model)
    if not isinstance(model, RecurrentModel | AnswersUpTo):
        raise ValueError(
            "model: expected a recurrent model, or a model whose graph for whole strings can be exported (such as "
            f"regular-gpt), got {model.name}; if `lengthwise certify` extracts the model's machine, export the machine "
            "with format c or js"
        )
    if form == "parts":
        raise ValueError(
            "form: expected 'step' or 'strings', got 'parts', which only recurrent models in format onnx have; choose "
            "another form"
        )
    if form == "step" and not isinstance(model, RecurrentModel):
        raise ValueError(
            f"form: expected 'strings', because {model.name} does not read symbol by symbol, got 'step'; choose form "
            "'strings'"
        )
    grows = form == "strings" and isinstance(model, AnswersUpTo)
    if max_length is not None and not grows:
        raise ValueError(
            f"max_length: expected no value for {model.name} in form {form}, whose graph takes strings of any length, "
            f"got {max_length}; give no length"
        )
    # In training mode a graph would contain noise and dropout.
    with quiet(), eval_mode(model):
        fixed = _with_numbers_as_settings(model)
        if isinstance(fixed, RecurrentModel):
            step = _step_graph(fixed)
            if form == "step":
                return step
            return _strings_graph(_Scanned(step.program.module(check_guards=False), fixed.initial_state(1)))
        assert isinstance(fixed, AnswersUpTo)
        if max_length is None:
            raise ValueError(
                "max_length: expected the length of the longest strings, because the graph of a "
                f"{model.name} grows with this length, got none; give a length"
            )
        if max_length < 2:
            raise ValueError(
                f"max_length: expected at least 2, because a graph takes strings of several lengths, got {max_length}; "
                "give a larger length"
            )
        return _strings_graph(_Bounded(fixed, max_length), max_length)


class _Step(nn.Module):
    def __init__(self, model: RecurrentModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, token: Int64[Tensor, " B"], state: Float[Tensor, "B Z"]
    ) -> tuple[Float[Tensor, "B Y"], Float[Tensor, "B Z"]]:
        return self.model.step(token, state)


class _Scanned(nn.Module):
    """A module that applies a model's step to one symbol after another; the loop is part of the graph."""

    first: Tensor

    def __init__(self, step: nn.Module, first: Float[Tensor, "1 Z"]) -> None:
        super().__init__()
        self.step = step
        self.register_buffer("first", first.clone())

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        def one(state: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
            logits, state = self.step(token, state)
            return state.clone(), logits.clone()

        _, logits = scan(one, self.first.expand(inputs.shape[0], -1).clone(), inputs.transpose(0, 1), dim=0)
        answers: Tensor = logits
        return answers.transpose(0, 1)


class _Bounded(nn.Module):
    """A module that gives the answers of a model to strings up to a length; its graph grows with this length."""

    def __init__(self, model: AnswersUpTo, max_length: int) -> None:
        super().__init__()
        assert isinstance(model, nn.Module)
        self.model, self.max_length = model, max_length

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        logits: Tensor = self.model.forward_bounded(inputs, self.max_length)
        return logits


def _step_graph(model: RecurrentModel) -> Graph:
    token = torch.zeros(EXAMPLE_SIZE, dtype=torch.int64)
    state = model.initial_state(EXAMPLE_SIZE).contiguous().clone()
    batch = Dim("batch")
    shapes = ({0: batch}, {0: batch})
    # The step is traced twice: constants are folded in the first graph, and the second has only nodes that depend on
    # inputs.
    folded = fold_constants(_exported(_Step(model), (token, state), shapes).module(check_guards=False))
    return Graph(_exported(folded, (token, state), shapes), "step", ("token", "state"), ("logits", "next_state"))


def _strings_graph(module: nn.Module, max_length: int | None = None) -> Graph:
    inputs = torch.zeros(EXAMPLE_SIZE, min(EXAMPLE_SIZE, max_length or EXAMPLE_SIZE), dtype=torch.int64)
    length = Dim("length", max=max_length) if max_length else Dim("length")
    program = _exported(module, (inputs,), ({0: Dim("batch"), 1: length},))
    return Graph(program, "strings", ("inputs",), ("logits",), max_length)


def _exported(module: nn.Module, arguments: tuple[Tensor, ...], shapes: Any) -> ExportedProgram:
    try:
        return torch.export.export(module, arguments, dynamic_shapes=shapes, strict=False)
    except Exception as problem:  # torch raises whatever a model's own code raises, and exceptions of its own
        reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        raise ValueError(
            "model: expected a model that torch.export can trace for any number of strings, got an error: "
            f"{reason[:200]}; change the model's forward so that it can be traced"
        ) from problem


def fold_constants(module: fx.GraphModule) -> fx.GraphModule:
    """Replace all nodes of the graph that depend on parameters alone by constants, in place, and return the graph."""
    graph, values = module.graph, {}
    for node in graph.nodes:
        if node.op == "get_attr" and isinstance(value := attrgetter(str(node.target))(module), Tensor):
            values[node] = value.detach()
        elif node.op == "call_function" and all(part in values for part in node.all_input_nodes):
            arguments, named = fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*arguments, **named)
    constants = 0
    for node, value in values.items():
        used = [user for user in node.users if user not in values]
        if not used or node.op == "get_attr" or not isinstance(value, Tensor):
            continue
        name = f"constant_{constants}"
        module.register_buffer(name, value.contiguous().clone())
        with graph.inserting_before(node):
            constant = graph.get_attr(name)
        # Only nodes outside the folded part get the constant as input; the folded nodes disappear with the dead code.
        node.replace_all_uses_with(constant, delete_user_cb=lambda user, used=used: user in used)
        constants += 1
    graph.eliminate_dead_code()
    module.delete_all_unused_submodules()
    module.recompile()
    return module


def _with_numbers_as_settings(model: SequenceModel) -> SequenceModel:
    """Return a copy whose buffers without dimensions are Python numbers, because a graph cannot branch on tensors."""
    fixed = copy.deepcopy(model)
    for module in fixed.modules():
        for name, buffer in list(module.named_buffers(recurse=False)):
            if buffer.ndim == 0:
                delattr(module, name)
                setattr(module, name, buffer.item())
    return fixed


@contextmanager
def quiet() -> Iterator[None]:
    """Silence torch's messages about its internals during tracing."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
