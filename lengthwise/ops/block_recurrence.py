r"""The linear recurrence x_t = A_t x_{t-1} + v_t for any number of steps T >= 1, computed in one of three forms.

For B strings, the v_t have shape [B, T, *N, S], and x_0 has shape [B, *N, S]. The A_t are matrices [B, T, *N, S, S] or
diagonals [B, T, *N, S]. The dimensions *N index independent blocks: a dense A_t has no such dimension, and a
block-diagonal A_t has one. Numbers are real or complex.

`recurrence_by_definition` is a loop. `recurrence` returns the same states by one of three forms:

- `"sequential"`: T steps with S^2 products for each step and block (S for a diagonal).
- `"scan"`: a prefix scan in about 2 log_2 T steps. First, it joins pairs of steps by products of matrices (S^3 products
  each). Then it only multiplies matrices with states.
- `"chunked"`: chunks of about sqrt(T) steps in parallel. First come the products of the matrices of each chunk, then
  the states between chunks, then the states within chunks. In total, each step and block takes S^3 + 2 S^2 products,
  and about 3 sqrt(T) steps run in sequence.

The gradient follows from the same kind of recurrence backwards in time, l_t = g_t + A_{t+1}^H l_{t+1}. Here g_t is the
gradient with respect to the output x_t. Then dL/dv_t = l_t, dL/dA_t = l_t x_{t-1}^H and dL/dx_0 = A_1^H l_1. For the
gradient, every form keeps only the states, which are T N S numbers for each string. Second derivatives are not
implemented.

Source: Fan et al. (2024), eq. (5), section 3.4; Martin and Cundy (2018) for the gradient.
Differs from the source: see `lengthwise.ops.scan`; T need not be a power of two.
"""

import math
from collections.abc import Callable, Iterable
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthwise.conventions import Diverged
from lengthwise.devices import in_full_precision
from lengthwise.ops.scan import interleaved
from lengthwise.ops.shapes import check_optional_tensors, check_shape, check_tensors
from lengthwise.validation import check_choice

Form = Literal["sequential", "scan", "chunked"]

Overflow = Literal["raise", "keep"]
"""The treatment of states that overflow: raise `Diverged`, or keep the infinite and NaN numbers."""


def recurrence_by_definition(transitions: Tensor, inputs: Tensor, initial: Tensor | None = None) -> Tensor:
    """Return all states x_t = A_t x_{t-1} + v_t, computed one after another, with autograd's own gradient.

    Example:
        >>> half = torch.full((1, 3, 1), 0.5)
        >>> recurrence_by_definition(half, torch.ones(1, 3, 1), torch.zeros(1, 1)).flatten().tolist()
        [1.0, 1.5, 1.75]
    """
    state = _initial(transitions, inputs, initial)
    states = []
    for a, v in zip(transitions.unbind(1), inputs.unbind(1), strict=True):
        state = applied(a, state) + v
        states.append(state)
    return torch.stack(states, 1)


@in_full_precision
def recurrence(
    transitions: Tensor,
    inputs: Tensor,
    initial: Tensor | None = None,
    *,
    form: Form | None = None,
    overflow: Overflow = "raise",
) -> Tensor:
    """Return all states x_t = A_t x_{t-1} + v_t, by the given form or by the form that is likely the fastest.

    The result has the shape of `inputs`. An exported graph contains the loop of `recurrence_by_definition`, because the
    control flow of such a graph cannot depend on numbers.

    Raises:
        ValueError: shapes or dtypes do not match, T = 0, `form` is unknown, or, with overflow "raise", states are not
            finite because a given number is not finite.
        Diverged: with overflow "raise", states overflow although all given numbers are finite.

    Example:
        >>> half = torch.full((1, 3, 1), 0.5)
        >>> recurrence(half, torch.ones(1, 3, 1), form="scan").flatten().tolist()
        [1.0, 1.5, 1.75]
    """
    if torch.compiler.is_exporting():
        return recurrence_by_definition(transitions, inputs, initial)
    initial = _initial(transitions, inputs, initial)
    form = form or fastest_form(transitions, inputs)
    check_choice("form", form, _FORMS)
    check_choice("overflow", overflow, get_args(Overflow))
    states: Tensor = _Recurrence.apply(transitions, inputs, initial, form)  # type: ignore[no-untyped-call]
    if overflow == "raise":
        check_finite(states, transitions=transitions, inputs=inputs, initial=initial)
    return states


