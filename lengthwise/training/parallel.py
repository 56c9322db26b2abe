"""Data parallelism with torch: the process group that torchrun starts, and the wrappers that share gradients."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast, get_args

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from lengthwise.devices import find_device
from lengthwise.models.base import SequenceModel
from lengthwise.registry import check_known
from lengthwise.training.losses import StepLoss, step_loss
from lengthwise.training.ranks import ALONE, Parallel, Ranks
from lengthwise.training.state_supervision import StateHead
from lengthwise.version import __version__

TIMEOUT = timedelta(minutes=30)
"""The longest time that a process waits for the other processes, for example while the first process measures."""


class StepLosses(nn.Module):
    """`step_loss` as a module, so that torch can wrap it and share its gradients between processes."""

    def __init__(self, model: SequenceModel, head: StateHead | None, ranks: Ranks) -> None:
        super().__init__()
        self.model = model
        self.head = head
        self.ranks = ranks

    def forward(self, *arguments: Any) -> StepLoss:
        """Call `step_loss` on this module's model and head.

        The arguments are the batch, task, recipe, scheduled step, generator and noise generator.
        """
        batch, task, recipe, scheduled, generator, noise = arguments
        return step_loss(self.model, self.head, batch, task, recipe, scheduled, generator, self.ranks, noise)


def losses_of(model: SequenceModel, head: StateHead | None, ranks: Ranks) -> Callable[..., StepLoss]:
    """Return a function that computes the losses of a step; their `backward` averages gradients over all processes.

    With `fsdp`, each process keeps only its own part of the model's parameters after this call.
    """
    losses = StepLosses(model, head, ranks)
    if ranks.size == 1:
        return losses
    if ranks.is_sharded:
        from torch.distributed.fsdp import fully_shard

        fully_shard(losses)
        return losses
    # Some steps do not use every weight, because short strings do not need every layer. Without
    # `find_unused_parameters`, DDP would wait for the gradients of unused weights.
    return DistributedDataParallel(losses, forward_sync_buffers=False, find_unused_parameters=True)


def is_started_by_torchrun() -> bool:
    """Return whether this process is one of several that torchrun, or a compatible launcher, has started."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def parse_parallel(name: str | None) -> Parallel:
    """Return the way in which processes share a run (default: `ddp`).

    Raises:
        ValueError: the name is unknown, or is given although only one process runs.
    """
    if name is not None:
        check_known("parallel", name, get_args(Parallel))
        if not is_started_by_torchrun():
            raise ValueError(
                f"parallel: expected no value with one process, got {name!r}; start several processes with torchrun, "
                "or leave parallel out"
            )
    return cast(Parallel, name or "ddp")


def own_device(name: str) -> torch.device:
    """Return the device of this name (`find_device`) for this process, which may be one of several on a machine.

    Raises:
        ValueError: the machine has no such device, or fewer devices than processes; or several processes use `mps`.
    """
    device = find_device(name)
    if not is_started_by_torchrun():
        return device
    if device.type == "mps":
        raise ValueError(
            "device: expected cpu or cuda with several processes, got 'mps', which cannot share gradients; use cpu, or "
            "a single process"
        )
    if device.type != "cuda":
        return device
    local, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if local >= count:
        raise ValueError(
            f"device: expected a GPU for each process of this machine, got {count} GPUs for {local + 1} processes or "
            f"more; start at most {count} processes on this machine"
        )
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


@contextmanager
def joined(kind: Parallel, device: torch.device) -> Iterator[Ranks]:
    """Join the process group that torchrun started, yield this process's `Ranks`, and leave the group at the end.

    If torchrun did not start this process, yield the `Ranks` of a single process instead. Messages between CPUs use
    gloo, and messages between GPUs use NCCL.

    Raises:
        ValueError: the processes have different versions of the package or of torch.
    """
    if not is_started_by_torchrun():
        yield ALONE
        return
    # gloo is also needed with GPUs, because decisions and texts are exchanged as CPU tensors.
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
    try:
        ranks = Ranks(dist.get_rank(), dist.get_world_size(), kind)
        # Different versions may draw different batches from one seed, and the ranks would drift apart unnoticed.
        named = ranks.gathered(f"lengthwise {__version__}, torch {torch.__version__}")
        if len(set(named)) > 1:
            raise ValueError(
                "versions: expected the same lengthwise and torch in all processes, got "
                f"{'; '.join(dict.fromkeys(named))}; install one version on all machines"
            )
        yield ranks
    finally:
        dist.destroy_process_group()
