"""The Baum-Welch algorithm as an optimizer of log probabilities, which takes one step for each batch."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lengthwise.models.capabilities import Distributions


class BaumWelch(torch.optim.Optimizer):
    """Steps of expectation maximization: each distribution moves to the normalized expected counts of its outcomes.

    q = (1 - f) (n + w p) / sum(n + w p) + f / K,   then   p <- p (q / p)^r / sum(p (q / p)^r)

    for a distribution p over K outcomes, where n are the expected counts of a batch of strings. The weight w is the
    `prior`. Because of w, a distribution hardly changes if a batch hardly uses it. With `prior_by_size`, a parameter of
    R distributions has the smaller weight w = prior * min(1, prior * R). If R is small, a batch shows each distribution
    often. The whole prior would then only slow down the learning of what the batch shows least, such as the deep levels
    of a stack. The `floor` f keeps every probability above 0; a probability of 0 would stay 0, whatever later strings
    show. A plain step has r = 1 and moves to q. A step with a larger `relaxation` r moves further in the same
    direction. Training then needs fewer steps to learn what a batch shows only weakly.

    Parameters are z = log p, and the loss is the mean of -log p(answer), computed from p = exp(z). The gradient of the
    loss with respect to z is then -n, up to one factor for all counts. The first step starts from the normalized
    exp(z).

    Unlike a gradient step, this step needs no learning rate. If the answers reveal the state, as the elements of a
    group do, one step finds nearly the whole transition table.

    Source: Baum, Petrie, Soules and Weiss (1970); Salakhutdinov and Roweis, "Adaptive overrelaxed bound optimization
        methods" (ICML 2003), for the relaxation.
    Differs from the source: each step sees other strings, the relaxation is constant, and probabilities have a floor.
    """

    def __init__(
        self,
        distributions: Sequence[Distributions],
        *,
        relaxation: float,
        floor: float,
        prior: float,
        prior_by_size: bool = False,
    ) -> None:
        groups = [
            {
                "params": [d.logits],
                "shape": d.shape,
                "dim": d.dim,
                "prior": prior * (min(1.0, prior * d.logits.numel() / d.shape[d.dim]) if prior_by_size else 1.0),
            }
            for d in distributions
        ]
        # Training sets the learning rate of every optimizer; this optimizer ignores it.
        super().__init__(groups, {"lr": 1.0, "relaxation": relaxation, "floor": floor})
        with torch.no_grad():
            for d in distributions:
                d.logits.copy_(d.logits.view(d.shape).log_softmax(d.dim).view_as(d.logits))

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move all distributions as in the equations of `BaumWelch`; the gradients give the expected counts."""
        for group in self.param_groups:
            for logits in group["params"]:
                if logits.grad is not None:
                    self._move(logits, group)

    def _move(self, logits: Tensor, group: dict[str, Any]) -> None:
        shape, dim = group["shape"], group["dim"]
        floor = group["floor"]
        assert logits.grad is not None
        # Counts are at least 0, but rounding can make a count of 0 slightly negative.
        weights = ((-logits.grad).clamp(min=0) + group["prior"] * logits.exp()).view(shape)
        target = (1 - floor) * weights / weights.sum(dim, keepdim=True) + floor / shape[dim]
        # Without the bound, a step beyond the target would take small probabilities to 0, where they would stay.
        moved = (
            (logits.view(shape).lerp(target.log(), group["relaxation"]))
            .log_softmax(dim)
            .clamp(min=math.log(floor / shape[dim]))
        )
        logits.copy_(moved.log_softmax(dim).view_as(logits))
