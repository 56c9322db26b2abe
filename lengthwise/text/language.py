"""The base class of language modeling tasks: windows of a text, with the next token as answer at every position."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal, cast, get_args

import numpy as np
import torch
from jaxtyping import Int64
from numpy.typing import NDArray
from torch import Tensor

from lengthwise.registry import check_known
from lengthwise.tasks.base import Batch, SymbolTask, Task, check_is_task

Split = Literal["train", "valid", "test"]

Tokens = NDArray[np.unsignedinteger[Any]]
"""Token ids in order. The array may be mapped from a file, so that only the parts that are used are read."""


class LanguageTask(SymbolTask):
    """Prediction of the next token of a text; the text's tokens are both the symbols and the classes.

    A sample of length T is a window of T + 1 tokens that begins anywhere in the training split: ``inputs = x_0 ...
    x_{T-1}``, ``targets = x_1 ... x_T``. Models are measured by perplexity (`lengthwise.evaluation.perplexity`),
    because what matters is the probability of the next token. No answer is the only right one. So the task has no
    oracle and no reference machine, and nets trained on it cannot be certified.
    """

    default_preset: ClassVar[str] = "language"

    @abstractmethod
    def tokens(self, split: Split) -> Tokens:
        """Return the tokens of a split of the text, in the order of the text."""

    @abstractmethod
    def tokenize(self, text: str) -> Int64[Tensor, " T"]:
        """Return the tokens of any plain text, whereas `encode` reads names of tokens."""

    @abstractmethod
    def detokenize(self, ids: Int64[Tensor, " T"]) -> str:
        """Return the plain text of tokens."""

    @property
    @abstractmethod
    def end(self) -> int:
        """Return the id of the token that ends a document."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the same tokens as `symbols`: any of these tokens may be the next token of a text."""
        return self.symbols

    def is_legal_length(self, length: int) -> bool:
        """Return whether the training split has windows of this length."""
        return 1 <= length < len(self.tokens("train"))

    def is_balanced_length(self, length: int) -> bool:
        """Return whether more than one token can be the final answer in a window of this length."""
        tokens = self.tokens("train")
        return self.is_legal_length(length) and length <= last_change(tokens)

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw windows of the training split uniformly."""
        tokens = self.tokens("train")
        starts = torch.randint(len(tokens) - length, (batch_size,), generator=generator)
        return Batch(*windows_at(tokens, starts, length))

    def baseline(self, length: int) -> float:
        """Return the share of the most frequent token among the tokens that can end a window of this length."""
        ends = self.tokens("train")[length:]
        return float(np.bincount(ends, minlength=1).max() / len(ends))


def check_is_text(task: Task, way_out: str) -> None:
    """Raise a ValueError that ends with `way_out`, unless the task is to predict the next token of a text."""
    check_is_task(task)
    if not isinstance(task, LanguageTask):
        raise ValueError(f"task: expected a text, got {task.name}, which has answers; {way_out}")


def parse_split(name: str) -> Split:
    """Return the split of this name; raise a ValueError for an unknown name."""
    check_known("split", name, get_args(Split))
    return cast(Split, name)


def windows_at(
    tokens: Tokens, starts: Int64[Tensor, " B"], length: int
) -> tuple[Int64[Tensor, "B T"], Int64[Tensor, "B T"]]:
    """Return a window of `length` tokens from each start on, and the windows that begin one position later.

    Example:
        >>> inputs, targets = windows_at(np.arange(10, dtype=np.uint16), torch.tensor([0, 6]), 3)
        >>> inputs.tolist(), targets.tolist()
        ([[0, 1, 2], [6, 7, 8]], [[1, 2, 3], [7, 8, 9]])
    """
    windows = torch.from_numpy(tokens[starts.numpy()[:, None] + np.arange(length + 1)].astype(np.int64))
    return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def last_change(tokens: Tokens) -> int:
    """Return the last index whose token differs from the final token, or -1 if all tokens are equal.

    Example:
        >>> last_change(np.array([3, 1, 2, 2], dtype=np.uint16)), last_change(np.array([2, 2], dtype=np.uint16))
        (1, -1)
    """
    block = 1 << 16
    # The search begins at the end, because the last change is usually near the end, and files may be large.
    for stop in range(len(tokens), 0, -block):
        start = max(0, stop - block)
        (others,) = np.nonzero(tokens[start:stop] != tokens[-1])
        if len(others):
            return start + int(others[-1])
    return -1
