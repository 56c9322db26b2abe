r"""The recurrence x_t = P D x_{t-1} + v with a single 1 in every column of P; tables determine P, D and v.

A row of the tables belongs to a symbol or a position. Row r defines a mixture M = sum_k mixtures[r, k] dictionary[k] of
K matrices, a diagonal D and a vector v. Each column of P has its 1 at the largest entry of the same column of M. Shapes
are [R, K] for `mixtures`, [K, N, N] for `dictionary`, [R, N, F] for `factors` (D) and `values` (v), [B, T] for `rows`,
[B, N, F] for x_0 and [B, T, N, F] for states. Numbers are real if F = 1, and complex, as pairs, if F = 2. Without
factors, D is the identity. Without values, v = 0.

`form` has two values. With `"scatter"`, a step multiplies by P D as above: x'[p(j)] += d[j] x[j], and p(j) is the row
of the 1 in column j. With `"gather"`, a step multiplies by D P: x'[i] = d[i] x[p(i)]. Then P has a single 1 in every
row, at the row's largest entry of M, and p(i) is the column of the 1 in row i.

The gradient for M is computed as if P were the softmax of M's columns, or of M's rows with `"gather"` (see
`hard_columns`).

`sparse_recurrence_by_definition` builds the matrices. `sparse_recurrence` represents P by N indices, for a step and for
a product of steps. The steps run one by one or, if there are many small steps, in a prefix scan. The gradient for the
states is the recurrence of the other `form` backwards in time: l_t = g_t + A_{t+1}^H l_{t+1}, where A_t is P D or D P.
The gradient for M has N^2 numbers at each position. These numbers are summed for each row of the tables, some rows at a
time. For the gradient, only the states are kept.

Source: Terzić et al., "Structured sparse transition matrices to enable state tracking in state-space models" (NeurIPS
2025): the paper (`"scatter"`) and the code published with it (`"gather"`).
Differs from the source: the gradient of the source's code keeps N^2 numbers for each position.
"""

from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthwise.devices import in_full_precision
from lengthwise.ops.block_recurrence import MAX_STEP_PRODUCTS, MIN_CHUNKED_STEPS, Overflow, check_finite
from lengthwise.ops.column_norm import hard_columns
from lengthwise.ops.complex_pairs import times_pairs
from lengthwise.ops.scan import Elements, scan
from lengthwise.ops.shapes import check_axes, check_one_dtype, check_optional_tensors, check_shape, check_tensors
from lengthwise.ops.symbol_recurrence import check_symbols
from lengthwise.validation import check_choice

Form = Literal["scatter", "gather"]

MAX_ELEMENTS_PER_CHUNK = 1 << 22
"""The largest number of elements in the matrices M that are built at once."""

Mixtures = Float[Tensor, "R K"]
Dictionary = Float[Tensor, "K N N"]
Factors = Float[Tensor, "R N F"]
State = Float[Tensor, "B N F"]


def sparse_recurrence_by_definition(
    mixtures: Mixtures,
    dictionary: Dictionary,
    factors: Factors | None,
    values: Factors | None,
    rows: Int64[Tensor, "B T"],
    initial: State,
    *,
    form: Form = "scatter",
) -> Float[Tensor, "B T N F"]:
    """Return all states x_t = P_t D_t x_{t-1} + v_t, step by step in real arithmetic, with autograd's own gradient.

    Here P_t has a single 1 in each column, and D_t is diagonal. With `form` `"gather"`, D_t P_t replaces P_t D_t, and
    P_t has a single 1 in each row.
    """
    if not torch.compiler.is_exporting():
        _check(mixtures, dictionary, factors, values, rows, initial, form)
    columns = hard_columns(torch.einsum("rk,kij->rij", mixtures, dictionary), _choice_dim(form))
    state, states = initial, []
    for row in rows.unbind(1):
        if form == "scatter":
            state = columns[row] @ _scaled(factors, row, state)
        else:
            state = _scaled(factors, row, columns[row] @ state)
        if values is not None:
            state = state + values[row]
        states.append(state)
    return torch.stack(states, 1)


def _scaled(factors: Factors | None, row: Int64[Tensor, " B"], state: State) -> State:
    if factors is None:
        return state
    return times_pairs(factors[row], state) if state.shape[-1] == 2 else factors[row] * state


