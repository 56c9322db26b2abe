"""The inductive step of a proof as ONNX graphs and VNN-LIB queries, which independent verifiers of networks read."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.confirm import proof_of
from lengthwise.conventions import IGNORE
from lengthwise.devices import one_thread
from lengthwise.export.base import EXPORTS, Export, Options
from lengthwise.export.facts import certificate_of, graph_facts, level_and_digest
from lengthwise.export.onnx import check_installed
from lengthwise.export.step_graphs import Array, answer_graph, step_graph
from lengthwise.files import json_text, package_template, write_by_rename
from lengthwise.models.base import RecurrentModel, eval_mode
from lengthwise.randomness import generator_for
from lengthwise.runs.stored import StoredModel, load_stored
from lengthwise.tasks.base import MachineTask

TIMEOUT = 300
"""The time that `instances.csv` gives a verifier for each query, in seconds."""

MAX_QUERIES = 20_000
"""The largest number of queries in a folder. Each query is a file."""

NUM_POINTS = 30
"""The number of states at which each graph is compared with the model."""

MAX_DIFFERENCE = 1e-5
"""The largest allowed difference between the outputs of a graph and of the model.

The bound is relative to the largest output, or to 1 if all outputs are smaller.
"""


class Enclosures(NamedTuple):
    """A proof by intervals: a machine, and a box [low, high] of net states for each machine state, called a class."""

    low: Array
    high: Array
    machine: Transducer

    @property
    def num_queries(self) -> int:
        """The number of queries: one for each pair of a class and a symbol, and one for each class with an answer."""
        return self.machine.semiautomaton.table.size + int((self.machine.outputs != IGNORE).sum())


@EXPORTS.register("vnnlib")
class VNNLib(Export):
    """A folder of ONNX graphs, VNN-LIB queries, ``instances.csv``, ``proof.json`` and ``README.txt``.

    Source: Demarchi et al., "Supporting standardization of neural networks verification with VNNLIB and CoCoNet"
    (FoMLAS 2023), for version 1 of the language, in the form that the competition VNN-COMP uses.
    """

    has_weights = True
    is_folder = True

    @staticmethod
    def write(source: str, out: Path, options: Options) -> list[tuple[str, str]]:
        """Repeat the proof, compare the graphs with the model, and write the folder."""
        options.check_given("vnnlib", ())
        check_installed()
        if out.exists() and not (out.is_dir() and not any(out.iterdir())):
            raise ValueError(
                f"{out}: expected a new or empty folder, got a file or a folder with files; name another folder"
            )
        stored = load_stored(Path(source))
        facts = graph_facts(source, stored)
        certificate, enclosures = proved_enclosures(source, stored)
        assert isinstance(stored.model, RecurrentModel), "no other model has a proof by intervals"
        with eval_mode(stored.model):
            graphs = graphs_of(stored.model, len(enclosures.machine.semiautomaton.table[0]))
            difference = largest_difference(stored.model, graphs, enclosures)
        queries = dict(queries_of(enclosures, len(json.loads(facts["classes"]))))
        texts = {name: text for (name, _), text in queries.items()}
        texts["instances.csv"] = "".join(f"{graph},{name},{TIMEOUT}\n" for name, graph in queries)
        texts["proof.json"] = json_text(proof_facts(facts, stored, enclosures))
        texts["README.txt"] = package_template("lengthwise.export", "vnnlib.txt").substitute(
            version=facts["lengthwise"],
            certificate=level_and_digest(certificate),
            width=enclosures.low.shape[1],
            num_answers=len(json.loads(facts["classes"])),
            num_queries=f"{len(queries):,}",
            dtype=str(stored.model.initial_state(1).dtype).removeprefix("torch."),
        )
        out.mkdir(parents=True, exist_ok=True)
        for name, content in (graphs | {name: text.encode() for name, text in texts.items()}).items():
            write_by_rename(out / name, content)
        return [
            ("certificate", level_and_digest(certificate)),
            ("queries", f"{len(queries):,} about {len(enclosures.low):,} boxes; unsat proves a query's claim in reals"),
            ("graphs", f"{len(graphs)}, within {difference:.1g} of the model at {NUM_POINTS} states each"),
            ("wrote", str(out)),
        ]


def proved_enclosures(source: str, stored: StoredModel) -> tuple[Certificate, Enclosures]:
    """Repeat the proof of a model's certificate, and return the certificate and the boxes of the proof.

    Raises:
        ValueError: the model has no certificate of level proved; the proof is not by intervals, has a box that
            contains only one state, or needs more than 20,000 queries; or the proof fails this time.
    """
    certificate = certificate_of(source)
    if certificate is None or (evidence := certificate.evidence) is None:
        level = "no certificate" if certificate is None else f"level {certificate.level!r}"
        raise ValueError(
            f"{source}: expected a certificate of level 'proved', got {level}; try to prove the net with `lengthwise "
            "certify`"
        )
    if evidence.method != "intervals":
        raise ValueError(
            f"{source}: expected a proof by intervals, because VNN-LIB needs boxes of states, got method "
            f"{evidence.method!r}; use `lengthwise certify`, which checks the model's proof with the separate checker"
        )
    assert isinstance(stored.task, MachineTask), "no other task has a certificate of level proved"
    with one_thread():
        prover, extraction = proof_of(certificate, stored.model, stored.task)
    assert isinstance(extraction.fine, Transducer)
    enclosures = Enclosures(prover.sets["low"].numpy(), prover.sets["high"].numpy(), extraction.fine)
    targets = enclosures.machine.semiautomaton.table
    # If the target box is one point, the exact step ends on its boundary. This satisfies the query `Y <= low`, although
    # the claim is true.
    if not (enclosures.low < enclosures.high)[targets].all():
        raise ValueError(
            f"{source}: expected boxes of positive width in the model's proof, because VNN-LIB has no strict "
            "inequality, got boxes of width 0; use `lengthwise certify`, which checks the proof with the separate "
            "checker"
        )
    if enclosures.num_queries > MAX_QUERIES:
        raise ValueError(
            f"{source}: expected a proof of at most {MAX_QUERIES:,} queries, got {enclosures.num_queries:,}; "
            "use `lengthwise certify`, which checks the model's proof with the separate checker"
        )
    return certificate, enclosures


def graphs_of(model: RecurrentModel, num_symbols: int) -> dict[str, bytes]:
    """Return the ONNX files, by name: one for the step of each symbol, and one for the read-out."""
    steps = {f"step-{symbol}.onnx": step_graph(model, symbol) for symbol in range(num_symbols)}
    return {**steps, "answer.onnx": answer_graph(model)}


@torch.no_grad()
def largest_difference(model: RecurrentModel, graphs: dict[str, bytes], enclosures: Enclosures) -> float:
    """Return the largest difference between graphs and model at states drawn from the enclosures.

    Raises:
        RuntimeError: the output of a graph differs from the model's output by more than rounding.
    """
    import onnxruntime

    generator = generator_for(0, "states in boxes")
    low, high = torch.tensor(enclosures.low), torch.tensor(enclosures.high)
    largest = 0.0
    for symbol, (name, content) in enumerate(graphs.items()):
        rows = torch.randint(len(low), (NUM_POINTS,), generator=generator)
        share = torch.rand(NUM_POINTS, low.shape[1], generator=generator, dtype=torch.float64)
        states = (low[rows] + share * (high - low)[rows]).to(model.initial_state(1).dtype)
        if name == "answer.onnx":
            expected = model.readout(states)
        else:
            expected = model.step(torch.full((NUM_POINTS,), symbol), states)[1]
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        got = torch.cat([torch.tensor(session.run(None, {"state": state[None].numpy()})[0]) for state in states])
        difference = float((got - expected).abs().max())
        if not difference <= MAX_DIFFERENCE * max(1.0, float(expected.abs().max())):
            raise RuntimeError(
                f"{name}: expected the model's results, got results that differ by up to {difference:.2g}; nothing "
                "was written"
            )
        largest = max(largest, difference)
    return largest


def queries_of(enclosures: Enclosures, num_answers: int) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield, for each query, the file names of the query and of its graph, and the text of the query.

    A net with a single answer is always right, so it has no queries about answers.
    """
    low, high, machine = enclosures
    table, outputs = machine.semiautomaton.table, machine.outputs
    for (klass, symbol), target in np.ndenumerate(table):
        outside = [
            comparison
            for index, ends in enumerate(zip(low[target], high[target], strict=True))
            for comparison in (f"(<= Y_{index} {decimal(ends[0])})", f"(>= Y_{index} {decimal(ends[1])})")
        ]
        claim = f"From the box of class {klass}, symbol {symbol} leads into the box of class {target}."
        text = query(claim, low[klass], high[klass], low.shape[1], outside)
        yield (f"step-{klass}-{symbol}.vnnlib", f"step-{symbol}.onnx"), text
    for klass in np.flatnonzero(outputs != IGNORE) if num_answers > 1 else ():
        answer = outputs[klass]
        others = [f"(>= Y_{other} Y_{answer})" for other in range(num_answers) if other != answer]
        claim = f"In the box of class {klass}, logit {answer} is larger than all others."
        text = query(claim, low[klass], high[klass], num_answers, others)
        yield (f"answer-{klass}.vnnlib", "answer.onnx"), text


