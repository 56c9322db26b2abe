r"""Scaling the columns of transition matrices, so that products of these matrices stay bounded.

Matrices have shape [*, S, S], and column j is ``matrix[..., :, j]``. So x_t = A x_{t-1} is a weighted sum of columns.

Source: Fan et al. (2024), Advancing Regular Language Reasoning in Linear Recurrent Neural Networks, eq. (6)-(7).
"""

import math
from numbers import Real

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthwise.devices import in_full_precision
from lengthwise.ops.shapes import check_real, check_tensors


def _check_square(matrices: Tensor) -> None:
    """Raise a ValueError unless the last two axes have the same size, and the numbers are real or complex."""
    check_tensors(matrices=matrices)
    if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2] or not matrices.shape[-1]:
        got = list(matrices.shape)
        raise ValueError(f"matrices: expected square matrices [..., S, S], got shape {got}; give two equal last axes")
    if not (matrices.is_floating_point() or matrices.is_complex()):
        raise ValueError(f"matrices: expected real numbers, got {matrices.dtype}; convert them with Tensor.float")


def clamped_columns(matrices: Float[Tensor, "*N S S"], p: float = 1.2) -> Float[Tensor, "*N S S"]:
    """Divide every column v by max(1, |v|_p), so that norms above 1 become 1.

    For p = 1, the columns of a product of such matrices also have norms of at most 1 (eq. 7). For p > 1, a product of
    S x S matrices may grow by a factor of up to S^(1 - 1/p) at each step.

    Raises:
        ValueError: p is below 1, where it does not define a norm, or is not finite.

    Example:
        >>> clamped_columns(torch.tensor([[0.5, 3.0], [0.0, 4.0]]), p=2.0).tolist()
        [[0.5, 0.6000000238418579], [0.0, 0.800000011920929]]

    Source: Fan et al. (2024), eq. (6) in the paper's text.
    Differs from the source: no difference.
    """
    _check_square(matrices)
    norms = torch.linalg.vector_norm(matrices, checked_power(p), dim=-2, keepdim=True)
    clamped: Tensor = matrices / norms.clamp(min=1.0)
    return clamped


def unit_columns(matrices: Float[Tensor, "*N S S"], p: float = 1.2) -> Float[Tensor, "*N S S"]:
    """Divide every column v by |v|_p, so that all norms are 1.

    If p = 1, the sum of the absolute values of x never grows in x_t = A x_{t-1}. For p > 1, the sum may grow, as with
    `clamped_columns`.

    Raises:
        ValueError: p is below 1, where it does not define a norm, or is not finite.

    Example:
        >>> unit_columns(torch.tensor([[0.5, 3.0], [0.0, 4.0]]), p=2.0).tolist()
        [[1.0, 0.6000000238418579], [0.0, 0.800000011920929]]

    Source: Terzić et al., "On the expressiveness and length generalization of selective state-space models on regular
        languages" (AAAI 2025), SD-SSM.
    Differs from the source: a column of zeros stays zero, whereas it becomes NaN in the source.
    """
    _check_square(matrices)
    norms = torch.linalg.vector_norm(matrices, checked_power(p), dim=-2, keepdim=True)
    # The smallest divisor is the smallest normal number. Adding an epsilon would make all norms less than 1.
    scaled: Tensor = matrices / norms.clamp(min=torch.finfo(matrices.dtype).tiny)
    return scaled


def rescaled_blocks_by_definition(matrices: Float[Tensor, "*N S S"], p: float = 1.2) -> Float[Tensor, "*N S S"]:
    """Subtract each column's mean, then divide the matrix by its largest column p-norm, even if this norm is below 1.

    Every column sums to 0, so an S x S matrix has rank S - 1 at most. If the means are subtracted from a permutation
    matrix, its columns have the p-norm ((1 - 1/S)^p + (S - 1) / S^p)^(1/p). For S = 8 and p = 1.2, this norm is 1.347.
    Division by this norm shrinks the numbers of a state to 0.743 of their size at every step. After 295 steps, they are
    below float32's normal numbers, and after about 350 steps, they are 0.

    Raises:
        ValueError: p is below 1, where it does not define a norm, or is not finite.

    Example:
        >>> rescaled_blocks_by_definition(torch.tensor([[2.0, 0.0], [0.0, 6.0]]), p=1.0).tolist()
        [[0.1666666716337204, -0.5], [-0.1666666716337204, 0.5]]

    Source: the code published with Fan et al. (2024).
    Differs from the source: a matrix of zeros stays zero; if several columns are largest, only the first has the
        gradient of the norm.
    """
    _check_square(matrices)
    centered = matrices - matrices.mean(-2, keepdim=True)
    norms = torch.linalg.vector_norm(centered, checked_power(p), dim=-2, keepdim=True).max(-1, keepdim=True).values
    rescaled: Tensor = centered / norms.clamp(min=torch.finfo(matrices.dtype).tiny)
    return rescaled


