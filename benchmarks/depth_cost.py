"""The cost of depth: RegularGPT's ceil(log_C T) levels and the layers of a causal Transformer, counted and measured.

    python benchmarks/depth_cost.py            prints the table
    python benchmarks/depth_cost.py --save     also writes docs/routing.md and its picture
    python benchmarks/depth_cost.py --quick    takes seconds: a test that it runs, without meaningful numbers

Times are CPU times of a forward pass on one torch thread, all in one process. Attention over windows uses dense blocks,
which suit large C. Before anything is timed, this attention is compared with the masked definition.
"""

import statistics
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from depth_page import save
from speed_page import cpu_times, parse_options

from lengthwise.layers.tree_layers import PreNormLayer
from lengthwise.ops.tree import num_levels
from lengthwise.ops.tree_attention import attend_masked
from lengthwise.studies.chi2023.cost import attention_break_even, layer_break_even, published_break_even

D_MODEL, NUM_HEADS = 768, 12
"""The width and the number of heads of the language models of Chi et al. (2023), Table 5."""

SHAPES = ((512, 32), (512, 128), (512, 256), (2048, 32), (2048, 128))
"""Lengths and chunk sizes."""


class Cost(NamedTuple):
    """The K / L at which RegularGPT and a causal Transformer cost the same: by formula, counted, and measured."""

    length: int
    chunk_size: int
    published: float
    attention: float
    layers: float
    attention_measured: float
    layers_measured: float


Heads = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Blocks(NamedTuple):
    """The partition of a string at one level into dense blocks of windows.

    Positions that are `stride` apart form a sequence, so there are `stride` sequences. Together they are padded in
    front by `missing` positions. Each sequence is cut into `count` blocks of `size` positions. A block of queries
    attends to the keys of its own block and of the block before it. `mask` contains the bias of eq. (1).
    """

    stride: int
    missing: int
    count: int
    size: int
    mask: torch.Tensor


