r"""The recurrence x_t = A[u_t] x_{t-1} + v[u_t] over symbols u_t, where tables contain the A and v of each symbol.

`transitions` has shape [V, N, S, S], `values` [V, N, S], `tokens` [B, T] and x_0 [B, N, S]. States are [B, T, N, S]. No
tensor of size T N S^2 is built. A step multiplies the states of all strings by the matrices of all symbols: for each of
N blocks, [B, S] times [S, V S]. Then it picks the result for each string's symbol. This takes V times as many
multiplications as using only the matrix of each string's symbol, but starts only one kernel. If there are many symbols,
a step instead gathers the matrix of each string's symbol. If there are many small steps, chunks of about sqrt(T) steps
run in parallel, as in `lengthwise.ops.block_recurrence`.

The gradient is the same recurrence backwards in time (see `lengthwise.ops.block_recurrence`). For the gradient of the
tables, positions are sorted by symbol. Each symbol with R positions then takes an [S, R] times [R, S] product for each
block. For the gradient, only the states are kept.

Source: ours.
Differs from Fan et al. (2024): their code computes A_t for every position, even in the first layer, where A_t depends
only on the symbol.
"""

import math
from numbers import Integral
from typing import get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthwise.devices import SYNCHRONOUS_DEVICES, in_full_precision, on_device_assert
from lengthwise.ops.block_recurrence import (
    MIN_CHUNKED_STEPS,
    Overflow,
    applied,
    check_finite,
    chunk_starts,
    recurrence_by_definition,
)
from lengthwise.ops.shapes import (
    check_axes,
    check_one_dtype,
    check_optional_tensors,
    check_shape,
    check_strings,
    check_tensors,
    values_outside,
)
from lengthwise.validation import check_choice, check_kind

Table = Float[Tensor, "V N S S"]
Values = Float[Tensor, "V N S"]
Tokens = Int64[Tensor, "B T"]
State = Float[Tensor, "B N S"]
States = Float[Tensor, "B T N S"]

MAX_CHUNKED_PRODUCTS = 1 << 18
"""The largest number of multiplications in a step's matrix products at which chunks are faster on long strings."""

MAX_COMPOSED_POSITIONS = 1 << 10
"""The largest number of elements in the maps of one step, over all strings, at which composing maps is faster than
running steps."""

STEPS_PER_COMPOSITION = 1 << 9
"""The number of steps whose maps are composed at once. This number bounds the memory that the maps take."""

MIN_GATHERED_SYMBOLS = 32
"""The smallest number of symbols for which gathering each string's matrix is faster than multiplying by the matrices of
all symbols: see `benchmarks/recurrence.py`."""


def symbol_recurrence_by_definition(transitions: Table, values: Values, tokens: Tokens, initial: State) -> States:
    """Return all states x_t = A[u_t] x_{t-1} + v[u_t], by a loop after building the matrix of every position."""
    if not torch.compiler.is_exporting():
        _check(transitions, values, tokens, initial)
    return recurrence_by_definition(transitions[tokens], values[tokens], initial)


@in_full_precision
def symbol_recurrence(
    transitions: Table, values: Values, tokens: Tokens, initial: State, *, overflow: Overflow = "raise"
) -> States:
    """Return the states of `symbol_recurrence_by_definition`, computed faster.

    An exported graph contains the loop of the definition instead.

    Raises:
        ValueError: T = 0, a token is not a symbol, shapes or dtypes do not match, or, with overflow "raise", states are
            not finite because a given number is not finite.
        Diverged: with overflow "raise", states overflow although all given numbers are finite.

    Example:
        >>> flips = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]], [[[0.0, 1.0], [1.0, 0.0]]]])
        >>> nothing, first = torch.zeros(2, 1, 2), torch.tensor([[[1.0, 0.0]]])
        >>> symbol_recurrence(flips, nothing, torch.tensor([[1, 0, 1]]), first)[0, :, 0].tolist()
        [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    """
    if torch.compiler.is_exporting():
        return symbol_recurrence_by_definition(transitions, values, tokens, initial)
    _check(transitions, values, tokens, initial)
    check_choice("overflow", overflow, get_args(Overflow))
    states: Tensor = _SymbolRecurrence.apply(transitions, values, tokens, initial)  # type: ignore[no-untyped-call]
    if overflow == "raise":
        check_finite(states, transitions=transitions, values=values, initial=initial)
    return states


