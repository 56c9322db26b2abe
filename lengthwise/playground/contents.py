"""The contents of a page about a run: net, machine, task, certificate and drawings, as plain data."""

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lengthwise.automata.drawing import drawing_obstacle, machine_svg
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.builder import weights_digest
from lengthwise.certification.certificate import Certificate, certificate_file
from lengthwise.certification.certify import certify
from lengthwise.certification.drawing import class_names
from lengthwise.certification.equivalence import machine_from_json
from lengthwise.conventions import Diverged
from lengthwise.extraction.base import Extraction, reader_of
from lengthwise.models.base import SequenceModel
from lengthwise.playground.nets import as_base64, net_json
from lengthwise.runs.spec import is_titled
from lengthwise.runs.stored import StoredModel, load_stored
from lengthwise.tasks.base import RegularTask, SymbolTask

MAX_PROTOTYPES = 400
"""The largest number of prototypes (`Extraction`) in a page. With more, the page shows no classes of net states."""

LEARNED_FROM = "learned.json"
"""The file about the examples, in the folder of a machine that was learned from examples."""

MAX_TASK_ENTRIES = 200_000
"""The largest number of entries of a task's machine that a page contains."""


def run_contents(path: Path) -> dict[str, Any]:
    """Return the page's contents about the model at a path (`load_stored`); a missing certificate is made.

    Raises:
        ValueError: the path has no model; the page cannot run the model; the model's task has no symbols; or the
            certificate is about another model.
    """
    stored = load_stored(path)
    model, task = stored.model.eval(), stored.task
    if not isinstance(task, SymbolTask):
        raise ValueError(
            f"{path}: expected a model that reads symbols, got a model of task {task.name}, whose inputs are vectors; "
            "name another model"
        )
    net = net_json(model)
    certificate = _certificate(path, stored) if isinstance(task, RegularTask) else None
    extraction = None if certificate is None else extraction_again(certificate, model, task.symbols)
    is_learned = (path / LEARNED_FROM).exists()
    seed = f", seed {stored.run.spec.seed}" if stored.run is not None else ""
    settings = {key: value for key, value in stored.settings["task"].items() if key != "name"}
    return {
        "name": f"{_task_name(task.name, settings)}: {model.name}{seed}",
        "about": _about(stored),
        "question": _question(task),
        "symbols": list(task.symbols),
        "separator": task.separator,
        "classes": list(task.classes),
        "trainedTo": stored.trained_to,
        "isLearned": is_learned,
        "net": net,
        **_machine(certificate, extraction),
        **_task(task),
        "drawings": _drawings(certificate, task, is_learned),
    }


def _question(task: SymbolTask) -> str:
    """Return the question of the task, from its docstring: the first paragraph, and the lists about its settings."""
    first, *others = inspect.cleandoc(type(task).__doc__ or "").split("\n\n")
    lists = [paragraph for paragraph in others if re.match(r"1\. |- ", paragraph)]
    return "\n".join([first.replace("\n", " "), *lists]).replace("`", "")


def _task_name(name: str, settings: Mapping[str, Any]) -> str:
    """Return the task's title, or else the task's name and the settings whose values are short."""
    if is_titled({"name": name, **settings}):
        return f"{settings['title']} ({name})"
    quoted = [
        f"{key} {value}" for key, value in settings.items() if isinstance(value, int | str) and len(str(value)) < 20
    ]
    return f"{name} ({', '.join(quoted)})" if quoted else name


def _about(stored: StoredModel) -> str:
    """Return a sentence about the origin of the net."""
    if stored.run is None:
        return f"Made by {stored.name}."
    run = stored.run
    lengths = f"{run.spec.recipe.min_length:,} to {run.spec.recipe.max_length:,} symbols"
    commit = run.folder.read_start_commit().partition(" ")[0][:10]
    return f"Trained on strings of {lengths}, weights {run.steps_text}; run {run.spec.id}, begun at commit {commit}."


def _certificate(path: Path, stored: StoredModel) -> Certificate:
    """Return the certificate next to a model, or a new one, which is not saved."""
    file = certificate_file(path)
    if not file.exists():
        return certify(stored.model, stored.task)
    certificate = Certificate.read(file)
    if certificate.weights != weights_digest(stored.model):
        raise ValueError(
            f"{file}: expected a certificate of the weights next to this file, got a certificate of other weights; "
            f"`lengthwise certify {path}` writes a new certificate"
        )
    return certificate


