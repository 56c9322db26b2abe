"""The input of a transformer's first layer: symbols or vectors, with their positions."""

from typing import Literal, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.conventions import PAD
from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.positions.base import PositionEncoding
from lengthwise.validation import check_choice, check_kind, check_sizes

ReadInKind = Literal["normed", "plain"]


class SymbolReadIn(nn.Module):
    """Embeddings of symbols with their positions, and a LayerNorm if the kind is `"normed"`.

    Embeddings are drawn from N(0, 1), and the pad is a vector of zeros. The embedding has `num_rows` rows, by default
    one for each of `vocab_size` symbols.

    Source: the code of Xu and Sato (2024) for dynamic programming, and GPT-2 for kind `"plain"`.
    Differs from the source: the pad is not a symbol of the vocabulary.
    """

    def __init__(
        self,
        *,
        vocab_size: int,
        d_model: int,
        positions: PositionEncoding,
        kind: ReadInKind = "normed",
        num_rows: int | None = None,
    ) -> None:
        super().__init__()
        check_sizes(vocab_size=vocab_size, d_model=d_model)
        check_kind("positions", positions, PositionEncoding, "a position encoding")
        check_choice("kind", kind, get_args(ReadInKind))
        if num_rows is not None:
            check_sizes(num_rows=num_rows)
        self.vocab_size = vocab_size
        self.embedding = nn.Embedding(num_rows or vocab_size, d_model)
        self.positions = positions
        self.norm = nn.LayerNorm(d_model) if kind == "normed" else nn.Identity()

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.embedding.weight, generator=generator)
        self.positions.reset_parameters(generator)
        if isinstance(self.norm, nn.LayerNorm):
            self.norm.reset_parameters()

    def forward(self, inputs: Int64[Tensor, "B T"], generator: torch.Generator | None = None) -> Float[Tensor, "B T D"]:
        # The pad has no row of its own. It reads row 0, and the next line replaces the result by zeros.
        embedded = self.embedding(inputs.clamp(min=0))
        embedded = embedded.masked_fill(inputs[..., None] == PAD, 0.0)
        states: Tensor = self.norm(self.positions.add(embedded, generator))
        return states


class VectorReadIn(nn.Module):
    """A linear map of vectors of `input_dim` numbers, with their positions.

    Source: the code of Garg et al., "What can transformers learn in-context?" (NeurIPS 2022).
    Differs from the source: no difference.
    """

    def __init__(self, *, input_dim: int, d_model: int, positions: PositionEncoding) -> None:
        super().__init__()
        check_sizes(input_dim=input_dim, d_model=d_model)
        check_kind("positions", positions, PositionEncoding, "a position encoding")
        self.linear = nn.Linear(input_dim, d_model)
        self.positions = positions

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_linears(self.linear, generator)
        self.positions.reset_parameters(generator)

    def forward(
        self, inputs: Float[Tensor, "B T V"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "B T D"]:
        return self.positions.add(self.linear(inputs), generator)
