"""Models in files: trained runs, compiled or learned machines, and nets described in TOML."""

from pathlib import Path
from typing import Any, NamedTuple

from lengthwise.certification.builder import mismatched_part
from lengthwise.certification.certificate import Certificate
from lengthwise.devices import find_device
from lengthwise.files import exists
from lengthwise.formats.files import suffixes
from lengthwise.models.base import SequenceModel
from lengthwise.runs.compiled import DESCRIPTION, load_compiled
from lengthwise.runs.described import check_not_pickled, load_described
from lengthwise.runs.folder import Run, load_run, run_hint
from lengthwise.runs.hub import is_hub_folder, read_hub
from lengthwise.tasks.base import Task
from lengthwise.validation import dump_named


class StoredModel(NamedTuple):
    """A model, its task, the kind and the name of its source, and its `run` if a run trained it.

    For a model without a run, `longest` is the longest string length in training, or None if it is unknown.
    """

    model: SequenceModel
    task: Task
    kind: str
    name: str
    run: Run | None = None
    longest: int | None = None

    @property
    def trained_to(self) -> int | None:
        """The longest string length in training, if it is known."""
        return self.longest if self.run is None else self.run.spec.recipe.max_length

    @property
    def settings(self) -> dict[str, Any]:
        """The specification of the run; for a model without a run, only task and model, with an empty seed.

        The model's settings come from the stored model. If the run has a goal, its last attempt can have another size
        than the specification.
        """
        task = dump_named(self.task.name, self.task)
        model = dump_named(self.model.name, self.model.config)
        known = {"task": task, "model": model, "seed": ""}
        return known if self.run is None else self.run.spec.to_json() | {"model": model}


def load_stored(path: Path, device: str = "cpu") -> StoredModel:
    """Load the model in a folder, or the model that a TOML file describes, to a device.

    Raises:
        ValueError: the path has no model or is damaged; its machine was compiled without a task; the device does
            not exist.
    """
    target = find_device(device)
    stored = _load(path)
    stored.model.to(target)
    return stored


def _load(path: Path) -> StoredModel:
    if not exists(path):
        raise ValueError(
            f"{path}: expected the folder of a run, or of a compiled or learned model, or the TOML file of a net, "
            "found no such path; name an existing path"
        )
    if not path.is_dir():
        # Loading a pickle can run any code, so the bytes are checked before anything parses them.
        check_not_pickled(path)
        if path.suffix == ".safetensors":
            raise ValueError(
                f"{path}: expected a TOML file that describes these weights, got the weights; write a file with, for "
                f'example, the lines `weights = "{path.name}"` and `task = "parity"`, and name that file instead'
            )
        if path.suffix.lower() in suffixes():
            raise ValueError(
                f"{path}: expected a model, got the file of a machine or a certificate; `lengthwise compile` makes a "
                "net for a machine"
            )
        return StoredModel(*load_described(path), "described", path.name)
    if (path / DESCRIPTION).exists():
        compiled = load_compiled(path)
        if compiled.task is None:
            raise ValueError(
                f"{path}: its machine was compiled without a task, so there are no strings to try; compile a "
                "task instead of a machine"
            )
        return StoredModel(compiled.model, compiled.task, "compiled", compiled.source)
    if is_hub_folder(path):
        model, task, config = read_hub(path)
        return StoredModel(model, task, "hub folder", " ".join(config.source), longest=config.trained_to)
    if not (path / "run.json").exists():
        raise ValueError(
            f"{path}: expected the folder of a run, or of a compiled or learned model, got a folder without run.json; "
            f"{run_hint(path)}"
        )
    run = load_run(path)
    return StoredModel(run.model, run.spec.task, "run", run.spec.id, run)


def check_subject(source: str, certificate: Certificate, stored: StoredModel, *, of_any_task: bool = False) -> None:
    """Raise a ValueError if a certificate is about another model or, unless `of_any_task`, about another task."""
    what = mismatched_part(certificate, stored.model, stored.task)
    if what is None or (of_any_task and what not in ("weights", "model", "net")):
        return
    another = "other weights" if what == "weights" else f"another {what}"
    raise ValueError(f"{source}: its certificate is about {another}; certify {source} again")
