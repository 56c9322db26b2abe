"""A compiled machine on disk: ``model.safetensors`` and ``compiled.json``."""

from hashlib import blake2b
from pathlib import Path
from typing import Any

from safetensors.torch import load, save

from lengthwise.automata import Transducer
from lengthwise.certification.builder import mismatched_part
from lengthwise.certification.certificate import Certificate, certificate_file
from lengthwise.certification.parts import Part, PositiveCount, TransducerFields
from lengthwise.certification.verify import proof_path
from lengthwise.constructions.base import Construction, Target
from lengthwise.files import check_no_file, read_file, read_json, remove_drafts, write_by_rename, write_json
from lengthwise.models.base import MODELS, build_model
from lengthwise.models.weights import load_weights
from lengthwise.runs.provenance import versions
from lengthwise.tasks.base import RegularTask, make_task
from lengthwise.validation import check_kind, dump_named, path_of, split_named, validated

WEIGHTS, DESCRIPTION = "model.safetensors", "compiled.json"
_WAY_OUT = "run `lengthwise compile` again"


def save_compiled(construction: Construction, folder: str | Path) -> None:
    """Write model, machine and task into a folder; each file is complete when it appears.

    Readers reject weights whose digest differs from the digest in ``compiled.json``.
    """
    check_kind("construction", construction, Construction, "a Construction, as construct returns it")
    path = path_of("folder", folder)
    check_no_file("folder", path)
    path.mkdir(parents=True, exist_ok=True)
    model, (machine, classes, task) = construction.model, construction.target
    weights = save({name: tensor.clone().contiguous() for name, tensor in model.state_dict().items()})
    description = {
        "model": dump_named(model.name, model.config),
        "machine": machine.to_json(),
        "classes": classes,
        "task": task and dump_named(task.name, task),
        "max_length": construction.max_length,
        "source": construction.source,
        "about": construction.about,
        "weights": _digest(weights),
        "versions": versions(),
    }
    if not _is_certified(path, construction):
        certificate = certificate_file(path)  # the certificate and its proof are about another net
        for file in (certificate, proof_path(certificate)):
            file.unlink(missing_ok=True)
    # The description comes first: it marks the folder as one that may be overwritten if the next write fails.
    write_json(path / DESCRIPTION, description)
    # If this process dies before the weights are written, `load_compiled` rejects old weights by their digest.
    write_by_rename(path / WEIGHTS, weights)
    remove_drafts(path / DESCRIPTION)
    remove_drafts(path / WEIGHTS)


def _is_certified(folder: Path, construction: Construction) -> bool:
    """Return whether the certificate in a folder is about this net and its task."""
    task = construction.target.task
    try:
        certificate = Certificate.read(certificate_file(folder))
    except ValueError:
        return False
    return task is not None and mismatched_part(certificate, construction.model, task) is None


def load_compiled(folder: str | Path) -> Construction:
    """Read the model, machine and task that `save_compiled` wrote.

    Raises:
        ValueError: the folder is missing, incomplete or damaged, or its model or task is not registered.
    """
    path = path_of("folder", folder)
    try:
        description = read_json(path / DESCRIPTION, _WAY_OUT)
        weights = read_file(path / WEIGHTS)
    except FileNotFoundError as error:
        name = Path(error.filename).name
        lacking = name if path.is_dir() else "such folder"
        raise ValueError(f"{path}: expected the folder of a compiled model, found no {lacking}; {_WAY_OUT}") from None
    content = validated(_Description, description, path=str(path / DESCRIPTION))
    # A flipped bit leaves a readable file with another net, so the digests of the bytes are compared.
    if content.weights != _digest(weights):
        raise ValueError(f"{path / WEIGHTS}: damaged file (its contents have changed); {_WAY_OUT}")
    target = Target(Transducer.from_json(content.machine), content.classes, _task(content.task))
    name, settings = split_named(content.model)
    model = build_model(name, validated(MODELS[name].Config, settings, path="model"), target, seed=0)
    try:
        load_weights(model, load(weights))
    except RuntimeError:
        raise ValueError(
            f"{path / WEIGHTS}: expected the weights of the {name} in {DESCRIPTION}, got other weights; {_WAY_OUT}"
        ) from None
    return Construction(model.eval(), target, content.max_length, content.source, content.about)


class _Description(Part):
    """The content of ``compiled.json``."""

    model: dict[str, Any]
    machine: TransducerFields
    classes: tuple[str, ...]
    task: dict[str, Any] | None
    max_length: PositiveCount | None
    source: str
    about: tuple[str, ...]
    weights: str
    versions: dict[str, str]


def _task(content: dict[str, Any] | None) -> RegularTask | None:
    if content is None:
        return None
    name, settings = split_named(content)
    task = make_task(name, **settings)
    if not isinstance(task, RegularTask):
        raise ValueError(f"task: expected a task that a finite machine solves, got {name}; compile a regular task")
    return task


def _digest(weights: bytes) -> str:
    return blake2b(weights, digest_size=16).hexdigest()
