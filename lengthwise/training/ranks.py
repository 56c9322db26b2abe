"""The processes that train one model together: which rows each takes, and how they agree.

Every process draws the whole batch of a step from the seed and the step's number, and takes every `size`-th row of it,
from its own rank on. Losses are sums over these rows divided by the number of supervised positions in the whole batch:
with prefix supervision ranks have different numbers of them, and a mean of the ranks' means would be another loss.
Processes that start equal stay equal: they see one gradient and one loss, and decide alike.
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
"""`ddp`: every process has all weights, and gradients are averaged. `fsdp`: every process keeps a part of weights,
moments and average, and gets the rest when it needs it."""

SIGNS_OF_AN_END = ("onnection", "roken pipe", "imed out", "peer", "NCCL", "gloo")
"""Parts of what torch says when another process is gone."""


class RankEnded(RuntimeError):
    """Another process of this run has ended, or does not answer."""


class Ranks(NamedTuple):
    """The processes that train a model together, and which of them this one is: of one alone, rank 0 of 1."""

    rank: int = 0
    size: int = 1
    kind: Parallel = "ddp"

    @property
    def is_sharded(self) -> bool:
        """Whether a process has a part of the weights only."""
        return self.size > 1 and self.kind == "fsdp"

    def rows(self, tensor: Tensor) -> Tensor:
        """This process's rows of a batch.

        Example:
            >>> Ranks(1, 2).rows(torch.arange(6)).tolist()
            [1, 3, 5]
        """
        return tensor if self.size == 1 else tensor[self.rank :: self.size]

    def mean(self, *values: float) -> tuple[float, ...]:
        """The mean over processes of numbers that each has of its own: the same bits for all of them."""
        if self.size == 1:
            return values
        sums = torch.tensor(values, dtype=torch.float64)
        with one_sentence(self):
            dist.all_reduce(sums)
        return tuple(value / self.size for value in sums.tolist())

    def any(self, answer: bool) -> bool:
        """Whether one of the processes says yes."""
        return self.mean(float(answer)) != (0.0,)

    def gathered(self, text: str) -> list[str]:
        """What each of the processes says, in the order of their ranks; nothing is pickled."""
        if self.size == 1:
            return [text]
        encoded = torch.frombuffer(bytearray(text.encode() or b" "), dtype=torch.uint8)
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        with one_sentence(self):
            dist.all_gather(lengths, torch.tensor([len(encoded)]))
            longest = max(int(length) for length in lengths)
            texts = [torch.zeros(longest, dtype=torch.uint8) for _ in range(self.size)]
            dist.all_gather(texts, torch.nn.functional.pad(encoded, (0, longest - len(encoded))))
        return [bytes(text[: int(n)].tolist()).decode() for text, n in zip(texts, lengths, strict=True)]


ALONE = Ranks()
"""One process by itself."""


@contextmanager
def one_sentence(ranks: Ranks) -> Iterator[None]:
    """Say in one sentence that another of several processes is gone; torch says which connection was closed where."""
    try:
        yield
    except RuntimeError as error:
        if ranks.size == 1 or isinstance(error, (RankEnded, Diverged)):
            raise
        if isinstance(error, dist.DistError) or any(sign in str(error) for sign in SIGNS_OF_AN_END):
            raise RankEnded("another process of this run has ended, or does not answer") from None
        raise


def is_part(tensor: Tensor) -> bool:
    """Whether a process has a part of it only: it is a DTensor, whose class takes a second to import."""
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """A tensor of which each process has a part, put together; all processes have to ask for it."""
    if not is_part(tensor):
        return tensor
    from torch.distributed.tensor import DTensor

    assert isinstance(tensor, DTensor)
    return tensor.full_tensor()


def check_ranks(recipe: Recipe, ranks: Ranks) -> None:
    """Raise a ValueError where several processes cannot train by this recipe together."""
    if ranks.size == 1:
        return
    if recipe.batch_size % ranks.size:
        raise ValueError(
            f"train.batch_size: expected a multiple of the {ranks.size} processes, got {recipe.batch_size}; start "
            "another number of them, or change it"
        )
    if recipe.late_consistency and recipe.batch_size < 2 * ranks.size:
        raise ValueError(
            f"train.late_consistency: expected 0 with one row of a batch for each of {ranks.size} processes, got "
            f"{recipe.late_consistency:g}; half of the rows are compared, so take larger batches or set it to 0"
        )
    if recipe.states is not None:
        raise ValueError(
            f"train.states: expected none with {ranks.size} processes, as pieces of strings are put together across "
            "the whole batch; train with one process, or leave states out"
        )
    if ranks.kind == "fsdp" and recipe.optimizer.name == "muon":
        raise ValueError(
            "train.optimizer.name: expected 'adamw' or 'adam' with fsdp, as Muon needs whole matrices, got "
            "'muon'; take ddp, or another optimizer"
        )
