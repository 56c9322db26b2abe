r"""Sliding-dilated attention for language models. No window contains positions before the start of a string.

    out[i] = sum_j a_j v[i - j s],   a = softmax_j (q[i] . k[i - j s] / sqrt(E) + r[h, j]),   j in [C], i - j s >= 0

with a window of C positions at stride s (the dilation, C^l at level l) and a learned bias r of each head and offset.

`dilated_attention_by_definition` is eq. (1) with its [T, T] mask. `dilated_attention` never builds this mask. It treats
the positions of each residue modulo s as a separate string, in which windows are contiguous. A block of queries in such
a string reads only the keys of its windows. The gradient computes the attention weights again, block by block. So only
queries, keys and values are kept, and the scores of only one block are in memory at a time.

Letters: B strings, T positions, H heads of E numbers, C chunk size, M = B s H strings of N positions modulo s, W =
min(C, N) positions of a window, Q queries of a block.

Source: Chi et al. (2023), Transformer Working Memory Enables Regular Language Reasoning, section 3.1, eq. (1).
Differs from the source: footnote 1 of the source pads strings to a multiple of C. Here windows contain no pads, but the
windows of `lengthwise.ops.tree_attention` do.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthwise.devices import lowers_precision
from lengthwise.ops.shapes import check_axes, check_one_dtype, check_shapes, check_tensors
from lengthwise.validation import check_sizes

MIN_BLOCK = 32
"""The smallest number of queries in a block: matrix products with fewer queries take just as long. If windows are
longer than this, blocks are as long as windows."""

Heads = Float[Tensor, "B H T E"]
HeadsLast = Float[Tensor, "B T H E"]


@check_shapes
def dilated_attention_by_definition(
    query: Heads, key: Heads, value: Heads, bias: Float[Tensor, "H C"], stride: int
) -> Heads:
    """Return the outputs of sliding-dilated attention, computed from all scores plus the mask of `dilated_mask`."""
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    return (scores + dilated_mask(bias, stride, query.shape[2])).softmax(-1) @ value


def dilated_mask(bias: Float[Tensor, "H C"], stride: int, length: int) -> Float[Tensor, "H T T"]:
    """Return the mask M of eq. (1) in Chi et al. (2023), which is added to the scores.

    For head h, query m and key n, the entry is `bias[h, j]` if m - n = j * stride for some j = 0 ... C - 1, else -inf.

    Example:
        >>> dilated_mask(torch.tensor([[1.0, 2.0]]), 2, 3)
        tensor([[[1., -inf, -inf],
                 [-inf, 1., -inf],
                 [2., -inf, 1.]]])
    """
    if not torch.compiler.is_exporting():  # in an export, the length may be a symbol instead of a number
        check_tensors(bias=bias)
        check_axes("bias", bias, "H, C")
        check_sizes(stride=stride, length=length)
        _check_window(bias)
    positions = torch.arange(length, device=bias.device)
    distance = positions[:, None] - positions
    offset, remainder = distance // stride, distance % stride
    allowed = (remainder == 0) & (offset >= 0) & (offset < bias.shape[1])
    # Offsets are clamped only to keep the index legal, because their scores are masked. The softmax of a completely
    # masked row would be NaN. No row is completely masked, because distance 0 is always allowed.
    return bias[:, offset.clamp(0, bias.shape[1] - 1)].masked_fill(~allowed, -math.inf)


def attend_masked(
    query: HeadsLast, key: HeadsLast, value: HeadsLast, bias: Float[Tensor, "H C"], stride: int
) -> Float[Tensor, "B T D"]:
    """Return the outputs of attention for arguments [batch, position, head, number], with heads concatenated."""
    attended = dilated_attention_by_definition(
        query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), bias, stride
    )
    return attended.transpose(1, 2).flatten(-2)


@check_shapes
def dilated_attention(query: Heads, key: Heads, value: Heads, bias: Float[Tensor, "H C"], stride: int) -> Heads:
    """Return the outputs of `dilated_attention_by_definition`, but never build the mask of all pairs of positions.

    Second derivatives are not implemented.

    Raises:
        ValueError: T = 0, the window or the stride is below 1, or shapes do not match.

    Example:
        >>> states = torch.ones(1, 1, 5, 2)
        >>> values = torch.arange(5.0).view(1, 1, 5, 1).expand(1, 1, 5, 2)
        >>> dilated_attention(states, states, values, torch.zeros(1, 2), 3)[0, 0, :, 0].tolist()
        [0.0, 1.0, 2.0, 1.5, 2.5]
    """
    batch_size, num_heads, length, _ = query.shape
    _check_window(bias)
    check_sizes(stride=stride)
    if not lowers_precision():
        check_one_dtype(query=query, key=key, value=value)
    missing = -length % stride
    window = min(bias.shape[1], (length + missing) // stride)
    size = min(max(window, MIN_BLOCK), (length + missing) // stride)
    # One copy makes windows contiguous, so that each block is a plain product of matrices.
    strings = [_by_residue(tensor, stride, missing) for tensor in (query, key, value)]
    band = _band(bias[:, :window], size).to(query.dtype)
    attended: Tensor = _BandedAttention.apply(*strings, band)  # type: ignore[no-untyped-call]
    by_residue = torch.unflatten(attended, 0, (batch_size, stride, num_heads))
    return by_residue.permute(0, 2, 3, 1, 4).flatten(2, 3)[:, :, :length]


def _check_window(bias: Tensor) -> None:
    if not bias.shape[1]:
        raise ValueError("bias: expected at least 1 column, got 0; give one column for each position of a window")


def _by_residue(states: Heads, stride: int, missing: int) -> Float[Tensor, "M N E"]:
    """Return the positions of each residue modulo the stride as a separate string; zeros fill the end."""
    padded = F.pad(states, (0, 0, 0, missing)) if missing else states
    return torch.unflatten(padded, 2, (-1, stride)).permute(0, 3, 1, 2, 4).flatten(0, 2).contiguous()


def _band(bias: Float[Tensor, "H W"], size: int) -> Float[Tensor, "H Q _"]:
    """Return the mask between a block's queries and its keys, which begin W - 1 positions before the queries.

    W is the number of positions in a window. Each diagonal of the mask has one bias r_j, and all other entries are
    -inf.
    """
    padded = F.pad(bias.flip(1), (size - 1, size - 1), value=-math.inf)
    return padded.unfold(1, size + bias.shape[1] - 1, 1).flip(1)


class _Block(NamedTuple):
    """The positions of a block's queries and keys, and the rows and columns of the mask `band` that belong to them."""

    queries: slice
    keys: slice
    rows: slice
    columns: slice


