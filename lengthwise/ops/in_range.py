r"""Linear recurrences x_t = A_t x_{t-1} + v_t with unbounded states, which are scaled so that they do not overflow.

The states are x_t = c_t (A_t x_{t-1} + v_t) with c_t = min(1, L / |A_t x_{t-1} + v_t|). Here |x| is the largest
absolute value among the numbers of a string's state, and L is 2^30 (2^60 in float64). So if a state exceeds L, all its
numbers are divided by the same number.

A normalization layer that reads the states depends only on their directions. If v = 0, c changes no direction, so c
does not change the function of a net that normalizes the states. If v is not 0, c changes directions only by rounding
errors, because rounding removes v from a state as large as L. States that grow beyond L and shrink again are an
exception: with c, v has a larger effect on them than without c. For the gradient, c is a constant.

If v = 0, the states are f_t times the states without c, with f_t = min(f_{t-1}, L / |A_t ... A_1 x_0|). If all states
without c are finite, they are computed as usual and multiplied by f. If not, the positions are split into two halves,
and the second half continues from the last state of the first half. If v is not 0, the states are computed one after
another from the first c_t below 1 on.

Source: ours; the scaling of forward variables in hidden Markov models (Rabiner, 1989) is similar.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lengthwise.ops.block_recurrence import recurrence
from lengthwise.ops.shapes import check_tensors
from lengthwise.ops.symbol_recurrence import symbol_recurrence
from lengthwise.validation import check_function, check_sizes

LARGEST = {torch.float32: 2.0**30, torch.float64: 2.0**60}
"""The largest absolute value L of a number in a state. L is so small that its square does not overflow, and so large
that usual inputs are smaller than the unit in its last place."""

Steps = Callable[[int, int, Tensor], Tensor]
"""A function of positions start and stop, and of the state [B, *N, S] before start. It returns the states
[B, stop - start, *N, S] from start to stop - 1, without scaling."""


def steps_by_position(transitions: Tensor, values: Tensor) -> Steps:
    """Return the `Steps` of x_t = A_t x_{t-1} + v_t; each position has its own A_t and v_t (`recurrence`)."""

    check_tensors(transitions=transitions, values=values)

    def steps(start: int, stop: int, state: Tensor) -> Tensor:
        return recurrence(transitions[:, start:stop], values[:, start:stop], state, overflow="keep")

    return steps


def steps_by_symbol(transitions: Tensor, values: Tensor, tokens: Tensor) -> Steps:
    """Return the `Steps` of x_t = A[u_t] x_{t-1} + v[u_t] for symbols u_t (`symbol_recurrence`)."""

    check_tensors(transitions=transitions, values=values, tokens=tokens)

    def steps(start: int, stop: int, state: Tensor) -> Tensor:
        return symbol_recurrence(transitions, values, tokens[:, start:stop], state, overflow="keep")

    return steps


def states_in_range_by_definition(steps: Steps, length: int, initial: Tensor, *, driven: bool) -> Tensor:
    """Return all states, computed and scaled step by step. No number exceeds `LARGEST`, unless one step overflows.

    Example:
        >>> def thousandfold(start, stop, state):
        ...     return torch.stack([state * 1_000.0 ** (t + 1) for t in range(stop - start)], 1)
        >>> states_in_range_by_definition(thousandfold, 3, torch.tensor([[2.0, -1.0]]), driven=False)[0].tolist()
        [[2000.0, -1000.0], [2000000.0, -1000000.0], [1073741824.0, -536870912.0]]
    """
    _check(steps, length, initial)
    return _one_by_one(steps, 0, length, initial)


def states_in_range(steps: Steps, length: int, initial: Tensor, *, driven: bool) -> Tensor:
    """Return the states of `states_in_range_by_definition`, computed with few calls of `steps`.

    If no unscaled state exceeds `LARGEST`, the result equals the unscaled states to the last bit. `driven` tells
    whether the recurrence x_t = A_t x_{t-1} + v_t has a v_t that is not 0. An exported graph contains the definition's
    loop, because the control flow of such a graph cannot depend on numbers.

    Example:
        >>> def thousandfold(start, stop, state):
        ...     return torch.stack([state * 1_000.0 ** (t + 1) for t in range(stop - start)], 1)
        >>> states_in_range(thousandfold, 50, torch.tensor([[2.0, -1.0]]), driven=False)[0, -1].tolist()
        [1073741824.0, -536870912.0]
    """
    if torch.compiler.is_exporting():
        return states_in_range_by_definition(steps, length, initial, driven=driven)
    _check(steps, length, initial)
    return _within(steps, 0, length, initial, driven)


def _check(steps: Steps, length: int, initial: Tensor) -> None:
    check_function("steps", steps)
    check_tensors(initial=initial)
    if not torch.compiler.is_exporting():  # in an export, the length may be a symbol instead of a number
        check_sizes(length=length)


def _within(steps: Steps, start: int, stop: int, state: Tensor, driven: bool) -> Tensor:
    states = steps(start, stop, state)
    factors = _factors(states)
    if bool((factors == 1).all()):
        return states
    if driven:
        first = start + int((factors != 1).any(0).int().argmax())
        if first == start:
            return _one_by_one(steps, start, stop, state)
        begun = steps(start, first, state)  # run again, because gradients through infinite states are NaN
        return torch.cat([begun, _one_by_one(steps, first, stop, begun[:, -1])], 1)
    if stop - start == 1 or bool((factors > 0).all()):  # a factor is 0 or NaN after an infinite state
        # Once a state is scaled, all later states are scaled by at least as much, so the factor never rises.
        return _scaled(states, factors.cummin(1).values)
    # Only a half whose states overflow is split again. All other parts use the fast form.
    middle = (start + stop) // 2
    begun = _within(steps, start, middle, state, driven)
    return torch.cat([begun, _within(steps, middle, stop, begun[:, -1], driven)], 1)


def _one_by_one(steps: Steps, start: int, stop: int, state: Tensor) -> Tensor:
    states = []
    for t in range(start, stop):
        latest = steps(t, t + 1, state)
        state = _scaled(latest, _factors(latest))[:, 0]
        states.append(state)
    return torch.stack(states, 1)


def _factors(states: Tensor) -> Tensor:
    """Return the factor min(1, `LARGEST` / |x|) for each state x, where |x| is the largest absolute value in x."""
    # Detached, because c is a constant for the gradient. A state has one factor, so that its direction stays.
    return (LARGEST.get(states.dtype, 2.0**30) / states.detach().abs().flatten(2).amax(2)).clamp(max=1)


def _scaled(states: Tensor, factors: Tensor) -> Tensor:
    return states * factors.view(*factors.shape, *[1] * (states.ndim - 2))
