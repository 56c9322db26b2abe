"""States of recurrences that grow: the definition, the fast form, and exact directions."""

from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from torch import Tensor

from lengthwise.ops.block_recurrence import recurrence
from lengthwise.ops.in_range import LARGEST, states_in_range, states_in_range_by_definition

LENGTHS = [1, 2, 7, 63, 500]
GROWTH = {
    "growing": (3.0, 3.0),
    "by far": (1e9, 1e9),
    "up and down": (1.4, 1 / 1.4),
    "down": (0.5, 0.5),
    "not": (1.0, 1.0),
}
"""By how much the first string's states grow at each symbol, in the first and in the second half."""

Form = Callable[..., Tensor]


def states_of(form: Form, transitions: Tensor, initial: Tensor, inputs: Tensor | None = None) -> Tensor:
    values = torch.zeros_like(transitions[..., 0]) if inputs is None else inputs

    def steps(start: int, stop: int, state: Tensor) -> Tensor:
        at = slice(start, stop)
        return recurrence(transitions[:, at], values[:, at], state, form="sequential", overflow="keep")

    return form(steps, transitions.shape[1], initial, driven=inputs is not None)


def drawn(length: int, growth: tuple[float, float], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Rotations of the plane in two blocks, one of which grows; the second string does not."""
    generator = torch.Generator().manual_seed(length)
    angles = 6.28 * torch.rand(2, length, 2, generator=generator, dtype=torch.float64)
    rotations = torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()], -1).unflatten(-1, (2, 2))
    rotations[0, : (length + 1) // 2, 0] *= growth[0]
    rotations[0, (length + 1) // 2 :, 0] *= growth[1]
    initial = torch.randn(2, 2, 2, generator=generator, dtype=torch.float64)
    return rotations.to(dtype), initial.to(dtype)


@pytest.mark.sampled  # a hundred pairs of values take seconds
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("growth", GROWTH)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("driven", [False, True])
def test_values_and_gradients_are_those_of_the_definition(
    driven: bool, length: int, growth: str, dtype: torch.dtype
) -> None:
    given, compared = drawn(length, GROWTH[growth], dtype), []
    weights = torch.randn(2, length, 2, 2, generator=torch.Generator().manual_seed(1), dtype=dtype)
    for form in (states_in_range_by_definition, states_in_range):
        tensors = [tensor.clone().requires_grad_() for tensor in (*given, *([weights] if driven else []))]
        states = states_of(form, *tensors)
        # A weight of each number in its string's state as a whole: gradients of states that grow are no larger.
        sizes = states.detach().abs().amax((2, 3), keepdim=True).clamp(min=torch.finfo(dtype).tiny)
        total = (states / sizes * weights).sum()
        compared.append((states, *torch.autograd.grad(total, tensors)))
    tolerance = 20 * length * torch.finfo(dtype).eps
    for one, other in zip(*compared, strict=True):
        assert bool(one.isfinite().all())
        size = one.abs().flatten(2).amax(2) if one.ndim > 3 else one.abs().amax((1, 2))[:, None]
        error = (one - other).abs().flatten(2).amax(2) if one.ndim > 3 else (one - other).abs().amax((1, 2))[:, None]
        assert bool((error <= tolerance * size.amax(1, keepdim=True)).all())
    assert float(compared[1][0].detach().abs().max()) <= LARGEST[dtype] * (1 + tolerance)


def test_small_states_are_the_recurrence_s_to_the_last_bit() -> None:
    transitions, initial = drawn(63, (1.2, 1.2), torch.float32)
    states = states_of(states_in_range, transitions, initial)
    nothing = torch.zeros_like(transitions[..., 0])
    assert torch.equal(states, recurrence(transitions, nothing, initial, form="sequential"))


@pytest.mark.parametrize("form", [states_in_range_by_definition, states_in_range])
def test_directions_are_exact_where_states_are_far_beyond_floating_point(form: Form) -> None:
    """Shears of whole numbers, by exact arithmetic: 400 steps make numbers of some 170 digits."""
    generator = torch.Generator().manual_seed(0)
    shears = torch.tensor([[[1.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 1.0]], [[2.0, 1.0], [1.0, 1.0]]])
    chosen = torch.randint(3, (400,), generator=generator)
    states = states_of(form, shears[chosen][None, :, None], torch.ones(1, 1, 2))[0, :, 0]
    exact = [Fraction(1), Fraction(1)]
    for index, state in zip(chosen.tolist(), states.tolist(), strict=True):
        exact = [sum(int(a) * x for a, x in zip(row, exact, strict=True)) for row in shears[index].tolist()]
        assert state[0] / state[1] == pytest.approx(float(exact[0] / exact[1]), rel=400 * 4 * 2**-23)
    assert exact[0] > 10**100


def test_a_step_beyond_floating_point_stays_no_number() -> None:
    transitions = torch.full((1, 5, 1, 1, 1), 2.0)
    transitions[0, 3] = torch.inf
    states = states_of(states_in_range, transitions, torch.ones(1, 1, 1)).flatten()
    assert states[:3].tolist() == [2.0, 4.0, 8.0]
    assert not bool(states[3:].isfinite().any())
