"""Parts of tensors that several processes have: put together for a checkpoint, and taken from one again."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from safetensors import safe_open
from torch import Tensor

from lengthwise.training.ranks import Ranks, is_part, one_sentence

FOLDER = ".shards"
"""Next to a checkpoint while it is put together."""


def joined_shards(tensors: Mapping[str, Tensor], folder: Path, ranks: Ranks) -> dict[str, Tensor]:
    """Whole tensors, in the first process; the others get none. All of them have to call it.

    Each process writes its parts, as safetensors: nothing is pickled. What all have whole is taken from the first one:
    put together by torch 2.13, a tensor without dimensions, as an optimizer's count of steps, would be 0.
    """
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    shards = folder / FOLDER
    if ranks.rank == 0:
        shutil.rmtree(shards, ignore_errors=True)  # those of a process that was killed
    parts = {name: tensor.detach() for name, tensor in tensors.items() if is_part(tensor)}
    writer = HuggingFaceStorageWriter(str(shards), save_distributed=True, enable_consolidation=True)
    with one_sentence(ranks):
        ranks.any(False)
        save(parts, storage_writer=writer)
        ranks.any(False)
    if ranks.rank:
        return {}
    joined: dict[str, Tensor] = {}
    for file in sorted(shards.glob("*.safetensors")):
        with safe_open(file, framework="pt") as opened:
            joined |= {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    shutil.rmtree(shards)
    return {name: joined[name] if name in parts else tensor.detach().clone().cpu() for name, tensor in tensors.items()}


def placed(tensor: Tensor, like: Tensor) -> Tensor:
    """A whole tensor where another one is: on its device, and this process's part where that has a part of the same."""
    there = tensor.to(like.device)
    if not is_part(like) or tensor.shape != like.shape:
        return there
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    parts: Tensor = distribute_tensor(there, like.device_mesh, like.placements, src_data_rank=None)
    return parts
