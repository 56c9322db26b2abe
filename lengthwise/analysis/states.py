"""The states in the tree of a RegularGPT, level by level, each with the monoid element of the symbols below it."""

from functools import reduce
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.automata.monoid import TransitionMonoid, transition_monoid
from lengthwise.conventions import PAD
from lengthwise.display import spelled
from lengthwise.models.base import check_is_model
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.ops.shapes import check_strings, check_tensors
from lengthwise.ops.tree_attention import last_state
from lengthwise.tasks.base import RegularTask, check_is_task
from lengthwise.validation import check_sizes


class BlockStates(NamedTuple):
    """States of a tree's nodes, one in each row, with the level of each node's window and the window's monoid element.

    The window of a node consists of the symbols below the node.

    With C = `chunk_size`, a window of level l has C^l symbols, or pads followed by fewer symbols. Level 1 is the
    lowest.
    """

    states: Float[Tensor, "N D"]
    levels: Int64[Tensor, " N"]
    elements: Int64[Tensor, " N"]
    monoid: TransitionMonoid
    chunk_size: int

    @property
    def num_levels(self) -> int:
        """Return the number of levels, which is the highest level of a node."""
        return int(self.levels.max())

    @property
    def names(self) -> list[str]:
        """Return a name for each element of the monoid: the element's shortest string, or ε for the identity."""
        return [spelled(word, self.monoid.symbols) or "ε" for word in self.monoid.words]

    def at_level(self, level: int) -> "BlockStates":
        """Return the states of one level's nodes, with their windows' elements."""
        return self._keep(self.levels == level)

    def subsample(self, max_states: int, generator: torch.Generator) -> "BlockStates":
        """Draw at most `max_states` states of each level.

        Each level has about `chunk_size` times as many states as the level above.

        Raises:
            ValueError: `max_states` is below 1.
        """
        check_sizes(max_states=max_states)
        kept = []
        for level in range(1, self.num_levels + 1):
            rows = (self.levels == level).nonzero()[:, 0]
            kept.append(rows[torch.randperm(len(rows), generator=generator)[:max_states]])
        return self._keep(torch.cat(kept))

    def _keep(self, rows: Tensor) -> "BlockStates":
        return self._replace(states=self.states[rows], levels=self.levels[rows], elements=self.elements[rows])


@torch.no_grad()
def block_states(model: RegularGPT, task: RegularTask, inputs: Int64[Tensor, "B T"]) -> BlockStates:
    """Return the states of all nodes above the leaves in the trees of these strings.

    With chunks of C parts, a string of T symbols has about T / (C - 1) nodes above the leaves. The monoid belongs to
    the task's minimal transducer. In a correct model whose states distinguish no more than necessary, windows with the
    same element have equal states.

    Raises:
        ValueError: the model is not a RegularGPT; its thickness is above 1, so a state depends on more than its window;
            chunk sizes differ between levels; a symbol id is outside the task's alphabet; or the monoid is too large.

    Example:
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> task = make_task("parity")
        >>> blocks = block_states(make_model("regular-gpt", task), task, task.encode("abbab")[None])
        >>> blocks.levels.tolist(), blocks.elements.tolist()
        ([1, 1, 1, 2, 2, 3], [0, 0, 1, 0, 1, 1])

    Source: Chi et al. (2023), section 7.3: the outputs of all layers, on strings of length 500.
    Differs from the source: the blocks are from the tree that answers the whole string, without the trees of prefixes.
    """
    check_is_model(model)
    if not isinstance(model, RegularGPT):
        raise ValueError(f"model: expected a regular-gpt, got {model.name}; make one with make_model")
    if model.config.thickness != 1:
        raise ValueError(
            f"model: expected thickness 1, at which a state depends on one window, got {model.config.thickness}; train "
            "a model with model.thickness=1"
        )
    if model.config.lower_chunk_sizes:
        raise ValueError(
            f"model: expected the same chunk size at all levels, got {model.config.lower_chunk_sizes} at the lowest "
            "levels; train a model without model.lower_chunk_sizes"
        )
    check_is_task(task)
    if not isinstance(task, RegularTask) or len(task.symbols) != len(model.tree.leaves) - 1:
        raise ValueError(
            f"task: expected a regular task of the model's {len(model.tree.leaves) - 1} symbols, got {task.name}; give "
            "the task that the model was made for"
        )
    check_tensors(inputs=inputs)
    check_strings("inputs", inputs)
    monoid = transition_monoid(task.transducer.minimize().semiautomaton)
    elements = window_elements(monoid, inputs.numpy(), model.config.chunk_size)
    levels = [torch.full((nodes.size,), level) for level, nodes in enumerate(elements, start=1)]
    return BlockStates(
        states=torch.cat([states.flatten(0, 1) for states in _level_states(model, inputs)]),
        levels=torch.cat(levels),
        elements=torch.cat([torch.from_numpy(nodes.ravel()) for nodes in elements]),
        monoid=monoid,
        chunk_size=model.config.chunk_size,
    )


def window_elements(
    monoid: TransitionMonoid, strings: Int64[np.ndarray, "B T"], chunk_size: int
) -> list[Int64[np.ndarray, "B N"]]:
    """Return the monoid element of each node's window, from the lowest level to the root; pads are identities.

    Raises:
        ValueError: a symbol id is outside the alphabet, or the strings are empty.
    """
    if not strings.size or strings.min() < 0 or strings.max() >= len(monoid.symbols):
        raise ValueError(
            f"strings: expected strings of at least one symbol, with ids 0..{len(monoid.symbols) - 1}, got an empty "
            f"string or another id (shape {strings.shape}); encode strings over {monoid.symbols!r}"
        )
    nodes = monoid.generators[strings]
    levels: list[np.ndarray] = []
    while nodes.shape[1] > 1 or not levels:
        nodes = np.pad(nodes, ((0, 0), (-nodes.shape[1] % chunk_size, 0)))
        # The parts of a window are multiplied from the oldest to the newest.
        nodes = reduce(monoid.products, np.moveaxis(nodes.reshape(len(nodes), -1, chunk_size), 2, 0))
        levels.append(nodes)
    return levels


def _level_states(model: RegularGPT, inputs: Int64[Tensor, "B T"]) -> list[Float[Tensor, "B N D"]]:
    """Return the states of the nodes at each level, collected by a hook that leaves states unchanged."""
    levels = []

    def keep(states: Tensor) -> Tensor:
        if states.ndim == 3:  # else it is the level's pad
            levels.append(states)
        return states

    last_state(inputs - PAD, model.tree, keep, table_rows=0)
    return levels
