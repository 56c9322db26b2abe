r"""Sliding-dilated attention applied log_C T times with shared weights: three forms of one function.

Let h_0[m] be the leaf of symbol m, and the pad for m < 0. Then a level computes

    h_{l+1}[m] = layer(h_l[m], h_l[m - C^l], ..., h_l[m - (C-1) C^l])

with attention over these C states. The score of the state at distance j C^l has a bias r_j. The answer for the prefix
of length t is read at position t - 1, after L(t) = max(1, smallest L with C^L >= t) levels. With thickness K, a level
applies K layers at the same dilation. The lowest levels may have other chunk sizes (`Tree`). With chunk sizes C_0, C_1,
..., a window of level l has C_l states at multiples of C_0 ... C_{l-1}. Each layer has the biases r_j of the longest
window, and a window of n states uses the first n biases.

Positions before the start are pads. Under the pad rule `"merged"`, pads pass through the layers like all states. Under
`"raw"`, every level has the same raw pad there. With the left edge `"cut"`, windows are cut off instead
(`lengthwise.ops.cut_tree`). All forms support both left edges.

`prefix_states_by_definition` has a [T, T] mask for each level, as in eq. (1). `prefix_states` computes the same states
without a mask. `last_state` computes only the answer for the whole string, from the positions congruent to T - 1 modulo
C^l at level l. As long as windows repeat, `prefix_states` and `last_state` merge each distinct window once, and copy
the result to all nodes with this window. This sharing changes states and gradients only by rounding.

Variables of this module: on the levels where windows repeat, `rows` contains the distinct states of a level, and
`codes` contains each node's row in `rows`. From the first level with few repeated windows on, `states` contains a state
for each node. `pad` is the current level's pad.

Letters: B strings, T symbols, N or M nodes of a level, V symbols with the pad, R rows, D width, H heads of E = D / H,
C chunk size, K thickness. `lengthwise.ops.tree` draws the tree of a string of 5 symbols.

Source: Chi et al. (2023), Transformer Working Memory Enables Regular Language Reasoning, section 3, eq. (1).
Differs from the source: its footnote 1 pads strings to a multiple of C. Here, pads fill all windows before the start,
and they take part in attention. If they were masked, no weights could distinguish a symbol from the same symbol twice.
Section 3.2 gives a string log_C T levels. Here, each prefix has the number of levels for its own length, so that its
answer does not depend on later symbols.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.devices import lowers_precision
from lengthwise.ops.cut_tree import cut_last_states, cut_prefix_states, cut_prefix_states_by_definition
from lengthwise.ops.dilated_attention import attend_masked
from lengthwise.ops.shapes import check_shapes, check_tensor_list, check_tensors
from lengthwise.ops.tree import FusedLayer, Ids, Merge, Observer, Perturbation, PrefixStates, Tree, TreeLayer, check_ids

TABLE_ROWS = 1024
"""The largest number of possible windows for which a level's states get no noise from `perturb`."""

MAX_DISTINCT = 0.75
"""The largest ratio of distinct states to nodes at which a level looks for repeated windows."""


def attend(
    query: Float[Tensor, "*N H E"],
    keys: Sequence[Float[Tensor, "*N H E"]],
    values: Sequence[Float[Tensor, "*N H E"]],
    bias: Float[Tensor, "H C"],
) -> Float[Tensor, "*N D"]:
    """Return the attention of each query over its own window of C states, with heads concatenated.

    a_j = softmax_j(q . k_j / sqrt(E) + r_j);  out = sum_j a_j v_j. The newest state of a window has j = 0.

    For one head, q is the query of E numbers, and k_j, v_j and r_j are the key, value and bias of state j.
    """
    _check_window(query, keys, values, bias)
    scale = 1.0 / math.sqrt(query.shape[-1])
    scaled = query * scale
    scores = torch.stack([(scaled * key).sum(-1) for key in keys]) + bias.T[: len(keys)].reshape(
        -1, *[1] * (query.ndim - 2), bias.shape[0]
    )
    weights = scores.softmax(0).unsqueeze(-1)
    mixed = weights[0] * values[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        mixed = torch.addcmul(mixed, weight, value)
    return mixed.flatten(-2)


def _check_window(query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], bias: Tensor) -> None:
    check_tensors(query=query, bias=bias)
    check_tensor_list("keys", keys)
    check_tensor_list("values", values)
    if torch.compiler.is_exporting():  # sizes may be symbols instead of numbers
        return
    if not len(keys) or len(keys) != len(values):
        raise ValueError(
            f"values: expected at least 1 tensor, and as many as keys, got {len(values)} for {len(keys)} keys; give "
            "one key and one value for each state of a window"
        )
    if query.ndim < 2 or any(part.shape != query.shape for part in (*keys, *values)):
        got = ", ".join(str(list(part.shape)) for part in (*keys, *values))
        raise ValueError(
            f"query: expected the shape [*N, H, E] of every key and value, got {list(query.shape)} with keys and "
            f"values {got}; give tensors of one shape"
        )
    if bias.ndim != 2 or len(bias) != query.shape[-2] or bias.shape[1] < len(keys):
        raise ValueError(
            f"bias: expected shape [{query.shape[-2]}, C] with C of at least {len(keys)}, got {list(bias.shape)}; "
            "give one number for each head and each state of a window"
        )


