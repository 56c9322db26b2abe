r"""The delta rule with a decay and n >= 1 sub-steps for each symbol: the loop of the definition, and a form in chunks.

For each string and head, the state S is a matrix [K, M]. At symbol t, S is multiplied by the decay a_t, and n sub-steps
follow. A sub-step has a key k of Euclidean norm 1, a value v and a strength b. For this key, S stores the value S^T k,
and the sub-step moves this value towards v. After the sub-steps, the query q_t reads the output o_t from S.

S <- a_t S,   then for j = 1..n:   S <- S - b k (S^T k - v)^T = (I - b k k^T) S + b k v^T,   then   o_t = S^T q_t.

`delta_rule_by_definition` is this loop. `delta_rule` cuts a string into chunks of whole symbols. The rows of K and V
are the keys and values of a chunk's sub-steps. The rows of q are the queries of the chunk's symbols, and the rows of o
are the outputs. B is the diagonal matrix of strengths. Let G_ij be the product of the decays after sub-step j up to
sub-step i >= j. For each row, c is the product of the chunk's decays up to this row, and d is the product of all later
decays. Then

(I + strictly_lower(B K K^T * G)) [U W] = B [V  c K],
S <- (c_last I - (d K)^T W) S + (d K)^T U,   o = c q S + (lower(q K^T) * G) (U - W S).

Here S is the state before the chunk. In the equation of o, G has one row for each symbol, the row of its last sub-step.
Only the equation of S runs chunk by chunk. Up to rounding, both functions return the same results, with gradients for
all arguments.

Source: Yang et al., "Parallelizing linear transformers with the delta rule over sequence length" (NeurIPS 2024), for
the chunks; Yang, Kautz and Hatamizadeh, "Gated delta networks" (ICLR 2025), for the decay; Siems et al., "DeltaProduct"
(2025), for the products.
Differs from the source: the map of a chunk is one matrix, so computing the state after each chunk takes only one
product.
"""

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.devices import in_full_precision
from lengthwise.ops.parts import through_parts
from lengthwise.ops.shapes import check_shapes
from lengthwise.validation import check_sizes

CHUNK_STEPS = 16
"""The number of sub-steps in a chunk. With larger chunks, there is more work within chunks, and there are fewer steps
in sequence."""

Queries = Float[Tensor, "B T H K"]
Keys = Float[Tensor, "B T J H K"]
Values = Float[Tensor, "B T J H M"]
Numbers = Float[Tensor, "B T J H"]
Decays = Float[Tensor, "B T H"] | None
Matrices = Float[Tensor, "B H K M"]
Results = tuple[Float[Tensor, "B T H M"], Matrices]


@check_shapes
def delta_rule_by_definition(
    queries: Queries, keys: Keys, values: Values, strengths: Numbers, log_decays: Decays, initial: Matrices
) -> Results:
    """Run the sub-steps of the delta rule one after another; return the outputs of all queries and the last state.

    Example:
        >>> key, flips = torch.ones(1, 3, 1, 1, 1), torch.tensor([2.0, 0.0, 2.0]).view(1, 3, 1, 1)
        >>> read, _ = delta_rule_by_definition(key[:, :, 0], key, 0 * key, flips, None, torch.ones(1, 1, 1, 1))
        >>> read.flatten().tolist()
        [-1.0, -1.0, 1.0]
    """
    state, outputs = initial, []
    for t in range(queries.shape[1]):
        if log_decays is not None:
            state = log_decays[:, t, :, None, None].exp() * state
        for j in range(keys.shape[2]):
            key, value = keys[:, t, j, :, :, None], values[:, t, j, :, None]
            held = (key * state).sum(-2, keepdim=True)  # several times as fast as many products of small matrices
            state = torch.addcmul(state, key, strengths[:, t, j, :, None, None] * (value - held))
        outputs.append((queries[:, t, :, :, None] * state).sum(-2))
    return torch.stack(outputs, 1), state


