"""Programs of `torch.export`, which torch reads without this package."""

import io
import json
from pathlib import Path
from typing import Any

import torch

from lengthwise.export.agreement import agreement
from lengthwise.export.base import EXPORTS, Export, Options
from lengthwise.export.facts import graph_facts
from lengthwise.export.graphs import Graph, quiet, trace
from lengthwise.files import write_by_rename
from lengthwise.models.base import RecurrentModel, SequenceModel
from lengthwise.runs.stored import load_stored


@EXPORTS.register("torch")
class TorchProgram(Export):
    """A program that ``torch.export.load(path).module()`` loads, in form ``step`` or ``strings``, described at `ONNX`.

    The facts that an ONNX file has as metadata are in the extra file ``lengthwise.json``.
    """

    has_weights = True

    @staticmethod
    def write(source: str, out: Path, options: Options) -> list[tuple[str, str]]:
        """Write a model's program, and compare it with the model on 1,000 strings."""
        options.check_given("torch", ("form", "max_length"))
        if out.suffix != ".pt2":
            raise ValueError(
                f"{out}: expected a file that ends in .pt2, as torch requires, got {out.suffix!r}; change the name"
            )
        stored = load_stored(Path(source))
        facts = graph_facts(source, stored)
        traced = trace(stored.model, options.form, options.max_length)
        facts["form"] = traced.form
        if options.max_length is not None:
            facts["max_length"] = str(options.max_length)
        if isinstance(stored.model, RecurrentModel) and traced.form != "strings":
            facts["initial_state"] = json.dumps(stored.model.initial_state(1)[0].tolist())
        sentence = agreement(
            stored.model, runner(traced, stored.model), len(json.loads(facts["symbols"])), options.max_length
        )
        content = program_file(traced, json.dumps(facts))
        write_by_rename(out, content)
        return [("graph", f"form {traced.form}, {len(content):,} bytes"), ("torch", sentence), ("wrote", str(out))]


def program_file(traced: Graph, facts: str) -> bytes:
    """Return the program as a file, without references to the source lines of its operations."""
    for module in traced.program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            for note in ("stack_trace", "nn_module_stack", "source_fn_stack", "from_node"):
                node.meta.pop(note, None)
    buffer = io.BytesIO()
    with quiet():
        torch.export.save(traced.program, buffer, extra_files={"lengthwise.json": facts})
    return buffer.getvalue()


def runner(traced: Graph, model: SequenceModel) -> Any:
    """Return the program as a function from symbols [batch, length] to logits [batch, length, answers]."""
    program = traced.program.module()

    @torch.no_grad()
    def by_step(inputs: Any) -> Any:
        assert isinstance(model, RecurrentModel)
        state, answers = model.initial_state(len(inputs)).contiguous(), []
        for token in torch.from_numpy(inputs).unbind(1):
            logits, state = program(token, state)
            answers.append(logits)
        return torch.stack(answers, 1).numpy()

    @torch.no_grad()
    def at_once(inputs: Any) -> Any:
        return program(torch.from_numpy(inputs)).numpy()

    return by_step if traced.form == "step" else at_once
