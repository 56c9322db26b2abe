"""The facts about a model that every exported file contains: task, names of symbols and answers, certificate."""

import json
import os.path
from pathlib import Path

from lengthwise.certification.certificate import Certificate, certificate_file
from lengthwise.files import digest_of
from lengthwise.runs.machine_sources import doubt_about, is_certificate
from lengthwise.runs.stored import StoredModel, check_subject
from lengthwise.tasks.base import SymbolTask
from lengthwise.version import __version__


def certificate_of(source: str) -> Certificate | None:
    """Return the certificate that belongs to a source, or None if the source has no certificate.

    The source is the path of a certificate, or the path of the folder or TOML file of a model.

    Raises:
        ValueError: the certificate is damaged.
    """
    path = Path(source)
    if os.path.isdir(source) or path.suffix == ".toml":
        path = certificate_file(path)
        if not path.exists():
            return None
    elif not os.path.exists(source) or not is_certificate(path):
        return None
    return Certificate.read(path)


def level_and_digest(certificate: Certificate | None) -> str:
    """Return the level of a certificate and the digest at the end of its file, or "none" without a certificate."""
    return "none" if certificate is None else f"{certificate.level}, digest {digest_of(certificate.to_text())}"


def graph_facts(source: str, stored: StoredModel) -> dict[str, str]:
    """Return the facts in a graph's metadata, as texts; lists are JSON.

    Raises:
        ValueError: the model does not read symbols, or its certificate is damaged or about another model or task.
    """
    task = stored.task
    if not isinstance(task, SymbolTask):
        raise ValueError(
            f"{source}: expected a model whose task has strings of symbols, got task {task.name}; export another model"
        )
    facts = {
        "lengthwise": __version__,
        "task": json.dumps(stored.settings["task"]),
        "model": json.dumps(stored.settings["model"]),
        "symbols": json.dumps(list(task.symbols)),
        "classes": json.dumps(list(task.classes)),
    }
    if (run := stored.run) is not None and not run.is_trained:
        facts["weights"] = f"{run.steps_text}, before training was over"
    if (certificate := certificate_of(source)) is not None:
        # A graph must not claim a level that was proved for other weights.
        check_subject(source, certificate, stored)
        facts["certificate_level"] = certificate.level
        facts["certificate_digest"] = digest_of(certificate.to_text())
    if (doubt := doubt_about(Path(source))) is not None:
        facts["not_confirmed"] = doubt
    return facts
