"""The parts of a tree over symbols: the leaves, the layers that merge states, and the chunk size of each level.

A string of 5 symbols with chunk size C = 2 has ceil(log_2 5) = 3 levels. Pads (`.`) in front fill it up to 2^3 = 8
leaves:

    level 0    .   .   .   a   b   c   d   e        leaves
    level 1     (..)    (.a)    (bc)    (de)        neighbors merge, reach 2
    level 2         (...a)          (bcde)          reach 4
    level 3              (...abcde)                 the answer for the string

The prefix `a b c` has its own tree of 2 levels over `. a b c`. So to answer all prefixes, each level l needs the states
of the windows of C^l symbols that end at every position. The answer of each prefix is read at the depth of the prefix's
own tree.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Literal, NamedTuple, Protocol, get_args, runtime_checkable

from jaxtyping import Float, Int64
from torch import SymInt, Tensor
from torch.compiler import is_exporting

from lengthwise.ops.shapes import check_axes, check_tensor_list, check_tensors
from lengthwise.ops.symbol_recurrence import check_symbols
from lengthwise.validation import check_choice, check_function, check_kind, narrow

Ids = Int64[Tensor, "B T"]
"""The row in `Tree.leaves` of the symbol at each position of each string."""

PrefixStates = Float[Tensor, "B T D"]
"""The state of every prefix of each string."""

PadRule = Literal["merged", "raw"]
"""The rule for states at positions before a string: layers merge pads like all states (`"merged"`), or every level has
the raw pad there, which is the leaf of the pad (`"raw"`)."""

LeftEdge = Literal["pads", "cut"]
"""The rule for windows that begin before a string: they contain pads there (`"pads"`), or only the states that exist
(`"cut"`, see `lengthwise.ops.cut_tree`)."""


@runtime_checkable
class TreeLayer(Protocol):
    """A transformer layer whose parts before and after attention are separate methods.

    So each form of `lengthwise.ops.tree_attention` can arrange the parts in its own way. For a window y_0 ... y_{C-1},
    with the newest state y_0, the value of the layer is ``output(y_0, attend(query(n_0), keys, values, bias))`` with
    ``n_j = normalize(y_j)`` and ``keys[j], values[j] = key_value(n_j)``.
    """

    # All members are methods. Since Python 3.12, `isinstance` finds members of a protocol only in the class and in the
    # object's own dictionary, which does not contain a module's parameters and submodules.
    def window_bias(self) -> Float[Tensor, "H C"]: ...
    def normalize(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]: ...
    def query(self, normed: Float[Tensor, "*N D"]) -> Float[Tensor, "*N H E"]: ...
    def key_value(self, normed: Float[Tensor, "*N D"]) -> tuple[Float[Tensor, "*N H E"], Float[Tensor, "*N H E"]]: ...
    def output(self, newest: Float[Tensor, "*N D"], attended: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]: ...


Merge = Callable[[Tensor, Tensor | None], Tensor]
"""A function that returns a layer's outputs on windows. Its arguments are the parts of windows, oldest part first:
states [R, D] and indices [C, M], or parts [C, M, D] and None."""


Perturbation = Callable[[Tensor], Tensor]
"""A function by which training changes hidden states, for example by adding noise; the states keep their shape."""

Observer = Callable[[int, Mapping[int, Tensor]], None]
"""A function that is called with the number of a tree level and, for each batch, the states [B, N, D] of its nodes."""


@runtime_checkable
class FusedLayer(Protocol):
    """A tree layer that may merge windows by one fused operation: `fused` returns this operation, or None."""

    def fused(self) -> Merge | None: ...


class Tree(NamedTuple):
    """The leaves, layers, chunk sizes and rules of a tree, which all forms of tree attention take as an argument.

    `leaves` has a row for the pad, which is row 0, and a row for each symbol. Each level applies all `layers`. The
    lowest levels may have other chunk sizes: level l has the chunk size ``lower_chunk_sizes[l]``. All levels above
    these have the chunk size C = `chunk_size`.
    """

    leaves: Float[Tensor, "V D"]
    layers: Sequence[TreeLayer]
    chunk_size: int
    pad_rule: PadRule = "merged"
    lower_chunk_sizes: tuple[int, ...] = ()
    left_edge: LeftEdge = "pads"

    def chunk_size_at(self, level: int) -> int:
        """Return the number of states of a level that one state of the next level merges; levels count from 0."""
        return self.lower_chunk_sizes[level] if level < len(self.lower_chunk_sizes) else self.chunk_size

    def reach(self, level: int) -> int:
        """Return the number of positions below a state of this level: the distance of neighbors in a window."""
        return math.prod(self.chunk_size_at(below) for below in range(level))

    def num_levels(self, length: int) -> int:
        """Return the number of levels of this tree over a prefix of `length` symbols."""
        return num_levels(length, self.chunk_size, self.lower_chunk_sizes)


def check_tree(tree: object) -> None:
    """Raise a ValueError unless the argument `tree` is a `Tree` of known rules with at least one layer."""
    check_kind("tree", tree, Tree, "a Tree")
    tree = narrow(tree, Tree)
    check_tensors(leaves=tree.leaves)
    check_axes("leaves", tree.leaves, "V, D")
    check_kind("layers", tree.layers, Sequence, "a list of tree layers")
    if not tree.layers:
        raise ValueError("layers: expected at least one tree layer, got none; give one")
    check_choice("pad_rule", tree.pad_rule, get_args(PadRule))
    check_choice("left_edge", tree.left_edge, get_args(LeftEdge))


def check_ids(batches: Sequence[Ids], tree: Tree, perturb: Perturbation | None = None, table_rows: int = 0) -> None:
    """Raise a ValueError unless all batches contain ids of leaves, and the arguments for reading them are usable."""
    check_tree(tree)
    check_tensor_list("batches", batches)
    if perturb is not None:
        check_function("perturb", perturb)
    check_kind("table_rows", table_rows, Integral, "a whole number")
    if not is_exporting():  # the check of symbols reads their values
        for ids in batches:
            check_symbols(ids, len(tree.leaves), "ids")


def num_levels(length: int, chunk_size: int, lower_chunk_sizes: Sequence[int] = ()) -> int:
    """Return the depth of the tree over a prefix: the smallest L >= 1 such that L levels cover `length` symbols.

    L levels cover as many symbols as the product of their chunk sizes, which is C^L if all chunk sizes are C.

    Example:
        >>> num_levels(125, 5), num_levels(126, 5), num_levels(1, 2)
        (3, 4, 1)
        >>> num_levels(500, 2), num_levels(500, 2, lower_chunk_sizes=(4, 4))
        (9, 7)
    """
    check_kind("length", length, (Integral, SymInt), "a whole number")  # exports have symbols instead of numbers
    check_kind("lower_chunk_sizes", lower_chunk_sizes, Sequence, "a list of whole numbers")
    for size in (chunk_size, *lower_chunk_sizes):
        check_kind("chunk_size", size, Integral, "a whole number")
    if length < 1:
        raise ValueError(f"length: expected at least 1 symbol, got {length}; give a length of 1 or more")
    if (smallest := min((chunk_size, *lower_chunk_sizes))) < 2:
        raise ValueError(
            f"chunk_size: expected at least 2, got {smallest}; give 2 or more, because a state alone is not merged"
        )
    levels, reach = 0, 1
    # A string of one symbol also has one level, so that every answer comes from a merged state.
    while reach < length or levels == 0:
        reach *= lower_chunk_sizes[levels] if levels < len(lower_chunk_sizes) else chunk_size
        levels += 1
    return levels
