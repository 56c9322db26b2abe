r"""Sliding-dilated attention applied log_C T times with shared weights: three forms of one function.

With h_0[m] the leaf of symbol m (the pad for m < 0), a level computes

    h_{l+1}[m] = layer(h_l[m], h_l[m - C^l], ..., h_l[m - (C-1) C^l])

with attention over these C states, biased by r_j for the one at distance j C^l. Prefix t is read at position t - 1
after L(t) = max(1, least L with C^L >= t) levels. With thickness K, a level applies K layers at the same dilation.

Positions before the start are pads. Under the pad rule `"merged"` they pass through the layers like everything else;
under `"raw"` every level finds the same raw pad there again.

`masked_states` is the definition: a [T, T] mask per level, as in eq. (1). `prefix_states` computes the same
without a mask; `last_state` only the answer for the whole string, visiting at level l just the positions congruent to
T - 1 modulo C^l. These two compute each distinct window of symbols of their lowest levels once ("content tables") and
gather; this is exact, in training too.

Both begin with the tables: `rows` holds the distinct states of a level, `codes` says which row stands where. From the
first level that is not tabled, `states` holds one state for each node. `pad` is always the current level's pad.

Letters: B strings, T symbols, N or M nodes of a level, V symbols with the pad, R rows, D width, H heads of E = D / H,
C chunk size, K thickness.

Source: Chi et al. (2023), Transformer Working Memory Enables Regular Language Reasoning, section 3, eq. (1).
Differs from the source: the pads that its footnote 1 puts in to fill a chunk are states that take part in attention.
Masked away instead, one symbol and the same symbol twice would be indistinguishable, whatever the weights.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

PadRule = Literal["merged", "raw"]

TABLE_ROWS = 1024
"""Up to this number of windows they are tabled, however small the batch."""


@runtime_checkable
class TreeLayer(Protocol):
    """A transformer layer taken apart around its attention, so that each form can arrange the pieces.

    Its value for the newest state y_0 and its window y_0 ... y_{C-1} is
    ``output(y_0, attend(query(n_0), keys, values, bias))`` with ``n_j = normalize(y_j)`` and
    ``keys[j], values[j] = key_value(n_j)``.
    """

    # Methods only: since Python 3.12, `isinstance` looks up the members of a protocol in the class and in the object's
    # own dictionary, where a module's parameters and submodules are not.
    def window_bias(self) -> Float[Tensor, "H C"]: ...
    def normalize(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]: ...
    def query(self, normed: Float[Tensor, "*N D"]) -> Float[Tensor, "*N H E"]: ...
    def key_value(self, normed: Float[Tensor, "*N D"]) -> tuple[Float[Tensor, "*N H E"], Float[Tensor, "*N H E"]]: ...
    def output(self, newest: Float[Tensor, "*N D"], attended: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]: ...


class Tree(NamedTuple):
    """What the three forms share: a leaf per symbol (row 0 is the pad), the K layers of a level, C, pad rule."""

    leaves: Float[Tensor, "V D"]
    layers: Sequence[TreeLayer]
    chunk_size: int
    pad_rule: PadRule = "merged"


def num_levels(length: int, chunk_size: int) -> int:
    """Depth of the tree over a prefix: the least L >= 1 with C^L >= length, in integers.

    Example:
        >>> num_levels(125, 5), num_levels(126, 5), num_levels(1, 2)
        (3, 4, 1)
    """
    if length < 1:
        raise ValueError(f"length: expected at least 1 symbol, got {length}; a string must not be empty")
    if chunk_size < 2:
        raise ValueError(f"chunk_size: expected at least 2, got {chunk_size}; one state alone cannot be merged")
    levels, reach = 1, chunk_size
    while reach < length:
        levels, reach = levels + 1, reach * chunk_size
    return levels


def attend(
    query: Float[Tensor, "*N H E"],
    keys: Sequence[Float[Tensor, "*N H E"]],
    values: Sequence[Float[Tensor, "*N H E"]],
    bias: Float[Tensor, "H C"],
) -> Float[Tensor, "*N D"]:
    """Attention of each query over its own window of C states, newest first; heads come back concatenated.

    a_j = softmax_j(q . k_j / sqrt(E) + r_j);  out = sum_j a_j v_j.
    """
    scale = 1.0 / math.sqrt(query.shape[-1])
    scaled = query * scale
    scores = torch.stack([(scaled * key).sum(-1) for key in keys]) + bias.T.reshape(
        -1, *[1] * (query.ndim - 2), bias.shape[0]
    )
    weights = scores.softmax(0).unsqueeze(-1)
    mixed = weights[0] * values[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        mixed = torch.addcmul(mixed, weight, value)
    return mixed.flatten(-2)


def attend_masked(
    query: Float[Tensor, "B T H E"],
    key: Float[Tensor, "B T H E"],
    value: Float[Tensor, "B T H E"],
    bias: Float[Tensor, "H C"],
    stride: int,
) -> Float[Tensor, "B T D"]:
    """Eq. (1): full attention plus the mask M with M[m, n] = r_j where m - n = j * stride, j in [C], else -inf."""
    length = query.shape[1]
    positions = torch.arange(length, device=query.device)
    distance = positions[:, None] - positions[None, :]
    offset, remainder = distance // stride, distance % stride
    allowed = (remainder == 0) & (offset >= 0) & (offset < bias.shape[1])
    mask = bias[:, offset.clamp(0, bias.shape[1] - 1)].masked_fill(~allowed, -math.inf)
    scores = torch.einsum("bmhe,bnhe->bhmn", query, key) / math.sqrt(query.shape[-1]) + mask
    return torch.einsum("bhmn,bnhe->bmhe", scores.softmax(-1), value).flatten(-2)


def merge_windows(layer: TreeLayer, windows: Float[Tensor, "*N C D"]) -> Float[Tensor, "*N D"]:
    """The layer's value on windows of C states, oldest first: the state of the window."""
    normed = layer.normalize(windows)
    keys, values = layer.key_value(normed)
    newest = layer.query(normed[..., -1, :])
    attended = attend(newest, keys.unbind(-3)[::-1], values.unbind(-3)[::-1], layer.window_bias())
    return layer.output(windows[..., -1, :], attended)


