"""Checkpoints: everything that training changes, in one safetensors file that is written by rename."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from lengthwise.files import open_file, write_by_rename
from lengthwise.models.base import SequenceModel
from lengthwise.models.weights import first_names
from lengthwise.training.loop import Growth, TrainingState
from lengthwise.training.shards import distribute, joined_shards

NOTE = "note "
"""The prefix of the names of notes in a file's metadata."""


def save_checkpoint(
    state: TrainingState, path: Path, fingerprint: str, notes: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Save weights, their average, optimizer moments, lengths reached, running means and the step in one file.

    `fingerprint` identifies the specification, and `notes` are further texts to save (`read_notes`). If several
    processes train, the first process saves, and all processes take part in `gathered_tensors`. The file does not
    depend on the number of processes, and any number of processes can resume training from the file.
    """
    tensors = gathered_tensors(state, path.parent)
    metadata = {
        "step": str(state.step),
        "lengths_reached": str(state.growth.num_reached),
        "loss_at_longest": repr(state.growth.loss),
        "gradient_norm": repr(state.gradient_norm),
        "loss": repr(state.loss),
        "best_loss": repr(state.best_loss),
        "best_at": str(state.best_at),
        "solved_at": "" if state.solved_at is None else str(state.solved_at),
        "fingerprint": fingerprint,
        **{NOTE + name: text for name, text in notes.items()},
    }
    # Safetensors has no checksum, so a flipped bit would change a weight unnoticed.
    metadata["digest"] = _digest(tensors, metadata)
    write_by_rename(path, _with_sorted_metadata(save(tensors, metadata)))


def gathered_tensors(state: TrainingState, folder: Path) -> dict[str, Tensor]:
    """Return all tensors of a checkpoint, on the CPU.

    If weights are sharded, all processes have to call this, and only the first process gets the tensors. Each process
    first saves its parts as safetensors in a folder, which is removed once the parts are joined.
    """
    tensors: dict[str, Tensor] = {f"weights.{name}": tensor for name, tensor in state.model.state_dict().items()}
    tensors |= {f"average.{name}": tensor for name, tensor in state.average.items()}
    tensors |= {f"head.{name}": tensor for name, tensor in state.head_parameters.items()}
    for name, parameter in state.parameters.items():
        for key, tensor in _moments(state, parameter).items():
            tensors[f"optimizer.{name}.{key}"] = tensor
    if state.ranks.is_sharded:
        return joined_shards(tensors, folder, state.ranks)
    return {name: tensor.detach().clone().cpu().contiguous() for name, tensor in tensors.items()}


def load_checkpoint(state: TrainingState, path: Path, fingerprint: str) -> None:
    """Set `state` to the saved state.

    A damaged file, or a file that belongs to another specification, raises a ValueError and changes nothing.
    """
    # Everything is read and checked before the state changes, so a rejected file leaves the state unchanged.
    tensors, metadata = _read(path, fingerprint, state.model)
    weights = {name: distribute(tensors[f"weights.{name}"], now) for name, now in state.model.state_dict().items()}
    state.model.load_state_dict(weights)
    for name, now in state.average.items():
        state.average[name] = distribute(tensors[f"average.{name}"], now)
    with torch.no_grad():
        for name, parameter in state.head_parameters.items():
            parameter.copy_(tensors[f"head.{name}"])
    for name, parameter in state.parameters.items():
        prefix = f"optimizer.{name}."
        saved = {
            key.removeprefix(prefix): distribute(tensor, parameter.detach())
            for key, tensor in tensors.items()
            if key.startswith(prefix)
        }
        _moments(state, parameter).update(saved)
    state.growth = Growth(int(metadata["lengths_reached"]), float(metadata["loss_at_longest"]))
    state.gradient_norm = float(metadata["gradient_norm"])
    state.loss = float(metadata["loss"])
    state.best_loss, state.best_at = float(metadata["best_loss"]), int(metadata["best_at"])
    state.solved_at = int(solved_at) if (solved_at := metadata["solved_at"]) else None
    state.step = int(metadata["step"])


def read_notes(path: Path, fingerprint: str) -> dict[str, str]:
    """Return the notes in a checkpoint.

    A damaged file, or a file that belongs to another specification, raises a ValueError.
    """
    _, metadata = _read_own(path, fingerprint)
    return {name.removeprefix(NOTE): text for name, text in metadata.items() if name.startswith(NOTE)}


def load_final_weights(model: SequenceModel, path: Path, fingerprint: str) -> int:
    """Put a checkpoint's final weights into `model`, and return the number of steps done.

    The final weights are the average of the weights, if training kept an average.
    """
    tensors, metadata = _read(path, fingerprint, model)
    first = first_names(model)
    weights = {
        # Tied weights share one average, under their first name; buffers keep their own value.
        name: tensors.get(f"average.{first.get(name, name)}", tensors[f"weights.{name}"])
        for name in model.state_dict()
    }
    model.load_state_dict(weights)
    return int(metadata["step"])


def _moments(state: TrainingState, parameter: nn.Parameter) -> dict[str, Tensor]:
    """Return the tensors that the optimizer keeps for this parameter."""
    for optimizer in state.optimizers:
        if any(parameter is moved for group in optimizer.param_groups for moved in group["params"]):
            moments: dict[str, Tensor] = optimizer.state[parameter]
            return moments
    raise AssertionError("every parameter is moved by an optimizer")


def _read_file(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read tensors and metadata of a file, and check that it is not damaged."""
    try:
        open_file(path).close()  # safetensors would call an unreadable file missing, or wait for a pipe indefinitely
        with safe_open(path, framework="pt") as file:
            tensors: dict[str, torch.Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata: dict[str, str] = file.metadata() or {}
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no checkpoint; train the run first") from None
    except (SafetensorError, OSError, KeyError) as error:  # KeyError: a number type that torch lacks
        raise ValueError(f"{path}: damaged checkpoint ({error}); move {path.parent} away to train again") from None
    if metadata.pop("digest", None) != _digest(tensors, metadata):
        raise ValueError(
            f"{path}: damaged checkpoint (its contents have changed); move {path.parent} away to train again"
        )
    return tensors, metadata


def _read_own(path: Path, fingerprint: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a file, and check that it belongs to the specification."""
    tensors, metadata = _read_file(path)
    if metadata["fingerprint"] != fingerprint:
        raise ValueError(
            f"{path}: this checkpoint belongs to another specification, {metadata['fingerprint']}; move {path.parent} "
            "away to train again"
        )
    return tensors, metadata


def _read(path: Path, fingerprint: str, model: SequenceModel) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a file, and check that it belongs to the specification and to the model."""
    tensors, metadata = _read_own(path, fingerprint)
    saved = {name: tensor.shape for name, tensor in tensors.items() if name.startswith("weights.")}
    if saved != {f"weights.{name}": tensor.shape for name, tensor in model.state_dict().items()}:
        raise ValueError(
            f"{path}: its weights belong to another version of {model.name}; move {path.parent} away to train again"
        )
    return tensors, metadata


def _with_sorted_metadata(content: bytes) -> bytes:
    """Return a safetensors file with sorted metadata, because safetensors writes metadata in arbitrary order.

    The file has three parts: the size of the header in 8 bytes, the header as JSON padded with blanks, and the tensors.
    With sorted metadata, equal states give equal files, which can be compared byte by byte.
    """
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def _digest(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    """Hash names, shapes, bits and metadata, so that a flipped bit is noticed."""
    digest = blake2b(repr(sorted(metadata.items())).encode(), digest_size=16)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
