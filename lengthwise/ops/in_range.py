r"""Linear recurrences x_t = A_t x_{t-1} + v_t with unbounded states, kept within the range of floating-point numbers.

x_t = c_t (A_t x_{t-1} + v_t) with c_t = min(1, L / |A_t x_{t-1} + v_t|). Here |x| is the largest absolute value among a
string's numbers, and L is 2^30 (2^60 in float64). So if a state exceeds L, all its numbers are divided by one number.

Why this keeps the function: a norm that reads states sees only their directions. If v = 0, directions are the same as
without c. Otherwise they are the same up to rounding, as a state as large as L has lost what is added to it. The
exception are states that grew and shrink again, in which v counts for more than without c. For the gradient, c is a
constant.

If v = 0, the states are f_t times the states without c, with f_t = min(f_{t-1}, L / |A_t ... A_1 x_0|). As long as
those are finite, they are computed as always and multiplied by f. If they are not, the positions are halved, and the
second half continues from the end of the first. If v is not 0, states follow one another from the first c_t below 1 on.

Source: ours; the scaling of forward variables in hidden Markov models (Rabiner, 1989) is similar.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lengthwise.ops.block_recurrence import recurrence
from lengthwise.ops.symbol_recurrence import symbol_recurrence

LARGEST = {torch.float32: 2.0**30, torch.float64: 2.0**60}
"""The largest absolute value of a state's number. Its square is far from overflow, and inputs are below its last
digit."""

Steps = Callable[[int, int, Tensor], Tensor]
"""A function of start, stop and a state [B, *N, S]; it returns the states [B, stop - start, *N, S] without c."""


def steps_by_position(transitions: Tensor, values: Tensor) -> Steps:
    """Return the steps of `recurrence`, whose A_t and v_t are given position by position."""

    def steps(start: int, stop: int, state: Tensor) -> Tensor:
        return recurrence(transitions[:, start:stop], values[:, start:stop], state, overflow="keep")

    return steps


def steps_by_symbol(transitions: Tensor, values: Tensor, tokens: Tensor) -> Steps:
    """Return the steps of `symbol_recurrence`, whose A and v are given symbol by symbol."""

    def steps(start: int, stop: int, state: Tensor) -> Tensor:
        return symbol_recurrence(transitions, values, tokens[:, start:stop], state, overflow="keep")

    return steps


def states_in_range_by_definition(steps: Steps, length: int, initial: Tensor, *, driven: bool) -> Tensor:
    """Return all states, one after another; no number exceeds L unless it is infinite after a single step.

    Example:
        >>> def thousandfold(start, stop, state):
        ...     return torch.stack([state * 1_000.0 ** (t + 1) for t in range(stop - start)], 1)
        >>> states_in_range_by_definition(thousandfold, 3, torch.tensor([[2.0, -1.0]]), driven=False)[0].tolist()
        [[2000.0, -1000.0], [2000000.0, -1000000.0], [1073741824.0, -536870912.0]]
    """
    return _one_by_one(steps, 0, length, initial)


def states_in_range(steps: Steps, length: int, initial: Tensor, *, driven: bool) -> Tensor:
    """Return the same; if no state without c exceeds L, these states to the last bit. `driven`: some v_t is not 0.

    A graph that is exported cannot depend on numbers, so it contains the loop of the definition.

    Example:
        >>> def thousandfold(start, stop, state):
        ...     return torch.stack([state * 1_000.0 ** (t + 1) for t in range(stop - start)], 1)
        >>> states_in_range(thousandfold, 50, torch.tensor([[2.0, -1.0]]), driven=False)[0, -1].tolist()
        [1073741824.0, -536870912.0]
    """
    if torch.compiler.is_exporting():
        return states_in_range_by_definition(steps, length, initial, driven=driven)
    return _within(steps, 0, length, initial, driven)


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
        # A state that follows a scaled one is scaled by as much, so that the factor never rises.
        return _scaled(states, factors.cummin(1).values)
    # Only halves whose states overflow are split again; all others keep the fast form.
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
    """Return min(1, L / |x|) of each state [B, T, *N, S]."""
    # Detached, because c is a constant for the gradient. A string has one factor, so that its direction stays.
    return (LARGEST.get(states.dtype, 2.0**30) / states.detach().abs().flatten(2).amax(2)).clamp(max=1)


def _scaled(states: Tensor, factors: Tensor) -> Tensor:
    return states * factors.view(*factors.shape, *[1] * (states.ndim - 2))