@in_full_precision
def symbol_final_state(
    transitions: Table, values: Values, tokens: Tokens, initial: State, *, overflow: Overflow = "raise"
) -> State:
    """Return the last state, ``symbol_recurrence(...)[:, -1]``.

    If no gradient is needed, the other states are kept only if steps run in chunks. If `values` are 0, and all columns
    of `transitions` and all blocks of `initial` are one-hot vectors, then all states consist of one-hot vectors. In
    this case, only the index of the 1 in each block is computed, and the result is the same to the last bit. A symbol
    then maps indices to indices, and for few strings, these maps are composed pairwise.
    """
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (transitions, values, initial)):
        return symbol_recurrence(transitions, values, tokens, initial, overflow=overflow)[:, -1]
    _check(transitions, values, tokens, initial)
    check_choice("overflow", overflow, get_args(Overflow))
    # The comparisons are exact, because this case must return the same bits as the products.
    if _is_one_hot(transitions) and _is_one_hot(initial[..., None]) and not bool(values.any()):
        return _one_hot_final_state(transitions, tokens, initial)
    if _in_chunks(transitions, tokens):
        state = _chunked(transitions, tokens, values[tokens], initial)[:, -1]
    else:
        state, step = initial, SymbolStep(transitions, values, len(tokens))
        for symbols in tokens.unbind(1):
            state = step(state, symbols)
    if overflow == "raise" and not bool(state.isfinite().all()):
        # This second run raises an error, whose message names the first step whose state is not finite.
        return symbol_recurrence(transitions, values, tokens, initial)[:, -1]
    return state


def _is_one_hot(columns: Float[Tensor, "*M S K"]) -> bool:
    """Return whether every column has a single 1 and exact zeros otherwise."""
    ones = columns == 1
    return bool((ones | (columns == 0)).all() and (ones.sum(-2) == 1).all())


def one_hot_positions(transitions: Table, tokens: Tokens, initial: State) -> Int64[Tensor, "B T N"]:
    """Return the index of the 1 in each block of all states; columns and first states must be one-hot vectors.

    The states are the results of `symbol_recurrence` if its argument `values` is 0.

    Example:
        >>> flips = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]], [[[0.0, 1.0], [1.0, 0.0]]]])
        >>> one_hot_positions(flips, torch.tensor([[1, 0, 1]]), torch.tensor([[[1.0, 0.0]]])).flatten().tolist()
        [1, 1, 0]
    """
    check_tensors(transitions=transitions, tokens=tokens, initial=initial)
    _check_table(transitions, tokens, initial)
    check_one_dtype(transitions=transitions, initial=initial)
    if not (_is_one_hot(transitions) and _is_one_hot(initial[..., None])):
        raise ValueError(
            "transitions: expected one-hot columns, and one-hot vectors in initial, got other numbers; call "
            "symbol_recurrence instead"
        )
    _, blocks, width, _ = transitions.shape
    successors, positions, offsets = _numbered(transitions, initial)
    successors = successors.flatten()
    reached = tokens.new_empty(tokens.shape[1], *positions.shape)
    for t, rows in enumerate((tokens * (blocks * width)).unbind(1)):
        positions = torch.take(successors, rows[:, None] + positions, out=reached[t])
    return (reached - offsets).transpose(0, 1)


def _numbered(
    transitions: Table, initial: State
) -> tuple[Int64[Tensor, "V P"], Int64[Tensor, "B N"], Int64[Tensor, " N"]]:
    """Return the index of the 1 in each column and in each first state, and the index at which each block begins.

    All vectors must be one-hot. Indices count the N S numbers of a state, over all blocks.
    """
    _, blocks, width, _ = transitions.shape
    offsets = width * torch.arange(blocks, device=transitions.device)
    return (transitions.argmax(-2) + offsets[:, None]).flatten(1), initial.argmax(-1) + offsets, offsets


