"""A straightforward RegularGPT as a baseline: all positions are computed, with a full mask at each level."""

import torch
import torch.nn.functional as F
from torch import Tensor

from lengthwise.ops.tree import Tree, num_levels


def dense_mask_states(ids: Tensor, tree: Tree) -> Tensor:
    """Return the state at the last position, by torch's attention with a [T, T] mask; pads extend T to a power of C."""
    (layer,), chunk = tree.layers, tree.chunk_size
    levels = num_levels(ids.shape[1], chunk)
    missing = chunk**levels - ids.shape[1]
    states = tree.leaves[F.pad(ids, (missing, 0))]
    positions = torch.arange(states.shape[1])
    distance = positions[:, None] - positions[None, :]
    for level in range(levels):
        offset, remainder = distance // chunk**level, distance % chunk**level
        allowed = (remainder == 0) & (offset >= 0) & (offset < chunk)
        mask = layer.bias[:, offset.clamp(0, chunk - 1)].masked_fill(~allowed, -torch.inf)
        normed = layer.normalize(states)
        heads = [part.transpose(1, 2) for part in (layer.query(normed), *layer.key_value(normed))]
        attended = F.scaled_dot_product_attention(*heads, attn_mask=mask)
        states = layer.output(states, attended.transpose(1, 2).flatten(-2))
    return states[:, -1]
