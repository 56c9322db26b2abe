"""Certificates of what lies in a folder: a trained run or a compiled machine."""

from pathlib import Path

from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.files import write_by_rename
from lengthwise.models.base import SequenceModel
from lengthwise.runs.compiled import DESCRIPTION, load_compiled
from lengthwise.runs.folder import RunFolder, load_run, versions
from lengthwise.tasks.base import SymbolTask


def certify_folder(folder: Path, out: Path | None = None) -> tuple[Certificate, Path]:
    """Certify a run's or a compiled model; the certificate and its file, by default in the folder.

    Raises:
        ValueError: the folder holds neither, is damaged, or a machine was compiled that is no task's.
    """
    path = out or RunFolder(folder).certificate
    if (folder / DESCRIPTION).exists():
        compiled = load_compiled(folder)
        if compiled.task is None:
            raise ValueError(f"{folder}: its machine is no task's, so that there are no strings to try; compile a task")
        return write_certificate(compiled.model, compiled.task, path, compiled=compiled.source), path
    run = load_run(folder)
    return write_certificate(run.model, run.spec.task, path, run=run.spec.id), path


def write_certificate(model: SequenceModel, task: SymbolTask, path: Path, **about: str) -> Certificate:
    """Certify a model and write the certificate down, with versions and what else is said about it."""
    certificate = certify(model, task).model_copy(update={"versions": versions() | about})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_by_rename(path, certificate.to_text().encode())
    return certificate
