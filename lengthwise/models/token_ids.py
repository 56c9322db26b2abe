"""The token ids that a user's net reads for the symbols of a task."""

from collections.abc import Sequence
from numbers import Integral

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

MAX_TOKEN = (1 << 31) - 1
"""The largest accepted token id."""

MAX_STATED_LENGTH = 1_000_000_000
"""The largest accepted `max_length`, in symbols."""


class TokenIds(nn.Module):
    """A map from symbols to a net's token ids, with the token that begins each string, if the net has one.

    Example:
        >>> ids = TokenIds([5, 7], begin=1)
        >>> ids(torch.tensor([[0, 1, 1]])).tolist()
        [[1, 5, 7, 7]]
        >>> ids.without_begin(torch.tensor([[[0.0], [1.0], [2.0], [3.0]]])).tolist()
        [[[1.0], [2.0], [3.0]]]
    """

    tokens: Tensor

    def __init__(self, tokens: Sequence[int], begin: int | None = None, device: torch.device | str = "cpu") -> None:
        super().__init__()
        self.listed = list(tokens)  # a copy that can be read without waiting for a device
        self.num_symbols = len(self.listed)
        self.begin = begin
        # The model's settings describe the ids, so they are not stored with the net's own weights.
        self.register_buffer("tokens", torch.tensor(self.listed, device=device), persistent=False)

    @property
    def num_before(self) -> int:
        """Return the number of tokens before the first symbol of a string: 0 if `begin` is None, else 1."""
        return 0 if self.begin is None else 1

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B N"]:
        """Return the token ids [B, N] of strings [B, T]; N is T, or T + 1 with `begin`."""
        ids = self.tokens[inputs]
        return ids if self.begin is None else torch.cat([ids.new_full((len(ids), 1), self.begin), ids], 1)

    def without_begin(self, outputs: Float[Tensor, "B N D"]) -> Float[Tensor, "B T D"]:
        """Return the outputs at the symbols, without the output at the token that begins a string."""
        return outputs[:, self.num_before :]

    def describe(self) -> str:
        """Return a text that identifies the token ids, or "" if symbol v is token v and no token begins a string."""
        if self.begin is None and self.listed == list(range(self.num_symbols)):
            return ""
        listed = ", ".join(map(str, self.listed))
        return listed if self.begin is None else f"{listed} after {self.begin}"


def check_tokens(name: str, tokens: object, count: int) -> list[int]:
    """Return token ids as a list; raise a ValueError unless the ids differ and are below `count`."""
    if not isinstance(tokens, Sequence) or any(isinstance(t, bool) or not isinstance(t, Integral) for t in tokens):
        raise ValueError(f"{name}: expected a list of token ids, got {tokens!r}; give a list of whole numbers")
    if not tokens:
        raise ValueError(f"{name}: expected at least one token, got none; give one token for each class or symbol")
    if others := [token for token in tokens if not 0 <= token < count]:
        raise ValueError(
            f"{name}: expected tokens of the model, 0 to {count - 1:,}, got {others[0]}; give tokens in this range"
        )
    if len(set(tokens)) < len(tokens):
        repeated = next(token for token in tokens if tokens.count(token) > 1)
        raise ValueError(
            f"{name}: expected tokens that differ, got {repeated} more than once; give each symbol a token of its own "
            "(a tokenizer may lack some of the symbols)"
        )
    return [int(token) for token in tokens]
