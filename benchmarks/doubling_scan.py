"""The scan of Fan et al. (2024), appendix A.2: groups double in size, and all matrix products of a level are stored."""

import torch
import torch.nn.functional as F
from torch import Tensor


def doubling_scan(transitions: Tensor, inputs: Tensor, initial: Tensor) -> Tensor:
    """All states, by log_2 T levels on a string that is filled up to a power of two.

    The states of a group's second half get the products of the transitions since its first half, times its last state;
    these T / 2 products of a level are made from those of the level below.
    """
    length = inputs.shape[1]
    missing = (1 << length.bit_length()) - length - 1
    states = F.pad(torch.cat([initial[:, None], inputs], 1), (0, 0, 0, 0, 0, missing))[:, :, None]
    products = F.pad(transitions, (0, 0, 0, 0, 0, 0, 0, missing))[:, :, None]  # of steps 1, 2, ... alone
    while states.shape[1] > 1:
        first, second = states[:, ::2], states[:, 1::2]
        since, between = products[:, ::2], products[:, 1::2]
        moved = (since @ first[:, :, -1:, ..., None]).squeeze(-1)
        states = torch.cat([first, second + moved], 2)
        products = torch.cat([between, since[:, 1:] @ between[:, :, -1:]], 2)
    return states[:, 0, 1 : length + 1]
