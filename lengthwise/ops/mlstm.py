r"""The recurrence of mLSTM: a matrix memory with an exponential input gate and a normalizer.

For every head, with scalar gates i and f, keys and queries of N numbers and values of P numbers,

    C_t = sigmoid(f) C_{t-1} + e^i k v^T,   n_t = sigmoid(f) n_{t-1} + e^i k,   h_t = C_t^T q / max(|n_t . q|, 1).

The state consists of the sums [B, H, N, P + 1] and the stabilizer m [B, H]. The sums are C and, as their last column,
n, all divided by e^m. With m_t = max(log sigmoid(f) + m_{t-1}, i, 0), the factors of the old sums and of k in each step
are between 0 and 1. After the division by e^m, the 1 in the maximum of h_t becomes e^{-m}, but at least e^{-80}. Since
h does not depend on m, m has no gradient.

The definition is a loop over positions. `mlstm` computes the same outputs in chunks, by
`lengthwise.ops.outer_products`.

Source: Beck et al., "xLSTM: extended long short-term memory" (NeurIPS 2024), section 2.3 and appendix A.3.
Differs from the source: m is at least 0. The source's code adds 1e-6 to the maximum, and here nothing is added.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from lengthwise.devices import in_full_precision
from lengthwise.ops.outer_products import outer_products, outer_products_by_definition
from lengthwise.ops.shapes import check_shapes

MAX_STABILIZER = 80.0
"""The normalizer has the lower bound e^{-m} for stabilizers m up to this number, and e^{-80} for larger m. In float32,
e^{-80} is still a normal number."""

Scalars = Float[Tensor, "B T H"]
Vectors = Float[Tensor, "B T H N"]
Values = Float[Tensor, "B T H P"]
Sums = Float[Tensor, "B H N P+1"]
Stabilizer = Float[Tensor, "B H"]


@check_shapes
def mlstm_by_definition(
    i: Scalars, f: Scalars, keys: Vectors, values: Values, queries: Vectors, sums: Sums, stabilizer: Stabilizer
) -> tuple[Values, Sums, Stabilizer]:
    """Return the outputs of mLSTM at all positions, and the state after the last position, computed step by step.

    The state consists of `sums` and `stabilizer`, which `lengthwise.ops.mlstm` defines.

    Example:
        >>> ones, gates = torch.ones(1, 2, 1, 1), torch.zeros(1, 2, 1)
        >>> outputs, _, _ = mlstm_by_definition(
        ...     gates, gates, 2 * ones, 3 * ones, ones, torch.zeros(1, 1, 1, 2), torch.zeros(1, 1)
        ... )
        >>> outputs.flatten().tolist()
        [3.0, 3.0]
    """
    return _run(outer_products_by_definition, i, f, keys, values, queries, sums, stabilizer)


@check_shapes
@in_full_precision
def mlstm(
    i: Scalars, f: Scalars, keys: Vectors, values: Values, queries: Vectors, sums: Sums, stabilizer: Stabilizer
) -> tuple[Values, Sums, Stabilizer]:
    """Return the results of `mlstm_by_definition`, computed in chunks; an exported graph contains the definition.

    Raises:
        ValueError: T = 0, or shapes do not match.

    Example:
        >>> ones, gates = torch.ones(1, 2, 1, 1), torch.full((1, 2, 1), 1000.0)
        >>> outputs, _, _ = mlstm(gates, gates, 2 * ones, 3 * ones, ones, torch.zeros(1, 1, 1, 2), torch.zeros(1, 1))
        >>> outputs.flatten().tolist()
        [3.0, 3.0]
    """
    return _run(outer_products, i, f, keys, values, queries, sums, stabilizer)


@check_shapes
def stabilizers(i: Scalars, log_f: Scalars, before: Stabilizer) -> Float[Tensor, "B T+1 H"]:
    """Return the stabilizer m, for sums divided by e^m, before the first position and after every position."""
    latest, computed = before, [before]
    for enters, stays in zip(i.unbind(1), log_f.unbind(1), strict=True):
        latest = torch.maximum(stays + latest, enters).clamp(min=0)
        computed.append(latest)
    return torch.stack(computed, 1)


def _run(
    recurrence: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
    i: Tensor,
    f: Tensor,
    keys: Tensor,
    values: Tensor,
    queries: Tensor,
    sums: Tensor,
    stabilizer: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    log_f = F.logsigmoid(f)
    # Detached, since h does not depend on m.
    m = stabilizers(i.detach(), log_f.detach(), stabilizer.detach())
    # Both exponents are at most 0, since m is at least i and at least log sigmoid(f) plus the previous m.
    decays, enters = torch.exp(log_f + m[:, :-1] - m[:, 1:]), torch.exp(i - m[:, 1:])
    # A further value of 1 at each position makes the last column of the sums the normalizer n.
    counted = torch.cat([values, torch.ones_like(values[..., :1])], -1)
    read, sums = recurrence(decays, enters[..., None] * keys, counted, queries, sums)
    bound = torch.exp(-m[:, 1:].clamp(max=MAX_STABILIZER))
    return read[..., :-1] / torch.maximum(read[..., -1].abs(), bound)[..., None], sums, m[:, -1]
