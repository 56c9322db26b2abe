r"""The selective scan: a diagonal recurrence whose decays a, input weights b and output weights c vary by position.

The state h of each channel e has P numbers. Values v are read, and outputs y are returned. For every channel e and
number p,

    h_t[p, e] = a_t[p, e] h_{t-1}[p, e] + b_t[p] v_t[e],     y_t[e] = sum_p c_t[p] h_t[p, e].

With steps s >= 0 and rates r <= 0, the decays a_t[p, e] are exp(s_t[e] r[p, e]), which is in [0, 1]. Signed decays are
2 exp(s_t[e] r[p, e]) - 1, which is in [-1, 1]. Steps and values are [B, T, E], rates [P, E], b and c [B, T, P]. The
state before the first position is [B, P, E].

The definition is a loop over positions, with autograd's own gradient. `selective_scan` runs the same loop with buffers
that stay in a core's cache. The states of a string have T P E numbers. Only the state before every part of 8 positions
is kept, and the gradient computes the other states again. Let g_t be the gradient with respect to y_t. The gradient
with respect to h_t is l_t = c_t g_t + a_{t+1} l_{t+1}, computed backwards in time. Then dL/dv_t = b_t . l_t, dL/db_t =
l_t . v_t, dL/dc_t = h_t . g_t and dL/da_t = l_t h_{t-1}. Second derivatives are not implemented.

Source: Gu and Dao, "Mamba: linear-time sequence modeling with selective state spaces" (2023), sections 3.2 and 3.3;
Grazzi et al., "Unlocking state-tracking in linear RNNs through negative eigenvalues" (ICLR 2025) for signed decays.
Differs from the source: the factor s_t of the source's input term is part of v_t.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthwise.devices import in_full_precision
from lengthwise.ops.shapes import check_shapes, check_tensors, values_outside
from lengthwise.validation import check_choice, truncate

Eigenvalues = Literal["positive", "signed"]
"""The range of decays: positive decays are in [0, 1], and signed decays in [-1, 1]."""

POSITIONS_PER_PART = 8
"""The number of positions between two states that are kept. The gradient computes the states between them again."""

NUMBERS_PER_STEP = 1 << 16
"""The largest number of elements in the states of strings that are read together, unless one string alone has more:
256 KB in float32."""

MAX_TABLED = 1 << 17
"""The largest number of decays in a table with a row for each distinct step size s (see `selective_scan`). In float32,
this table takes 512 KB."""

Channels = Float[Tensor, "B T E"]
Vectors = Float[Tensor, "B T P"]
State = Float[Tensor, "B P E"]
Rows = tuple[Float[Tensor, "R E"], Int64[Tensor, "B T"]]


def decays_of(exponents: Tensor, eigenvalues: Eigenvalues) -> Tensor:
    """Return exp(x) for exponents x <= 0 or, for signed decays, 2 exp(x) - 1, which is exactly -1 if exp(x) is 0.

    Example:
        >>> decays_of(torch.tensor([0.0, -200.0]), "signed").tolist()
        [1.0, -1.0]
    """
    check_tensors(exponents=exponents)
    check_choice("eigenvalues", eigenvalues, get_args(Eigenvalues))
    return exponents.exp() if eigenvalues == "positive" else 2 * exponents.exp() - 1


@check_shapes
def selective_scan_by_definition(
    steps: Channels,
    rates: Float[Tensor, "P E"],
    values: Channels,
    b: Vectors,
    c: Vectors,
    initial: State,
    *,
    eigenvalues: Eigenvalues = "positive",
    rows: Rows | None = None,
) -> tuple[Channels, State]:
    """Return the selective scan's outputs at all positions and its last state, by a loop; `rows` is ignored.

    Example:
        >>> ones = torch.ones(1, 3, 1)
        >>> outputs, _ = selective_scan_by_definition(ones, torch.zeros(1, 1), ones, ones, ones, torch.zeros(1, 1, 1))
        >>> outputs.flatten().tolist()
        [1.0, 2.0, 3.0]
    """
    check_choice("eigenvalues", eigenvalues, get_args(Eigenvalues))
    state, outputs = initial, []
    for s, v, b_t, c_t in zip(*(each.unbind(1) for each in (steps, values, b, c)), strict=True):
        decays = decays_of(s[:, None] * rates, eigenvalues)
        state = decays * state + b_t[..., None] * v[:, None]
        outputs.append((c_t[..., None] * state).sum(1))
    return torch.stack(outputs, 1), state


@check_shapes
@in_full_precision
def selective_scan(
    steps: Channels,
    rates: Float[Tensor, "P E"],
    values: Channels,
    b: Vectors,
    c: Vectors,
    initial: State,
    *,
    eigenvalues: Eigenvalues = "positive",
    rows: Rows | None = None,
) -> tuple[Channels, State]:
    """Return the results of `selective_scan_by_definition`; an exported graph contains the definition.

    If many positions have equal step sizes, `rows` may be a pair: a table of the distinct step sizes, and each
    position's row in the table. Decays are then computed once for each row.

    Raises:
        ValueError: T = 0, shapes do not match, or `eigenvalues` is unknown.

    Example:
        >>> ones = torch.ones(1, 3, 1)
        >>> turned, _ = selective_scan(
        ...     200 * ones, -torch.ones(1, 1), 0 * ones, ones, ones, torch.ones(1, 1, 1), eigenvalues="signed"
        ... )
        >>> turned.flatten().tolist()
        [-1.0, 1.0, -1.0]
    """
    check_choice("eigenvalues", eigenvalues, get_args(Eigenvalues))
    given = (steps, rates, values, b, c, initial)
    if torch.compiler.is_exporting():
        return selective_scan_by_definition(*given, eigenvalues=eigenvalues)
    needs_gradient = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
    tabled = None
    if rows is not None:
        if not isinstance(rows, tuple | list) or len(rows) != 2:
            got = truncate(repr(rows))
            raise ValueError(f"rows: expected a pair of tensors, got {got}; give a table and each position's row in it")
        _check_rows(steps, *rows)
    if rows is not None and len(rows[0]) * rates.numel() <= MAX_TABLED:
        with torch.no_grad():
            tabled = _Tabled(decays_of(rows[0][:, None] * rates, eigenvalues), rows[1])
    outputs, last = _SelectiveScan.apply(*given, eigenvalues, tabled, needs_gradient)  # type: ignore[no-untyped-call]
    return outputs, last


@check_shapes
def _check_rows(steps: Channels, table: Float[Tensor, "R E"], rows: Int64[Tensor, "B T"]) -> None:
    """Check a table of steps and each position's row in it; the decorator `check_shapes` checks their shapes."""
    if got := values_outside(rows, 0, len(table) - 1):
        raise ValueError(f"rows: expected rows 0..{len(table) - 1}, got {got}; give rows of the table")


