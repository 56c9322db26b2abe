"""The layer of DeltaNet, and its variants with gates and with products of Householder matrices."""

from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.devices import in_full_precision
from lengthwise.layers.initialization import draw_linears, draw_steps
from lengthwise.layers.recurrent_layer import Features, Rows, State, Table, TabledLayer, at_rows
from lengthwise.layers.short_convolution import convolution_of
from lengthwise.ops.delta_rule import delta_rule
from lengthwise.validation import check_choice, check_divisor, check_kind, check_sizes

Eigenvalues = Literal["signed", "positive"]

MAX_STRENGTH: dict[Eigenvalues, float] = {"signed": 2.0, "positive": 1.0}
"""The largest strength b for each range of eigenvalues. A matrix I - b k k^T has the eigenvalues 1 and 1 - b."""

MAX_DECAY_RATE = 16.0
"""The largest rate of a decay exp(-rate * step) at the start of training. Rates are drawn uniformly, and steps by
`draw_steps`."""

NORM_FLOOR = 1e-12
"""The smallest divisor in the normalization of keys. A key longer than this number is divided by its length, so
reflections do not shrink states."""

RMS_EPSILON = 1e-5


class _MemoryInputs(NamedTuple):
    """Queries, keys, values, strengths and logarithms of decays, for each position or each row of a table."""

    query: Float[Tensor, "*M H K"]
    keys: Float[Tensor, "*M J H K"]
    values: Float[Tensor, "*M J H K"]
    strengths: Float[Tensor, "*M J H"]
    log_decays: Float[Tensor, "*M H"] | None

    def at(self, rows: Int64[Tensor, "B T"]) -> "_MemoryInputs":
        """Look up the inputs of every position in the tables of this object; `rows` contains each position's row."""
        query, keys, values, strengths, *gates = at_rows([each for each in self if each is not None], rows)
        return _MemoryInputs(query, keys, values, strengths, gates[0] if gates else None)


_normalize = in_full_precision(F.normalize)  # bfloat16 could make a key longer than 1, and then states would grow


