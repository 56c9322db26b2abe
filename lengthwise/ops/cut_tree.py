"""The levels of RegularGPT's tree as in its published code, where the left edge of a string cuts windows off.

A level turns n nodes into one node for each chunk of C nodes, in three steps:

1. It adds -n mod C raw pads (copies of the pad symbol's leaf) at the front, so that the first chunk is full.
2. It applies K layers. The window of node i consists of the existing nodes among i - C + 1 ... i, so the windows of the
   first C - 1 nodes are shorter than C.
3. It keeps the last node of each chunk.

With K = 1, each kept node has a full window, and the tree equals the tree of `lengthwise.ops.tree_attention` under the
raw pad rule. With K >= 2 the two trees differ: in `tree_attention`, there are pads at all positions before the string,
and layers merge these pads.

Each prefix is a string with its own left edge. The length of a prefix, modulo the reach of the level (`Tree.reach`),
decides which nodes are missing in the prefix's windows. So `cut_prefix_states` computes the layers below the last one C
times at each level.

`cut_prefix_states_by_definition` reads each prefix by itself, with a mask over the nodes of each level.

Source: the code published with Chi et al. (2023).
Differs from the source: in the source, a bias r of exactly 0 excludes a position from attention.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.ops.dilated_attention import attend_masked
from lengthwise.ops.shapes import check_shapes
from lengthwise.ops.tree import Ids, Observer, Perturbation, PrefixStates, Tree, TreeLayer, check_tree


def cut_prefix_states_by_definition(ids: Ids, tree: Tree, perturb: Perturbation | None = None) -> PrefixStates:
    """Return the state of every prefix, computed from this prefix alone, level by level."""
    check_tree(tree)
    answers = []
    for stop in range(1, ids.shape[1] + 1):
        nodes = tree.leaves[ids[:, :stop]]
        for level in range(tree.num_levels(stop)):
            size = tree.chunk_size_at(level)
            pads = tree.leaves[0].expand(len(nodes), -nodes.shape[1] % size, -1)
            nodes = torch.cat([pads, nodes], 1)
            for layer in tree.layers:
                normed = layer.normalize(nodes)
                attended = attend_masked(
                    layer.query(normed), *layer.key_value(normed), layer.window_bias()[:, :size], 1
                )
                nodes = layer.output(nodes, attended)
            nodes = nodes[:, size - 1 :: size]
            nodes = perturb(nodes) if perturb else nodes
        answers.append(nodes[:, 0])
    return torch.stack(answers, 1)


@check_shapes
def cut_prefix_states(ids: Ids, tree: Tree, perturb: Perturbation | None = None) -> PrefixStates:
    """Return each prefix's state, from the top of the prefix's own tree; `perturb` changes the states of each level."""
    check_tree(tree)
    states, answers = tree.leaves[ids], []
    for level in range(tree.num_levels(ids.shape[1])):
        states = _level_at_all_positions(states, level, tree)
        states = perturb(states) if perturb else states
        # Earlier levels have already answered the shorter prefixes.
        start, stop = tree.reach(level) if level else 0, tree.reach(level + 1)
        answers.append(states[:, start:stop])
    return torch.cat(answers, 1)


def cut_last_states(
    batches: Sequence[Int64[Tensor, "_ _"]],
    tree: Tree,
    perturb: Perturbation | None = None,
    observe: Observer | None = None,
) -> list[Float[Tensor, "_ D"]]:
    """Return the states of whole strings, batch by batch; `observe` is called with each new level (`Observer`)."""
    check_tree(tree)
    depths = [tree.num_levels(ids.shape[1]) for ids in batches]
    growing = {k: tree.leaves[ids] for k, ids in enumerate(batches)}
    tops: dict[int, Tensor] = {}
    level = 0
    while growing:
        size = tree.chunk_size_at(level)
        growing = {k: _merged(nodes, -nodes.shape[1] % size, size, tree) for k, nodes in growing.items()}
        growing = {k: perturb(nodes) for k, nodes in growing.items()} if perturb else growing
        level += 1
        if observe:
            observe(level, growing)
        tops |= {k: growing.pop(k)[:, 0] for k in list(growing) if depths[k] == level}
    return [tops[k] for k in range(len(batches))]


def _level_at_all_positions(states: Float[Tensor, "B T D"], level: int, tree: Tree) -> Float[Tensor, "B T D"]:
    """Return the next level's state at each position, for the prefix that ends at this position.

    The nodes of a prefix are at its last position and at all positions a multiple of S before the last one. Here S is
    the level's reach. So the positions fall into S sequences. The prefixes that end at node i of a sequence have C - 1
    - (i mod C) pads in front.
    """
    batch, length, width = states.shape
    stride, size = tree.reach(level), tree.chunk_size_at(level)
    count = math.ceil(length / stride)
    # Layers attend only to the left, so the zeros that fill up the end change none of the nodes before them.
    filled = F.pad(states, (0, 0, 0, count * stride - length))
    sequences = filled.view(batch, count, stride, width).transpose(1, 2)
    ends = [_merged(sequences, size - 1 - first, size, tree) for first in range(min(size, count))]
    above = sequences.new_empty(batch, stride, count, width)
    for first, merged in enumerate(ends):
        above[:, :, first::size] = merged
    return above.transpose(1, 2).flatten(1, 2)[:, :length]


def _merged(nodes: Float[Tensor, "*N M D"], num_pads: int, chunk_size: int, tree: Tree) -> Float[Tensor, "*N P D"]:
    """Return the states of all full chunks of nodes, after `num_pads` raw pads are added in front."""
    pads = tree.leaves[0].expand(*nodes.shape[:-2], num_pads, -1)
    nodes = torch.cat([pads, nodes], -2)
    nodes = nodes[..., : nodes.shape[-2] // chunk_size * chunk_size, :]
    *lower, last = tree.layers
    # The last layer computes only the nodes that are kept. Lower layers compute all nodes, which later windows read.
    every = torch.arange(nodes.shape[-2], device=nodes.device)
    for layer in lower:
        nodes = _windowed(layer, nodes, every, chunk_size)
    return _windowed(last, nodes, every[chunk_size - 1 :: chunk_size], chunk_size)


def _windowed(
    layer: TreeLayer, nodes: Float[Tensor, "*N M D"], ends: Int64[Tensor, " P"], chunk_size: int
) -> Float[Tensor, "*N P D"]:
    """Return the layer's outputs for the windows that end at the given nodes; windows are cut off before node 0."""
    normed = layer.normalize(nodes)
    query = layer.query(normed.index_select(-2, ends))
    key, value = layer.key_value(normed)
    positions = ends[:, None] - torch.arange(chunk_size, device=ends.device)
    # Positions before the string read node 0 instead, and their scores are masked below.
    index = positions.clamp(min=0).flatten()
    keys, values = (part.index_select(-3, index).unflatten(-3, positions.shape) for part in (key, value))
    scores = torch.einsum("...phe,...pjhe->...phj", query, keys) / math.sqrt(query.shape[-1])
    scores = scores + layer.window_bias()[:, :chunk_size]
    weights = scores.masked_fill((positions < 0)[:, None], -math.inf).softmax(-1)
    attended = torch.einsum("...phj,...pjhe->...phe", weights, values)
    return layer.output(nodes.index_select(-2, ends), attended.flatten(-2))
