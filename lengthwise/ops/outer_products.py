r"""Decaying sums of outer products: the recurrence of a matrix state with one decay for each head.

    S_t = a_t S_{t-1} + k_t v_t^T,     y_t = S_t^T q_t,

for every head. The a_t are real numbers, possibly 0 or negative, and their products over a chunk must be finite. Keys
and queries have N numbers, and values have P numbers. Decays are [B, T, H], values [B, T, H, P], states [B, H, N, P].
Keys and queries are [B, T, H, N], or [B, T, 1, N] if all heads share them.

The definition is a loop over positions. `outer_products` cuts the string into chunks of up to 32 positions. Within a
chunk, y_i = sum_{j <= i} (q_i . k_j) L_ij v_j with L_ij = a_{j+1} ... a_i, which is masked attention. States are passed
from chunk to chunk. The products L are multiplied out (`decay_products`), so logarithms of decays are not needed.

Source: Dao and Gu, "Transformers are SSMs" (ICML 2024), section 6, their SSD.
Differs from the source: products of decays are computed instead of sums of their logarithms, because negative decays
have no logarithms.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import pad

from lengthwise.devices import in_full_precision
from lengthwise.ops.parts import through_parts
from lengthwise.ops.shapes import check_shapes, check_tensors

MAX_CHUNK = 32
"""The largest number of positions in a chunk. With larger chunks, there is more work within chunks and less work
between chunks."""

Decays = Float[Tensor, "B T H"]
Shared = Float[Tensor, "B T G N"]
Values = Float[Tensor, "B T H P"]
State = Float[Tensor, "B H N P"]
Results = tuple[Values, State]


def decay_products_by_definition(decays: Float[Tensor, "*M C"]) -> Float[Tensor, "*M C C"]:
    """Return L_ij = a_{j+1} ... a_i for i >= j, and 0 above the diagonal.

    Example:
        >>> decay_products_by_definition(torch.tensor([2.0, 3.0, -5.0])).tolist()
        [[1.0, 0.0, 0.0], [3.0, 1.0, 0.0], [-15.0, -5.0, 1.0]]
    """
    _check_decays(decays)
    rows = [torch.zeros_like(decays)]
    for i, decay in enumerate(decays.unbind(-1)):
        onto_itself = torch.arange(decays.shape[-1], device=decays.device) == i
        rows.append(torch.where(onto_itself, 1.0, decay[..., None] * rows[-1]))
    return torch.stack(rows[1:], -2)


def decay_products(decays: Float[Tensor, "*M C"]) -> Float[Tensor, "*M C C"]:
    """Return the products of `decay_products_by_definition`, with a gradient that never divides by a decay.

    If G_ij is the gradient for L_ij = a_{j+1} ... a_i, the gradient for a_k is sum_{i >= k > j} G_ij L_ik L_{k-1,j}. A
    decay may be 0.

    Example:
        >>> decay_products(torch.tensor([2.0, 0.0, -5.0])).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-0.0, -5.0, 1.0]]
    """
    _check_decays(decays)
    products: Tensor = _DecayProducts.apply(decays)  # type: ignore[no-untyped-call]
    return products


def _check_decays(decays: Tensor) -> None:
    check_tensors(decays=decays)
    if not decays.ndim or not decays.shape[-1]:
        got = list(decays.shape)
        raise ValueError(f"decays: expected shape [..., C] with C of at least 1, got {got}; give a decay for each step")


class _DecayProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, decays: Tensor) -> Tensor:
        length = decays.shape[-1]
        below = torch.ones(length, length, dtype=torch.bool, device=decays.device).tril(-1)
        # Ones on the diagonal begin each product at 1. Quotients of longer products would fail for decays of 0.
        products = torch.where(below, decays[..., None], 1.0).cumprod(-2).tril()
        ctx.save_for_backward(products)
        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> Tensor:
        (products,) = ctx.saved_tensors  # type: ignore[attr-defined]
        # Entries above the diagonal are always 0, so their gradients do not count.
        to_earlier = gradient.tril() @ products[..., :-1, :].mT
        return pad((products[..., 1:] * to_earlier).sum(-2), (1, 0))


@check_shapes
def outer_products_by_definition(
    decays: Decays, keys: Shared, values: Values, queries: Shared, initial: State
) -> Results:
    """Return all outputs y_t and the last state S_T of the recurrence, computed one position after another.

    Here S_t = a_t S_{t-1} + k_t v_t^T and y_t = S_t^T q_t, for decays a, keys k, values v and queries q of each head.

    Example:
        >>> signs, ones = -torch.ones(1, 3, 1), torch.ones(1, 3, 1, 1)
        >>> outputs, _ = outer_products_by_definition(signs, ones, 0 * ones, ones, torch.ones(1, 1, 1, 1))
        >>> outputs.flatten().tolist()
        [-1.0, 1.0, -1.0]
    """
    state, outputs = initial, []
    for a, k, v, q in zip(*(each.unbind(1) for each in (decays, keys, values, queries)), strict=True):
        state = a[..., None, None] * state + k[..., None] * v[..., None, :]
        outputs.append((q[..., None] * state).sum(-2))
    return torch.stack(outputs, 1), state


@check_shapes
@in_full_precision
def outer_products(decays: Decays, keys: Shared, values: Values, queries: Shared, initial: State) -> Results:
    """Return the results of `outer_products_by_definition`, in chunks; an exported graph contains the definition.

    Raises:
        ValueError: T = 0, or shapes do not match.

    Example:
        >>> signs, ones = -torch.ones(1, 3, 1), torch.ones(1, 3, 1, 1)
        >>> outputs, last = outer_products(signs, ones, 0 * ones, ones, torch.ones(1, 1, 1, 1))
        >>> outputs.flatten().tolist(), last.item()
        ([-1.0, 1.0, -1.0], -1.0)
    """
    if torch.compiler.is_exporting():
        return outer_products_by_definition(decays, keys, values, queries, initial)
    if keys.shape[2] not in (1, decays.shape[2]):
        raise ValueError(
            f"keys: expected 1 head, or {decays.shape[2]} as in decays, got {keys.shape[2]}; give keys and queries "
            "for each head, or for one head that all heads share"
        )
    return through_parts(_outer_products, (decays, keys, values, queries, initial), values[0].numel())


def _outer_products(decays: Decays, keys: Shared, values: Values, queries: Shared, initial: State) -> Results:
    length = decays.shape[1]
    # Chunks have nearly equal lengths. With chunks of exactly 32 positions, the last one could be mostly padding.
    count = math.ceil(length / MAX_CHUNK)
    size = math.ceil(length / count)
    missing = count * size - length  # positions at the end that change nothing, with decays of 1 and keys of 0
    decays = pad(decays, (0, 0, 0, missing), value=1.0)
    keys, values, queries = (pad(each, (0, 0, 0, 0, 0, missing)) for each in (keys, values, queries))
    decays = decays.unflatten(1, (count, size)).transpose(2, 3)
    keys, values, queries = (each.unflatten(1, (count, size)).transpose(2, 3) for each in (keys, values, queries))
    products = decay_products(decays)
    since_start = products[..., 0] * decays[..., :1]
    within = (queries @ keys.mT * products) @ values
    added = keys.mT @ (products[..., -1, :, None] * values)
    state, starts = initial, []
    for decay, sums in zip(since_start[..., -1, None, None].unbind(1), added.unbind(1), strict=True):
        starts.append(state)
        # The only part that runs in sequence: one step for each chunk.
        state = torch.addcmul(sums, decay, state)
    outputs = within + since_start[..., None] * (queries @ torch.stack(starts, 1))
    return outputs.transpose(2, 3).flatten(1, 2)[:, :length], state