def merge_windows(layer: TreeLayer, windows: Float[Tensor, "*N C D"]) -> Float[Tensor, "*N D"]:
    """Return the layer's output for each window of C states; the oldest state of a window comes first."""
    normed = layer.normalize(windows)
    keys, values = layer.key_value(normed)
    newest = layer.query(normed[..., -1, :])
    attended = attend(newest, keys.unbind(-3)[::-1], values.unbind(-3)[::-1], layer.window_bias())
    return layer.output(windows[..., -1, :], attended)


def merge_by_parts(layer: TreeLayer, states: Tensor, windows: Int64[Tensor, "C M"] | None) -> Float[Tensor, "M D"]:
    """Return the result of the layer's `Merge`, computed by the layer's separate methods.

    If windows are given as indices of states, the states are projected first, and the projections are gathered.
    """
    if windows is None:
        return merge_windows(layer, states.transpose(0, 1))
    normed, newest_first = layer.normalize(states), windows.flip(0)
    key, value = layer.key_value(normed)
    query = layer.query(normed).index_select(0, windows[-1])
    keys, values = ([part.index_select(0, index) for index in newest_first] for part in (key, value))
    return layer.output(states.index_select(0, windows[-1]), attend(query, keys, values, layer.window_bias()))


def merge_of(layer: TreeLayer) -> Merge:
    """Return the layer's fused operation if it exists and products are in full precision, else `merge_by_parts`."""
    fused = layer.fused() if isinstance(layer, FusedLayer) and not lowers_precision() else None
    return fused or partial(merge_by_parts, layer)


def prefix_states_by_definition(ids: Ids, tree: Tree) -> PrefixStates:
    """Return every prefix's state by the definition, with the mask of `dilated_mask` and with pads before the start.

    The mask takes O(T^2) memory. The pads reach as far back as the widest window of a symbol. Windows of pads may lack
    states that lie even farther back. This changes no result, because attention over equal states returns their common
    value, whatever their number is. With the left edge `"cut"`, this is `cut_prefix_states_by_definition`.
    """
    check_ids([ids], tree)
    if tree.left_edge == "cut":
        return cut_prefix_states_by_definition(ids, tree)
    levels = tree.num_levels(ids.shape[1])
    pads = tree.reach(levels) - tree.reach(levels - 1)
    states = tree.leaves[F.pad(ids, (pads, 0))]
    raw = states[:, :pads]
    answers = []
    for level in range(levels):
        if tree.pad_rule == "raw":
            states = torch.cat([raw, states[:, pads:]], 1)
        for layer in tree.layers:
            normed = layer.normalize(states)
            bias = layer.window_bias()[:, : tree.chunk_size_at(level)]
            attended = attend_masked(layer.query(normed), *layer.key_value(normed), bias, tree.reach(level))
            states = layer.output(states, attended)
        answers.append(states[:, pads:][:, _read_after(level, tree)[1]])
    return torch.cat(answers, 1)