def masked_states(ids: Int64[Tensor, "B T"], tree: Tree) -> Float[Tensor, "B T D"]:
    """The definition: every prefix's state, by the mask of eq. (1) with pads written out before the start.

    O(T^2) memory. The pads reach as far back as the widest window of a symbol; windows of pads cut off at the left edge
    are no loss, since attention over equal states gives their common value, however many there are.
    """
    length, chunk = ids.shape[1], tree.chunk_size
    levels = num_levels(length, chunk)
    pads = (chunk - 1) * chunk ** (levels - 1)
    states = tree.leaves[torch.cat([ids.new_zeros(len(ids), pads), ids], 1)]
    raw = states[:, :pads]
    answers = []
    for level in range(levels):
        if tree.pad_rule == "raw":
            states = torch.cat([raw, states[:, pads:]], 1)
        for layer in tree.layers:
            normed = layer.normalize(states)
            attended = attend_masked(layer.query(normed), *layer.key_value(normed), layer.window_bias(), chunk**level)
            states = layer.output(states, attended)
        answers.append(states[:, pads:][:, _read_after(level, chunk)[1]])
    return torch.cat(answers, 1)


def prefix_states(
    ids: Int64[Tensor, "B T"],
    tree: Tree,
    perturb: Callable[[Tensor], Tensor] | None = None,
    table_rows: int = TABLE_ROWS,
) -> Float[Tensor, "B T D"]:
    """Every prefix's state, read at that prefix's own depth, in one pass: T K C log_C T attention terms.

    `perturb` is applied to the states of every level above the tabled ones, to that of the pads too. If it is random,
    the forms draw in different orders and differ.
    """
    chunk = tree.chunk_size
    levels, level = num_levels(ids.shape[1], chunk), 0
    skipped = _num_leading_pads(ids, tree)
    rows, codes, answers = tree.leaves, ids[:, skipped:], []
    while level < levels and _worth_tabling(tree, len(rows), ids.numel(), perturb is not None, table_rows):
        codes = _window_code(_shifted(codes, chunk**level, chunk), tree, len(rows))
        rows = _next_rows(rows, tree)
        before, read = _read_after(level, chunk, skipped)
        answers += [rows[0].expand(len(ids), before, -1), rows[codes[:, read]]]
        level += 1
    states, pad = None, rows[0]
    for upper in range(level, levels):
        stride = chunk**upper
        for layer in tree.layers:
            if states is None:
                states = merge_gathered(layer, rows, _shifted(codes, stride, chunk))
            else:
                states = _slide(layer, states, pad, stride, chunk)
            pad = _merge_pad(layer, pad)
        assert states is not None
        states, pad = (perturb(states), perturb(pad)) if perturb else (states, pad)
        before, read = _read_after(upper, chunk, skipped)
        answers += [pad.expand(len(ids), before, -1), states[:, read]]
        pad = pad if tree.pad_rule == "merged" else tree.leaves[0]
    return torch.cat(answers, 1)


