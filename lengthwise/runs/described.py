"""A user's own net in files: its weights as safetensors, and a TOML file of a few lines that describes them."""

import json
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from pydantic import model_validator
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from lengthwise.files import read_file
from lengthwise.models.base import MAX_LAYERS, SequenceModel
from lengthwise.models.consistency import check_sizes
from lengthwise.models.containers import first_line
from lengthwise.models.wrapped import WrappedRNN, wrap
from lengthwise.runs.described_language_model import KEY, load_language_model, read_language_model
from lengthwise.runs.spec import read_settings
from lengthwise.tasks.base import SymbolTask, Task, make_task
from lengthwise.validation import FrozenRecord, validated

Part = TypeVar("Part", bound=nn.Module)

PARTS = ("embedding", "core", "head")

GATES = {1: nn.RNN, 3: nn.GRU, 4: nn.LSTM}
"""torch's class of the recurrent core, for each number of square blocks in the recurrent weight matrix."""

_CONVERT = (
    "in the program that trained the net, call safetensors.torch.save_model(net, 'net.safetensors'); files written by "
    "torch.save can run any code and are never opened"
)
_WRAP = "if the net has other parts, build it in Python and give its parts to `wrap`"


class Description(FrozenRecord):
    """A net's TOML file: the path of the weights (relative to this file), the task, and the names of the net's parts.

    The name of a part (embedding, core or head) is the prefix of the names of its weights.
    """

    weights: str
    task: dict[str, Any] | str = ""
    embedding: str = "embedding"
    core: str = "core"
    head: str = "head"
    nonlinearity: Literal["tanh", "relu"] = "tanh"

    @model_validator(mode="before")
    @classmethod
    def _task_is_name_or_table(cls, content: dict[str, Any]) -> dict[str, Any]:
        task = content.get("task", "")
        if not isinstance(task, str | dict):
            raise ValueError(
                f'task: expected a name, such as "parity", or a table with a name, got {task!r:.60}; give one of these'
            )
        return content


def load_described(path: Path) -> tuple[SequenceModel, Task]:
    """Load the net that a TOML file describes, and its task.

    With the key `hugging_face`, the net is a language model in a folder (`described_language_model`). Otherwise, the
    net consists of an `nn.Embedding`, a core (`nn.RNN`, `nn.GRU` or `nn.LSTM`) and an `nn.Linear`. The weights
    determine the sizes, the number of layers and the kind of core. The first state is zero. Paths in the file are
    relative to its folder.

    Raises:
        ValueError: a file is missing, damaged or of another kind; or the weights do not fit one another or the task.

    Example of such a file::

        weights = "net.safetensors"
        core = "lstm"
        task = {name = "parity"}
    """
    # Everything is checked before a module is built, so that each mistake is named with the file.
    settings = read_settings(path)
    if KEY in settings:
        language_model = read_language_model(settings, path)
        task = _symbol_task(*_task_in(language_model.task, path), path)
        return _fitting(load_language_model(language_model, task, path), task, path), task
    description = validated(Description, settings, path=str(path))
    name, of_task = _task_in(description.task, path)
    net = _recurrent_net(description, path)
    task = _symbol_task(name, of_task, path)
    return _fitting(net, task, path), task


def _recurrent_net(description: Description, path: Path) -> WrappedRNN:
    """Return the net of an embedding, a core and a head."""
    prefixes = {getattr(description, part): part for part in PARTS}
    weights = _read_weights(path.parent / description.weights, prefixes)
    parts: dict[str, dict[str, Tensor]] = {part: {} for part in PARTS}
    for key, tensor in weights.items():
        if not tensor.is_floating_point() or not tensor.numel():
            raise ValueError(
                f"{path}: expected weights that are floating-point numbers and not empty, got {key} of {tensor.dtype} "
                f"and shape {[*tensor.shape]}; save the whole net as float32"
            )
        # NaN spreads to all logits, and a later message could not name its cause.
        if not tensor.isfinite().all():
            raise ValueError(f"{path}: expected finite weights, got NaN or infinity in {key}; train the net again")
    # Loading would silently convert mixed types, and the net would differ from the user's net.
    if len(kinds := {str(tensor.dtype) for tensor in weights.values()}) > 1:
        raise ValueError(
            f"{path}: expected weights of one number type, got {', '.join(sorted(kinds))}; convert all weights to one "
            "of these types"
        )
    for key, tensor in weights.items():
        prefix, _, rest = key.rpartition(".")
        if prefix not in prefixes:
            known = ", ".join(f"{part} = {prefix!r}" for prefix, part in prefixes.items())
            raise ValueError(
                f"{path}: expected weights of the net's three parts ({known}), got {key!r}; name the parts in this "
                f"file, or, {_WRAP}"
            )
        parts[prefixes[prefix]][rest] = tensor
    for part, tensors in parts.items():
        if not tensors:
            raise ValueError(
                f"{path}: expected weights of {part} {getattr(description, part)!r}, found no such weights; set "
                f"`{part}` to the prefix of its weights"
            )
    try:
        return _net(parts, description.nonlinearity).eval()
    except (IndexError, RuntimeError, ValueError) as problem:
        unknown = f"the weights in {description.weights} do not form a net ({first_line(problem)}); {_WRAP}"
        raise ValueError(f"{path}: {problem if type(problem) is ValueError else unknown}") from None