@check_shapes
def prefix_states(
    ids: Ids, tree: Tree, perturb: Perturbation | None = None, table_rows: int = TABLE_ROWS
) -> PrefixStates:
    """Return every prefix's state, from the top of the prefix's tree, in one pass over all prefixes.

    For T symbols, chunk size C and K layers per level, attention has T K C log_C T terms. On the lowest levels, as long
    as they have at most `table_rows` possible windows, states are not perturbed. `perturb` is applied to the states and
    the pad of every higher level. With the left edge `"cut"`, it is applied to the states of all levels. If `perturb`
    is random, `prefix_states` and `last_state` draw in different orders, so their results differ.
    """
    check_ids([ids], tree, perturb, table_rows)
    if tree.left_edge == "cut":
        return cut_prefix_states(ids, tree, perturb)
    levels = tree.num_levels(ids.shape[1])
    skipped, num_tabled = _num_leading_pads(ids, tree), _num_tabled(tree, table_rows)
    rows = tree.leaves
    codes = ids[:, skipped:]
    answers = []
    level = 0
    merge = merge_of(tree.layers[-1])
    # Nodes that share a state would share its noise. So with noise, the number of levels with shared states must not
    # depend on the batch.
    while level < levels and (level < num_tabled if perturb else _repeats(rows, [codes], tree, table_rows)):
        rows, (codes,) = _merge_distinct(rows, [_shifted(codes, level, tree)], tree, merge)
        # Prefixes that end among the leading pads consist of pads, so their state is the state of the pad.
        before, read = _read_after(level, tree, skipped)
        answers += [rows[0].expand(len(ids), before, -1), _gathered(rows, codes[:, read])]
        level += 1
    states = None if _repeats(rows, [codes], tree, table_rows) else _gathered(rows, codes)
    pad = rows[0]
    for upper in range(level, levels):
        if states is None:
            # This happens only with noise, if windows repeat above the levels without noise. Each distinct window is
            # merged once, then each node gets its own noise.
            rows, (codes,) = _merge_distinct(rows, [_shifted(codes, upper, tree)], tree, merge)
            states, pad = _gathered(rows, codes), rows[0]
        else:
            for layer in tree.layers:
                states = _slide(layer, states, pad, tree.reach(upper), tree.chunk_size_at(upper))
                pad = _merge_pad(layer, pad)
        states, pad = (perturb(states), perturb(pad)) if perturb else (states, pad)
        before, read = _read_after(upper, tree, skipped)
        answers += [pad.expand(len(ids), before, -1), states[:, read]]
        pad = pad if tree.pad_rule == "merged" else tree.leaves[0]
    return torch.cat(answers, 1)


def last_state(
    ids: Ids, tree: Tree, perturb: Perturbation | None = None, table_rows: int = TABLE_ROWS
) -> Float[Tensor, "B D"]:
    """Return the whole string's state, ``prefix_states(...)[:, -1]``, from only every C^l-th position of level l.

    For strings of T symbols, chunk size C and one layer per level, this takes about T / (C - 1) merges, or fewer if
    windows repeat. `perturb` is as in `prefix_states`.
    """
    (states,) = last_states([ids], tree, perturb, table_rows)
    return states


def last_states(
    batches: Sequence[Int64[Tensor, "_ _"]],
    tree: Tree,
    perturb: Perturbation | None = None,
    table_rows: int = TABLE_ROWS,
    observe: Observer | None = None,
) -> list[Float[Tensor, "_ D"]]:
    """Return `last_state` of several batches, each with its own size and length.

    Each level is merged at once for all batches, so several small batches cost little more than one. `observe` is
    called after each level in which nodes no longer share states. It receives the level and the nodes [B, N, D] of the
    batches.
    """
    check_ids(batches, tree, perturb, table_rows)
    if tree.left_edge == "cut":
        return cut_last_states(batches, tree, perturb, observe)
    num_tabled = _num_tabled(tree, table_rows)
    depths = [tree.num_levels(ids.shape[1]) for ids in batches]
    # The batches whose trees still grow. Their nodes are codes as long as states are shared.
    growing = dict(enumerate(ids[:, _num_leading_pads(ids, tree) :] for ids in batches))
    rows = tree.leaves
    level = 0
    merge = merge_of(tree.layers[-1])
    tops: dict[int, Tensor] = {}
    while growing and (level < num_tabled if perturb else _repeats(rows, growing.values(), tree, table_rows)):
        rows, growing = _merge_codes(rows, growing, level, tree, merge)
        level += 1
        tops |= {k: rows.index_select(0, growing.pop(k)[:, 0]) for k in list(growing) if depths[k] == level}
    pad = rows[0]
    if not _repeats(rows, growing.values(), tree, table_rows):
        growing = {k: _gathered(rows, codes) for k, codes in growing.items()}
    while growing:
        # Codes have two axes, and states have three. Codes remain here only with noise, as in `prefix_states`.
        if all(nodes.ndim == 2 for nodes in growing.values()):
            rows, codes = _merge_codes(rows, growing, level, tree, merge)
            growing, pad = {k: _gathered(rows, nodes) for k, nodes in codes.items()}, rows[0]
        else:
            growing, pad = _merge_states(growing, pad, level, tree, merge)
        level += 1
        if perturb:
            growing, pad = {k: perturb(states) for k, states in growing.items()}, perturb(pad)
        if observe:
            observe(level, growing)
        tops |= {k: growing.pop(k)[:, 0] for k in list(growing) if depths[k] == level}
        pad = pad if tree.pad_rule == "merged" else tree.leaves[0]
    return [tops[k] for k in range(len(batches))]


