"""Muon: an optimizer with momentum, whose updates have about equal singular values."""

import math
from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

MIN_NORM = 1e-3
"""If the norm of an update is below this bound, Muon shrinks the update in proportion to the norm."""


class Muon(torch.optim.Optimizer):
    """An optimizer of matrices: W <- (1 - lr decay) W - lr sqrt(max(1, rows / columns)) orthogonalized(update).

    The update is Nesterov's. With gradient g and momentum m, the running mean of gradients is b <- m b + (1 - m) g, and
    the update is u = g + m (b - g). In small nets that apply one layer many times, a few directions dominate the
    gradient. An orthogonalized update moves equally far in all directions.

    If |u| is below `MIN_NORM`, the step shrinks in proportion to |u|. Without this rule, the step would be as large for
    a gradient of 1e-7 as for a gradient of 1. A net whose loss is 0 would then follow the rounding errors of its
    gradient until it fails.

    Source: K. Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024).
    Differs from `torch.optim.Muon` for updates below `MIN_NORM`, and in the number type: `torch.optim.Muon` iterates in
    bfloat16, which takes four times as long on a CPU.
    """

    def __init__(
        self, matrices: Iterable[nn.Parameter], *, lr: float, weight_decay: float = 0.0, momentum: float = 0.95
    ) -> None:
        for argument, value in (("lr", lr), ("weight_decay", weight_decay)):
            if not 0 <= value < math.inf:
                raise ValueError(f"{argument}: expected a finite number of at least 0, got {value}; try 0.01")
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum: expected a number of at least 0 and below 1, got {momentum}; try 0.95")
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is not None:
                    self._move(matrix, group["lr"], group["weight_decay"], group["momentum"])

    def _move(self, matrix: nn.Parameter, lr: float, weight_decay: float, momentum: float) -> None:
        assert matrix.grad is not None
        state = self.state[matrix]
        if "mean" not in state:
            state["mean"] = torch.zeros_like(matrix)
        state["mean"].lerp_(matrix.grad, 1 - momentum)
        update = matrix.grad.lerp(state["mean"], momentum)
        update = orthogonalized(update) * (update.norm() / MIN_NORM).clamp(max=1.0)
        rows, columns = matrix.shape
        # An orthogonal update of a tall matrix has smaller entries, which the factor compensates.
        matrix.mul_(1 - lr * weight_decay).add_(update, alpha=-lr * max(1.0, rows / columns) ** 0.5)


def orthogonalized(matrix: Float[Tensor, "R C"]) -> Float[Tensor, "R C"]:
    """Bring all singular values of a matrix near 1 (roughly into 0.7 ... 1.2), and keep its singular vectors.

    This takes five steps of X <- a X + b (X X^T) X + c (X X^T)^2 X from X = matrix / |matrix|. The source chose the
    coefficients such that small singular values grow as fast as possible. A matrix of zeros stays zero.

    Example:
        >>> values = torch.linalg.svdvals(orthogonalized(torch.tensor([[3.0, 0.0], [0.0, 0.1]])))
        >>> bool((values > 0.6).all() and (values < 1.3).all())
        True
    """
    tall = matrix.shape[0] > matrix.shape[1]
    # The Gram matrix of the shorter side is smaller, so a tall matrix is transposed.
    x = matrix.T if tall else matrix
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    return x.T if tall else x