def _fitting(net: SequenceModel, task: SymbolTask, path: Path) -> SequenceModel:
    """Return the net; raise a ValueError if the net and the task have different numbers of symbols or answers."""
    try:
        check_sizes(net, task)
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None
    return net


def _task_in(given: dict[str, Any] | str, path: Path) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of the task that a description file names.

    The path of a machine's file is looked up in the folder of the description file. If that folder has no such file,
    the path stays as it is.
    """
    settings = {"name": given} if isinstance(given, str) else dict(given)
    if not isinstance(name := settings.pop("name", None), str) or not name:
        raise ValueError(
            f'{path}: task: expected the task of the net, such as task = "parity" or task = {{name = "regex", '
            f'pattern = "(ab)*"}}, got {given or "none"}; write such a line'
        )
    return name, _relative_to(path.parent, settings)


def _symbol_task(name: str, settings: dict[str, Any], path: Path) -> SymbolTask:
    task = make_task(name, **settings)
    if not isinstance(task, SymbolTask):
        raise ValueError(
            f"{path}: expected a task over symbols, got {name}, whose inputs are vectors; choose another task"
        )
    return task


def _relative_to(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Return a task's settings; a `file`, also within `base`, becomes a path in `folder` if `folder` has this file."""
    given = dict(settings)
    if isinstance(file := given.get("file"), str) and (folder / file).is_file():
        given["file"] = str(folder / file)
    if isinstance(base := given.get("base"), dict):
        given["base"] = _relative_to(folder, base)
    return given


def parts_of(net: WrappedRNN) -> dict[str, Tensor]:
    """Return the weights of a net that consists of an `nn.Embedding`, a core and an `nn.Linear`.

    The name of a weight is PART.KEY, where PART is one of `PARTS`, and KEY is the name of the weight in this part.

    Raises:
        ValueError: the net has parts of other kinds.
    """
    head = net.readout[1]
    if not isinstance(net.embedding, nn.Embedding) or not isinstance(head, nn.Linear) or net.is_cell:
        raise ValueError(
            "model: expected an nn.Embedding, a core (nn.RNN, nn.GRU or nn.LSTM) and an nn.Linear, got other parts; "
            "save the model's state_dict instead"
        )
    parts: dict[str, nn.Module] = {"embedding": net.embedding, "core": net.core, "head": head}
    return {f"{part}.{key}": tensor for part, module in parts.items() for key, tensor in module.state_dict().items()}


def net_of_parts(weights: dict[str, Tensor], nonlinearity: str) -> WrappedRNN:
    """Build a net from the weights that `parts_of` returned.

    Raises:
        IndexError, KeyError, RuntimeError, ValueError: weights are missing, or do not fit together.
    """
    parts: dict[str, dict[str, Tensor]] = {part: {} for part in PARTS}
    for name, tensor in weights.items():
        part, _, key = name.partition(".")
        parts[part][key] = tensor
    return _net(parts, nonlinearity)


def _net(parts: dict[str, dict[str, Tensor]], nonlinearity: str) -> WrappedRNN:
    return wrap(_embedding(parts["embedding"]), _core(parts["core"], nonlinearity), _linear(parts["head"]))


def check_not_pickled(path: Path) -> None:
    """Raise a ValueError for a file that torch.save or pickle wrote, because loading it could run any code."""
    start = read_file(path, 9)
    # A safetensors file begins with an 8-byte number, which can look like the start of a zip file or a pickle. The next
    # byte is "{", which begins a JSON object.
    if start[8:] != b"{" and (start[:2] == b"PK" or start[:1] == b"\x80"):
        raise ValueError(f"{path}: expected safetensors, got a file written by torch.save or pickle; {_CONVERT}")


