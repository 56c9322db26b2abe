"""A convolution over the last few inputs, with a kernel for each channel."""

from numbers import Integral

import torch
import torch.nn.functional as F
from torch import nn

from lengthwise.layers.initialization import draw_uniformly
from lengthwise.layers.recurrent_layer import Features, RecurrentLayer, State
from lengthwise.validation import check_sizes, truncate


class ShortConvolution(RecurrentLayer):
    """A causal, depthwise convolution y_t = sum_{i<width} w_i * u_{t-i}; inputs before the first are 0.

    The state is the last `width - 1` inputs, [width - 1, channels], oldest first. For kernels as long as the string,
    `ops.causal_convolution` is faster.

    Source: the convolution of width 4 before the recurrence of Gu and Dao, "Mamba" (2023).
    Differs from the source: it has no bias and no nonlinearity. Layers may add both.
    """

    def __init__(self, *, channels: int, width: int) -> None:
        super().__init__()
        check_sizes(channels=channels, width=width)
        self.d_model = channels
        self.channels, self.width = channels, width
        self.state_size = (width - 1) * channels
        self.weight = nn.Parameter(torch.empty(channels, width))
        """The kernel of each channel. The first column multiplies the oldest input, and the last column the current
        input."""

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw kernels uniformly within 1 / sqrt(width) of 0."""
        draw_uniformly([self.weight], self.width, generator)

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        earlier = state.unflatten(1, (self.width - 1, self.channels))
        inputs = torch.cat([earlier, features], 1)
        outputs = F.conv1d(inputs.mT, self.weight[:, None], groups=self.channels).mT
        return outputs, inputs[:, features.shape[1] :].flatten(1)


def convolution_of(channels: int, conv: object) -> ShortConvolution | None:
    """Return a convolution of width `conv` for a layer, or None if `conv` is 0."""
    if not isinstance(conv, Integral) or isinstance(conv, bool) or conv < 0:
        got = truncate(repr(conv))
        raise ValueError(f"conv: expected a whole number of at least 0, got {got}; give 0 for no convolution")
    return ShortConvolution(channels=channels, width=int(conv)) if conv else None