@in_full_precision
def rescaled_blocks(matrices: Float[Tensor, "*N S S"], p: float = 1.2) -> Float[Tensor, "*N S S"]:
    """Return the matrices of `rescaled_blocks_by_definition`, several times as fast (`benchmarks/column_norm.py`).

    Only the column with the largest norm has a gradient through the norm: sign(r) |r|^(p - 1) for the rescaled column
    r. So the gradient needs powers of this column only. Second derivatives are not implemented. An exported graph
    contains the definition.

    Example:
        >>> rescaled_blocks(torch.tensor([[2.0, 0.0], [0.0, 6.0]]), p=1.0).tolist()
        [[0.1666666716337204, -0.5], [-0.1666666716337204, 0.5]]
    """
    if torch.compiler.is_exporting():
        return rescaled_blocks_by_definition(matrices, p)
    _check_square(matrices)
    rescaled: Tensor = _RescaledBlocks.apply(matrices, checked_power(p))  # type: ignore[no-untyped-call]
    return rescaled


class _RescaledBlocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, matrices: Tensor, p: float) -> Tensor:
        centered = matrices - matrices.mean(-2, keepdim=True)
        norms, largest = centered.abs().pow_(p).sum(-2, keepdim=True).pow_(1 / p).max(-1, keepdim=True)
        least = torch.finfo(matrices.dtype).tiny
        rescaled = centered.div_(norms.clamp(min=least))
        ctx.save_for_backward(rescaled, norms, largest)
        ctx.p, ctx.least = p, least  # type: ignore[attr-defined]
        return rescaled

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        rescaled, norms, largest = ctx.saved_tensors  # type: ignore[attr-defined]
        p, least = ctx.p, ctx.least  # type: ignore[attr-defined]
        by_centered = gradient / norms.clamp(min=least)
        # The norm is a maximum over columns, so its gradient reaches only the largest column. If the norm is below
        # `least`, the divisor is constant, and no gradient passes through it.
        by_norm = -(by_centered * rescaled).sum((-2, -1), keepdim=True) * (norms >= least)
        largest = largest.expand(*rescaled.shape[:-1], 1)
        column = rescaled.gather(-1, largest)
        by_centered.scatter_add_(-1, largest, by_norm * column.sgn() * column.abs().pow_(p - 1))
        return by_centered.sub_(by_centered.mean(-2, keepdim=True)), None


def stochastic_columns(logits: Float[Tensor, "*N S M"], temperature: float = 1.0) -> Float[Tensor, "*N S M"]:
    """Make every column a distribution: softmax(column / temperature).

    The columns of a product of such matrices are also distributions, so states neither grow nor vanish over any number
    of steps. As the temperature goes to 0, columns become one-hot vectors, and the matrices become the maps of a finite
    machine. At temperature 0, each column is the one-hot vector of its largest logit, without a gradient.

    Raises:
        ValueError: the temperature is negative or NaN, or logits are not real numbers.

    Example:
        >>> stochastic_columns(torch.tensor([[2.0, 0.0], [1.0, 5.0]]), temperature=0.01).round().tolist()
        [[1.0, 0.0], [0.0, 1.0]]

    Source: ours.
    Differs from Fan et al. (2024), eq. (6): each column's 1-norm is exactly 1, and entries are not negative.
    """
    _check_temperature(temperature)
    check_tensors(logits=logits)
    check_real("logits", logits)
    if logits.ndim < 2 or not logits.shape[-2]:
        got = list(logits.shape)
        raise ValueError(f"logits: expected shape [..., S, M] with S of at least 1, got {got}; give matrices")
    # Division by 0 would give infinite or undefined logits.
    if temperature == 0:
        return torch.zeros_like(logits).scatter_(-2, logits.argmax(-2, keepdim=True), 1.0)
    return torch.softmax(logits / temperature, dim=-2)


