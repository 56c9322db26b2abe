"""Supervision by states: every node of a tree learns the map that its piece of a string defines on machine states.

A piece w of a string acts on the states q of the task's machine by the map q -> delta(q, w). A linear layer predicts
this map from the node's state h. The weights W_q and b_q of the layer belong to state q. This layer is trained with the
model and then discarded.

    loss = mean over nodes and states q of CE(W_q norm(h) + b_q, delta(q, w)).

Here CE is the cross-entropy, and norm is layer normalization without weights.

One answer to a whole string tells little about its pieces. A third of the pairs of neighboring pieces in long strings
may not occur in any string of 40 symbols. The maps contain everything about a piece that affects answers.
"""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.conventions import PAD
from lengthwise.devices import moved
from lengthwise.models.base import SequenceModel, TreeModel
from lengthwise.models.capabilities import AcceptsNoise, ShowsNodes
from lengthwise.ops.tree_attention import merge_of
from lengthwise.tasks.base import RegularTask, Task
from lengthwise.training.recipe import StatesRecipe

Nodes = Float[Tensor, "N D"]
Maps = Int64[Tensor, "N Q"]

MAX_SUPERVISED_STATES = 16
"""The largest number of the machine's states that a step supervises. Each step draws new states."""


class StateHead(nn.Module):
    """A layer with logits of delta(q, w) for every state q: the state that a machine reaches from q by reading piece w.

    The logits are computed from the state of the tree node for w.
    """

    def __init__(self, machine: Semiautomaton, d_model: int) -> None:
        super().__init__()
        self.table: Tensor
        self.register_buffer("table", torch.from_numpy(machine.table.copy()), persistent=False)
        num_states = machine.num_states
        self.weight = nn.Parameter(torch.zeros(num_states, num_states, d_model))
        self.bias = nn.Parameter(torch.zeros(num_states, num_states))

    def loss(self, nodes: Nodes, maps: Maps, generator: torch.Generator) -> Float[Tensor, ""]:
        """Return the mean cross-entropy of the logits, over all nodes and a random sample of the machine's states."""
        supervised = moved(torch.randperm(len(self.table), generator=generator)[:MAX_SUPERVISED_STATES], nodes.device)
        normed = F.layer_norm(nodes, nodes.shape[-1:])
        logits = F.linear(normed, self.weight[supervised].flatten(0, 1), self.bias[supervised].flatten())
        return F.cross_entropy(logits.view(-1, len(self.table)), maps[:, supervised].flatten())


def nodes_of(model: TreeModel, inputs: Int64[Tensor, "B T"], table: Int64[Tensor, "Q V"]) -> tuple[Nodes, Maps]:
    """Return the state and the machine map of each tree node, except at levels whose nodes share states.

    The map of a node takes each state of the machine to the state after reading the symbols below the node.
    """
    levels = maps_of_nodes(inputs, table, model.tree.chunk_size_at)
    states, maps = [], []

    def take_in(level: int, nodes: Mapping[int, Float[Tensor, "B N D"]]) -> None:
        count = min(nodes[0].shape[1], levels[level].shape[1])  # a tree may leave out pads at the start
        states.append(nodes[0][:, -count:].flatten(0, 1))
        maps.append(levels[level][:, -count:].flatten(0, 1))

    assert isinstance(model, ShowsNodes), "check_model rejects others"
    (top,) = model.observed(take_in).last_states([inputs])
    if not states:  # in short trees, even the nodes of the top level share states
        return top, levels[-1][:, -1]
    return torch.cat(states), torch.cat(maps)


def combine(
    model: TreeModel, states: Nodes, maps: Maps, recipe: StatesRecipe, generator: torch.Generator
) -> tuple[Float[Tensor, "M D"], Int64[Tensor, "M Q"]]:
    """Return states and maps of the given nodes, and of nodes that the model makes by merging random nodes.

    The map of a node takes each state of the task's machine to the state after reading the node's piece. Each round
    draws from the nodes of the round before, such that every different map is equally likely.
    """
    merge, chunk_size = merge_of(model.tree.layers[0]), model.tree.chunk_size
    all_states, all_maps = [states], [maps]
    for _ in range(recipe.rounds):
        _, map_index, counts = maps.unique(dim=0, return_inverse=True, return_counts=True)
        # If nodes were drawn uniformly, frequent maps would dominate the combinations.
        odds = 1.0 / counts[map_index]
        drawn = odds.cpu().multinomial(chunk_size * recipe.combined, replacement=True, generator=generator)
        drawn = moved(drawn, states.device)
        states = merge(states[drawn].unflatten(0, (chunk_size, -1)), None)
        if isinstance(model, AcceptsNoise) and model.perturb:
            states = model.perturb(states)
        maps, *others = maps[drawn].unflatten(0, (chunk_size, -1))
        for next_map in others:
            maps = next_map.gather(1, maps)
        all_states.append(states)
        all_maps.append(maps)
    return torch.cat(all_states), torch.cat(all_maps)


def make_state_head(model: SequenceModel, task: Task | None) -> StateHead:
    """Make a `StateHead` for the minimal machine of the task; the head's parameters start at zero."""
    assert isinstance(task, RegularTask), "check_task rejects others"
    assert isinstance(model, TreeModel), "check_model rejects others"
    return StateHead(task.transducer.minimize().semiautomaton, model.tree.leaves.shape[1])


def maps_of_nodes(
    inputs: Int64[Tensor, "B T"], table: Int64[Tensor, "Q V"], chunk_size_at: Callable[[int], int]
) -> list[Int64[Tensor, "B N Q"]]:
    """Return the map of every node on machine states, for each level from the symbols up; pads change no state.

    If the nodes of a level do not fill whole chunks, pads come before the nodes. So the last chunk of every level ends
    at the end of the string.
    """
    identity = torch.arange(len(table), device=table.device)
    symbols = table.T[inputs.clamp(min=0)]
    levels = [torch.where((inputs == PAD)[..., None], identity, symbols)]
    while len(levels) == 1 or levels[-1].shape[1] > 1:
        below, chunk_size = levels[-1], chunk_size_at(len(levels) - 1)
        missing = -below.shape[1] % chunk_size
        if missing:
            below = torch.cat([identity.expand(len(below), missing, -1), below], 1)
        first, *others = below.unflatten(1, (-1, chunk_size)).unbind(2)
        for next_map in others:
            first = next_map.gather(2, first)
        levels.append(first)
    return levels


def draw_pieces(task: RegularTask, recipe: StatesRecipe, generator: torch.Generator) -> Int64[Tensor, "B T"]:
    """Draw the pieces of strings for a step of supervision by states (`StatesRecipe`), all of one log-uniform length.

    Pieces are uniform symbols, or parts of strings of the task that have at most `max_length` symbols.
    """
    length = int((recipe.max_length + 1) ** float(torch.rand((), generator=generator)))
    longer = [n for n in range(length, recipe.max_length + 1) if task.is_legal_length(n)]
    if not longer or float(torch.rand((), generator=generator)) < recipe.uniform:
        return torch.randint(len(task.symbols), (recipe.batch_size, length), generator=generator)
    whole = longer[int(torch.randint(len(longer), (), generator=generator))]
    strings = task.sample(recipe.batch_size, whole, generator).inputs
    starts = torch.randint(whole - length + 1, (recipe.batch_size, 1), generator=generator)
    return strings.gather(1, starts + torch.arange(length))
