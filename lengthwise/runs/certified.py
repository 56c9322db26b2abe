"""Certificates of what lies in files: a trained run, a compiled machine, or a net that a TOML file describes."""

from pathlib import Path
from typing import Any

import torch

from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.confirm import confirm
from lengthwise.certification.examination import weights_digest
from lengthwise.certification.proof_file import write_proof
from lengthwise.evaluation.length_curve import final_answers
from lengthwise.files import write_by_rename
from lengthwise.models.base import SequenceModel
from lengthwise.runs.compiled import DESCRIPTION, load_compiled
from lengthwise.runs.described import check_not_pickled, load_described
from lengthwise.runs.folder import RunFolder, load_run, versions
from lengthwise.tasks.base import MachineTask, Task
from lengthwise.validation import dump_named


def certify_folder(folder: Path, out: Path | None = None) -> tuple[Certificate, Path]:
    """Certify a run's, a compiled or a described model; the certificate and its file, by default in the folder.

    Of a description in TOML (`load_described`) the certificate lies next to it.

    Raises:
        ValueError: the folder holds neither, is damaged, or a machine was compiled that is no task's.
    """
    default = folder.with_suffix(".certificate.json") if folder.is_file() else RunFolder(folder).certificate
    path = out or default
    model, task, about = _load(folder)
    return write_certificate(model, task, path, **about), path


def check_is_of(certificate: Certificate, folder: Path) -> list[str]:
    """That a certificate is about the model and the task in a folder, and what of it was found again (`confirm`).

    Raises:
        ValueError: it is not about them, or says what is not so.
    """
    model, task, _ = _load(folder)
    assert isinstance(task, MachineTask)  # others have no certificate
    pairs: dict[str, tuple[Any, Any]] = {
        "weights": (certificate.weights, weights_digest(model)),
        "model": (certificate.model, dump_named(model.name, model.config)),
        "task": (certificate.task, dump_named(task.name, task)),
        "classes": (certificate.classes, task.classes),
        "transducer": (certificate.transducer, task.reference.to_json()),
    }
    for what, (expected, actual) in pairs.items():
        if expected != actual:
            raise ValueError(f"{folder}: expected the {what} of the certificate, got another; certify {folder} again")
    if certificate.counterexample is not None:
        string = task.encode(task.separator.join(certificate.counterexample.string))
        with torch.no_grad():
            index = int(final_answers(model.eval(), string[None]))
        answer = task.classes[index] if index >= 0 else None
        if answer != certificate.counterexample.got:
            raise ValueError(f"{folder}: its model answers the counterexample with {answer!r}; certify {folder} again")
    about = f"the certificate is about the model and the task in {folder}"
    return [about, *(confirm(certificate, model, task) if certificate.level != "refuted" else [])]


def write_proof_of(certificate: Certificate, folder: Path, path: Path) -> str:
    """Write the proof of the model in a folder, and what the checker says of it (`write_proof`)."""
    model, task, _ = _load(folder)
    assert isinstance(task, MachineTask)
    return write_proof(certificate, model, task, path)


def _load(folder: Path) -> tuple[SequenceModel, Task, dict[str, str]]:
    """The model in a folder, or that a file describes, its task and where it comes from."""
    if folder.is_file():
        check_not_pickled(folder)
        return *load_described(folder), {"described": folder.name}
    if (folder / DESCRIPTION).exists():
        compiled = load_compiled(folder)
        if compiled.task is None:
            raise ValueError(f"{folder}: its machine is no task's, so that there are no strings to try; compile a task")
        return compiled.model, compiled.task, {"compiled": compiled.source}
    run = load_run(folder)
    return run.model, run.spec.task, {"run": run.spec.id}


def write_certificate(model: SequenceModel, task: Task, path: Path, **about: str) -> Certificate:
    """Certify a model and write the certificate down, with versions and what else is said about it."""
    certificate = certify(model, task).model_copy(update={"versions": versions() | about})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_by_rename(path, certificate.to_text().encode())
    return certificate
