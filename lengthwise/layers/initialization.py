"""How parameters are drawn where nothing better is known."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def draw_linears(module: nn.Module, generator: torch.Generator) -> None:
    """Draw weights and biases of all linear maps within, uniformly up to 1 / sqrt(inputs) in size, as torch does."""
    for linear in module.modules():
        if isinstance(linear, nn.Linear):
            draw_uniformly(linear.parameters(), linear.in_features, generator)


def draw_uniformly(parameters: Iterable[Tensor], width: int, generator: torch.Generator) -> None:
    """Draw parameters uniformly up to 1 / sqrt(width) in size."""
    for parameter in parameters:
        nn.init.uniform_(parameter, -(width**-0.5), width**-0.5, generator=generator)
