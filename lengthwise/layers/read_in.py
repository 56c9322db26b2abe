"""What a transformer makes of its inputs before its first layer: symbols or vectors, with their positions."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.conventions import PAD
from lengthwise.layers.initialization import draw_linears
from lengthwise.ops.sinusoids import position_sinusoids


class Positions(nn.Module):
    """Adds an encoding of positions 0 ... T - 1: sinusoids for any T, or, with `learned`, a table of that length."""

    def __init__(self, *, d_model: int, learned: int = 0) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(learned, d_model)) if learned else None

    def reset_parameters(self, generator: torch.Generator) -> None:
        """N(0, 0.02^2), GPT-2's."""
        if self.table is not None:
            nn.init.normal_(self.table, std=0.02, generator=generator)

    def forward(self, states: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        length, width = states.shape[1:]
        if self.table is None:
            return states + position_sinusoids(length, width).to(states)
        if length > len(self.table):
            raise ValueError(
                f"length: expected at most {len(self.table)} positions, of which this model has learned encodings, got "
                f"{length}; make it with more model.learned_positions, or with 0, which are sinusoids"
            )
        return states + self.table[:length]


class SymbolReadIn(nn.Module):
    """Embeddings N(0, 1), zeros for the pad, positions, and a LayerNorm.

    Source: the code of Xu and Sato (2024) for dynamic programming.
    Differs from the source: the pad is no symbol of the vocabulary.
    """

    def __init__(self, *, vocab_size: int, d_model: int, learned_positions: int = 0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = Positions(d_model=d_model, learned=learned_positions)
        self.norm = nn.LayerNorm(d_model)

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.embedding.weight, generator=generator)
        self.positions.reset_parameters(generator)
        self.norm.reset_parameters()

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        embedded = F.embedding(inputs.clamp(min=0), self.embedding.weight)
        states: Tensor = self.norm(self.positions(embedded.masked_fill(inputs[..., None] == PAD, 0.0)))
        return states


class VectorReadIn(nn.Module):
    """A linear map of vectors of `input_dim` numbers, and positions.

    Source: the code of Garg et al., "What can transformers learn in-context?" (NeurIPS 2022).
    Differs from the source: in nothing.
    """

    def __init__(self, *, input_dim: int, d_model: int, learned_positions: int = 0) -> None:
        super().__init__()
        self.linear = nn.Linear(input_dim, d_model)
        self.positions = Positions(d_model=d_model, learned=learned_positions)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_linears(self.linear, generator)
        self.positions.reset_parameters(generator)

    def forward(self, inputs: Float[Tensor, "B T V"]) -> Float[Tensor, "B T D"]:
        states: Tensor = self.positions(self.linear(inputs))
        return states
