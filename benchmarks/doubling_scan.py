"""The scan of Fan et al. (2024), appendix A.2: groups double in size, and all matrix products of a level are stored."""

import torch
import torch.nn.functional as F
from torch import Tensor


def doubling_scan(transitions: Tensor, inputs: Tensor, initial: Tensor) -> Tensor:
    """Return all states by log_2 T levels, on a string that is padded to a power of two.

    The last state of a group's first half, multiplied by the product of the transitions since then, is added to each
    state of the second half. Each level has T / 2 such products, which are made from the products of the level below.
    """
    length = inputs.shape[1]
    missing = (1 << length.bit_length()) - length - 1
    states = F.pad(torch.cat([initial[:, None], inputs], 1), (0, 0, 0, 0, 0, missing))[:, :, None]
    products = F.pad(transitions, (0, 0, 0, 0, 0, 0, 0, missing))[:, :, None]  # the transitions of single steps
    while states.shape[1] > 1:
        first, second = states[:, ::2], states[:, 1::2]
        since, between = products[:, ::2], products[:, 1::2]
        moved = (since @ first[:, :, -1:, ..., None]).squeeze(-1)
        states = torch.cat([first, second + moved], 2)
        products = torch.cat([between, since[:, 1:] @ between[:, :, -1:]], 2)
    return states[:, 0, 1 : length + 1]