MIN_CHUNKED_STEPS = 64
"""The smallest number of steps for which chunks are faster than a loop: see `benchmarks/recurrence.py`."""

MAX_STEP_PRODUCTS = 2_048
"""The largest number of multiplications at which a step takes no longer than an empty step: see
`benchmarks/recurrence.py`."""


def fastest_form(transitions: Tensor, inputs: Tensor) -> Form:
    """Return the form that is likely the fastest on a CPU core; `benchmarks/recurrence.py` also prints this choice.

    Chunks do more multiplications in fewer steps. So chunks are faster only under two conditions: there are many steps,
    and most of a step's time goes into starting its kernels.
    """
    check_tensors(transitions=transitions, inputs=inputs)
    width = inputs.shape[-1] if transitions.ndim > inputs.ndim else 1
    step = inputs[:, 0].numel() * width
    return "chunked" if inputs.shape[1] >= MIN_CHUNKED_STEPS and step <= MAX_STEP_PRODUCTS else "sequential"


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, transitions: Tensor, inputs: Tensor, initial: Tensor, form: Form) -> Tensor:
        states = _FORMS[form](transitions, inputs, initial)
        # The products of a form are not kept: the gradient runs its own recurrence, which needs only the states.
        ctx.save_for_backward(transitions, initial, states)
        ctx.form = form  # type: ignore[attr-defined]
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        transitions, initial, states = ctx.saved_tensors  # type: ignore[attr-defined]
        adjoints = _adjoint_states(transitions, gradient, ctx.form)  # type: ignore[attr-defined]
        needs = ctx.needs_input_grad  # type: ignore[attr-defined]
        before = torch.cat([initial[:, None], states[:, :-1]], 1)
        by_transitions = _outer(adjoints, before, transitions) if needs[0] else None
        by_initial = applied(_adjoint(transitions[:, 0], initial), adjoints[:, 0]) if needs[2] else None
        return by_transitions, adjoints if needs[1] else None, by_initial, None


def _outer(adjoints: Tensor, before: Tensor, transitions: Tensor) -> Tensor:
    before = before.conj()
    return adjoints * before if transitions.ndim == before.ndim else adjoints[..., None] * before[..., None, :]


def _adjoint_states(transitions: Tensor, gradient: Tensor, form: Form) -> Tensor:
    """Return l_t = g_t + A_{t+1}^H l_{t+1} for all t, by a recurrence backwards from l_T = g_T."""
    last = gradient[:, -1]
    if gradient.shape[1] == 1:
        return gradient
    later = _adjoint(transitions[:, 1:], gradient)
    if form == "sequential":  # this form can read its arguments from the end, so no reversed copies are needed
        earlier = _sequential(later, gradient[:, :-1], last, backwards=True)
    else:
        earlier = _FORMS[form](later.flip(1), gradient[:, :-1].flip(1), last).flip(1)
    return torch.cat([earlier, last[:, None]], 1)


def _adjoint(transitions: Tensor, states: Tensor) -> Tensor:
    return transitions.conj() if transitions.ndim == states.ndim else transitions.mH


def applied(a: Tensor, x: Tensor) -> Tensor:
    """Return A x, where the tensor A contains diagonals if it has as many dimensions as x, else matrices."""
    return a * x if a.ndim == x.ndim else (a @ x.unsqueeze(-1)).squeeze(-1)


def _compose(later: Tensor, earlier: Tensor, states: Tensor) -> Tensor:
    return later * earlier if later.ndim == states.ndim else later @ earlier


def _sequential(transitions: Tensor, inputs: Tensor, initial: Tensor, *, backwards: bool = False) -> Tensor:
    states, state = torch.empty_like(inputs), initial
    steps = range(inputs.shape[1])
    for t in reversed(steps) if backwards else steps:
        state = applied(transitions[:, t], state) + inputs[:, t]
        states[:, t] = state
    return states


