r"""The merge of each window of a tree into one state, as one operation with a gradient written by hand.

The training of such trees spends most of its time on merges.

A window has C parts, the states y_0 ... y_{C-1}, newest first. With n(x) = (x - mean) / sqrt(variance + 1e-5):

    z_j = tanh(g y_j);  q = W_q z_0;  k_j, v_j = W_kv z_j;  a_j = softmax_j(q . k_j / sqrt(E) + r_j), for each head;
    x_0 = W_o sum_j a_j v_j;  x_i = x_{i-1} + W'_i GELU(W_i (s_i n(x_{i-1}) + t_i) + b_i) + b'_i;  out = n(x_last).

Here g, r, s_i, t_i, b_i, b'_i and all W are learned weights, and x_i is the output of feed-forward block i.
`merge_by_definition` computes these lines, as the layer `lengthwise.layers.tree_layers.MergeLayer` does. The matrices
of a level are so small that starting an operation takes as long as running it. So `merge` starts fewer operations, and
autograd records only one. In attention, features are the first dimension and windows the last. So a sum over the few
features of a head adds whole rows, and each row has one number for every window.

Letters: R states, M windows, C chunk size, D width, H heads of E = D / H, F hidden units of a feed-forward block. N
columns are the C M parts of windows, or the R states.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import FunctionCtx

from lengthwise.ops.shapes import check_axes, check_optional_tensors, check_tensor_list, check_tensors, check_whole

EPSILON = 1e-5
"""The number that a norm adds to the variance. It is the default of `torch.nn.LayerNorm`."""

States = Float[Tensor, "R D"] | Float[Tensor, "C M D"]
Windows = Int64[Tensor, "C M"] | None
Queries = Float[Tensor, "D M"]
KeysValues = Float[Tensor, "_ N"]
Shares = Float[Tensor, "H C M"]
Biases = Float[Tensor, "H C"]
Square = Float[Tensor, "D D"]
Maps = Float[Tensor, "_ D"]


def merge_by_definition(weights: Sequence[Tensor], states: States, windows: Windows = None) -> Float[Tensor, "M D"]:
    """Return the merged state of each window, by the formulas in the docstring of `lengthwise.ops.merge`."""
    gain, query, key_value, output, bias, *blocks = weights
    parts = (gain * (states if windows is None else states[windows]).flip(0)).tanh()  # newest first
    by_head = (-1, len(bias), len(gain) // len(bias))
    q = (parts[0] @ query.T).view(by_head)
    k, v = ((parts @ weight.T).view(len(parts), *by_head) for weight in key_value.chunk(2))
    scores = (q * k).sum(-1) / math.sqrt(by_head[-1]) + bias.T[: len(parts), None]
    merged = (scores.softmax(0)[..., None] * v).sum(0).flatten(1) @ output.T
    for s, t, wide, b, narrow, c in _sixes(blocks):
        normed = F.layer_norm(merged, merged.shape[1:], s, t, EPSILON)
        merged = merged + F.gelu(normed @ wide.T + b) @ narrow.T + c
    return F.layer_norm(merged, merged.shape[1:])


def merge(weights: Sequence[Tensor], states: States, windows: Windows = None) -> Float[Tensor, "M D"]:
    """Return the merged state of each of M windows of C parts, given the parts [C, M, D], or indices [C, M] of states.

    In both cases, the oldest part of a window comes first. In the letters of `lengthwise.ops.merge`, `weights` are g
    [D], W_q [D, D], W_kv [2 D, D] (keys, then values), W_o [D, D], r [H, C], and for each feed-forward block s, t [D],
    W [F, D], b [F], W' [D, F], b' [D]. If r has more columns than a window has parts, only its first columns count.

    Raises:
        ValueError: an argument is not a tensor, a weight is missing, or a second derivative is requested, which is
            not implemented.

    Example:
        >>> one = torch.eye(2)
        >>> weights = [torch.ones(2), one, torch.cat([one, one]), one, torch.zeros(1, 2)]
        >>> merge(weights, torch.tensor([[[9.0, 0.0]], [[9.0, 0.0]]])).round().tolist()
        [[1.0, -1.0]]
    """
    check_tensor_list("weights", weights)
    check_tensors(states=states)
    check_optional_tensors(windows=windows)
    if len(weights) < 5 or len(weights) % 6 != 5:
        raise ValueError(
            f"weights: expected 5 tensors, and 6 more for each feed-forward block, got {len(weights)}; give them in "
            "the order of the docstring of `merge`"
        )
    gain, query, key_value, output, bias, *blocks = weights
    _check(gain, bias, states, windows)
    chunk = len(states if windows is None else windows)
    if bias.shape[1] > chunk:
        weights = [gain, query, key_value, output, bias[:, :chunk], *blocks]
    merged: Tensor = _Merge.apply(states, windows, *weights)  # type: ignore[no-untyped-call]
    return merged


def _check(gain: Tensor, bias: Tensor, states: Tensor, windows: Tensor | None) -> None:
    check_axes("states", states, "C, M, D" if windows is None else "R, D")
    if gain.shape != states.shape[-1:]:
        got = list(gain.shape)
        raise ValueError(
            f"weights: expected gains of shape {list(states.shape[-1:])}, like one state, got {got}; give the first of "
            "the weights this shape"
        )
    if windows is not None:
        check_axes("windows", windows, "C, M")
        check_whole("windows", windows)
    chunk = len(states if windows is None else windows)
    if bias.ndim != 2 or len(gain) % max(1, len(bias)) or bias.shape[1] < chunk:
        raise ValueError(
            f"weights: expected a bias [H, C] with H a divisor of {len(gain)} and C of at least {chunk}, got shape "
            f"{list(bias.shape)}; give one number for each head and each part of a window"
        )


class _Merge(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, states: Tensor, windows: Tensor | None, *weights: Tensor) -> Tensor:
        gain, query, key_value, output, bias, *blocks = weights
        parts = torch.tanh(states * gain)
        queries, keys_values = _projected(parts, windows, query, key_value)
        shares, mixed = _attended(queries, keys_values, bias)
        state = mixed.t() @ output.t()
        # Intermediate results are kept, because computing them again would start more operations, and they are small.
        kept = [parts, queries, keys_values, shares, mixed]
        for scale, shift, widen, widen_bias, narrow, narrow_bias in _sixes(blocks):
            # `F.layer_norm` does not return the mean and the rate 1 / sqrt(variance + epsilon), which the gradient
            # needs.
            normed, mean, rate = torch.native_layer_norm(state, scale.shape, scale, shift, EPSILON)
            sums = torch.addmm(widen_bias, normed, widen.t())
            hidden = F.gelu(sums)
            kept += [state, mean, rate, normed, sums, hidden]
            state = torch.addmm(narrow_bias, hidden, narrow.t()).add_(state)
        merged, mean, rate = torch.native_layer_norm(state, gain.shape, None, None, EPSILON)
        ctx.save_for_backward(states, windows, *weights, state, mean, rate, *kept)  # type: ignore[arg-type]
        ctx.num_weights = len(weights)  # type: ignore[attr-defined]
        return merged

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        # The kept intermediate results have no autograd history, so a second derivative would silently be wrong.
        if torch.is_grad_enabled():
            raise ValueError(
                "create_graph: expected False for a merge in training mode, got True; call model.eval(), because "
                "layers in evaluation mode have derivatives of any order"
            )
        states, windows, *saved = ctx.saved_tensors  # type: ignore[attr-defined]
        weights, kept = saved[: ctx.num_weights], saved[ctx.num_weights :]  # type: ignore[attr-defined]
        gain, query, key_value, output, _, *blocks = weights
        state, mean, rate, parts, queries, keys_values, shares, mixed, *kept_blocks = kept
        by_state = _norm_backward(gradient, state, mean, rate, None, None)[0]
        by_blocks: list[Tensor] = []
        for block, kept_block in zip(_sixes(blocks)[::-1], _sixes(kept_blocks)[::-1], strict=True):
            by_state, by_block = _block_backward(by_state, block, kept_block)
            by_blocks = [*by_block, *by_blocks]
        by_mixed, by_output = output.t() @ by_state.t(), by_state.t() @ mixed.t()
        by_queries, by_keys_values, by_bias = _attended_backward(by_mixed, queries, keys_values, shares)
        by_parts, by_query, by_key_value = _projected_backward(
            by_queries, by_keys_values, parts, windows, query, key_value
        )
        by_products = torch.ops.aten.tanh_backward.default(by_parts, parts)
        by_gain = (by_products * states).flatten(0, -2).sum(0)
        return (by_products * gain, None, by_gain, by_query, by_key_value, by_output, by_bias, *by_blocks)


def _sixes(tensors: Sequence[Tensor]) -> list[Sequence[Tensor]]:
    """Return groups of six tensors: a feed-forward block has six weights, and its gradient needs six kept tensors."""
    return [tensors[i : i + 6] for i in range(0, len(tensors), 6)]


def _projected(parts: States, windows: Windows, query: Square, key_value: Maps) -> tuple[Queries, KeysValues]:
    """Return the query of each window's newest part, and the keys and values of all parts."""
    if windows is None:
        return query @ parts[-1].t(), key_value @ parts.flatten(0, 1).t()
    # Windows share states, so projecting each state once and then gathering takes fewer products than gathering first.
    columns = parts.t()
    return (query @ columns).index_select(1, windows[-1]), (key_value @ columns).index_select(1, windows.flatten())