class DeltaNetLayer(TabledLayer):
    r"""An associative memory, with a state of [K, K] numbers for each of H heads, K = D / H.

    For each head, with z the features and n = `householders` sub-steps j:

    k_j = normalize(SiLU(W_kj z)),  q = normalize(SiLU(W_q z)) / sqrt(K),  v_j = SiLU(W_vj z),
    b_j = s sigmoid(w_bj z + c_j),  s = 1 (`"positive"` eigenvalues, [0, 1]) or 2 (`"signed"`, [-1, 1]),
    S <- a S, then S <- (I - b_j k_j k_j^T) S + b_j k_j v_j^T for j = 1..n,   o = S^T q,   y = W_o RMSNorm(o).

    If `gated`, a = exp(-e^A softplus(w_a z + d)), where each head has its own A, w_a and d. Otherwise a = 1. With one
    sub-step for each symbol, the layer is DeltaNet, or Gated DeltaNet if `gated`. With more sub-steps, the layer is
    DeltaProduct. With `conv` > 0, W_q z, W_k z and W_v z pass through a `ShortConvolution` of this width before SiLU.
    The state contains all S [H, K, K] and the recent inputs of this convolution.

    Source: Yang et al., "Parallelizing linear transformers with the delta rule over sequence length" (NeurIPS 2024);
        Grazzi et al., "Unlocking state-tracking in linear RNNs through negative eigenvalues" (ICLR 2025), for s = 2;
        Yang, Kautz and Hatamizadeh, "Gated delta networks" (ICLR 2025), for a; Siems et al., "DeltaProduct" (2025).
    Differs from the source: keys have length exactly 1. The published code adds 1e-6 to a sum of squares, so its
        reflections shrink states. Strengths b have a bias c, which is initially 0. Matrices with m inputs are drawn
        uniformly within 1 / sqrt(m) of 0. The output has no gate. The code of Grazzi et al. applies SiLU to queries and
        keys only if there is a convolution, whereas later code always applies it.
    """

    def __init__(
        self,
        *,
        d_model: int,
        num_heads: int,
        householders: int = 1,
        eigenvalues: Eigenvalues = "signed",
        gated: bool = False,
        conv: int = 0,
    ) -> None:
        super().__init__()
        check_sizes(householders=householders)
        check_divisor("num_heads", num_heads, d_model)
        check_choice("eigenvalues", eigenvalues, get_args(Eigenvalues))
        check_kind("gated", gated, bool, "True or False")
        self.d_model = d_model
        self.num_heads, self.householders = num_heads, householders
        self.max_strength = MAX_STRENGTH[eigenvalues]
        self.d_key = d_model // num_heads
        width = (1 + 2 * householders) * d_model
        self.maps = nn.Linear(d_model, width, bias=False)  # to the query, all keys and all values
        self.strength = nn.Linear(d_model, householders * num_heads)
        self.output = nn.Linear(d_model, d_model, bias=False)
        self.gain = nn.Parameter(torch.empty(self.d_key))
        self.convolution = convolution_of(width, conv)
        self.decay = nn.Linear(d_model, num_heads) if gated else None
        self.log_rate = nn.Parameter(torch.empty(num_heads)) if gated else None
        self.memory_size = d_model * self.d_key
        self.state_size = self.memory_size + (self.convolution.state_size if self.convolution else 0)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw matrices with n inputs uniformly within 1 / sqrt(n) of 0, and draw decays.

        Biases of strengths become 0, which makes strengths half of their maximum on average. Gains become 1.
        """
        draw_linears(self, generator)
        nn.init.zeros_(self.strength.bias)
        nn.init.ones_(self.gain)
        if self.convolution is not None:
            self.convolution.reset_parameters(generator)
        if self.decay is not None and self.log_rate is not None:
            nn.init.uniform_(self.log_rate, 1e-3, MAX_DECAY_RATE, generator=generator)
            with torch.no_grad():
                self.log_rate.log_()
            draw_steps(self.decay.bias, generator)

    def strengths(self, features: Float[Tensor, "*M D"]) -> Float[Tensor, "*M J H"]:
        """Return the strength b of each sub-step.

        With b = 1, the value v replaces the value that is stored for the key. With b = 2, the stored value is reflected
        at v.
        """
        strengths = self.max_strength * torch.sigmoid(self.strength(features))
        return torch.unflatten(strengths, -1, (self.householders, self.num_heads))

    def log_decays(self, features: Float[Tensor, "*M D"]) -> Float[Tensor, "*M H"] | None:
        """Return the logarithms of the decays of all heads, or None if the layer is not `gated`."""
        if self.decay is None or self.log_rate is None:
            return None
        return -self.log_rate.exp() * F.softplus(self.decay(features))

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        memory, earlier = state.tensor_split([self.memory_size], 1)
        mapped = self.maps(features)
        if self.convolution is not None:
            mapped, earlier = self.convolution(mapped, earlier)
        return self._remembered(self._memory_inputs(features, mapped), memory, earlier)

    def through_rows(self, table: Table, rows: Rows, state: State) -> tuple[Features, State]:
        if self.convolution is not None:
            # A convolution mixes neighbors, so its results differ between positions with the same row.
            return self.forward(F.embedding(rows, table), state)
        memory, earlier = state.tensor_split([self.memory_size], 1)
        return self._remembered(self._memory_inputs(table, self.maps(table)).at(rows), memory, earlier)

    def _memory_inputs(self, features: Float[Tensor, "*M D"], mapped: Float[Tensor, "*M _"]) -> _MemoryInputs:
        vectors = F.silu(mapped).unflatten(-1, (1 + 2 * self.householders, self.num_heads, self.d_key))
        query, keys, values = vectors.tensor_split([1, 1 + self.householders], -3)
        query, keys = (_normalize(tensor, dim=-1, eps=NORM_FLOOR) for tensor in (query, keys))
        query = query.squeeze(-3) * self.d_key**-0.5
        return _MemoryInputs(query, keys, values, self.strengths(features), self.log_decays(features))

    def _remembered(self, memory_inputs: _MemoryInputs, memory: Tensor, earlier: Tensor) -> tuple[Features, State]:
        start = memory.unflatten(1, (self.num_heads, self.d_key, self.d_key))
        read, memory = delta_rule(*memory_inputs, start)
        outputs: Tensor = self.output(F.rms_norm(read, (self.d_key,), self.gain, RMS_EPSILON).flatten(2))
        return outputs, torch.cat([memory.flatten(1), earlier], 1)