def _merge_codes(
    rows: Float[Tensor, "R D"], growing: Mapping[int, Int64[Tensor, "_ _"]], level: int, tree: Tree, merge: Merge
) -> tuple[Float[Tensor, "S D"], dict[int, Int64[Tensor, "_ _"]]]:
    """Return the distinct states of the next level, and the row of each node among these states."""
    windows = [_chunked(codes, codes.new_zeros(()), tree.chunk_size_at(level)) for codes in growing.values()]
    rows, codes = _merge_distinct(rows, windows, tree, merge)
    return rows, dict(zip(growing, codes, strict=True))


def _merge_states(
    growing: Mapping[int, Float[Tensor, "_ _ D"]], pad: Float[Tensor, " D"], level: int, tree: Tree, merge: Merge
) -> tuple[dict[int, Float[Tensor, "_ _ D"]], Float[Tensor, " D"]]:
    chunk = tree.chunk_size_at(level)
    for layer in tree.layers[:-1]:
        growing = {k: _slide(layer, states, pad, 1, chunk) for k, states in growing.items()}
        pad = _merge_pad(layer, pad)
    windows = [_chunked(states, pad, chunk) for states in growing.values()]
    pads = pad.expand(chunk, 1, -1)
    merged = merge(torch.cat([pads, *(w.flatten(0, 1).transpose(0, 1) for w in windows)], 1), None)
    above, *parts = merged.split([1, *(w.shape[0] * w.shape[1] for w in windows)])
    states = (part.unflatten(0, w.shape[:2]) for part, w in zip(parts, windows, strict=True))
    return dict(zip(growing, states, strict=True)), above[0]


def _chunked(nodes: Tensor, pad: Tensor, chunk_size: int) -> Tensor:
    """Return the chunks of C nodes [B, M, C, ...], oldest first; pads in front fill the first chunk."""
    missing = -nodes.shape[1] % chunk_size
    if missing:
        nodes = torch.cat([pad.expand(len(nodes), missing, *nodes.shape[2:]), nodes], 1)
    return nodes.reshape(len(nodes), -1, chunk_size, *nodes.shape[2:])