@in_full_precision
def sparse_recurrence(
    mixtures: Mixtures,
    dictionary: Dictionary,
    factors: Factors | None,
    values: Factors | None,
    rows: Int64[Tensor, "B T"],
    initial: State,
    *,
    form: Form = "scatter",
    overflow: Overflow = "raise",
) -> Float[Tensor, "B T N F"]:
    """Return the states of `sparse_recurrence_by_definition`; an exported graph contains the definition.

    Raises:
        ValueError: the form is unknown, T = 0, shapes do not match, or, with overflow "raise", states are not finite
            because a given number is not finite.
        Diverged: with overflow "raise", states overflow although all given numbers are finite.

    Example:
        >>> stay, swap = torch.eye(2), torch.eye(2).flip(0)
        >>> rows, first = torch.tensor([[1, 0]]), torch.tensor([[[1.0], [0.0]]])
        >>> states = sparse_recurrence(torch.eye(2), torch.stack([stay, swap]), None, None, rows, first)
        >>> states[0, :, :, 0].tolist()
        [[0.0, 1.0], [0.0, 1.0]]
    """
    if torch.compiler.is_exporting():
        return sparse_recurrence_by_definition(mixtures, dictionary, factors, values, rows, initial, form=form)
    _check(mixtures, dictionary, factors, values, rows, initial, form)
    check_choice("overflow", overflow, get_args(Overflow))
    states: Tensor = _SparseRecurrence.apply(mixtures, dictionary, factors, values, rows, initial, form)  # type: ignore[no-untyped-call]
    if overflow == "raise":
        given = {"dictionary": dictionary, "factors": factors, "values": values, "initial": initial}
        check_finite(states, **{name: tensor for name, tensor in given.items() if tensor is not None})
    return states


class Steps(NamedTuple):
    """The matrices P and D of steps: `indices` of the 1s of P, and `factors`, the diagonal of D, or None if D = I."""

    indices: Int64[Tensor, "*M N"]
    factors: Tensor | None

    def at(self, row: Tensor) -> "Steps":
        return Steps(self.indices[row], None if self.factors is None else self.factors[row])

    def applied(self, form: Form, state: Tensor) -> Tensor:
        if form == "gather":
            gathered = state.gather(-1, self.indices)
            return gathered if self.factors is None else self.factors * gathered
        scaled = state if self.factors is None else self.factors * state
        return torch.zeros_like(state).scatter_add_(-1, self.indices, scaled)

    def after(self, earlier: "Steps", form: Form) -> "Steps":
        """Return the product of this step and an earlier step; the product applies the earlier step first."""
        # If P has a 1 in every column, p maps a source to its target, so the later p is applied to the earlier p. If P
        # has a 1 in every row, p maps a target to its source, so the earlier p is applied to the later p.
        first, second = (earlier, self) if form == "scatter" else (self, earlier)
        factors = None
        if first.factors is not None and second.factors is not None:
            factors = second.factors.gather(-1, first.indices) * first.factors
        return Steps(second.indices.gather(-1, first.indices), factors)

    def adjoint(self) -> "Steps":
        """Return the conjugate transposes of the steps: `"scatter"` steps become `"gather"` steps, and vice versa."""
        # The transpose of a matrix with one 1 in every column has one 1 in every row, with the same indices.
        return Steps(self.indices, None if self.factors is None else self.factors.conj().resolve_conj())


OPPOSITE_FORM: dict[Form, Form] = {"scatter": "gather", "gather": "scatter"}


