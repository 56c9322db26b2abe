"""The two layers of an RWKV block, version 4."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.recurrent_layer import Features, RecurrentLayer, State
from lengthwise.validation import check_sizes

MINIMUM = -1e30
"""The number that replaces log 0. It is finite, so that differences of two such numbers are finite."""


class _Shifted(RecurrentLayer):
    """A layer that mixes the features of each position with the features of the previous position.

    The shares of the two positions are learned, separately for each channel. A layer computes `uses` mixtures, for
    example one each for r, k and v. Each mixture has its own shares.
    """

    def __init__(self, *, d_model: int, uses: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model)
        self.d_model = d_model
        self.mix = nn.Parameter(torch.empty(uses, d_model))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw matrices as torch does; in channel n of mixed features, the current position gets the share n / D."""
        draw_linears(self, generator)
        with torch.no_grad():
            self.mix.copy_(torch.arange(self.d_model) / self.d_model)

    def mixed(self, features: Float[Tensor, "B T D"], before: Float[Tensor, "B D"]) -> list[Float[Tensor, "B T D"]]:
        shifted = torch.cat([before[:, None], features[:, :-1]], 1)
        return [torch.lerp(shifted, features, share) for share in self.mix]


class TimeMix(_Shifted):
    r"""An average of values with weights e^k that decay at constant rates: o_t = W_o (sigmoid(r_t) * wkv_t).

    For each channel,

    wkv_t = (sum_{i<t} e^{-(t-1-i) w + k_i} v_i + e^{u + k_t} v_t) / (the same without v).

    r, k and v are linear in features that are mixed with the features of the previous position. Both sums are divided
    by their largest exponential.

    Source: Peng et al., "RWKV: reinventing RNNs for the Transformer era" (Findings of EMNLP 2023), eq. (11)-(13), (16),
        (17), and appendix D for the running maximum.
    Differs from the source: in the initialization. All matrices are uniform, whereas the published code begins with
        zeros for r, k and o. Every layer begins with the decays and shares of the published code's first layer. The
        bonus u of the newest symbol begins at log 0.3. In the published code, the initial bonuses of the channels
        alternate around log 0.3.
    """

    def __init__(self, *, d_model: int) -> None:
        super().__init__(d_model=d_model, uses=3)
        self.state_size = 4 * d_model
        self.receptance, self.key, self.value, self.output = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.log_decay = nn.Parameter(torch.empty(d_model))
        self.bonus = nn.Parameter(torch.empty(d_model))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Set the rates of decay w from e^-5 to e^3, half of them below 0.93, and set the bonus u to log 0.3."""
        super().reset_parameters(generator)
        with torch.no_grad():
            self.mix[0].sqrt_()  # the shares for r, as in the published code
            share = torch.arange(self.d_model) / max(1, self.d_model - 1)
            self.log_decay.copy_(-5 + 8 * share**0.7)
        nn.init.constant_(self.bonus, math.log(0.3))

    def initial_state(self, like: Float[Tensor, "B D"]) -> Float[Tensor, "B Z"]:
        """Return a state whose features and sums are 0, and whose largest exponent is `MINIMUM` instead of log 0."""
        zeros = torch.zeros_like(like)
        return torch.cat([zeros, zeros, zeros, zeros + MINIMUM], 1)

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        before, a, b, largest = state.chunk(4, 1)
        for_r, for_k, for_v = self.mixed(features, before)
        receptance = torch.sigmoid(self.receptance(for_r))
        decay, averages = self.log_decay.exp(), []
        for k, v in zip(self.key(for_k).unbind(1), self.value(for_v).unbind(1), strict=True):
            # Both sums are divided by the largest exponential so far, so no exponential exceeds 1.
            now = torch.maximum(largest, self.bonus + k)
            old, new = torch.exp(largest - now), torch.exp(self.bonus + k - now)
            averages.append((old * a + new * v) / (old * b + new))
            later = torch.maximum(largest - decay, k)
            old, new = torch.exp(largest - decay - later), torch.exp(k - later)
            a = old * a + new * v
            b = old * b + new
            largest = later
        outputs = self.output(receptance * torch.stack(averages, 1))
        return outputs, torch.cat([features[:, -1], a, b, largest], 1)


class ChannelMix(_Shifted):
    """o_t = sigmoid(r_t) * W_v max(0, k_t)^2, where r and k are linear in mixed features, as in `TimeMix`.

    Source: Peng et al. (2023), eq. (14), (15), (18).
    Differs from the source: as in `TimeMix`.
    """

    def __init__(self, *, d_model: int) -> None:
        super().__init__(d_model=d_model, uses=2)
        self.state_size = d_model
        self.receptance = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, 4 * d_model, bias=False)
        self.value = nn.Linear(4 * d_model, d_model, bias=False)

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        for_r, for_k = self.mixed(features, state)
        outputs = torch.sigmoid(self.receptance(for_r)) * self.value(torch.relu(self.key(for_k)).square())
        return outputs, features[:, -1]