def _projected_backward(
    by_queries: Queries, by_keys_values: KeysValues, parts: Tensor, windows: Windows, query: Square, key_value: Maps
) -> tuple[Tensor, Square, Maps]:
    """Return the gradients with respect to the parts of windows, W_q and W_kv."""
    if windows is not None:
        by_queries = parts.new_zeros(len(query), len(parts)).index_add_(1, windows[-1], by_queries)
        zeros = parts.new_zeros(len(key_value), len(parts))
        by_keys_values = zeros.index_add_(1, windows.flatten(), by_keys_values)
    columns = parts.reshape(-1, len(query))
    # Queries belong to the newest parts, which are the last rows. If windows are given as
    # indices, queries are computed for all rows.
    by_columns, first = by_keys_values.t() @ key_value, len(columns) - by_queries.shape[1]
    by_columns[first:].addmm_(by_queries.t(), query)
    return by_columns.view_as(parts), by_queries @ columns[first:], by_keys_values @ columns


def _attended(queries: Queries, keys_values: KeysValues, bias: Biases) -> tuple[Shares, Queries]:
    """Return the attention weights of all parts of windows, and each window's weighted sum of values."""
    heads, chunk = bias.shape
    keys, values = keys_values.view(2, heads, -1, chunk, queries.shape[1])
    scores = (queries.view(heads, -1, 1, queries.shape[1]) * keys).sum(1)
    # Biases have the newest part first, and windows the oldest part first.
    shares = torch.add(bias.flip(1)[..., None], scores, alpha=keys.shape[1] ** -0.5).softmax(1)
    return shares, (shares[:, None] * values).sum(2).flatten(0, 1)