def _gathered(rows: Float[Tensor, "R D"], codes: Int64[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
    """Return ``rows[codes]`` by `index_select`, which takes a fraction of the time of indexing."""
    return rows.index_select(0, codes.flatten()).view(*codes.shape, rows.shape[1])


def _read_after(level: int, tree: Tree, skipped: int = 0) -> tuple[int, slice]:
    """Return the positions of the prefixes that are answered after this level.

    These prefixes fit into a window of this level, but not into a window of a lower level. The first `skipped` columns
    are not stored. So the result is a pair: the number of these positions among the skipped columns, and the slice of
    these positions among the stored columns.
    """
    start, stop = 0 if level == 0 else tree.reach(level), tree.reach(level + 1)
    return max(0, min(stop, skipped) - start), slice(max(0, start - skipped), max(0, stop - skipped))


def _merge_pad(layer: TreeLayer, pad: Float[Tensor, " D"]) -> Float[Tensor, " D"]:
    """Return the layer's output for a window of pads, for which any attention weights give the same result."""
    _, value = layer.key_value(layer.normalize(pad))
    return layer.output(pad, value.flatten(-2))


def _slide(
    layer: TreeLayer, states: Float[Tensor, "B T D"], pad: Float[Tensor, " D"], stride: int, chunk_size: int
) -> Float[Tensor, "B T D"]:
    """Return the layer's output at every position, for C states 0, 1, ... strides back; pads precede the string."""
    batch, length, _ = states.shape
    # An offset longer than the string reads a pad at every position, so T pads in front suffice for all such offsets.
    reach = min((chunk_size - 1) * stride, length)
    starts = [reach - min(j * stride, length) for j in range(chunk_size)]
    padded = torch.cat([pad.expand(batch, reach, -1), states], 1)
    normed = layer.normalize(padded)
    key, value = layer.key_value(normed)
    attended = attend(
        layer.query(normed[:, reach:]),
        [key[:, start : start + length] for start in starts],
        [value[:, start : start + length] for start in starts],
        layer.window_bias(),
    )
    return layer.output(states, attended)


def _num_tabled(tree: Tree, table_rows: int) -> int:
    """Return the number of levels that have at most `table_rows` possible windows over all strings."""
    levels, count = 0, len(tree.leaves) ** tree.chunk_size_at(0)
    while len(tree.layers) == 1 and count <= table_rows:
        levels += 1
        count = (count if tree.pad_rule == "merged" else count + 1) ** tree.chunk_size_at(levels)
    return levels


def _repeats(rows: Float[Tensor, "R D"], codes: Iterable[Int64[Tensor, "*_"]], tree: Tree, table_rows: int) -> bool:
    """Return whether nodes share enough states to look for repeated windows, and codes of windows fit into 64 bits."""
    longest = max((tree.chunk_size, *tree.lower_chunk_sizes))
    if len(tree.layers) > 1 or not table_rows or len(rows) ** longest >= 1 << 63:
        return False
    return len(rows) <= MAX_DISTINCT * sum(nodes.numel() for nodes in codes)


def _merge_distinct(
    rows: Float[Tensor, "R D"], windows: Sequence[Int64[Tensor, "_ _ C"]], tree: Tree, merge: Merge
) -> tuple[Float[Tensor, "S D"], list[Int64[Tensor, "_ _"]]]:
    """Return the states of all distinct windows, and each window's row among these states; row 0 is again the pad.

    A window i_0 ... i_{C-1} has the code i_0 + i_1 R + i_2 R^2 + ... Under the merged rule, the pad is the window of
    pads only, whose code is 0, the smallest. Under the raw rule, the raw pad comes first, and window states follow it.
    """
    powers = torch.tensor([len(rows) ** j for j in range(windows[0].shape[-1])], device=rows.device)
    codes = [(window * powers).sum(-1) for window in windows]
    # The window of pads is added even if no string has it. `unique` sorts, so row 0 is again the pad.
    pad_code = codes[0].new_zeros(1)
    distinct, index = torch.cat([pad_code, *(code.flatten() for code in codes)]).unique(return_inverse=True)
    above = merge(rows, distinct // powers[:, None] % len(rows))
    if tree.pad_rule == "raw":
        above, index = torch.cat([tree.leaves[:1], above]), index + 1
    parts = index[1:].split([code.numel() for code in codes])
    return above, [part.view_as(code) for part, code in zip(parts, codes, strict=True)]


def _num_leading_pads(ids: Ids, tree: Tree) -> int:
    """Return the number of first columns that are pads in every string (0 under the raw rule, which needs all pads)."""
    if tree.pad_rule == "raw" or bool(ids[:, 0].any()):
        return 0
    # If every column is a pad, argmax is 0 and nothing is skipped: slower, with the same result.
    return int((ids != 0).any(0).int().argmax())


def _shifted(codes: Ids, level: int, tree: Tree) -> Int64[Tensor, "B T C"]:
    """Return the codes in the window of every position, oldest first, with pads (code 0) before the start."""
    length = codes.shape[1]
    distances = [min(j * tree.reach(level), length) for j in reversed(range(tree.chunk_size_at(level)))]
    return torch.stack([F.pad(codes, (distance, 0))[:, :length] for distance in distances], -1)
