"""The processes that train one model together: the rows that each process takes, and their common decisions.

Every process draws the whole batch of a step from the seed and the step's number. Each process takes every `size`-th
row, beginning with its own rank. Losses are sums over these rows, divided by the number of supervised positions in the
whole batch. With prefix supervision, ranks have different numbers of supervised positions, so the mean of the ranks'
means would differ from the mean over the whole batch. Processes that start with equal weights keep equal weights: they
see the same gradient and the same loss, and make the same decisions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from lengthwise.conventions import Diverged
from lengthwise.training.recipe import Recipe

Parallel = Literal["ddp", "fsdp"]
"""The way in which processes share a model. With `ddp`, every process has all weights, and gradients are averaged. With
`fsdp`, every process keeps a part of weights, moments and average, and gets the other parts when it needs them."""

ENDED_RANK_MESSAGES = ("onnection", "roken pipe", "imed out", "peer", "NCCL", "gloo")
"""Texts that torch's error messages contain if another process has ended."""


class RankEnded(RuntimeError):
    """Another process of this run has ended, or does not answer."""


class Ranks(NamedTuple):
    """The number of processes that train one model, and the rank of this process (default: one process, rank 0)."""

    rank: int = 0
    size: int = 1
    kind: Parallel = "ddp"

    @property
    def is_sharded(self) -> bool:
        """Whether each process has only a part of the weights."""
        return self.size > 1 and self.kind == "fsdp"

    def rows(self, tensor: Tensor) -> Tensor:
        """Return this process's rows of a batch.

        Example:
            >>> Ranks(1, 2).rows(torch.arange(6)).tolist()
            [1, 3, 5]
        """
        return tensor if self.size == 1 else tensor[self.rank :: self.size]

    def mean(self, *values: float) -> tuple[float, ...]:
        """Return the mean of each value over all processes; all processes get the same bits."""
        if self.size == 1:
            return values
        # The sum is in float64 on the CPU: all ranks get the same bits there, and therefore make the same decisions.
        sums = torch.tensor(values, dtype=torch.float64)
        with rank_errors(self):
            dist.all_reduce(sums)
        return tuple(value / self.size for value in sums.tolist())

    def any(self, answer: bool) -> bool:
        """Return whether `answer` is true in at least one process."""
        return self.mean(float(answer)) != (0.0,)

    def gathered(self, text: str) -> list[str]:
        """Return the texts of all processes, in the order of their ranks; nothing is pickled."""
        if self.size == 1:
            return [text]
        # torch's own exchange of objects pickles them; bytes in a tensor cannot run code.
        encoded = torch.frombuffer(bytearray(text.encode() or b" "), dtype=torch.uint8)
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        with rank_errors(self):
            dist.all_gather(lengths, torch.tensor([len(encoded)]))
            longest = max(int(length) for length in lengths)
            texts = [torch.zeros(longest, dtype=torch.uint8) for _ in range(self.size)]
            dist.all_gather(texts, torch.nn.functional.pad(encoded, (0, longest - len(encoded))))
        return [bytes(text[: int(n)].tolist()).decode() for text, n in zip(texts, lengths, strict=True)]


ALONE = Ranks()
"""The `Ranks` of a training run with a single process."""


@contextmanager
def rank_errors(ranks: Ranks) -> Iterator[None]:
    """Raise `RankEnded` if another process has ended, instead of torch's message about a closed connection."""
    try:
        yield
    except RuntimeError as error:
        # These errors are also RuntimeErrors, but they already name their cause.
        if ranks.size == 1 or isinstance(error, (RankEnded, Diverged)):
            raise
        if isinstance(error, dist.DistError) or any(part in str(error) for part in ENDED_RANK_MESSAGES):
            raise RankEnded("another process of this run has ended, or does not answer") from None
        raise


def is_part(tensor: Tensor) -> bool:
    """Return whether a process has only a part of the tensor.

    Such a tensor is a DTensor, but importing that class takes a second, so an attribute is checked instead.
    """
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """Return the whole tensor; if each process has a part of it, all processes have to call this."""
    if not is_part(tensor):
        return tensor
    from torch.distributed.tensor import DTensor

    assert isinstance(tensor, DTensor)
    return tensor.full_tensor()


def check_ranks(recipe: Recipe, ranks: Ranks) -> None:
    """Raise a ValueError if several processes cannot train by this recipe together."""
    if ranks.size == 1:
        return
    if recipe.batch_size % ranks.size:
        raise ValueError(
            f"train.batch_size: expected a multiple of the number of processes ({ranks.size}), got "
            f"{recipe.batch_size}; change train.batch_size, or start a different number of processes"
        )
    if recipe.late_consistency and recipe.batch_size < 2 * ranks.size:
        raise ValueError(
            f"train.late_consistency: expected 0 for batches with fewer than {2 * ranks.size} strings in {ranks.size} "
            f"processes, got {recipe.late_consistency:g}; raise train.batch_size, or set train.late_consistency to 0"
        )
    if recipe.states is not None:
        raise ValueError(
            f"train.states: expected no value with {ranks.size} processes; train with one process, or leave out "
            "train.states"
        )
    if ranks.kind == "fsdp" and recipe.optimizer.needs_whole_matrices:
        raise ValueError(
            "train.optimizer.name: expected 'adamw' or 'adam' with fsdp, because other optimizers need whole matrices, "
            f"got {recipe.optimizer.name!r}; use ddp, or choose adamw or adam"
        )