def _attended_backward(
    by_mixed: Queries, queries: Queries, keys_values: KeysValues, shares: Shares
) -> tuple[Queries, KeysValues, Biases]:
    """Return the gradients with respect to queries, to keys and values, and to the biases r of attention."""
    heads, chunk, count = shares.shape
    by_keys_values = torch.empty_like(keys_values)
    keys, values = keys_values.view(2, heads, -1, chunk, count)
    # Both gradients are written into one buffer, since one product with W_kv follows for both.
    by_keys, by_values = by_keys_values.view(2, heads, -1, chunk, count)
    by_mixed = by_mixed.view(heads, -1, 1, count)
    torch.mul(shares[:, None], by_mixed, out=by_values)
    by_shares = (values * by_mixed).sum(1)
    by_scores = torch._softmax_backward_data(by_shares, shares, 1, shares.dtype)
    # This must come before the next line, which scales the scores' gradient in place: biases are added unscaled.
    by_bias = by_scores.sum(2).flip(1)
    by_products = by_scores.mul_(keys.shape[1] ** -0.5)[:, None]
    torch.mul(by_products, queries.view(heads, -1, 1, count), out=by_keys)
    return (by_products * keys).sum(2).flatten(0, 1), by_keys_values, by_bias


def _block_backward(
    by_state: Float[Tensor, "M D"], block: Sequence[Tensor], kept: Sequence[Tensor]
) -> tuple[Float[Tensor, "M D"], list[Tensor]]:
    """Return the gradients with respect to a feed-forward block's input and weights."""
    scale, shift, widen, _, narrow, _ = block
    state, mean, rate, normed, sums, hidden = kept
    by_narrow = [by_state.t() @ hidden, by_state.sum(0)]
    by_sums = torch.ops.aten.gelu_backward.default(by_state @ narrow, sums)
    by_widen = [by_sums.t() @ normed, by_sums.sum(0)]
    before, *by_norm = _norm_backward(by_sums @ widen, state, mean, rate, scale, shift)
    # The residual passes the gradient around the block.
    return before.add_(by_state), [*by_norm, *by_widen, *by_narrow]


def _norm_backward(
    gradient: Float[Tensor, "M D"], state: Float[Tensor, "M D"], mean: Tensor, rate: Tensor, *weights: Tensor | None
) -> tuple[Any, ...]:
    """Return the gradients with respect to a norm's input and weights; the gradient for a missing weight is None."""
    needs = [True, *(weight is not None for weight in weights)]
    gradients: tuple[Any, ...] = torch.ops.aten.native_layer_norm_backward.default(
        gradient, state, state.shape[1:], mean, rate, *weights, needs
    )
    return gradients
