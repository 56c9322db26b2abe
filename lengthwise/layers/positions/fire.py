"""FIRE: a small net computes the bias from the distance, measured relative to the position of the query."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.positions.base import POSITIONS, CausalAttention, PositionEncoding, PositionSizes
from lengthwise.layers.positions.bias import BiasedAttention, ScoreBias, windows

HIDDEN = 32
"""The number of hidden units of the net that maps distances to biases."""

MAX_HIDDEN_PER_CHUNK = 1 << 19
"""The largest number of hidden units that are computed at once. They fit into a CPU's cache. With a limit 32 times as
large, the same work takes twice as long."""

INITIAL_C = 0.1
INITIAL_LIMIT = 512.0
"""The initial value of the limit L, in positions; `INITIAL_C` is the initial value of c."""

EPSILON = 1e-6


@POSITIONS.register("fire")
class FIRE(PositionEncoding):
    """Scores q_i . k_j / sqrt(E) + f_h(psi(i - j) / (psi(max(i, L)) + 1e-6)) with psi(x) = ln(1 + |c x|); for any T.

    f is a net with 32 ReLUs and an output for each head. Each layer learns its own f, c and L = 512 |l|. Initially, c =
    0.1 and l = 1. For a query at a position i > L, distances are measured relative to i.

    Source: Li et al., "Functional interpolation for relative positions improves long context transformers" (ICLR 2024),
        and the code in their appendix.
    Differs from the source: no difference.
    """

    def __init__(self, sizes: PositionSizes) -> None:
        super().__init__(sizes)
        self.layers = nn.ModuleList(FIREBias(sizes) for _ in range(sizes.num_layers))

    def reset_parameters(self, generator: torch.Generator) -> None:
        for layer in self.layers:
            layer.reset_parameters(generator)  # type: ignore[operator]  # ModuleList forgets the type of its modules

    def attention(self, states: Float[Tensor, "B T D"]) -> Sequence[CausalAttention]:
        return [BiasedAttention(layer, states) for layer in self.layers]  # type: ignore[arg-type]


class FIREBias(ScoreBias):
    """The biases of `FIRE` in one layer, which learns its own net f and its own numbers c and l."""

    def __init__(self, sizes: PositionSizes) -> None:
        super().__init__(sizes)
        self.net = nn.Sequential(nn.Linear(1, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, sizes.num_heads))
        self.c = nn.Parameter(torch.empty(()))
        self.limit = nn.Parameter(torch.empty(()))

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_linears(self.net, generator)
        nn.init.constant_(self.c, INITIAL_C)
        nn.init.ones_(self.limit)

    def pairs(self, query: Int64[Tensor, "*#N"], key: Int64[Tensor, "*#N"]) -> Float[Tensor, "H *N"]:
        return self._biases(query - key, torch.maximum(query.to(self.c), self.limit_in_positions))

    def rows(self, start: int, stop: int, like: Tensor) -> Float[Tensor, "H N M"]:
        """Return the biases of queries `stop` - 1 ... `start`, last first, as in `ScoreBias.rows`.

        Up to position L, the bias depends only on the distance, so the net f of `FIRE` runs once for each distance.
        Beyond L, f runs for each pair of positions, with `HIDDEN` hidden units per pair. So only a few rows are
        computed at a time.
        """
        if stop - 1 < float(self.limit_in_positions.detach()):
            distances = torch.arange(stop - 1, -1, -1, device=like.device)
            return windows(self._biases(distances, self.limit_in_positions).to(like), stop - start)
        keys = torch.arange(stop, device=like.device)
        parts = keys[start:].flip(0)[:, None].split(max(1, MAX_HIDDEN_PER_CHUNK // (HIDDEN * stop)))
        return torch.cat([self.causal_pairs(part, keys[None]) for part in parts], 1).to(like)

    @property
    def limit_in_positions(self) -> Float[Tensor, ""]:
        """Return the limit L = 512 |l|, where l is learned. Up to position L, biases depend only on the distance."""
        return (INITIAL_LIMIT * self.limit).abs()

    def _biases(self, distance: Int64[Tensor, "*N"], scale: Float[Tensor, "*#N"]) -> Float[Tensor, "H *N"]:
        ratio = self._psi(distance.to(scale)) / (self._psi(scale) + EPSILON)
        biases: Tensor = self.net(ratio[..., None])
        return biases.movedim(-1, 0)

    def _psi(self, number: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
        return torch.log1p((self.c * number).abs())