class _SparseRecurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        mixtures: Mixtures,
        dictionary: Dictionary,
        factors: Factors | None,
        values: Factors | None,
        rows: Int64[Tensor, "B T"],
        initial: State,
        form: Form,
    ) -> Tensor:
        indices = _chosen(mixtures, dictionary, form)
        steps = Steps(indices, None if factors is None else _numbers(factors))
        inputs = None if values is None else _numbers(values)[rows.T]
        states = _states(steps, rows.T, inputs, _numbers(initial), form)
        ctx.save_for_backward(mixtures, dictionary, factors, indices, rows, initial, states)  # type: ignore[arg-type]
        ctx.form, ctx.driven = form, values is not None  # type: ignore[attr-defined]
        return _pairs(states).transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Float[Tensor, "B T N F"]) -> tuple[Tensor | None, ...]:
        mixtures, dictionary, factors, indices, rows, initial, states = ctx.saved_tensors  # type: ignore[attr-defined]
        form: Form = ctx.form  # type: ignore[attr-defined]
        steps = Steps(indices, None if factors is None else _numbers(factors))
        in_time, backwards = rows.T, steps.adjoint()
        gradient = _numbers(gradient.transpose(0, 1).contiguous())
        # No step follows the last position T, so l_T = g_T, and the recurrence backwards begins with g_T.
        adjoints = gradient
        if len(gradient) > 1:
            later = _states(backwards, in_time[1:].flip(0), gradient[:-1].flip(0), gradient[-1], OPPOSITE_FORM[form])
            adjoints = torch.cat([later.flip(0), gradient[-1:]])
        by_initial = backwards.at(in_time[0]).applied(OPPOSITE_FORM[form], adjoints[0])
        before = torch.cat([_numbers(initial)[None], states[:-1]])
        by_row = RowSums(in_time.flatten(), len(mixtures))
        left = adjoints
        right = before
        by_factors = None
        if steps.factors is not None:
            # For each row, the gradient for D sums l[p(j)] conj(x[j]) (scatter) or l[i] conj(x[p(i)]) (gather).
            moved = steps.indices[in_time]
            others = adjoints.gather(-1, moved), before if form == "scatter" else before.gather(-1, moved)
            by_factors = by_row.sums((others[0] if form == "scatter" else adjoints) * others[1].conj())
            scale = steps.factors[in_time]
            left, right = (adjoints, scale * before) if form == "scatter" else (scale.conj() * adjoints, before)
        by_values = _pairs(by_row.sums(adjoints)) if ctx.driven else None  # type: ignore[attr-defined]
        by_choice = _gradients_by_choice(mixtures, dictionary, by_row, left, right, _choice_dim(form))
        return *by_choice, None if by_factors is None else _pairs(by_factors), by_values, None, _pairs(by_initial), None


class RowSums:
    """Sums over all positions that use the same table row; `rows` has the row of each position, [T, B] flattened."""

    def __init__(self, rows: Int64[Tensor, " P"], num_rows: int) -> None:
        self.rows, self.num_rows = rows, num_rows
        self.order = rows.argsort()
        self.counts: list[int] = rows.bincount(minlength=num_rows).tolist()

    def sums(self, numbers: Tensor) -> Tensor:
        """Return, for each table row, the sum of `numbers` [T, B, N] over the positions that use this row."""
        flat = numbers.flatten(0, 1)
        return flat.new_zeros(self.num_rows, flat.shape[1]).index_add_(0, self.rows, flat)

    def products(self, left: Float[Tensor, "P N F"], right: Float[Tensor, "P N F"], first: int, count: int) -> Tensor:
        """Return, for `count` table rows from `first` on, the sum of outer products over all positions with the row.

        Only the real part of the sum is returned. The positions in `left` and `right` are sorted by table row.
        """
        counts = self.counts[first : first + count]
        start = sum(self.counts[:first])
        left, right = (numbers[start : start + sum(counts)] for numbers in (left, right))
        # If every row occurs once, as when a row belongs to a position, one batched product suffices. Because positions
        # are sorted by row, no scatter of N^2 numbers for each position is needed.
        if all(number == 1 for number in counts):
            return left @ right.mT
        sums = [
            one.transpose(0, 1).flatten(1) @ other.transpose(0, 1).flatten(1).T
            for one, other in zip(left.split(counts), right.split(counts), strict=True)
        ]
        return torch.stack(sums)


def _gradients_by_choice(
    mixtures: Mixtures, dictionary: Dictionary, by_row: RowSums, left: Tensor, right: Tensor, dim: int
) -> tuple[Mixtures, Dictionary]:
    """Return the gradients for mixtures and dictionary as if P were a softmax; dL/dP is the sum of Re(left right^H)."""
    left, right = (_pairs(numbers.flatten(0, 1)[by_row.order]) for numbers in (left, right))
    by_mixtures, by_dictionary = torch.empty_like(mixtures), torch.zeros_like(dictionary).flatten(1)
    for first, some_mixtures in _chunks(mixtures, dictionary):
        soft = _mixed(some_mixtures, dictionary).softmax(dim)
        weighted = soft * by_row.products(left, right, first, len(some_mixtures))
        # The gradient of a softmax: s (g - sum of s g).
        by_logits = torch.addcmul(weighted, soft, weighted.sum(dim, keepdim=True), value=-1).flatten(1)
        by_mixtures[first : first + len(some_mixtures)] = by_logits @ dictionary.flatten(1).T
        by_dictionary.addmm_(some_mixtures.T, by_logits)
    return by_mixtures, by_dictionary.view_as(dictionary)