class _Tabled(NamedTuple):
    """The decays for each row of a table of step sizes, and each position's row in this table."""

    decays: Float[Tensor, "R P E"]
    rows: Int64[Tensor, "B T"]


class _Part:
    """Buffers for the decays and states at some positions of some strings, and for the state before these positions."""

    def __init__(
        self, rates: Tensor, like: Tensor, length: int, eigenvalues: Eigenvalues, tabled: _Tabled | None
    ) -> None:
        self.rates = rates
        self.eigenvalues = eigenvalues
        self.tabled = tabled
        self.decays = like.new_empty(length, *like.shape)
        self.states = like.new_empty(length + 1, *like.shape)

    def run(self, start: Tensor, span: slice, steps: Tensor, values: Tensor, b: Tensor) -> None:
        """Write decays and states of a span of positions into the buffers, one position after another."""
        self.states[0] = start
        for index, t in enumerate(range(span.start, span.stop)):
            decays, after = self.decays[index], self.states[index + 1]
            if self.tabled is None:
                torch.mul(steps[t], self.rates, out=decays).exp_()
                if self.eigenvalues == "signed":
                    decays.mul_(2).sub_(1)
            else:
                torch.index_select(self.tabled.decays, 0, self.tabled.rows[:, t], out=decays)
            # Computed in place, because new buffers at each position would not stay in the cache.
            torch.mul(decays, self.states[index], out=after).addcmul_(b[t].mT, values[t])


