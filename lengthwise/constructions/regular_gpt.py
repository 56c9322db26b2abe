"""Any finite machine as a RegularGPT: attention concatenates the parts of a window, and ReLU units multiply them."""

from collections.abc import Callable
from math import isqrt
from numbers import Integral
from typing import NamedTuple

import torch
from torch import nn

from lengthwise.automata.description import described_monoid
from lengthwise.automata.group_action import smallest_transitive_action
from lengthwise.automata.monoid import TransitionMonoid, bounded_monoid
from lengthwise.automata.representation import (
    Products,
    Representation,
    linear_read_out,
    live_states,
    one_hot_elements,
    point_matrices,
    state_matrices,
)
from lengthwise.constructions.base import (
    CONSTRUCTIONS,
    MARGIN,
    MAX_WEIGHTS,
    Construction,
    Machine,
    Target,
    check_size,
    target_of,
    weight_count,
)
from lengthwise.layers.tree_layers import BareLayer, FeedForward
from lengthwise.models.base import build_model
from lengthwise.models.regular_gpt import RegularGPT, RegularGPTConfig
from lengthwise.validation import check_kind, narrow

MAX_ELEMENTS = 1_000
"""The largest number of elements of a monoid for which one-hot vectors and group actions are considered. Larger monoids
need too many weights."""