def _scan(transitions: Tensor, inputs: Tensor, initial: Tensor) -> Tensor:
    """Join pairs of steps, scan the joined steps, and compute the skipped states from the results."""
    first = applied(transitions[:, :1], initial[:, None]) + inputs[:, :1]
    length = inputs.shape[1]
    if length == 1:
        return first
    one, other = slice(0, length - 1, 2), slice(1, length, 2)
    # Matrices are multiplied with each other only here. Later products, of a matrix and a state, are S times as cheap.
    at_even = _scan(
        _compose(transitions[:, other], transitions[:, one], inputs),
        applied(transitions[:, other], inputs[:, one]) + inputs[:, other],
        initial,
    )
    between = applied(transitions[:, 2::2], at_even[:, : (length - 1) // 2]) + inputs[:, 2::2]
    return interleaved(torch.cat([first, between], 1), at_even)


def _chunked(transitions: Tensor, inputs: Tensor, initial: Tensor) -> Tensor:
    """Run chunks of equal length in parallel; the remaining steps at the end follow one by one."""
    # With chunks of sqrt(T/2) steps, the three passes take sqrt(T/2), sqrt(2T) and sqrt(T/2) steps. This is the
    # smallest possible total.
    size = max(1, round(math.sqrt(inputs.shape[1] / 2)))
    count = inputs.shape[1] // size
    whole = size * count
    a, v = (tensor[:, :whole].unflatten(1, (count, size)) for tensor in (transitions, inputs))
    starts = chunk_starts(a.unbind(2), v, initial)
    states = torch.empty_like(inputs)
    within, state = states[:, :whole].unflatten(1, (count, size)), torch.stack(starts[:-1], 1)
    for i in range(size):
        state = applied(a[:, :, i], state) + v[:, :, i]
        within[:, :, i] = state
    if whole < inputs.shape[1]:
        states[:, whole:] = _sequential(transitions[:, whole:], inputs[:, whole:], starts[-1])
    return states


def chunk_starts(transitions: Iterable[Tensor], inputs: Tensor, initial: Tensor) -> list[Tensor]:
    """Return the state before every chunk, and the state after the last chunk.

    `inputs` are [B, chunks, steps, *N, S]. For each step of a chunk, `transitions` yields the matrices of all chunks.
    """
    later = zip(transitions, inputs.unbind(2), strict=True)
    # Each chunk is a map x -> product x + offset. Building it does not need the state before the chunk, so the maps of
    # all chunks are built at once, step by step.
    product, offset = next(later)
    for a, v in later:
        offset = applied(a, offset) + v
        product = _compose(a, product, offset)
    starts = [initial]
    for a, v in zip(product.unbind(1), offset.unbind(1), strict=True):
        starts.append(applied(a, starts[-1]) + v)
    return starts


_FORMS: dict[Form, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "sequential": _sequential,
    "scan": _scan,
    "chunked": _chunked,
}


def _initial(transitions: Tensor, inputs: Tensor, initial: Tensor | None) -> Tensor:
    """Return the state before the first step, which is zero by default, and check all shapes and dtypes."""
    check_tensors(transitions=transitions, inputs=inputs)
    check_optional_tensors(initial=initial)
    if inputs.ndim < 3 or not inputs.shape[1]:
        raise ValueError(
            f"inputs: expected shape [B, T, *N, S] with T of at least 1, got {list(inputs.shape)}; give the vector of "
            "each string and step"
        )
    square = [*inputs.shape, inputs.shape[-1]]
    if list(transitions.shape) not in (square, list(inputs.shape)):
        raise ValueError(
            f"transitions: expected matrices {square} or diagonals {list(inputs.shape)}, got "
            f"{list(transitions.shape)}; give one matrix or diagonal for each vector of inputs"
        )
    if initial is None:
        initial = torch.zeros_like(inputs[:, 0])
    a_state = "give the state before the first step of each string, or None for zeros"
    check_shape("initial", initial, inputs[:, 0].shape, a_state)
    dtypes = {tensor.dtype for tensor in (transitions, inputs, initial)}
    if len(dtypes) > 1 or not (inputs.is_floating_point() or inputs.is_complex()):
        names = ", ".join(sorted(map(str, dtypes)))
        raise ValueError(
            f"dtypes: expected one real or complex dtype for transitions, inputs and initial, got {names}; convert "
            "them with Tensor.to"
        )
    return initial


def check_finite(states: Tensor, **given: Tensor) -> None:
    """Raise an error unless all states [B, T, ...] are finite.

    If a number in `given` is not finite, the error is a ValueError that names its tensor and position. Otherwise, the
    error is `Diverged`.
    """
    if bool(states.isfinite().all()):
        return
    for name, tensor in given.items():
        if not bool(tensor.isfinite().all()):
            position = torch.nonzero(~tensor.isfinite())[0].tolist()
            raise ValueError(
                f"{name}: expected finite numbers, got {tensor[tuple(position)].item()} at {position}; check the "
                "weights or data that it comes from"
            )
    message = "recurrence: states overflow although all arguments are finite; lower the norm of transitions"
    raise Diverged(message, int((~states.isfinite()).flatten(2).any(2).any(0).int().argmax()) + 1)
