"""Linear recurrent networks with diagonal transitions that are constant or depend on the input."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Literal

from lengthwise.layers.linear_recurrence import InputDependentLayer, LRULayer
from lengthwise.layers.recurrent_layer import Gated, RecurrentLayer
from lengthwise.models.base import MODELS, Width
from lengthwise.models.stacked_rnn import StackedConfig, StackedRNN


class DiagonalLinearRNNConfig(StackedConfig):
    """The settings of a `DiagonalLinearRNN`: width D, layers, and `"constant"` or `"input-dependent"` transitions.

    Constant transitions are `d_state` complex numbers. Input-dependent transitions are D real numbers, which a net of
    `hidden` hidden units computes.
    """

    used_with = MappingProxyType(
        {"d_state": ("transitions", ("constant",)), "hidden": ("transitions", ("input-dependent",))}
    )

    transitions: Literal["constant", "input-dependent"] = "constant"
    d_state: Width = 64
    hidden: Width = 512


@MODELS.register("diagonal-linear-rnn")
class DiagonalLinearRNN(StackedRNN):
    """x_t = a x_{t-1} + B u_t with diagonal transitions a, constant or computed from the input.

    Here x_t is the state, u_t is the input of the layer, and B is a learned matrix.

    With constant transitions, the model is the linear recurrent unit (`LRULayer` with a gate). Otherwise its layers are
    `InputDependentLayer`.

    Source: Orvieto et al., "Resurrecting recurrent neural networks for long sequences" (ICML 2023), and Fan et al.
        (2024), eq. (3).
    Differs from the source: see the layers; embedding and read-out are as in `StackedRNN`.
    """

    Config = DiagonalLinearRNNConfig
    config: DiagonalLinearRNNConfig

    def make_layers(self) -> Sequence[RecurrentLayer]:
        config = self.config
        if config.transitions == "constant":
            return [Gated(LRULayer(d_model=config.d_model, d_state=config.d_state), d_model=config.d_model)]
        return [InputDependentLayer(d_model=config.d_model, hidden=config.hidden)]
