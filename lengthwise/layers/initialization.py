"""Drawing initial parameters."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

TRUNCATED = 0.8796256610342398
"""The standard deviation of a standard normal distribution after truncation at two of its standard deviations."""


def draw_truncated(linear: nn.Linear, std: float, generator: torch.Generator) -> None:
    """Draw weights from a normal distribution truncated at two standard deviations; biases become 0.

    `std` is the standard deviation before truncation.
    """
    nn.init.trunc_normal_(linear.weight, std=std, a=-2 * std, b=2 * std, generator=generator)
    nn.init.zeros_(linear.bias)


def draw_linears(module: nn.Module, generator: torch.Generator) -> None:
    """Draw all weights and biases uniformly within 1 / sqrt(n) of 0, as torch does; n is a map's number of inputs."""
    for linear in module.modules():
        if isinstance(linear, nn.Linear):
            draw_uniformly(linear.parameters(), linear.in_features, generator)


def draw_uniformly(parameters: Iterable[Tensor], width: int, generator: torch.Generator) -> None:
    """Draw parameters of maps with `width` inputs uniformly from -1 / sqrt(width) to 1 / sqrt(width)."""
    for parameter in parameters:
        nn.init.uniform_(parameter, -(width**-0.5), width**-0.5, generator=generator)


@torch.no_grad()
def draw_steps(bias: Tensor, generator: torch.Generator) -> None:
    """Draw biases of time steps so that the steps, softplus(bias), are log-uniform from 0.001 to 0.1.

    Source: the code of Gu and Dao, "Mamba: linear-time sequence modeling with selective state spaces" (2023).
    """
    steps = bias.uniform_(math.log(1e-3), math.log(1e-1), generator=generator).exp()
    bias.copy_(steps + (-torch.expm1(-steps)).log())  # the inverse of softplus