@check_shapes
@in_full_precision
def delta_rule(
    queries: Queries,
    keys: Keys,
    values: Values,
    strengths: Numbers,
    log_decays: Decays,
    initial: Matrices,
    *,
    chunk_steps: int = CHUNK_STEPS,
) -> Results:
    """Run the delta rule by chunks; return the outputs of all queries [B, T, H, M] and the last state [B, H, K, M].

    For B strings of T symbols, H heads and n sub-steps, keys are [B, T, n, H, K], values [B, T, n, H, M], and strengths
    [B, T, n, H]. A graph that is exported, or a string of one symbol, runs the loop of the definition.

    Raises:
        ValueError: the number of symbols or of sub-steps is 0, or shapes do not match.

    Example:
        >>> key, flips = torch.ones(1, 3, 1, 1, 1), torch.tensor([2.0, 0.0, 2.0]).view(1, 3, 1, 1)
        >>> delta_rule(key[:, :, 0], key, 0 * key, flips, None, torch.ones(1, 1, 1, 1))[0].flatten().tolist()
        [-1.0, -1.0, 1.0]
    """
    check_sizes(chunk_steps=chunk_steps)
    length, products = keys.shape[1:3]
    if not products:
        raise ValueError(
            "keys: expected at least 1 sub-step of each symbol, got 0; give at least one key for each symbol"
        )
    if length == 1 or torch.compiler.is_exporting():
        return delta_rule_by_definition(queries, keys, values, strengths, log_decays, initial)
    size = min(length, max(1, chunk_steps // products))
    given = (queries, keys, values, strengths, log_decays, initial)
    return through_parts(partial(_in_chunks_of, size), given, keys[0].numel())


def _in_chunks_of(
    size: int, queries: Queries, keys: Keys, values: Values, strengths: Numbers, log_decays: Decays, initial: Matrices
) -> Results:
    """Compute `delta_rule` by chunks of `size` symbols."""
    length, products = keys.shape[1:3]
    q = _in_chunks(queries, size)
    k, v, b = (_in_chunks(tensor, size).flatten(3, 4) for tensor in _heads_last(keys, values, strengths[..., None]))
    decays = None if log_decays is None else _Decays(_in_chunks(log_decays[..., None], size)[..., 0], products)
    symbol = torch.arange(size, device=k.device)
    step = symbol.repeat_interleave(products)
    overlaps = b * (k @ k.mT)
    reads = (q @ k.mT).masked_fill(step > symbol[:, None], 0.0)
    from_start = k
    to_end = k
    last = torch.ones_like(b[..., :1, :])
    if decays is not None:
        overlaps, reads = overlaps * decays.between_steps, reads * decays.to_symbols
        from_start = decays.step * k
        to_end = decays.to_end * k
        last = decays.last
        q = decays.symbol * q
    # Solving with this triangular matrix applies the sub-steps of a chunk in order, without a loop. The solver reads
    # only the entries below the diagonal, and assumes ones on the diagonal.
    driven = torch.linalg.solve_triangular(
        overlaps, b * torch.cat([v, from_start], -1), upper=False, unitriangular=True
    )
    u, w = driven.split([v.shape[-1], k.shape[-1]], -1)
    identity = torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
    starts, final = _states(last * identity - to_end.mT @ w, to_end.mT @ u, initial)
    outputs = q @ starts + reads @ (u - w @ starts)
    return outputs.permute(0, 2, 3, 1, 4).flatten(1, 2)[:, :length], final


class _Decays:
    """Products of decays within chunks, computed from the logarithms of the decays; no exponent is above 0.

    A product of decays is the exponential of a difference of two sums. Very negative logarithms are replaced by a
    logarithm whose exponential is about 0. Otherwise sums would lose the digits of the other logarithms, and
    -inf - (-inf) would be NaN.
    """

    def __init__(self, logarithms: Float[Tensor, "B H N C"], products: int) -> None:
        numbers = torch.finfo(logarithms.dtype)
        symbols = logarithms.clamp(min=math.log(numbers.tiny * numbers.eps)).cumsum(-1)
        steps = symbols.repeat_interleave(products, -1)
        later = torch.ones(steps.shape[-1], steps.shape[-1], dtype=torch.bool, device=steps.device).triu(1)
        between = (steps[..., :, None] - steps[..., None, :]).masked_fill(later, 0.0)
        self.between_steps = between.exp()
        self.to_symbols = self.between_steps[..., products - 1 :: products, :]
        self.symbol, self.step = symbols[..., None].exp(), steps[..., None].exp()
        self.last = self.symbol[..., -1:, :]
        self.to_end = (steps[..., -1:] - steps)[..., None].exp()


def _heads_last(*tensors: Tensor) -> list[Tensor]:
    """Turn [B, T, J, H, X] into [B, T, H, J, X], so that in chunks, axis J of sub-steps follows the axis of symbols."""
    return [tensor.transpose(2, 3) for tensor in tensors]


def _in_chunks(tensor: Tensor, size: int) -> Tensor:
    """Cut [B, T, H, *X] into N chunks [B, H, N, C, *X]; the last chunk is filled with zeros, which change no state."""
    missing = -tensor.shape[1] % size
    if missing:
        tensor = torch.cat([tensor, tensor.new_zeros(len(tensor), missing, *tensor.shape[2:])], 1)
    return torch.unflatten(tensor, 1, (-1, size)).movedim(3, 1)


def _states(
    maps: Float[Tensor, "B H N K K"], added: Float[Tensor, "B H N K M"], initial: Matrices
) -> tuple[Float[Tensor, "B H N K M"], Matrices]:
    """Return the state before every chunk, and the state after the last chunk."""
    state, starts = initial.flatten(0, 1), []
    # The only part that runs in sequence: one small product for each chunk.
    for a, v in zip(maps.flatten(0, 1).unbind(1), added.flatten(0, 1).unbind(1), strict=True):
        starts.append(state)
        state = torch.baddbmm(v, a, state)
    return torch.stack(starts, 1).unflatten(0, initial.shape[:2]), state.view_as(initial)
