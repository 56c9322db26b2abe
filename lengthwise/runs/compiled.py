"""A compiled machine on disk: ``model.safetensors`` and ``compiled.json``."""

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load, save

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.constructions.base import Construction, Target
from lengthwise.models.base import MODELS, build_model
from lengthwise.runs.folder import versions
from lengthwise.runs.json_file import read_json, write_json
from lengthwise.tasks.base import RegularTask, make_task
from lengthwise.training.checkpoint import write_by_rename
from lengthwise.validation import validated

WEIGHTS, DESCRIPTION = "model.safetensors", "compiled.json"
_WAY_OUT = "`lengthwise compile` makes it again"


def save_compiled(construction: Construction, folder: str | Path) -> None:
    """Write model, machine and task into a folder; files appear by rename, the description last."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    model, (machine, classes, task) = construction.model, construction.target
    weights = save({name: tensor.contiguous() for name, tensor in model.state_dict().items()})
    write_by_rename(path / WEIGHTS, weights)
    description = {
        "model": {"name": model.name, **model.config.model_dump(mode="json")},
        "machine": {
            "symbols": machine.symbols,
            "table": machine.semiautomaton.table.tolist(),
            "start": machine.start,
            "outputs": machine.outputs.tolist(),
        },
        "classes": classes,
        "task": task and {"name": task.name, **task.model_dump(mode="json")},
        "max_length": construction.max_length,
        "source": construction.source,
        "about": construction.about,
        "weights": _digest(weights),
        "versions": versions(),
    }
    write_json(path / DESCRIPTION, description)


def load_compiled(folder: str | Path) -> Construction:
    """Read back what `save_compiled` wrote.

    Raises:
        ValueError: the folder is missing, incomplete or damaged; its model or its task is not known here.
    """
    path = Path(folder)
    try:
        description = read_json(path / DESCRIPTION, _WAY_OUT)
        weights = (path / WEIGHTS).read_bytes()
    except FileNotFoundError as error:
        name = Path(error.filename).name
        found = f"there is no {name} in it" if path.is_dir() else "there is no such folder"
        raise ValueError(f"{path}: wanted a compiled model, but {found}; {_WAY_OUT}") from None
    if description["weights"] != _digest(weights):
        raise ValueError(f"{path / WEIGHTS}: damaged file (its contents have changed); {_WAY_OUT}")
    machine = _machine(description["machine"])
    target = Target(machine, tuple(description["classes"]), _task(description["task"]))
    settings = description["model"]
    name = settings.pop("name")
    model = build_model(name, validated(MODELS[name].Config, settings, path="model"), target, seed=0)
    model.load_state_dict(load(weights))
    return Construction(
        model.eval(), target, description["max_length"], description["source"], tuple(description["about"])
    )


def _machine(content: dict[str, Any]) -> Transducer:
    semiautomaton = Semiautomaton(np.array(content["table"]), tuple(content["symbols"]))
    return Transducer(semiautomaton, content["start"], np.array(content["outputs"]))


def _task(settings: dict[str, Any] | None) -> RegularTask | None:
    if settings is None:
        return None
    task = make_task(settings.pop("name"), **settings)
    assert isinstance(task, RegularTask)
    return task


def _digest(weights: bytes) -> str:
    return blake2b(weights, digest_size=16).hexdigest()