class _SelectiveScan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        steps: Tensor,
        rates: Tensor,
        values: Tensor,
        b: Tensor,
        c: Tensor,
        initial: Tensor,
        eigenvalues: Eigenvalues,
        tabled: _Tabled | None,
        needs_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        outputs, last = torch.empty_like(values), torch.empty_like(initial)
        parts = list(_parts(steps.shape[1]))
        # Only the gradient reads the kept states.
        starts = initial.new_empty(len(parts) if needs_gradient else 0, *initial.shape)
        # The outer loop is over strings: all positions of a few strings run first, so that their states stay in cache.
        for rows in _rows(initial):
            by_time = [_by_time(each[rows]) for each in (steps, values, b, c)]
            part = _Part(rates, initial[rows], parts[0].stop, eigenvalues, _select_strings(tabled, rows))
            latest, computed = initial[rows], torch.empty_like(by_time[1])
            for index, span in enumerate(parts):
                if needs_gradient:
                    starts[index, rows] = latest
                part.run(latest, span, *by_time[:3])
                # `strict` is False because the last part may be shorter than the buffers.
                for t, state in zip(range(span.start, span.stop), part.states[1:], strict=False):
                    torch.bmm(by_time[3][t], state, out=computed[t])
                latest = part.states[span.stop - span.start]
            outputs[rows], last[rows] = computed.squeeze(2).transpose(0, 1), latest
        ctx.save_for_backward(steps, rates, values, b, c, starts)
        ctx.eigenvalues, ctx.tabled = eigenvalues, tabled  # type: ignore[attr-defined]
        return outputs, last

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, by_outputs: Tensor, by_last: Tensor) -> tuple[Tensor | None, ...]:
        steps, rates, values, b, c, starts = ctx.saved_tensors  # type: ignore[attr-defined]
        gradients = [torch.empty_like(each) for each in (steps, values, b, c)]
        by_rates, by_initial = torch.zeros_like(rates), torch.empty_like(by_last)
        parts = list(_parts(steps.shape[1]))
        for rows in _rows(by_last):
            by_time = [_by_time(each[rows]) for each in (steps, values, b, c, by_outputs)]
            computed = [torch.empty_like(each) for each in by_time[:4]]
            tabled = _select_strings(ctx.tabled, rows)  # type: ignore[attr-defined]
            part = _Part(rates, by_last[rows], parts[0].stop, ctx.eigenvalues, tabled)  # type: ignore[attr-defined]
            adjoint, total = by_last[rows].clone(), torch.zeros_like(by_last[rows])
            for index, span in reversed(list(enumerate(parts))):
                # States are computed again, because keeping all would take T P E numbers per string, not T P E / 8.
                part.run(starts[index, rows], span, *by_time[:3])
                _run_back(part, adjoint, total, [each[span] for each in (*by_time, *computed)])
            by_initial[rows] = adjoint
            by_rates += total.sum(0)
            for whole, part_of in zip(gradients, computed, strict=True):
                whole[rows] = part_of.squeeze(2).transpose(0, 1)
        by_steps, by_values, by_b, by_c = gradients
        return by_steps, by_rates, by_values, by_b, by_c, by_initial, None, None, None


def _run_back(part: _Part, adjoint: Tensor, total: Tensor, by_time: list[Tensor]) -> None:
    """Carry the gradient `adjoint` in place back through a part; add each string's gradient for rates to `total`."""
    by_exponent, weighted = torch.empty_like(adjoint), torch.empty_like(adjoint)
    for t in reversed(range(len(by_time[0]))):
        steps, values, b, c, by_outputs, by_steps, by_values, by_b, by_c = (each[t] for each in by_time)
        decays = part.decays[t]
        before = part.states[t]
        after = part.states[t + 1]
        # All gradients at t read l_t, so they are computed before l_t is multiplied by the decays in place.
        adjoint.addcmul_(c.mT, by_outputs)
        torch.bmm(by_outputs, after.mT, out=by_c)
        torch.bmm(values, adjoint.mT, out=by_b)
        torch.bmm(b, adjoint, out=by_values)
        torch.mul(adjoint, before, out=by_exponent)
        adjoint.mul_(decays)
        # da/dx is a for a = exp(x), and a + 1 for a = 2 exp(x) - 1, so no further exponential is needed.
        if part.eigenvalues == "positive":
            by_exponent.mul_(decays)
        else:
            by_exponent.addcmul_(by_exponent, decays)
        total.addcmul_(by_exponent, steps)
        torch.sum(torch.mul(by_exponent, part.rates, out=weighted), 1, keepdim=True, out=by_steps)


def _select_strings(tabled: _Tabled | None, rows: slice) -> _Tabled | None:
    return None if tabled is None else tabled._replace(rows=tabled.rows[rows])


def _by_time(rows: Tensor) -> Tensor:
    """Return a tensor [B, T, .] as [T, B, 1, .], so that the numbers of one position are contiguous."""
    return rows.transpose(0, 1).contiguous()[:, :, None]


def _rows(states: Tensor) -> Iterator[slice]:
    """Yield slices of strings that are read together."""
    count = max(1, NUMBERS_PER_STEP // max(1, states[0].numel()))
    for start in range(0, len(states), count):
        yield slice(start, min(start + count, len(states)))


def _parts(length: int) -> Iterator[slice]:
    for start in range(0, length, POSITIONS_PER_PART):
        yield slice(start, min(start + POSITIONS_PER_PART, length))
