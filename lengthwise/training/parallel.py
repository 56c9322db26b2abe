"""Several processes as torch has them: the group that torchrun starts, and the wrappers that share gradients."""

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
from lengthwise.registry import nearest
from lengthwise.training.losses import StepLoss, step_loss
from lengthwise.training.ranks import ALONE, Parallel, Ranks
from lengthwise.training.state_supervision import StateHead
from lengthwise.version import __version__

TIMEOUT = timedelta(minutes=30)
"""How long a process waits for others: while the first one measures, the others wait for it."""


class StepLosses(nn.Module):
    """`step_loss` as the module that torch's wrappers take: gradients are shared when its loss goes backward."""

    def __init__(self, model: SequenceModel, head: StateHead | None, ranks: Ranks) -> None:
        super().__init__()
        self.model = model
        self.head = head
        self.ranks = ranks

    def forward(self, *arguments: Any) -> StepLoss:
        """As `step_loss`, after its model and head: batch, task, recipe, step of the schedule, generators."""
        batch, task, recipe, scheduled, generator, noise = arguments
        return step_loss(self.model, self.head, batch, task, recipe, scheduled, generator, self.ranks, noise)


def losses_of(model: SequenceModel, head: StateHead | None, ranks: Ranks) -> Callable[..., StepLoss]:
    """What computes the losses of a step; of several processes, so that `backward` leaves each the whole gradient.

    With `fsdp` the model's parameters are parts of themselves afterwards, in each process its own.
    """
    losses = StepLosses(model, head, ranks)
    if ranks.size == 1:
        return losses
    if ranks.is_sharded:
        from torch.distributed.fsdp import fully_shard

        fully_shard(losses)
        return losses
    # Which weights a loss depends on may differ from step to step, as with lengths that a layer is not needed for.
    return DistributedDataParallel(losses, forward_sync_buffers=False, find_unused_parameters=True)


def is_started_by_torchrun() -> bool:
    """Whether this process is one of several that torchrun, or what does as it does, has started."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def parse_parallel(name: str | None) -> Parallel:
    """How processes share a run, `ddp` where nothing is said; a ValueError for an unknown name, or one process."""
    known = get_args(Parallel)
    if name is not None and name not in known:
        raise ValueError(f"parallel: expected one of {', '.join(known)}, got {name!r}{nearest(name, known)}")
    if name is not None and not is_started_by_torchrun():
        raise ValueError(f"parallel: expected none with one process, got {name!r}; start several, as torchrun does")
    return cast(Parallel, name or "ddp")


def own_device(name: str) -> torch.device:
    """The device of that name (`find_device`) that belongs to this process, of several on one machine.

    Raises:
        ValueError: there is none, or fewer than processes.
    """
    device = find_device(name)
    if not is_started_by_torchrun():
        return device
    if device.type == "mps":
        raise ValueError("device: expected cpu or cuda with several processes, got 'mps', which cannot share gradients")
    if device.type != "cuda":
        return device
    local, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if local >= count:
        raise ValueError(
            f"device: expected a GPU for each process of this machine, got {count} for {local + 1} or more; start "
            f"{count} processes on it"
        )
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


@contextmanager
def joined(kind: Parallel, device: torch.device) -> Iterator[Ranks]:
    """Join the processes that torchrun started, and leave them in any case; without torchrun, be alone.

    What the CPU says goes through gloo, what GPUs do through NCCL.

    Raises:
        ValueError: the processes have different versions of the package or of torch.
    """
    if not is_started_by_torchrun():
        yield ALONE
        return
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
    try:
        ranks = Ranks(dist.get_rank(), dist.get_world_size(), kind)
        named = ranks.gathered(f"lengthwise {__version__}, torch {torch.__version__}")
        if len(set(named)) > 1:
            raise ValueError(
                f"versions: expected the same in all processes, got {'; '.join(dict.fromkeys(named))}; install one "
                "version on all machines"
            )
        yield ranks
    finally:
        dist.destroy_process_group()
