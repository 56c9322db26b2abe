"""Tests that the outputs of a net at a position do not depend on later symbols or on other strings of the batch."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lengthwise.randomness import generator_for

ROUNDING = 64.0
"""The largest difference that counts as rounding, in units in the last place of the largest output."""

Outputs = Callable[[Int64[Tensor, "B T"]], Float[Tensor, "B T D"]]
"""A function that returns a net's hidden states or logits at every position."""

LATER, OTHERS = "depends on what follows", "depends on other strings of the batch"


def find_dependence(
    outputs: Outputs, strings: Int64[Tensor, "B T"], num_symbols: int, *, slack: float = 0.0
) -> str | None:
    """Return a clause that states what an output wrongly depends on, or None if the tests find no such dependence.

    Outputs must not depend on later symbols or on other strings of the batch. The net must be in evaluation mode. A
    gradient counts as a dependence if it is above `slack` units in the last place of the largest gradient. With slack
    0, gradients must be exactly 0. Gradients of masked positions are exactly 0, because a mask multiplies them by 0
    without rounding. In a convolution by Fourier transforms, the contributions of later positions cancel only up to
    rounding, so nets with such convolutions need a positive `slack`.
    """
    return _by_gradients(outputs, strings, slack) or _by_changes(outputs, strings, num_symbols)


def _by_gradients(outputs: Outputs, strings: Int64[Tensor, "B T"], slack: float) -> str | None:
    """Search for forbidden dependences by gradients of each position's outputs with respect to embedded symbols.

    Gradients show dependences that are too small to change outputs, for example attention with small weights. Gradients
    do not pass through hard choices. Symbols have to be embedded by `nn.Embedding`, `F.embedding` or an indexed table.
    """
    try:
        # Callers use `no_grad`, so gradients must be enabled here.
        with torch.inference_mode(False), torch.enable_grad(), _EmbeddedStrings(strings) as mode:
            values, leaves = outputs(strings), mode.leaves
            if not leaves or not values.requires_grad:
                return None
            # One gradient along a random direction suffices instead of one for each output: dependences cancel in it
            # with probability 0.
            direction = torch.randn(values.shape[-1], generator=generator_for(0, "direction")).to(values)
            along = values @ direction
            for index in range(strings.shape[1] - 1):
                of_index = torch.autograd.grad(along[:, index].sum(), leaves, retain_graph=True, allow_unused=True)
                if any(
                    _reaches(gradient, gradient[:, index + 1 :], slack) for gradient in of_index if gradient is not None
                ):
                    return LATER
            of_first = torch.autograd.grad(along[0].sum(), leaves, allow_unused=True)
    except RuntimeError:  # an operation without a gradient, or tensors that have no gradients
        return None
    return OTHERS if any(_reaches(one, one[1:], slack) for one in of_first if one is not None) else None


def _reaches(gradient: Tensor, part: Tensor, slack: float) -> bool:
    """Return whether a part of a gradient exceeds `slack` units in the last place of the gradient's largest entry.

    NaN counts as 0, because a masked sqrt(0) gives NaN.
    """
    limit = slack * torch.finfo(gradient.dtype).eps * gradient.nan_to_num(0.0).abs().max()
    return bool((part.nan_to_num(0.0).abs() > limit).any())


class _EmbeddedStrings(TorchFunctionMode):
    """A mode that replaces embedded strings by new leaf tensors, because gradients are computed for leaves.

    Unlike hooks of modules, a mode also sees the tables that plain functions index.
    """

    def __init__(self, strings: Int64[Tensor, "B T"]) -> None:
        super().__init__()
        self.equal, self.shape = _equalities(strings), strings.shape
        self.leaves: list[Tensor] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        features = func(*args, **(kwargs or {}))
        if func is nn.functional.embedding:
            ids = args[0] if args else (kwargs or {}).get("input")
        elif func is Tensor.__getitem__:
            ids = args[1]
        else:
            return features
        # A table that maps symbols to a net's own ids is left alone. It contains integers, which have no gradient.
        if not isinstance(ids, Tensor) or not self._are_strings(ids) or not features.is_floating_point():
            return features
        before, symbols = features.split([ids.shape[1] - self.shape[1], self.shape[1]], 1)
        self.leaves.append(symbols.detach().clone().requires_grad_())
        return torch.cat([before, self.leaves[-1]], 1)  # a copy: the net may write into the result, but not into a leaf

    def _are_strings(self, ids: Tensor) -> bool:
        """Return whether ids are the strings up to renumbering, possibly after a token that the net reads first."""
        if ids.ndim != 2 or len(ids) != self.shape[0] or ids.shape[1] < self.shape[1] or ids.dtype == torch.bool:
            return False
        return torch.equal(_equalities(ids[:, -self.shape[1] :]), self.equal)


def _equalities(ids: Int[Tensor, "B T"]) -> Tensor:
    return ids.flatten()[:, None] == ids.flatten()


def _by_changes(outputs: Outputs, strings: Int64[Tensor, "B T"], num_symbols: int) -> str | None:
    """Search for forbidden dependences by changing later symbols, or other strings, and comparing outputs.

    This also finds dependences through hard choices, which have no gradient. Outputs must agree only up to rounding. In
    a mixture of experts, for example, the sizes of groups that are summed may depend on later symbols.
    """
    before = outputs(strings)
    # All later symbols are changed, so a dependence on any of them can show.
    others = (strings + 1) % num_symbols
    for end in range(1, strings.shape[1]):
        after = outputs(torch.cat([strings[:, :end], others[:, end:]], 1))
        if not is_close(before[:, :end], after[:, :end]):
            return LATER
    after = outputs(torch.cat([strings[:1], others[1:]]))[:1]
    return None if is_close(before[:1], after) else OTHERS


def is_close(one: Tensor, another: Tensor, *, relative: float = 0.0) -> bool:
    """Return whether the numbers of two tensors differ by at most a fraction of max(1, a).

    Here a is the largest absolute value of the finite numbers in `one`. The fraction is `relative`, but at least
    `ROUNDING` units in the last place. NaN equals NaN.
    """
    fraction = max(relative, ROUNDING * torch.finfo(one.dtype).eps)
    limit = fraction * max(1.0, float(one.nan_to_num(0.0, 0.0, 0.0).abs().max()))
    return torch.allclose(one, another, rtol=0, atol=limit, equal_nan=True)