def _one_hot_final_state(transitions: Table, tokens: Tokens, initial: State) -> State:
    """Return the last state if columns and first states are one-hot, by computing only the indices of the 1s."""
    _, blocks, width, _ = transitions.shape
    successors, positions, _ = _numbered(transitions, initial)
    # With few strings, starting a step takes most of its time, so composing all maps in log T rounds is faster.
    if positions.shape[0] * successors.shape[1] <= MAX_COMPOSED_POSITIONS:
        for symbols in tokens.split(STEPS_PER_COMPOSITION, 1):
            positions = _composed(successors[symbols]).gather(1, positions)
    else:
        successors = successors.flatten()
        for rows in (tokens * (blocks * width)).unbind(1):
            positions = successors.take(rows[:, None] + positions)
    return torch.zeros_like(initial).flatten(1).scatter_(1, positions, 1.0).view_as(initial)


def _composed(maps: Int64[Tensor, "B T P"]) -> Int64[Tensor, "B P"]:
    """Return the index to which all T maps take each of P indices, in log T rounds of pairwise composition."""
    while (length := maps.shape[1]) > 1:
        # Composition is associative, so neighbors may be joined first.
        pairs = maps[:, 1::2].gather(2, maps[:, : length - 1 : 2])
        maps = torch.cat([pairs, maps[:, -1:]], 1) if length % 2 else pairs
    return maps[:, 0]


def _in_chunks(transitions: Table, tokens: Tokens) -> bool:
    """Return whether running steps in chunks is faster, as it is for many steps with small matrix products."""
    _, blocks, width, _ = transitions.shape
    return tokens.shape[1] >= MIN_CHUNKED_STEPS and len(tokens) * blocks * width**3 <= MAX_CHUNKED_PRODUCTS


def _chunked(transitions: Table, tokens: Tokens, inputs: States, initial: State) -> States:
    """Return all states, by running chunks of equal length in parallel; extra steps fill the last chunk."""
    batch_size, length = tokens.shape
    size = round(math.sqrt(length / 2))
    missing = -length % size
    symbols = torch.nn.functional.pad(tokens, (0, missing)).unflatten(1, (-1, size))
    inputs = torch.nn.functional.pad(inputs, (0, 0, 0, 0, 0, missing)).unflatten(1, (-1, size))
    # A generator builds the matrices of one step of all chunks at a time, so T N S^2 numbers never exist at once.
    starts = chunk_starts((transitions[u] for u in symbols.unbind(2)), inputs, initial)
    state = torch.stack(starts[:-1], 1).flatten(0, 1)
    states, step = torch.empty_like(inputs), SymbolStep(transitions, None, len(state))
    for i in range(size):
        state = step(state, symbols[:, :, i].flatten()) + inputs[:, :, i].flatten(0, 1)
        states[:, :, i] = state.unflatten(0, (batch_size, -1))
    return states.flatten(1, 2)[:, :length]


class SymbolStep:
    """A step of all strings: x becomes A[u] x + v[u] for the symbol u of each string."""

    def __init__(self, transitions: Table, values: Values | None, batch_size: int) -> None:
        check_tensors(transitions=transitions)
        check_optional_tensors(values=values)
        check_axes("transitions", transitions, "V, N, S, S")
        check_kind("batch_size", batch_size, Integral, "a whole number")
        count, blocks, width, _ = transitions.shape
        if values is not None:
            check_shape("values", values, (count, blocks, width), "give one vector for each matrix of transitions")
        self.transitions, self.values = transitions, values
        self.gathers = count >= MIN_GATHERED_SYMBOLS
        if not self.gathers:
            # In block n, column (u, i) is row i of A[u]. So row vectors times this matrix are the images under all
            # symbols.
            self.wide = transitions.permute(1, 3, 0, 2).reshape(blocks, width, count * width)
            offset = transitions.new_zeros(count, blocks, width) if values is None else values
            self.offset = offset.transpose(0, 1).reshape(blocks, 1, count * width)
            first, second = (torch.arange(number, device=transitions.device) for number in (blocks, batch_size))
            # The first row of each string and block, among the [N, B, V] rows of images.
            self.first_rows = (first * batch_size + second[:, None]) * count

    def __call__(self, state: State, symbols: Int64[Tensor, " B"]) -> State:
        if self.gathers:
            moved = applied(self.transitions.index_select(0, symbols), state)
            return moved if self.values is None else moved + self.values.index_select(0, symbols)
        images = torch.baddbmm(self.offset, state.transpose(0, 1), self.wide)
        picked = (self.first_rows + symbols[:, None]).flatten()
        return images.view(-1, state.shape[-1]).index_select(0, picked).view(state.shape)


