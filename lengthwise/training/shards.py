"""Sharded tensors: how they are joined for a checkpoint, and distributed again from a checkpoint."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from safetensors import safe_open
from torch import Tensor

from lengthwise.training.ranks import Ranks, is_part, rank_errors

FOLDER = ".shards"
"""The folder, next to a checkpoint, in which processes store their parts until the parts are joined."""


def joined_shards(tensors: Mapping[str, Tensor], folder: Path, ranks: Ranks) -> dict[str, Tensor]:
    """Return the whole tensors in the first process, and nothing in other processes; all processes have to call this.

    Each process writes its parts as safetensors, so nothing is pickled. Tensors that are whole in every process are
    taken from the first process. The reason is that torch 2.13 would return 0 for a joined tensor without dimensions,
    such as an optimizer's count of steps.
    """
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    shards = folder / FOLDER
    if ranks.rank == 0:
        shutil.rmtree(shards, ignore_errors=True)  # a process that was killed may have left its parts
    parts = {name: tensor.detach() for name, tensor in tensors.items() if is_part(tensor)}
    writer = HuggingFaceStorageWriter(str(shards), save_distributed=True, enable_consolidation=True)
    with rank_errors(ranks):
        ranks.any(False)
        # The first call of `any` waits until rank 0 has removed an old folder, and the second call waits until all
        # parts are written.
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


def distribute(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a whole tensor on the device of `like`; if `like` is sharded, return only this process's part."""
    there = tensor.to(like.device)
    if not is_part(like) or tensor.shape != like.shape:
        return there
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    parts: Tensor = distribute_tensor(there, like.device_mesh, like.placements, src_data_rank=None)
    return parts