def extraction_again(certificate: Certificate, model: SequenceModel, symbols: tuple[str, ...]) -> Extraction | None:
    """Repeat the extraction of a certificate's machine; return None if there is no machine or the result differs.

    Another CPU may round differently, so the states may form other classes.
    """
    if certificate.machine is None or certificate.closure is None or certificate.machine_kind == "grid":
        return None
    reader = reader_of(model, symbols)
    if reader is None:
        return None
    try:
        with torch.no_grad():
            extraction: Extraction = reader.extract(certificate.closure.requested_radius)
    except (ValueError, Diverged):
        return None
    return extraction if extraction.machine.to_json() == certificate.machine else None


def _machine(certificate: Certificate | None, extraction: Extraction | None) -> dict[str, Any]:
    """Return the level, the counterexample, the machine, and the prototypes of the machine's classes."""
    if certificate is None:
        return {"level": None, "claim": "", "reason": "", "counterexample": None, "machine": None, "prototypes": None}
    wrong = certificate.counterexample
    machine: dict[str, Any] | None = None
    if certificate.machine is not None:
        machine = {**certificate.machine, "names": class_names(certificate)}
    return {
        "level": certificate.level,
        "claim": certificate.claim,
        "reason": certificate.reason,
        "counterexample": None if wrong is None else wrong.model_dump(mode="json"),
        "machine": machine,
        "prototypes": None if extraction is None else _prototypes(extraction),
    }


def _prototypes(extraction: Extraction) -> dict[str, Any] | None:
    """Return the computed prototypes of the machine's classes; None without any, or with over `MAX_PROTOTYPES`."""
    classes = extraction.classes[extraction.num_given :]
    kept = np.flatnonzero(classes >= 0)
    if not 0 < len(kept) <= MAX_PROTOTYPES:
        return None
    points = extraction.prototypes[extraction.num_given :][torch.from_numpy(kept)].double().numpy()
    return {"points": as_base64(points), "shape": list(points.shape), "classes": classes[kept].tolist()}


def _task(task: SymbolTask) -> dict[str, Any]:
    """Return the machine of a task as a table, or the reason why the page lacks it."""
    if not isinstance(task, RegularTask):
        sentence = f"Task {task.name} has no finite machine, so this page does not know the right answers."
        return {"task": None, "taskSentence": sentence}
    machine = task.transducer.minimize()
    if (size := machine.num_states * len(machine.symbols)) > MAX_TASK_ENTRIES:
        sentence = f"The machine of task {task.name} has {size:,} transitions, too many for a page."
        return {"task": None, "taskSentence": sentence}
    table = {"start": machine.start, "table": machine.semiautomaton.table.tolist(), "outputs": machine.outputs.tolist()}
    return {"task": table, "taskSentence": ""}


def _drawings(certificate: Certificate | None, task: SymbolTask, is_learned: bool) -> list[dict[str, str]]:
    """Return drawings of the transducer read off the net, if there is one, and of the task's machine if it differs."""
    drawings: list[dict[str, str]] = []
    own = None
    if certificate is not None and certificate.machine is not None:
        machine = machine_from_json(certificate.machine)
        own = machine if isinstance(machine, Transducer) else None
    if own is not None:
        drawings.append(_drawing("machine", "The machine read off the net", own, task.classes))
    if isinstance(task, RegularTask):
        of_task = task.transducer.minimize()
        if own is None or own.to_json() != of_task.to_json():
            title = "The machine that was learned" if is_learned else "The task's own machine"
            drawings.append(_drawing("task", title, of_task, task.classes))
    return drawings


def _drawing(subject: str, title: str, machine: Transducer, classes: tuple[str, ...]) -> dict[str, str]:
    why_not = drawing_obstacle(machine)
    # Sinks are also drawn, because the page highlights the current state of the machine.
    svg = "" if why_not else machine_svg(machine, classes, with_sinks=True)
    note = f"Not drawn: {why_not}." if why_not else ""
    return {"of": subject, "title": f"{title}, {machine.num_states} states", "svg": svg, "note": note}