class _SymbolRecurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, transitions: Table, values: Values, tokens: Tokens, initial: State) -> Tensor:
        if _in_chunks(transitions, tokens):
            states = _chunked(transitions, tokens, values[tokens], initial).transpose(0, 1)
        else:
            states = initial.new_empty(tokens.shape[1], *initial.shape)
            step, state = SymbolStep(transitions, values, len(tokens)), initial
            for t, symbols in enumerate(tokens.unbind(1)):
                state = states[t] = step(state, symbols)
        ctx.save_for_backward(transitions, tokens, initial, states)
        return states.transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        transitions, tokens, initial, states = ctx.saved_tensors  # type: ignore[attr-defined]
        if _in_chunks(transitions, tokens):
            # One more step backwards, with input 0, gives the gradient for the first state.
            symbols, nothing = tokens.flip(1), torch.zeros_like(gradient[:, :1])
            inputs = torch.cat([gradient[:, :-1].flip(1), nothing], 1)
            earlier = _chunked(transitions.mT, symbols, inputs, gradient[:, -1])
            adjoints = torch.cat([earlier[:, :-1].flip(1), gradient[:, -1:]], 1).transpose(0, 1)
            adjoint = earlier[:, -1]
        else:
            adjoints, adjoint = torch.empty_like(states), torch.zeros_like(initial)
            step = SymbolStep(transitions.mT, None, len(tokens))
            for t in reversed(range(len(states))):
                adjoint = adjoints[t] = adjoint + gradient[:, t]
                adjoint = step(adjoint, tokens[:, t])
        by_table, by_values = sums_by_symbol(adjoints, torch.cat([initial[None], states[:-1]]), tokens, transitions)
        return by_table, by_values, None, adjoint


def sums_by_symbol(
    adjoints: Float[Tensor, "T B N S"], before: Float[Tensor, "T B N S"], tokens: Tokens, transitions: Table
) -> tuple[Table, Values]:
    """Return the sums of l_t x_{t-1}^T and l_t over each symbol's positions, for states x and their gradients l."""
    # With positions sorted by symbol, each sum is one product of matrices, not an outer product for each position.
    order = tokens.T.flatten().argsort()
    counts = tokens.flatten().bincount(minlength=len(transitions)).tolist()
    rows = [tensor.flatten(0, 1)[order].split(counts) for tensor in (adjoints, before)]
    by_table = [torch.bmm(weights.permute(1, 2, 0), x.transpose(0, 1)) for weights, x in zip(*rows, strict=True)]
    return torch.stack(by_table), torch.stack([weights.sum(0) for weights in rows[0]])


def check_symbols(tokens: Tokens, num_symbols: int, name: str = "tokens") -> None:
    """Raise a ValueError unless there is at least one position, and every token is a symbol.

    On a GPU, a token that is not a symbol stops the program later instead (`on_device_assert`).
    """
    check_tensors(**{name: tokens})
    check_strings(name, tokens)
    if tokens.device.type not in SYNCHRONOUS_DEVICES:
        on_device_assert(
            (tokens >= 0) & (tokens < num_symbols),
            f"{name}: expected symbol ids in 0..{num_symbols - 1}, got others; check {name}",
        )
    elif got := values_outside(tokens, 0, num_symbols - 1):
        raise ValueError(
            f"{name}: expected symbol ids in 0..{num_symbols - 1}, got ids in {got}; number the symbols from 0"
        )


def _check(transitions: Table, values: Values, tokens: Tokens, initial: State) -> None:
    check_tensors(transitions=transitions, values=values, tokens=tokens, initial=initial)
    _check_table(transitions, tokens, initial)
    check_shape("values", values, transitions.shape[:3], "give one vector for each matrix of transitions")
    check_one_dtype(transitions=transitions, values=values, initial=initial)


def _check_table(transitions: Table, tokens: Tokens, initial: State) -> None:
    check_axes("transitions", transitions, "V, N, S, S")
    check_symbols(tokens, len(transitions))
    states_shape = (len(tokens), *transitions.shape[1:3])
    check_shape("initial", initial, states_shape, "give one state for each string of tokens")
    if transitions.shape[2] != transitions.shape[3]:
        raise ValueError(
            f"transitions: expected square matrices, got shape {list(transitions.shape)}; make the last two sizes equal"
        )