def hard_columns(logits: Float[Tensor, "*N S M"], dim: int = -2) -> Float[Tensor, "*N S M"]:
    """Return the exact one-hot vector of each column's largest logit, with the gradient of the column's softmax.

    With ``dim=-1``, this is done for rows instead of columns.

    Example:
        >>> hard_columns(torch.tensor([[2.0, 0.0], [1.0, 5.0]])).tolist()
        [[1.0, 0.0], [0.0, 1.0]]

    Source: Bengio et al., "Estimating or propagating gradients through stochastic neurons" (2013), the straight-through
        estimator.
    Differs from the source: the gradient is the gradient of a softmax.
    """
    check_tensors(logits=logits)
    if logits.ndim < 2 or dim not in (-2, -1) or not logits.shape[dim]:
        raise ValueError(
            f"dim: expected -2 for columns or -1 for rows of matrices [..., S, M], got {dim} for shape "
            f"{list(logits.shape)}; choose -2 or -1, and give two axes that are not empty"
        )
    check_real("logits", logits)
    soft = torch.softmax(logits, dim)
    one_hot = torch.zeros_like(logits).scatter_(dim, logits.argmax(dim, keepdim=True), 1.0)
    # The difference is exactly 0, so the sum is exactly one-hot; (one_hot + soft) - soft would be rounded.
    return one_hot + (soft - soft.detach())


@in_full_precision
def reflections(numbers: Float[Tensor, "*N K"], temperature: float = 1.0) -> Float[Tensor, "*N S S"]:
    """Return the matrix I - b k k^T for each vector of K numbers, which give k and b.

    k is the unit vector along the first K - 1 numbers, and b = 2 sigmoid(z / temperature) for the last number z. Such a
    matrix never makes a vector longer. As the temperature goes to 0, b goes to 0 or 2. The matrix then becomes the
    identity or the reflection at the plane orthogonal to k, and preserves all distances. At temperature 0, the matrix
    is exactly one of these two, and the last number has no gradient.

    Raises:
        ValueError: the temperature is negative or NaN.

    Example:
        >>> reflections(torch.tensor([3.0, 4.0, 1.0]), temperature=0.0)
        tensor([[ 0.2800, -0.9600],
                [-0.9600, -0.2800]])

    Source: Grazzi et al., "Unlocking state-tracking in linear RNNs through negative eigenvalues" (ICLR 2025), eq. (4),
        DeltaNet's transitions with eigenvalues in [-1, 1].
    Differs from the source: the temperature is ours.
    """
    _check_temperature(temperature)
    check_tensors(numbers=numbers)
    check_real("numbers", numbers)
    if not numbers.ndim or numbers.shape[-1] < 2:
        got = list(numbers.shape)
        raise ValueError(f"numbers: expected shape [..., K] with K of at least 2, got {got}; give a vector k, then b")
    direction, gate = numbers[..., :-1], numbers[..., -1]
    factor = 2 * torch.sigmoid(gate / temperature) if temperature else 2.0 * (gate > 0)
    unit = torch.nn.functional.normalize(direction, dim=-1)
    identity = torch.eye(unit.shape[-1], dtype=unit.dtype, device=unit.device)
    reflected: Tensor = identity - (factor[..., None] * unit)[..., None] * unit[..., None, :]
    return reflected


def _check_temperature(temperature: float) -> None:
    if not isinstance(temperature, Real | Tensor) or not temperature >= 0:
        raise ValueError(
            f"temperature: expected at least 0, got {temperature!r}; use 0 for the limit of low temperatures"
        )


def checked_power(p: float) -> float:
    """Return p; raise a ValueError unless p defines a norm."""
    if not isinstance(p, Real) or not 1 <= p < math.inf:
        raise ValueError(
            f"p: expected a finite number of at least 1, got {p}; choose p >= 1, so that it defines a norm"
        )
    return p
