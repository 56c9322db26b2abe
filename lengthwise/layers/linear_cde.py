"""A layer of the recurrence h_t = c_t (I + A(u_t)) h_{t-1}, where A(u) is a structured matrix that is linear in u."""

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.layers.recurrent_layer import Features, Rows, State, Table, TabledLayer
from lengthwise.ops.in_range import states_in_range, steps_by_position, steps_by_symbol
from lengthwise.validation import check_choice, check_divisor, check_sizes

Structure = Literal["block", "low-rank", "low-rank-product"]

MAX_ELEMENTS_PER_CHUNK = 1 << 24
"""The largest number of elements in the transitions that a layer above the lowest computes at once, unless one position
of all strings needs more."""

TIME_STEP = 1 / 40
"""The time step of the discretized differential equation. This small factor also makes training change the transitions
less at each update. After larger changes, states would overflow."""


class LinearCDELayer(TabledLayer):
    """h_t = c_t (I + (A^0 + sum_i u_i A^i) / 40) h_{t-1} with i = 1 ... D, a learned h_0 and outputs y_t = h_t.

    Nothing is added to h_t. The factor c_t is 1 if the numbers of the state are at most 2^30, and scales larger states
    down to 2^30 (`lengthwise.ops.in_range`). `structure` is the kind of the matrices A^0 ... A^D:

    - `"block"`: block-diagonal with blocks of size `block_dim` (1: diagonal). The transition of a symbol is one matrix
      of this size for each block.
    - `"low-rank"`: diag(d^i) + U^i (V^i)^T, where U^i and V^i have `rank` columns. A symbol's transition is a D x D
      matrix.
    - `"low-rank-product"`: the parameters of `"low-rank"`, but a transition that is not linear in u. With u_0 = 1 and
      sums over i = 0 ... D, the transition is

        I + diag(sum_i u_i d^i) / 40 + (sum_i u_i U^i / 40) (sum_i u_i V^i / 40)^T.

      The last product has at most rank `rank`, whereas the sum of D + 1 products of `"low-rank"` can have rank D.

    Source: Walker et al., "Structured linear CDEs: maximally expressive and parallel-in-time sequence models" (NeurIPS
        2025), and its code for initialization, D states and `"low-rank-product"`.
    Differs from the source: `"low-rank"` is the paper's equation A(u) = sum_i u_i A^i, but the published code computes
        `"low-rank-product"`. So the published scores of DPLR-SLiCE belong to `"low-rank-product"`. Here h_0 does not
        depend on the first symbol, which acts like all other symbols. The published code has c_t = 1 and limits each
        change of a state to 1e11. So states of the published code can grow by 1e11 with each symbol, until they become
        NaN.
    """

    def __init__(self, *, d_model: int, structure: Structure, block_dim: int, rank: int) -> None:
        check_choice("structure", structure, get_args(Structure))
        if structure == "block":
            check_divisor("block_dim", block_dim, d_model)
        super().__init__()
        check_sizes(d_model=d_model, rank=rank)
        self.d_model = d_model
        self.state_size = d_model
        self.structure = structure
        self.block_dim = block_dim if structure == "block" else d_model
        self.first_state = nn.Parameter(torch.empty(d_model))
        # Row 0 of each parameter belongs to A^0.
        self.blocks = nn.Parameter(torch.empty(d_model + 1, d_model, block_dim)) if structure == "block" else None
        if self.blocks is None:
            self.diagonal = nn.Parameter(torch.empty(d_model + 1, d_model))
            self.left, self.right = (nn.Parameter(torch.empty(d_model + 1, d_model, rank)) for _ in range(2))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw parameters from N(0, 1/4); divide matrix entries by the square root of the block size or the rank."""
        nn.init.normal_(self.first_state, std=0.5, generator=generator)
        if self.blocks is not None:
            nn.init.normal_(self.blocks, std=0.5 * self.block_dim**-0.5, generator=generator)
        else:
            nn.init.normal_(self.diagonal, std=0.5, generator=generator)
            for factor in (self.left, self.right):
                nn.init.normal_(factor, std=0.5 * factor.shape[-1] ** -0.5, generator=generator)

    def norm_of_a(self) -> Float[Tensor, ""]:
        """Return the Euclidean norm of all entries of the matrices A^0 ... A^D.

        For low-rank structures, the result is the norm of the diagonals d^0 ... d^D alone.
        """
        norm: Tensor = (self.diagonal if self.blocks is None else self.blocks).norm()
        return norm

    def initial_state(self, like: Float[Tensor, "B D"]) -> Float[Tensor, "B Z"]:
        return self.first_state.expand(len(like), -1)

    def transitions(self, features: Float[Tensor, "*M D"]) -> Float[Tensor, "*M N S S"]:
        """Return I + A(u) / 40 for features u; `"low-rank-product"` has its own equation (`LinearCDELayer`)."""
        size = self.block_dim
        if self.structure == "low-rank-product":
            return self._products(features)
        if self.blocks is not None:
            summands = self.blocks.unflatten(1, (-1, size))
        else:
            summands = (self.left @ self.right.mT + torch.diag_embed(self.diagonal))[:, None]
        constant, others = TIME_STEP * summands[0], TIME_STEP * summands[1:]
        mixed: Tensor = (features @ others.flatten(1)).unflatten(-1, constant.shape)
        transitions: Tensor = mixed + (constant + torch.eye(size, dtype=mixed.dtype, device=mixed.device))
        return transitions

    def _products(self, features: Float[Tensor, "*M D"]) -> Float[Tensor, "*M 1 D D"]:
        """Return the transitions of structure `"low-rank-product"`, whose factors U(u) and V(u) both depend on u."""
        diagonal, left, right = (
            TIME_STEP * (part[0] + (features @ part[1:].flatten(1)).unflatten(-1, part.shape[1:]))
            for part in (self.diagonal, self.left, self.right)
        )
        transitions: Tensor = torch.diag_embed(1 + diagonal) + left @ right.mT
        return transitions.unsqueeze(-3)

    def through_rows(self, table: Table, rows: Rows, state: State) -> tuple[Features, State]:
        transitions = self.transitions(table)
        steps = steps_by_symbol(transitions, torch.zeros_like(transitions[..., 0]), rows)
        states = states_in_range(steps, rows.shape[1], state.unflatten(1, (-1, self.block_dim)), driven=False)
        return states.flatten(2), states[:, -1].flatten(1)

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        latest, outputs = state.unflatten(1, (-1, self.block_dim)), []
        # The transitions of all positions at once would take T D S numbers for each string.
        size = max(1, MAX_ELEMENTS_PER_CHUNK // max(1, len(features) * self.state_size * self.block_dim))
        for part in features.split(size, 1):
            transitions = self.transitions(part)
            steps = steps_by_position(transitions, torch.zeros_like(transitions[..., 0]))
            states = states_in_range(steps, part.shape[1], latest, driven=False)
            latest = states[:, -1]
            outputs.append(states.flatten(2))
        return torch.cat(outputs, 1), latest.flatten(1)
