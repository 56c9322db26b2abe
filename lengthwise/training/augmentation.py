"""What training does to a batch and to hidden states."""

import torch
from torch import Tensor

from lengthwise.conventions import IGNORE, PAD
from lengthwise.devices import moved
from lengthwise.models.capabilities import Perturbation
from lengthwise.tasks.base import Batch


def with_identity_padding(
    batch: Batch, generator: torch.Generator, *, max_per_symbol: float = 0.5, block: int = 1
) -> Batch:
    """Insert pads into every string at positions drawn again for each: 0 to `max_per_symbol` T, and what fills a block.

    A pad is the identity: the last one of a block has the target of the symbol before it (none where there is none).
    Every string is seen under many bracketings, so a tree model has to learn that merging is associative.

    Pads come in blocks of `block`, whose distance from the end is a multiple of `block`: a tree of chunks of that size
    then meets no chunk that an unpadded string would not show it. Where T is no multiple, the first block of the string
    is filled up with pads in front.
    """
    length = batch.inputs.shape[1]
    num_pad_blocks = int(torch.randint(int(max_per_symbol * length) // block + 1, (), generator=generator))
    if not num_pad_blocks:
        return batch
    in_front = -length % block
    num_blocks = (in_front + length) // block
    order = torch.rand(len(batch.inputs), num_blocks + num_pad_blocks, generator=generator).argsort(1)
    is_symbol = (order < num_blocks).repeat_interleave(block, dim=1)
    latest = is_symbol.cumsum(1) - 1 - in_front
    is_symbol &= latest >= 0
    inputs = batch.inputs.gather(1, latest.clamp(min=0)).masked_fill(~is_symbol, PAD)
    is_supervised = is_symbol | (torch.arange(is_symbol.shape[1]) % block == block - 1)
    targets = batch.targets.gather(1, latest.clamp(min=0)).masked_fill((latest < 0) | ~is_supervised, IGNORE)
    return Batch(inputs, targets)


def with_leading_pads(batch: Batch, maximum: int, generator: torch.Generator) -> Batch:
    """Put one run of pads, of a log-uniform number below `maximum` (of one: 1), in front of all strings.

    A string a little longer than C^l meets, in a tree, pads merged l times. Training must have shown such deep pads,
    or the net is right at length 16,384 and at chance at 10,000. To a tree model that merges pads, they cost a merge
    per level.
    """
    num_pads = int(maximum ** float(torch.rand((), generator=generator)))
    pads = batch.inputs.new_full((len(batch.inputs), num_pads), PAD)
    nothing = batch.targets.new_full((len(batch.targets), num_pads), IGNORE)
    return Batch(torch.cat([pads, batch.inputs], 1), torch.cat([nothing, batch.targets], 1))


def random_suffixes(batch: Batch, generator: torch.Generator) -> Batch:
    """The last S symbols of every string and their answers, for an S drawn from 1 ... T."""
    start = int(torch.randint(batch.inputs.shape[1], (), generator=generator))
    return Batch(batch.inputs[:, start:], batch.targets[:, start:])


def gaussian_noise(standard_deviation: float, generator: torch.Generator) -> Perturbation:
    """Add independent noise to every number; it is drawn on the CPU."""

    def perturb(states: Tensor) -> Tensor:
        drawn = torch.randn(states.shape, generator=generator, dtype=states.dtype)
        return states + standard_deviation * moved(drawn, states.device)

    return perturb