def query(claim: str, low: Array, high: Array, num_outputs: int, failures: Sequence[str]) -> str:
    """Return a VNN-LIB query: can an input from `low` to `high` lead to one of `failures`, which contradict `claim`?"""
    lines = [f"; {claim}", "; This is its negation: unsat proves the claim.", ""]
    lines += [f"(declare-const X_{index} Real)" for index in range(len(low))]
    lines += [f"(declare-const Y_{index} Real)" for index in range(num_outputs)]
    for index, (lowest, highest) in enumerate(zip(low, high, strict=True)):
        lines += [f"(assert (>= X_{index} {decimal(lowest)}))", f"(assert (<= X_{index} {decimal(highest)}))"]
    return "\n".join([*lines, "(assert (or", *(f"    (and {failure})" for failure in failures), "))", ""])


def decimal(number: float) -> str:
    """Return the fewest digits that float64 reads as `number`, without an exponent, which VNN-LIB does not allow."""
    return np.format_float_positional(number, trim="0")


def proof_facts(facts: dict[str, str], stored: StoredModel, enclosures: Enclosures) -> dict[str, Any]:
    """Return the content of `proof.json`: task, model, symbols, classes, both machines, first state, and all boxes."""
    assert isinstance(stored.task, MachineTask)
    assert isinstance(stored.task.reference, Transducer), "no other task has a proof by intervals"
    assert isinstance(stored.model, RecurrentModel)
    names = {name: json.loads(facts[name]) for name in ("task", "model", "symbols", "classes")}
    first = stored.model.initial_state(1)[0].tolist()
    machines = {**machine_facts(enclosures.machine), "task_machine": machine_facts(stored.task.reference)}
    return {**names, **machines, "first_state": first, "low": enclosures.low.tolist(), "high": enclosures.high.tolist()}


def machine_facts(machine: Transducer) -> dict[str, Any]:
    """Return a machine as lists; states without an answer have the output None."""
    outputs = [None if output == IGNORE else output for output in machine.outputs.tolist()]
    return {"table": machine.semiautomaton.table.tolist(), "start": int(machine.start), "outputs": outputs}