def last_state(
    ids: Int64[Tensor, "B T"],
    tree: Tree,
    perturb: Callable[[Tensor], Tensor] | None = None,
    table_rows: int = TABLE_ROWS,
) -> Float[Tensor, "B D"]:
    """The whole string's state, ``prefix_states(...)[:, -1]``: at level l only every C^l-th position exists.

    About T / (C - 1) merges when K = 1, less the tabled ones. `perturb` as in `prefix_states`.
    """
    (states,) = last_states([ids], tree, perturb, table_rows)
    return states


def last_states(
    batches: Sequence[Int64[Tensor, "_ _"]],
    tree: Tree,
    perturb: Callable[[Tensor], Tensor] | None = None,
    table_rows: int = TABLE_ROWS,
) -> list[Float[Tensor, "_ D"]]:
    """`last_state` of every batch, each of its own size and length.

    The trees grow side by side, all merges of a level at once: small batches then cost little more than one of them.
    """
    chunk = tree.chunk_size
    depths = [num_levels(ids.shape[1], chunk) for ids in batches]
    # The trees that still grow; their nodes are codes as long as states are tabled.
    growing = dict(enumerate(ids[:, _num_leading_pads(ids, tree) :] for ids in batches))
    rows, level = tree.leaves, 0
    tops: dict[int, Tensor] = {}
    while growing and _worth_tabling(tree, len(rows), _num_merges(growing, chunk), perturb is not None, table_rows):
        growing = {k: _window_code(_chunked(codes, chunk), tree, len(rows)) for k, codes in growing.items()}
        rows = _next_rows(rows, tree)
        level += 1
        tops |= {k: rows[growing.pop(k)[:, 0]] for k in list(growing) if depths[k] == level}
    pad = rows[0]
    if len(tree.layers) > 1:
        growing = {k: rows[codes] for k, codes in growing.items()}
    while growing:
        growing, pad = _next_level(growing, rows, pad, tree)
        level += 1
        if perturb:
            growing, pad = {k: perturb(states) for k, states in growing.items()}, perturb(pad)
        tops |= {k: growing.pop(k)[:, 0] for k in list(growing) if depths[k] == level}
        pad = pad if tree.pad_rule == "merged" else tree.leaves[0]
    return [tops[k] for k in range(len(batches))]


