"""A model in the layout of model hubs: ``config.json`` and ``model.safetensors``, next to its certificate."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from lengthwise.certification.builder import mismatched_part, weights_digest
from lengthwise.certification.certificate import CERTIFICATE, Certificate
from lengthwise.files import (
    check_no_file,
    exists,
    naming,
    read_file,
    read_json,
    remove_drafts,
    write_by_rename,
    write_json,
)
from lengthwise.models.base import MODELS, SequenceModel, build_model, check_is_model
from lengthwise.models.weights import load_weights
from lengthwise.models.wrapped import WrappedRNN
from lengthwise.registry import UnknownName, names_of_files
from lengthwise.runs.described import net_of_parts, parts_of
from lengthwise.runs.provenance import versions
from lengthwise.tasks.base import Task, check_is_task, make_task
from lengthwise.validation import FrozenRecord, dump_named, path_of, split_named, validated

CONFIG, WEIGHTS = "config.json", "model.safetensors"
LIBRARY = "lengthwise"
_WAY_OUT = "run `lengthwise export` again"


class HubConfig(FrozenRecord):
    """The content of ``config.json``: task, model, a digest of the weights, and the model's origin.

    `source` is the kind and the name of what was exported. `run` is the whole specification of a trained run, and
    `trained_to` is the longest string length in its training. `nonlinearity` is the nonlinearity of a user's own
    `nn.RNN`.
    """

    library_name: str
    task: dict[str, Any]
    model: dict[str, Any]
    weights: str
    source: tuple[str, str]
    run: dict[str, Any] | None = None
    trained_to: Annotated[int, Field(ge=1)] | None = None
    nonlinearity: Literal["tanh", "relu"] = "tanh"
    versions: dict[str, str]


def is_hub_folder(path: Path) -> bool:
    """Return whether a folder has the files that `save_hub` writes, or only the first of them, the configuration."""
    # Without weights, a folder counts only if this library wrote the configuration, because other libraries use the
    # same file name.
    return (path / CONFIG).exists() and ((path / WEIGHTS).exists() or is_of_library(path))


def is_of_library(path: Path) -> bool:
    """Return whether the configuration in a folder names this library, as each configuration from `save_hub` does."""
    try:
        content = json.loads(read_file(path / CONFIG))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("library_name") == LIBRARY


def save_hub(
    folder: str | Path,
    model: SequenceModel,
    task: Task,
    source: tuple[str, str] = ("net", "in memory"),
    run: dict[str, Any] | None = None,
    trained_to: int | None = None,
) -> HubConfig:
    """Write a model's configuration and weights into a folder that `load_hub` reads.

    Each file is complete when it appears. `source`, `run` and `trained_to` state where the model comes from
    (`HubConfig`). To add a certificate of this model, write its text to ``certificate.json``.

    Raises:
        ValueError: the folder is a file or has another library's configuration, or the model cannot be read back.
        OSError: the folder cannot be made, or a file in it cannot be written.

    Example:
        >>> import tempfile
        >>> from lengthwise import make_model, make_task
        >>> task = make_task("parity")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     config = save_hub(folder, make_model("gru", task, d_model=4), task)
        ...     sorted(path.name for path in Path(folder).iterdir()), load_hub(folder).model.config.d_model
        (['config.json', 'model.safetensors'], 4)
    """
    path = path_of("folder", folder)
    check_is_model(model)
    check_is_task(task)
    check_no_file("folder", path)
    if exists(path / CONFIG) and not is_of_library(path):
        raise ValueError(
            f"folder: expected a folder without a {CONFIG} of another library, got {path}; name another folder"
        )
    if not isinstance(model, WrappedRNN) and not MODELS.has_member(type(model)):
        raise ValueError(
            f"model: expected a registered model or a net from `wrap`, got {type(model).__name__}; register its class "
            "with `MODELS.register`"
        )
    weights = _named_weights(model)
    content = {
        "library_name": LIBRARY,
        "task": dump_named(task.name, task),
        "model": dump_named(model.name, model.config),
        "weights": weights_digest(model),
        "source": source,
        "run": run,
        "trained_to": trained_to,
        "nonlinearity": getattr(model.core, "nonlinearity", "tanh") if isinstance(model, WrappedRNN) else "tanh",
        "versions": versions(),
    }
    config = validated(HubConfig, content)
    _check_restored(config, weights)
    _write(path, config, weights)
    return config


def _write(path: Path, config: HubConfig, weights: Mapping[str, Tensor]) -> None:
    with naming(path):
        path.mkdir(parents=True, exist_ok=True)
    # The configuration comes first: it marks the folder as one that may be overwritten if the next write fails.
    write_json(path / CONFIG, config.model_dump(mode="json"))
    write_by_rename(path / WEIGHTS, save({name: tensor.clone().contiguous() for name, tensor in weights.items()}))
    remove_drafts(path / CONFIG)  # drafts of a process that was killed would be uploaded with the folder
    remove_drafts(path / WEIGHTS)


def _check_restored(config: HubConfig, weights: dict[str, Tensor]) -> None:
    """Raise a ValueError unless the model can be built again from the configuration and the weights."""
    name, settings = split_named(config.task)
    try:
        with names_of_files():
            restored = _model(config, make_task(name, **settings), weights)
        # Loading gives all numbers one type, so differences of types would go unnoticed.
        are_same = all(weights[key].dtype == tensor.dtype for key, tensor in _named_weights(restored).items())
        reason = "" if are_same else "its weights have several number types"
    except (ValueError, LookupError, RuntimeError) as problem:
        reason = str(problem).splitlines()[-1].strip()
    if reason:
        raise ValueError(
            f"model: expected a model that can be read back, got {config.model['name']} for {name} ({reason}); save "
            "a model from `make_model` or `wrap` with its own task"
        )


class HubModel(NamedTuple):
    """A model in evaluation mode, its task, its certificate if it has one, and the configuration in its folder."""

    model: SequenceModel
    task: Task
    certificate: Certificate | None
    config: HubConfig


def load_hub(folder: str | Path) -> HubModel:
    """Load the model, task and certificate in a hub folder, as `lengthwise export` with format hub-folder writes it.

    Nothing is downloaded and nothing is unpickled. Download the folder first, for example with
    ``huggingface_hub.snapshot_download``. Only ``config.json``, ``model.safetensors`` and ``certificate.json`` are
    read. The configuration has to contain all required keys and no other keys. The weights have to have the names,
    shapes, types and digest of the configuration's model. The certificate has to be about this model and task; it is
    not verified again.

    Raises:
        ValueError: a file is missing, damaged, about another model, or of another library; or the task or model is not
            registered.

    Example:
        >>> import tempfile
        >>> from lengthwise import construct, make_task
        >>> compiled = construct("rnn", make_task("parity"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     config = save_hub(folder, compiled.model, compiled.task, ("example", "parity"))
        ...     loaded = load_hub(folder)
        >>> loaded.model.name, loaded.task.name, loaded.certificate
        ('rnn', 'parity', None)
    """
    path = path_of("folder", folder)
    model, task, config = read_hub(path)
    if not exists(path / CERTIFICATE):
        return HubModel(model, task, None, config)
    certificate = Certificate.read(path / CERTIFICATE)
    if (what := mismatched_part(certificate, model, task)) is not None:
        raise ValueError(
            f"{path / CERTIFICATE}: expected a certificate about this model, got a difference in {what}; remove "
            "this file, and certify the folder again"
        )
    return HubModel(model, task, certificate, config)


def read_hub(folder: Path) -> tuple[SequenceModel, Task, HubConfig]:
    """Read the model, task and configuration that `save_hub` wrote; errors are as in `load_hub`."""
    try:
        content = read_json(folder / CONFIG, _WAY_OUT)
    except FileNotFoundError:
        raise ValueError(f"{folder}: expected a folder with {CONFIG}, found no {CONFIG}; {_WAY_OUT}") from None
    config = validated(HubConfig, content, path=str(folder / CONFIG))
    if config.library_name != LIBRARY:
        raise ValueError(
            f"{folder}: expected a model of {LIBRARY}, got a model of {config.library_name}; name another folder"
        )
    try:
        weights = load(read_file(folder / WEIGHTS))
    except FileNotFoundError:
        raise ValueError(f"{folder}: expected a folder with {WEIGHTS}, found no {WEIGHTS}; {_WAY_OUT}") from None
    except (SafetensorError, KeyError) as problem:  # KeyError: a number type that torch lacks
        raise ValueError(
            f"{folder / WEIGHTS}: expected safetensors, got something else ({problem}); {_WAY_OUT}"
        ) from None
    name, settings = split_named(config.task)
    with names_of_files():
        task = make_task(name, **settings)
    try:
        model = _model(config, task, weights)
    except UnknownName:
        raise
    except (RuntimeError, LookupError) as problem:
        raise ValueError(
            f"{folder / WEIGHTS}: expected the weights of {folder / CONFIG}, got other weights "
            f"({str(problem).splitlines()[-1].strip()}); {_WAY_OUT}"
        ) from None
    # Loading converts numbers to the type of the model, so a wrong type in the file would go unnoticed.
    for name, tensor in _named_weights(model).items():
        if weights[name].dtype != tensor.dtype:
            raise ValueError(
                f"{folder / WEIGHTS}: expected {tensor.dtype} for {name}, got {weights[name].dtype}; {_WAY_OUT}"
            )
    # Weights of the right shapes may still be damaged, or belong to another folder.
    if weights_digest(model) != config.weights:
        raise ValueError(f"{folder / WEIGHTS}: damaged file (its contents have changed); {_WAY_OUT}")
    return model.eval(), task, config


def _named_weights(model: SequenceModel) -> dict[str, Tensor]:
    """Return a model's weights under the names that they have in the file."""
    return parts_of(model) if isinstance(model, WrappedRNN) else model.state_dict()


def _model(config: HubConfig, task: Task, weights: dict[str, Tensor]) -> SequenceModel:
    name, settings = split_named(config.model)
    if name == WrappedRNN.name:
        return net_of_parts(weights, config.nonlinearity)
    with names_of_files():
        kind = MODELS[name]
    model = build_model(name, validated(kind.Config, settings, path="model"), task, seed=0)  # type: ignore[arg-type]
    load_weights(model, weights)
    return model
