"""The Baum-Welch algorithm as an optimizer of log probabilities, from one batch to the next."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lengthwise.models.capabilities import Distributions

PRIOR = 1e-6
"""The weight of the present distribution next to the counts, so that a state without any count keeps it."""


class BaumWelch(torch.optim.Optimizer):
    """Steps of expectation maximization: each distribution becomes the normalized expected counts of what it draws.

    N <- m N + n,  then  p <- (1 - f) (N + `PRIOR` p) / sum(N + `PRIOR` p) + f / K  for a distribution p over K things

    n are the expected counts of a batch, and earlier ones are forgotten by the factor m (`memory`). The floor f keeps
    every probability above 0. A probability of 0 would stay 0, whatever later strings show.

    Parameters are z = log p, and the loss is the mean of -log p(answer), computed from p = exp(z). The gradient of the
    loss by z is then -n, up to one factor for all counts. The first step starts from the normalized exp(z).

    Unlike a gradient step, this step needs no rate. If answers show the state, as for the elements of a group, one step
    finds nearly the whole transition table.

    Source: Baum, Petrie, Soules and Weiss (1970); Cappe and Moulines, "On-line expectation-maximization algorithm for
        latent data models" (2009), for forgetting.
    Differs from the source: counts are forgotten at a constant rate, and probabilities have a floor.
    """

    def __init__(self, distributions: Sequence[Distributions], *, memory: float, floor: float) -> None:
        groups = [{"params": [d.logits], "shape": d.shape, "dim": d.dim} for d in distributions]
        # Training sets the rate of every optimizer; here it has no meaning.
        super().__init__(groups, {"lr": 1.0, "memory": memory, "floor": floor})
        with torch.no_grad():
            for d in distributions:
                d.logits.copy_(d.logits.view(d.shape).log_softmax(d.dim).view_as(d.logits))

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Add the expected counts of the latest gradients, and set all distributions to the normalized counts."""
        for group in self.param_groups:
            for logits in group["params"]:
                if logits.grad is None:
                    continue
                state = self.state[logits]
                if "counts" not in state:
                    state["counts"] = torch.zeros_like(logits)
                # Counts are at least 0; rounding can take the gradient of a state without any count below it.
                state["counts"].mul_(group["memory"]).sub_(logits.grad).clamp_(min=0)
                expected = (state["counts"] + PRIOR * logits.exp()).view(group["shape"])
                logits.copy_(_with_floor(expected, group["dim"], group["floor"]).log().view_as(logits))


def _with_floor(weights: Tensor, dim: int, floor: float) -> Tensor:
    """Normalize weights along a dimension, with every probability at least `floor` divided by their number."""
    return (1 - floor) * weights / weights.sum(dim, keepdim=True) + floor / weights.shape[dim]