def _read_weights(path: Path, prefixes: Container[str]) -> dict[str, Tensor]:
    """Return the tensors of a file.

    `safetensors.torch.save_model` stores a tied tensor under one of its names. It is returned under all its names that
    have one of the `prefixes`.

    Raises:
        ValueError: the file does not exist, is damaged, or is of another kind; or the file records two names of one
            tied tensor, but stores two tensors or no tensor (only names with one of the `prefixes` are checked).
    """
    if path.name.endswith(".index.json"):
        raise ValueError(
            f"{path}: expected a file of weights, got the index of several files; in the program that trained the net, "
            "call safetensors.torch.save_model(net, 'net.safetensors'), which writes one file"
        )
    try:
        check_not_pickled(path)
        content = read_file(path)
        weights = load(content)
    except FileNotFoundError:
        raise ValueError(f"{path}: expected a file of weights, found no such file; {_CONVERT}") from None
    except SafetensorError as problem:
        raise ValueError(f"{path}: expected safetensors, got something else ({problem}); {_CONVERT}") from None
    except KeyError as problem:
        raise ValueError(
            f"{path}: expected number types that torch knows, got type {problem}; save the weights as float32"
        ) from None
    # `load` has parsed the header, so it is valid JSON. In this header, `save_model` records the stored name of each
    # tied tensor.
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    notes: dict[str, str] = header.get("__metadata__") or {}
    tied = {name: kept for name, kept in notes.items() if name.rpartition(".")[0] in prefixes}
    for name, kept in tied.items():
        if name in weights or kept not in weights:
            got = f"a separate tensor {name}" if name in weights else f"no tensor {kept}"
            raise ValueError(f"{path}: expected {name} and {kept} to be one tied tensor, got {got}; save the net again")
    return weights | {name: weights[kept] for name, kept in tied.items()}


def _weight(part: str, weights: dict[str, Tensor], name: str) -> Tensor:
    if name not in weights:
        raise ValueError(
            f"{part}: expected {name!r} among its weights, got {', '.join(sorted(weights))}; set `{part}` in the TOML "
            f"file to the prefix of its weights, or, {_WRAP}"
        )
    return weights[name]


def _matrix(part: str, weights: dict[str, Tensor], name: str = "weight") -> tuple[int, int]:
    """Return the numbers of rows and columns of a part's matrix."""
    shape = _weight(part, weights, name).shape
    if len(shape) != 2:
        raise ValueError(
            f"{part}: expected a {name} of two dimensions, got shape {[*shape]}; set `{part}` in the TOML file to "
            f"the prefix of its weights, or, {_WRAP}"
        )
    return shape[0], shape[1]


def _embedding(weights: dict[str, Tensor]) -> nn.Embedding:
    count, width = _matrix("embedding", weights)
    return _with_weights("embedding", lambda: nn.Embedding(count, width), weights)


def _linear(weights: dict[str, Tensor]) -> nn.Linear:
    classes, width = _matrix("head", weights)
    return _with_weights("head", lambda: nn.Linear(width, classes, bias="bias" in weights), weights)


def _core(weights: dict[str, Tensor], nonlinearity: str) -> nn.RNNBase:
    if any(name.endswith("_reverse") for name in weights):
        raise ValueError(
            "core: expected a core that reads forwards, got the weights of a bidirectional core; train one with "
            "bidirectional=False"
        )
    rows, output = _matrix("core", weights, "weight_hh_l0")
    projected = _matrix("core", weights, "weight_hr_l0")[1] if "weight_hr_l0" in weights else output
    layers = sum(name.startswith("weight_hh_l") for name in weights)
    if layers > MAX_LAYERS:
        raise ValueError(f"core: expected at most {MAX_LAYERS} layers, got {layers:,}; train a core with fewer layers")
    kind = GATES.get(rows // projected) if rows % projected == 0 else None
    if kind is None:
        raise ValueError(
            f"core: expected a weight_hh_l0 of 1, 3 or 4 square blocks, got shape {[rows, output]}; save the weights "
            "of an nn.RNN, nn.GRU or nn.LSTM"
        )
    if kind is not nn.RNN and nonlinearity != "tanh":
        raise ValueError(
            f"nonlinearity: expected no nonlinearity with an nn.{kind.__name__}, got {nonlinearity!r}; leave out "
            "nonlinearity"
        )
    options: dict[str, Any] = {"nonlinearity": nonlinearity} if kind is nn.RNN else {}
    if "weight_hr_l0" in weights:
        options["proj_size"] = output
    inputs, bias = _matrix("core", weights, "weight_ih_l0")[1], "bias_hh_l0" in weights

    def make() -> nn.RNNBase:
        core: nn.RNNBase = kind(inputs, projected, layers, bias=bias, batch_first=True, **options)
        return core

    return _with_weights("core", make, weights)


def _with_weights(part: str, make: Callable[[], Part], weights: dict[str, Tensor]) -> Part:
    """Return the module that `make` makes, with these weights; memory is allocated only after all shapes agree."""
    # A damaged file can contain a shape of any size, which takes no memory on the device "meta".
    with torch.device("meta"):
        module = make()
    expected = module.state_dict()
    for name, tensor in expected.items():
        if (given := _weight(part, weights, name)).shape != tensor.shape:
            raise ValueError(
                f"{part}: expected {name} of shape {[*tensor.shape]}, got {[*given.shape]}; save the whole net again"
            )
    if others := sorted(weights.keys() - expected):
        name = type(module).__name__
        raise ValueError(
            f"{part}: expected only the weights of an nn.{name}, but also got {others[0]}; leave out "
            f"{others[0]}, or, {_WRAP}"
        )
    with torch.no_grad():
        module.to(next(iter(weights.values())).dtype).to_empty(device="cpu").load_state_dict(weights)
    return module