def _num_merges(growing: Mapping[int, Int64[Tensor, "_ _"]], chunk_size: int) -> int:
    return sum(len(codes) * -(-codes.shape[1] // chunk_size) for codes in growing.values())


def _next_level(
    growing: Mapping[int, Tensor], rows: Float[Tensor, "R D"], pad: Float[Tensor, " D"], tree: Tree
) -> tuple[dict[int, Float[Tensor, "_ _ D"]], Float[Tensor, " D"]]:
    """The states a level up, and the pad's; nodes are given as states or, above the last tabled level, as codes."""
    *sliding, merging = tree.layers
    for layer in sliding:
        growing = {k: _slide(layer, states, pad, 1, tree.chunk_size) for k, states in growing.items()}
        pad = _merge_pad(layer, pad)
    if all(nodes.ndim == 2 for nodes in growing.values()):
        chunks = [_chunked(codes, tree.chunk_size) for codes in growing.values()]
        one_pad = rows.new_zeros(1, dtype=torch.int64)
        window = [torch.cat([one_pad, *(part.flatten() for part in parts)]) for parts in zip(*chunks, strict=True)]
        merged = merge_gathered(merging, rows, window)
    else:
        windows = [_state_chunks(states, pad, tree.chunk_size).flatten(0, 1) for states in growing.values()]
        merged = merge_windows(merging, torch.cat([pad.expand(1, tree.chunk_size, -1), *windows]))
    shapes = [(len(nodes), -(-nodes.shape[1] // tree.chunk_size)) for nodes in growing.values()]
    above, *parts = merged.split([1, *(batch * count for batch, count in shapes)])
    states = (part.unflatten(0, shape) for part, shape in zip(parts, shapes, strict=True))
    return dict(zip(growing, states, strict=True)), above[0]


def _state_chunks(
    states: Float[Tensor, "B N D"], pad: Float[Tensor, " D"], chunk_size: int
) -> Float[Tensor, "B M C D"]:
    """The chunks of C states, oldest first, with pads before the first one where it is not full."""
    missing = -states.shape[1] % chunk_size
    if missing:
        states = torch.cat([pad.expand(len(states), missing, -1), states], 1)
    chunks: Tensor = states.unflatten(1, (-1, chunk_size))
    return chunks


def _read_after(level: int, chunk_size: int, skipped: int = 0) -> tuple[int, slice]:
    """The positions whose prefixes are read after this level: those that no lower level reached.

    Of a string whose first `skipped` columns are left out: how many of the positions are among these, and the others.
    """
    start, stop = 0 if level == 0 else chunk_size**level, chunk_size ** (level + 1)
    return max(0, min(stop, skipped) - start), slice(max(0, start - skipped), max(0, stop - skipped))


def _merge_pad(layer: TreeLayer, pad: Float[Tensor, " D"]) -> Float[Tensor, " D"]:
    """The layer's value on a window of pads: whatever the weights of attention, they mix one and the same value."""
    _, value = layer.key_value(layer.normalize(pad))
    return layer.output(pad, value.flatten(-2))


def _slide(
    layer: TreeLayer, states: Float[Tensor, "B T D"], pad: Float[Tensor, " D"], stride: int, chunk_size: int
) -> Float[Tensor, "B T D"]:
    """The layer's value at every position over the C states at multiples of `stride` back, pads before the start."""
    batch, length, _ = states.shape
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


def merge_gathered(
    layer: TreeLayer, rows: Float[Tensor, "R D"], window: Sequence[Int64[Tensor, "*N"]]
) -> Float[Tensor, "*N D"]:
    """The layer's value on windows given as indices into `rows`, newest first: project the rows, then gather."""
    normed = layer.normalize(rows)
    key, value = layer.key_value(normed)
    attended = attend(
        layer.query(normed)[window[0]],
        [key[codes] for codes in window],
        [value[codes] for codes in window],
        layer.window_bias(),
    )
    return layer.output(rows[window[0]], attended)


def _worth_tabling(tree: Tree, num_rows: int, num_states: int, perturbed: bool, table_rows: int) -> bool:
    """Whether the next level has few enough distinct windows; never for `table_rows` 0.

    Under perturbation the answer depends on the tree alone, never on the batch: it decides where noise acts.
    """
    limit = table_rows if perturbed or not table_rows else max(table_rows, num_states // 2)
    return len(tree.layers) == 1 and num_rows**tree.chunk_size <= limit


def _next_rows(rows: Float[Tensor, "R D"], tree: Tree) -> Float[Tensor, "S D"]:
    """The states of all windows over `rows`, window (i_0 newest, i_1, ...) at index i_0 + i_1 R + i_2 R^2 + ...

    The window of pads only is row 0 again; under the raw pad rule, row 0 is the raw pad and the windows follow it.
    """
    count = len(rows)
    windows = torch.arange(count**tree.chunk_size, device=rows.device)
    digits = [windows // count**j % count for j in range(tree.chunk_size)]
    merged = merge_gathered(tree.layers[0], rows, digits)
    return merged if tree.pad_rule == "merged" else torch.cat([tree.leaves[:1], merged])


def _window_code(window: Sequence[Int64[Tensor, "*N"]], tree: Tree, num_rows: int) -> Int64[Tensor, "*N"]:
    """The index of each window among `_next_rows`."""
    code = torch.zeros_like(window[0])
    for digit in reversed(window):
        code = code * num_rows + digit
    return code if tree.pad_rule == "merged" else code + 1


def _num_leading_pads(ids: Int64[Tensor, "B T"], tree: Tree) -> int:
    """Columns at the start that are pads in every string and need no computing: merged pads stand there anyway."""
    return int((ids != 0).any(0).int().argmax()) if tree.pad_rule == "merged" else 0


def _chunked(codes: Int64[Tensor, "B N"], chunk_size: int) -> Sequence[Int64[Tensor, "B M"]]:
    """The chunks of C codes, pads (code 0) before the first, as C tensors, newest first."""
    filled = torch.nn.functional.pad(codes, (-codes.shape[1] % chunk_size, 0))
    return list(filled.unflatten(1, (-1, chunk_size)).unbind(2)[::-1])


def _shifted(codes: Int64[Tensor, "B T"], stride: int, chunk_size: int) -> Sequence[Int64[Tensor, "B T"]]:
    """The codes at distances 0, stride, ... (C-1) stride back from every position, pads (code 0) before the start."""
    length = codes.shape[1]
    distances = [min(j * stride, length) for j in range(chunk_size)]
    return [torch.nn.functional.pad(codes, (distance, 0))[:, :length] for distance in distances]
