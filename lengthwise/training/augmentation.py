"""Augmentations in training: pads in and before strings, suffixes of strings, noise on hidden states."""

import torch
from torch import Tensor

from lengthwise.conventions import IGNORE, PAD
from lengthwise.devices import moved
from lengthwise.ops.tree import Perturbation
from lengthwise.tasks.base import Batch


def with_identity_padding(
    batch: Batch, generator: torch.Generator, *, max_per_symbol: float = 0.5, block: int = 1
) -> Batch:
    """Insert pads into every string of T symbols: at random positions, and in front to fill the first block.

    The number of pads at random positions is between 0 and `max_per_symbol` * T.

    A pad means the identity, so the last pad of a group has the target of the symbol before the group. Pads before the
    first symbol have no target. Training shows every string under many bracketings, so a tree model has to learn that
    merging is associative.

    Pads come in groups of `block` pads. The distance from each group to the end of the string is a multiple of `block`.
    In a tree with chunks of `block` symbols, each chunk is then either all pads or a chunk of the unpadded string. If T
    is not a multiple of `block`, pads in front fill the first block of the string.
    """
    length = batch.inputs.shape[1]
    num_pad_blocks = int(torch.randint(int(max_per_symbol * length) // block + 1, (), generator=generator))
    if not num_pad_blocks:
        return batch
    in_front = -length % block
    num_blocks = (in_front + length) // block
    # Sorting one random number per block gives each row a random order of symbol blocks and pad blocks. The symbols
    # themselves keep their order.
    order = torch.rand(len(batch.inputs), num_blocks + num_pad_blocks, generator=generator).argsort(1)
    is_symbol = (order < num_blocks).repeat_interleave(block, dim=1)
    latest = is_symbol.cumsum(1) - 1 - in_front
    is_symbol &= latest >= 0
    inputs = batch.inputs.gather(1, latest.clamp(min=0)).masked_fill(~is_symbol, PAD)
    # No node of a tree ends inside a group of pads, so only the last pad of a group gets a target.
    is_supervised = is_symbol | (torch.arange(is_symbol.shape[1]) % block == block - 1)
    targets = batch.targets.gather(1, latest.clamp(min=0)).masked_fill((latest < 0) | ~is_supervised, IGNORE)
    return Batch(inputs, targets)


def with_leading_pads(batch: Batch, maximum: int, generator: torch.Generator) -> Batch:
    """Put one run of pads in front of all strings; the number of pads is log-uniform, at least 1 and below `maximum`.

    Let C be the size of a tree's chunks. If a string is a little longer than C^l, its tree contains pads that were
    merged l times. Without such pads in training, a net may be right at length 16,384 and at chance at length 10,000.
    The pads are cheap: a tree model that merges pads computes only one merge of pads per level.
    """
    # The number is log-uniform, so that pads of every depth of merging are about equally frequent.
    num_pads = int(maximum ** float(torch.rand((), generator=generator)))
    pads = batch.inputs.new_full((len(batch.inputs), num_pads), PAD)
    nothing = batch.targets.new_full((len(batch.targets), num_pads), IGNORE)
    return Batch(torch.cat([pads, batch.inputs], 1), torch.cat([nothing, batch.targets], 1))


def random_suffixes(batch: Batch, generator: torch.Generator) -> Batch:
    """Return the last S symbols of every string and their targets, with one S drawn from 1 ... T for all strings."""
    start = int(torch.randint(batch.inputs.shape[1], (), generator=generator))
    return Batch(batch.inputs[:, start:], batch.targets[:, start:])


def gaussian_noise(standard_deviation: float, generator: torch.Generator) -> Perturbation:
    """Return a function that adds independent noise to every number of the states."""

    def perturb(states: Tensor) -> Tensor:
        # Noise drawn on the CPU does not depend on the device, so a run can be repeated on another device.
        drawn = torch.randn(states.shape, generator=generator, dtype=states.dtype)
        return states + standard_deviation * moved(drawn, states.device)

    return perturb
