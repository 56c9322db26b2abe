"""Word problems: the product of a sequence of generators, or of any elements, of a group."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from pydantic import Field, model_validator
from torch import Tensor

from lengthwise.automata import Transducer
from lengthwise.automata.groups import Permutation, PermutationGroup, permutation_group
from lengthwise.tasks.base import TASKS, UniformTask


@TASKS.register("word-problem")
class WordProblem(UniformTask):
    """The product of permutations, one for each symbol, in a group that is given by name or by generators.

    ``answer_t = g_1 g_2 ... g_t``, where g_s is the generator of symbol s, and products are read from left to right:
    first g_1. The classes are the elements of the group in cycle notation, with ``"()"`` as the identity, in
    lexicographic order of their images. Symbols are independent and uniform. ``action.meanings`` maps the letters a, b,
    ... to their generators.

    `group` is a name such as ``"S5"``, ``"D6"`` or ``"A4xZ5"`` (`lengthwise.automata.groups.permutation_group`), which
    also defines the generators. The field `generators` replaces these generators; each generator is the list of images
    of the points 0 ... n-1. If `group` is also given, the given generators must generate the named group. With the
    `alphabet` ``"elements"``, every element of the group is a symbol.

    A length T is balanced if every element is a product of T generators. For a named group, this holds from some length
    on (3 for S3, 8 for A5, 13 for S5); ``train.lengths="legal"`` also trains on shorter strings. If all generators are
    odd permutations, no length is balanced, because all products of one length have the same parity.

    Raises:
        ValueError: the group's name is unknown; the generators are not permutations of the same points; there are more
            than 1,000 generators or more than 100 points; or the generators generate a group other than the named
            group, a group of more than 1,000 elements, or only the identity.

    Example:
        >>> task = WordProblem(group="S3")
        >>> task.action.meanings
        {'a': '(0 1)', 'b': '(0 1 2)'}
        >>> [task.classes[answer] for answer in task.solve(task.encode("abba")[None])[0]]
        ['(0 1)', '(0 2)', '(1 2)', '(0 1 2)']

    Source: Merrill, Petty and Sabharwal, "The Illusion of State in State-Space Models" (arXiv 2404.08819), the
        experiments.
    Differs from the source: there every element of the group is a symbol, as here with `alphabet` ``"elements"``. By
        default, only the generators that belong to the name, or that are given, are symbols. The source's groups are
        named Z60, A4xZ5 and A5 here.
    """

    group: str = "S3"
    generators: tuple[Permutation, ...] = ()
    alphabet: Literal["generators", "elements"] = Field("generators", exclude_if=lambda name: name == "generators")

    @model_validator(mode="before")
    @classmethod
    def _generators_need_no_name(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"group": "", **fields} if fields.get("generators") else fields

    @model_validator(mode="after")
    def _is_a_group(self) -> "WordProblem":
        if self.action.order == 1:
            raise ValueError("generators: expected more than the identity, got the identity alone; add a permutation")
        if self.group and not np.array_equal(self.action.elements, permutation_group(self.group).elements):
            raise ValueError(
                f"generators: expected generators of {self.group}, got generators of another group "
                f"({self.action.order} elements); leave out `group`"
            )
        return self

    @property
    def action(self) -> PermutationGroup:
        """Return the group, as permutations of points."""
        group = _generated(self.generators) if self.generators else permutation_group(self.group)
        return group if self.alphabet == "generators" else _over_elements(group)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return a letter for every generator; g0, g1, ... if there are more than 52."""
        return self.action.symbols

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the elements of the group, in cycle notation."""
        return self.action.names

    @property
    def transducer(self) -> Transducer:
        """Return the machine whose state is the product so far; the answer is the state."""
        return self.action.transducer

    def is_balanced_length(self, length: int) -> bool:
        """Return whether every element is a product of this number of generators."""
        return length >= 1 and bool(_reached(self.action, length).all())

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return the product of each prefix, computed in rounds with the table of products.

        After round k, the result for a prefix is the product of its last 2^k generators, or of all if it has fewer.
        """
        table = torch.from_numpy(self.action.table)
        products = torch.from_numpy(self.action.generator_elements)[inputs]
        stretch = 1
        while stretch < inputs.shape[1]:
            longer = table[products[:, :-stretch], products[:, stretch:]]
            products = torch.cat([products[:, :stretch], longer], dim=1)
            stretch *= 2
        return products

    def baseline(self, length: int) -> float:
        """Return the probability of the likeliest product of `length` uniform generators."""
        return float(_distribution(self.action, length).max())


_generated = lru_cache(maxsize=64)(PermutationGroup)
_over_elements = lru_cache(maxsize=64)(PermutationGroup.over_elements)


@lru_cache(maxsize=2048)
def _reached(group: PermutationGroup, length: int) -> Bool[np.ndarray, " M"]:
    """Return which elements are products of this number of generators, found as products of two halves."""
    elements = np.arange(group.order)
    if length == 1:
        return np.isin(elements, group.generator_elements)
    first, then = _reached(group, length // 2), _reached(group, length - length // 2)
    return np.isin(elements, group.table[np.ix_(first, then)])


@lru_cache(maxsize=2048)
def _distribution(group: PermutationGroup, length: int) -> Float64[np.ndarray, " M"]:
    """Return the distribution of products of this number of uniform generators, by a convolution of two halves."""
    if length == 1:
        return np.bincount(group.generator_elements, minlength=group.order) / len(group.generators)
    odds = np.outer(_distribution(group, length // 2), _distribution(group, length - length // 2))
    return np.bincount(group.table.ravel(), weights=odds.ravel(), minlength=group.order)