def _states(steps: Steps, rows: Int64[Tensor, "T B"], inputs: Tensor | None, initial: Tensor, form: Form) -> Tensor:
    """Return all states [T, B, N]; `inputs` contains the v of every position."""
    # The rule of `block_recurrence.fastest_form`: if a step is small, starting it takes most of its time.
    if len(rows) >= MIN_CHUNKED_STEPS and initial.numel() <= MAX_STEP_PRODUCTS:
        return _scanned(steps.at(rows.T), inputs, initial, form)
    states, state = initial.new_empty(len(rows), *initial.shape), initial
    for t, row in enumerate(rows.unbind()):
        state = steps.at(row).applied(form, state)
        if inputs is not None:
            # This is in place, because `applied` has returned a new tensor.
            state += inputs[t]
        states[t] = state
    return states


def _scanned(steps: Steps, inputs: Tensor | None, initial: Tensor, form: Form) -> Tensor:
    """Return all states by a prefix scan of the steps x -> P D x + v; the first step includes the first state."""

    def as_step(elements: Elements) -> Steps:
        return Steps(elements[0], elements[2] if len(elements) > 2 else None)

    def joined(one: Elements, other: Elements) -> Elements:
        later = as_step(other)
        indices, factors = later.after(as_step(one), form)
        offsets = later.applied(form, one[1]) + other[1]
        return (indices, offsets) if factors is None else (indices, offsets, factors)

    shape = steps.indices.shape
    # Cloned, because the first state is added in place below.
    offsets = initial.new_zeros(shape) if inputs is None else inputs.transpose(0, 1).clone()
    first = Steps(steps.indices[:, 0], None if steps.factors is None else steps.factors[:, 0])
    # The first state is added to the first offset. A separate element for it would shift all positions.
    offsets[:, 0] += first.applied(form, initial)
    elements = (steps.indices, offsets) if steps.factors is None else (steps.indices, offsets, steps.factors)
    return scan(joined, elements)[1].transpose(0, 1)


def _chosen(mixtures: Mixtures, dictionary: Dictionary, form: Form) -> Int64[Tensor, "R N"]:
    """Return the index of the 1 in each column (scatter) or row (gather) of P."""
    dim = _choice_dim(form)
    return torch.cat([_mixed(mixed, dictionary).max(dim).indices for _, mixed in _chunks(mixtures, dictionary)])


def _mixed(mixtures: Mixtures, dictionary: Dictionary) -> Float[Tensor, "R N N"]:
    return torch.unflatten(mixtures @ dictionary.flatten(1), 1, dictionary.shape[1:])


def _chunks(mixtures: Mixtures, dictionary: Dictionary) -> list[tuple[int, Mixtures]]:
    """Return chunks of rows, each with the index of its first row."""
    size = max(1, MAX_ELEMENTS_PER_CHUNK // dictionary[0].numel())
    return [(size * index, chunk) for index, chunk in enumerate(mixtures.split(size))]


def _choice_dim(form: Form) -> int:
    return -2 if form == "scatter" else -1


def _numbers(pairs: Float[Tensor, "*M F"]) -> Tensor:
    """Return pairs (F = 2) as complex numbers, or real numbers (F = 1) without their last dimension."""
    return torch.view_as_complex(pairs.contiguous()) if pairs.shape[-1] == 2 else pairs[..., 0]


def _pairs(numbers: Tensor) -> Float[Tensor, "*M F"]:
    return torch.view_as_real(numbers.resolve_conj()) if numbers.is_complex() else numbers[..., None]


def _check(
    mixtures: Mixtures,
    dictionary: Dictionary,
    factors: Factors | None,
    values: Factors | None,
    rows: Int64[Tensor, "B T"],
    initial: State,
    form: Form,
) -> None:
    check_choice("form", form, OPPOSITE_FORM)
    check_tensors(mixtures=mixtures, dictionary=dictionary, rows=rows, initial=initial)
    check_optional_tensors(factors=factors, values=values)
    check_axes("mixtures", mixtures, "R, K")
    check_axes("dictionary", dictionary, "K, N, N")
    check_axes("initial", initial, "B, N, F")
    check_symbols(rows, len(mixtures), "rows")
    width, parts = dictionary.shape[-1], initial.shape[-1]
    a_row = "give one vector for each row of mixtures, or None"
    a_matrix = "give one square matrix for each mixture weight"
    check_shape("dictionary", dictionary, (mixtures.shape[1], width, width), a_matrix)
    for name, tensor in (("factors", factors), ("values", values)):
        if tensor is not None:
            check_shape(name, tensor, (len(mixtures), width, parts), a_row)
    shape = (len(rows), width, min(max(parts, 1), 2))
    check_shape("initial", initial, shape, "give one state for each string, as in rows")
    given = {"mixtures": mixtures, "dictionary": dictionary, "factors": factors, "values": values, "initial": initial}
    check_one_dtype(**{name: tensor for name, tensor in given.items() if tensor is not None})