def _blocks(length: int, band: Float[Tensor, "H Q _"]) -> Iterator[_Block]:
    size = band.shape[1]
    before = band.shape[2] - size
    for start in range(0, length, size):
        stop = min(start + size, length)
        outside = max(0, before - start)
        yield _Block(
            slice(start, stop),
            slice(start - before + outside, stop),
            slice(0, stop - start),
            slice(outside, stop - start + before),
        )


def _weights(
    query: Float[Tensor, "M _ E"], key: Float[Tensor, "M _ E"], mask: Float[Tensor, "H _ _"]
) -> Float[Tensor, "M _ _"]:
    """Return the attention weights of a block of queries."""
    scores = torch.bmm(query, key.mT).mul_(query.shape[-1] ** -0.5)
    scores.unflatten(0, (-1, len(mask))).add_(mask)
    return scores.softmax(-1)


class _BandedAttention(torch.autograd.Function):
    """Attention where each position of a string attends to the last W positions, which include the position itself."""

    @staticmethod
    def forward(ctx: FunctionCtx, query: Tensor, key: Tensor, value: Tensor, band: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, value, band)
        attended = torch.empty_like(query)
        for queries, keys, rows, columns in _blocks(query.shape[1], band):
            weights = _weights(query[:, queries], key[:, keys], band[:, rows, columns])
            attended[:, queries] = torch.bmm(weights, value[:, keys])
        return attended

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, ...]:
        query, key, value, band = ctx.saved_tensors  # type: ignore[attr-defined]
        by_query = torch.empty_like(query)
        by_key = torch.zeros_like(key)
        by_value = torch.zeros_like(value)
        by_band = torch.zeros_like(band)
        for queries, keys, rows, columns in _blocks(query.shape[1], band):
            # The weights are computed again, so that memory never holds the weights of more than one block.
            weights = _weights(query[:, queries], key[:, keys], band[:, rows, columns])
            arriving = gradient[:, queries]
            by_value[:, keys] += torch.bmm(weights.mT, arriving)
            by_weights = torch.bmm(arriving, value[:, keys].mT)
            # For weights w = softmax(scores) with gradient g, the gradient for scores is w (g - sum(g w)). So scores
            # need not be kept.
            by_scores = by_weights.sub_((by_weights * weights).sum(-1, keepdim=True)).mul_(weights)
            by_band[:, rows, columns] += by_scores.unflatten(0, (-1, len(band))).sum(0)
            by_scores.mul_(query.shape[-1] ** -0.5)
            by_query[:, queries] = torch.bmm(by_scores, key[:, keys])
            by_key[:, keys] += torch.bmm(by_scores.mT, query[:, queries])
        return by_query, by_key, by_value, by_band