def blocks_of(bias: torch.Tensor, length: int, stride: int) -> Blocks:
    """Return the blocks of a level. They depend only on the length, so making them is not timed."""
    chunk = bias.shape[1]
    in_sequence = -(-length // stride)
    size = min(chunk, in_sequence)
    count = -(-in_sequence // size)
    missing = count * size * stride - length
    queries = torch.arange(count * size).reshape(count, size, 1)
    first = queries[:, :1] - size * (count > 1)
    keys = first + torch.arange(size * (1 + (count > 1)))
    offset = queries - keys
    is_symbol = keys[None] * stride + torch.arange(stride)[:, None, None, None] >= missing
    allowed = is_symbol & (keys >= 0) & (offset >= 0) & (offset < chunk)
    mask = bias[:, offset.clamp(0, chunk - 1)].masked_fill(~allowed[:, None], -torch.inf)
    return Blocks(stride, missing, count, size, mask.flatten(1, 2))


def window_attention(heads: Heads, blocks: Blocks) -> torch.Tensor:
    """Compute eq. (1) for one string, with T C pairs of a query and a key (2 T C if there are several blocks)."""
    query, key, value = (_in_sequences(x, blocks) for x in heads)
    if blocks.count > 1:
        key, value = (torch.cat([F.pad(x, (0, 0, 0, 0, 1, 0))[:, :, :-1], x], 3) for x in (key, value))
    attended = F.scaled_dot_product_attention(*(x.flatten(1, 2) for x in (query, key, value)), attn_mask=blocks.mask)
    attended = attended.unflatten(1, (-1, blocks.count)).flatten(2, 3)
    return attended.permute(2, 0, 1, 3).flatten(0, 1).flatten(1)[None, blocks.missing :]


def _in_sequences(x: torch.Tensor, blocks: Blocks) -> torch.Tensor:
    """Reshape [1, T, H, E] to [sequences, H, blocks, positions, E]."""
    padded = F.pad(x[0], (0, 0, 0, 0, blocks.missing, 0))
    return padded.reshape(blocks.count, blocks.size, blocks.stride, *x.shape[2:]).permute(2, 3, 0, 1, 4)


def window_levels(layer: PreNormLayer, states: torch.Tensor, levels: list[Blocks]) -> torch.Tensor:
    """Apply the layer at every level, as a RegularGPT of thickness 1 does with one string."""
    for blocks in levels:
        normed = layer.normalize(states)
        states = layer.output(states, window_attention((layer.query(normed), *layer.key_value(normed)), blocks))
    return states


def full_attention(heads: Heads) -> torch.Tensor:
    """Compute causal attention of every position to all earlier positions, by torch's kernel."""
    query, key, value = (x.transpose(1, 2) for x in heads)
    return F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(-2)


def full_layer(layer: PreNormLayer, states: torch.Tensor) -> torch.Tensor:
    """Apply one layer of a causal Transformer with the same projections and feed-forward block."""
    normed = layer.normalize(states)
    return layer.output(states, full_attention((layer.query(normed), *layer.key_value(normed))))


def check_that_forms_agree() -> None:
    """Check that attention in blocks equals the masked definition, and full attention a window of all positions."""
    generator = torch.Generator().manual_seed(0)
    for length, chunk in ((1, 2), (33, 2), (33, 3), (63, 8), (64, 8), (33, 33)):
        heads = tuple(torch.randn(1, length, 2, 4, generator=generator, dtype=torch.float64) for _ in range(3))
        bias = torch.randn(2, chunk, generator=generator, dtype=torch.float64)
        for stride in strides(length, chunk):
            defined = attend_masked(*heads, bias, stride)
            torch.testing.assert_close(window_attention(heads, blocks_of(bias, length, stride)), defined)
        defined = attend_masked(*heads, torch.zeros(2, length, dtype=torch.float64), 1)
        torch.testing.assert_close(full_attention(heads), defined)


def strides(length: int, chunk_size: int) -> list[int]:
    """Return the dilation of each level."""
    return [chunk_size**level for level in range(num_levels(length, chunk_size))]


def cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median CPU seconds of a call, after a warm-up call."""
    return statistics.median(cpu_times(work, repeats))


@torch.no_grad()
def measure(length: int, chunk_size: int, d_model: int, repeats: int) -> Cost:
    """Count and time one shape."""
    generator = torch.Generator().manual_seed(0)
    layer = PreNormLayer(d_model=d_model, num_heads=NUM_HEADS, chunk_size=chunk_size)
    layer.reset_parameters(generator)
    states = torch.randn(1, length, d_model, generator=generator)
    heads = tuple(torch.randn(1, length, NUM_HEADS, d_model // NUM_HEADS, generator=generator) for _ in range(3))
    levels = [blocks_of(layer.bias, length, stride) for stride in strides(length, chunk_size)]
    full = cpu_seconds(lambda: full_attention(heads), repeats)
    windows = cpu_seconds(lambda: [window_attention(heads, blocks) for blocks in levels], repeats)
    full_pass = cpu_seconds(lambda: full_layer(layer, states), repeats)
    window_pass = cpu_seconds(lambda: window_levels(layer, states, levels), repeats)
    return Cost(
        length=length,
        chunk_size=chunk_size,
        published=published_break_even(length, chunk_size),
        attention=attention_break_even(length, chunk_size),
        layers=layer_break_even(length, chunk_size, d_model),
        attention_measured=full / windows,
        layers_measured=full_pass / window_pass,
    )


def main() -> None:
    options = parse_options(__doc__)
    torch.set_num_threads(1)
    check_that_forms_agree()
    costs = []
    for length, chunk_size in ((64, 8),) if options.quick else SHAPES:
        cost = measure(length, chunk_size, 48 if options.quick else D_MODEL, 1 if options.quick else 5)
        print("  ".join(f"{name} {value:.4g}" for name, value in cost._asdict().items()), flush=True)
        costs.append(cost)
    if options.save:
        save(costs, D_MODEL)


if __name__ == "__main__":
    main()