MAX_CHUNK_SIZE = isqrt(MAX_WEIGHTS // 5)
"""The largest chunk size C. Even if a representation has only one number, attention has 5 C^2 + 4 C weights."""

SHUT = -1000.0
"""An attention bias r that gives a part of the window weight 0: exp(-1000) is 0, even in float64."""


@CONSTRUCTIONS.register("regular-gpt")
def compile_regular_gpt(machine: Machine, *, chunk_size: int = 2) -> Construction:
    """Compile any finite machine to a RegularGPT whose states represent exactly how a string acts on the machine.

    - The embedding of a symbol is the symbol's vector in a `Representation`. The embedding of the padding symbol is the
      vector of the empty string.
    - A window has C = `chunk_size` parts, and attention has C heads. Head h sees only the h-th oldest part: its bias r
      is 0 there, and `SHUT` elsewhere. Attention thus concatenates the vectors a_1, ..., a_C of the parts.
    - Each hidden unit is a product of one number from each part: ReLU(x_1 + ... + x_C - (C - 1)) = x_1 x_2 ... x_C for
      zeros and ones. The second feed-forward matrix, W_2, adds up the products, which gives the vector of the whole
      window.
    - All numbers are 0 or 1, so no error can grow in any precision. The read-out is linear.

    Three representations are considered, and the one with the fewest weights is chosen:

    - matrices of the map that a string induces on the machine's states,
    - one-hot vectors of the elements of the transition monoid (up to 1,000 elements),
    - for a group, permutation matrices on the fewest points on which the group acts faithfully and transitively, if a
      linear read-out of the answers exists.

    Raises:
        ValueError: `chunk_size` is out of bounds, or the smallest model has more than 20,000,000 weights.

    Example:
        >>> from lengthwise.automata.regex import dfa_from_regex
        >>> compiled = compile_regular_gpt(dfa_from_regex("(a|b)*abb"))
        >>> compiled.model(torch.tensor([[0, 1, 1, 0, 0, 1, 1]])).argmax(-1)
        tensor([[0, 0, 1, 0, 0, 0, 1]])

    Source: Chi et al. (2023), section 7.2, Lemma 1 and appendices C-D.
    Differs from the source: heads are in temporal order, oldest first, as in the concatenation of Lemma 1. The bias is
        -1000 instead of -infinity; exp(-1000) is also 0. Matrices omit the machine's sink. The other two
        representations, and C > 2, are ours.
    """
    check_kind("chunk_size", chunk_size, Integral, "a whole number")
    if not 2 <= chunk_size <= MAX_CHUNK_SIZE:
        raise ValueError(
            f"chunk_size: expected 2 to {MAX_CHUNK_SIZE:,}, got {chunk_size}; choose a size in this range (every model "
            f"with larger chunks has more than {MAX_WEIGHTS:,} weights)"
        )
    target = target_of(machine)
    monoid = bounded_monoid(target.machine.semiautomaton, MAX_ELEMENTS)
    options = _options(target, monoid, chunk_size)
    chosen = min(options, key=lambda option: option.num_weights)
    check_size(
        chosen.num_weights,
        f"the smallest RegularGPT with C={chunk_size}, from {chosen.what},",
        f"take a smaller machine{' or chunk size' * (chunk_size > 2)}, or compile it to an rnn",
    )
    sizes = "; ".join(f"{option.what}: {weight_count(option.num_weights)}" for option in options)
    model = _assemble_weights(chosen.build(), target, chunk_size)
    about = (
        f"states: {target.machine.num_states} (of the smallest machine)",
        f"transition monoid: {described_monoid(monoid, MAX_ELEMENTS)}",
        f"representation: {chosen.what}, the fewest weights ({sizes})",
        f"model: D={model.config.d_model}, {model.config.hidden:,} hidden units, {chosen.num_weights:,} weights",
    )
    return Construction(model, target, None, "Chi et al. (2023), section 7.2 and Lemma 1", about)


class _Option(NamedTuple):
    """A candidate representation: its description, its model's number of weights, and a function to build it."""

    what: str
    num_weights: int
    build: Callable[[], Representation]


def _options(target: Target, monoid: TransitionMonoid | None, chunk_size: int) -> list[_Option]:
    machine, classes = target.machine, len(target.classes)

    def num_weights(size: int, num_products: int) -> int:
        return _num_weights(size, num_products, chunk_size, len(machine.symbols), classes)

    live = len(live_states(machine))
    states = _Option(
        f"matrices of {live} states{' (without the sink)' * (live < machine.num_states)}",
        num_weights(live**2, live ** (chunk_size + 1)),
        lambda: state_matrices(machine, classes, chunk_size),
    )
    if monoid is None:
        return [states]
    answers = machine.outputs[monoid.maps[:, machine.start]]
    elements = _Option(
        f"one-hot vectors of {monoid.size} elements",
        num_weights(monoid.size, monoid.size**chunk_size),
        lambda: one_hot_elements(monoid, answers, classes, chunk_size),
    )
    if not monoid.is_group:
        return [states, elements]
    action = smallest_transitive_action(monoid)
    num_points = action.shape[1]
    action_weights = num_weights(num_points**2, num_points ** (chunk_size + 1))
    # Only a representation that would be chosen needs a read-out.
    if action_weights >= min(states.num_weights, elements.num_weights):
        return [states, elements]
    read_out = linear_read_out(action, answers, classes)
    if read_out is None:
        return [states, elements]
    points = _Option(
        f"permutations of {num_points} points",
        action_weights,
        lambda: point_matrices(monoid, action, read_out, chunk_size),
    )
    return [states, elements, points]


def _num_weights(size: int, num_products: int, chunk_size: int, num_symbols: int, num_classes: int) -> int:
    """Return the number of parameters of a model for vectors of `size` numbers, with width `chunk_size` * `size`."""
    width = chunk_size * size
    attention = 4 * width * (width + 1) + chunk_size**2
    feed_forward = num_products * (2 * width + 1) + width
    return (num_symbols + 1) * width + attention + feed_forward + num_classes * (width + 1)


@torch.no_grad()
def _assemble_weights(representation: Representation, target: Target, chunk_size: int) -> RegularGPT:
    """Return the model with the weights of the construction; all other weights are 0."""
    leaves, products, read_out = representation
    size = leaves.shape[1]
    config = RegularGPTConfig(
        d_model=chunk_size * size,
        num_heads=chunk_size,
        chunk_size=chunk_size,
        variant="bare",
        hidden=len(products.writes),
    )
    model = narrow(build_model("regular-gpt", config, target, seed=0), RegularGPT)
    for parameter in model.parameters():
        parameter.zero_()
    layer, linear = narrow(model.layers[0], BareLayer), narrow(model.readout[1], nn.Linear)
    model.embedding.weight[:, :size] = torch.from_numpy(leaves)
    _write_shift_heads(layer)
    _write_products(narrow(layer.feed_forwards[0], FeedForward), products)
    linear.weight[:, :size] = MARGIN * torch.from_numpy(read_out.weights)
    linear.bias.copy_(MARGIN * torch.from_numpy(read_out.offsets))
    return model.eval()


def _write_shift_heads(layer: BareLayer) -> None:
    """Make head h copy the first D / C entries of the h-th oldest state in a window of C states.

    D is the width of the model. Attention concatenates the outputs of the heads.
    """
    heads, width = layer.num_heads, layer.to_output.in_features
    # The first rows compute the keys. They stay 0, so the scores are only the biases.
    layer.to_key_value.weight[width:] = torch.eye(width // heads, width).repeat(heads, 1)
    layer.to_output.weight.copy_(torch.eye(width))
    layer.bias.fill_(SHUT)
    layer.bias[torch.arange(heads), torch.arange(heads).flip(0)] = 0.0


def _write_products(block: FeedForward, products: Products) -> None:
    """Write the weights of Lemma 1: a hidden unit computes each product of entries, and W_2 adds up the products."""
    reads, writes = torch.from_numpy(products.reads), torch.from_numpy(products.writes)
    num_products, num_parts = reads.shape
    indices = torch.arange(num_parts) * (block.widen.in_features // num_parts) + reads
    block.widen.weight.scatter_(1, indices, 1.0)
    block.widen.bias.fill_(1.0 - num_parts)
    block.narrow.weight[writes, torch.arange(num_products)] = 1.0
