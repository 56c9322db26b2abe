"""The looped transformer: one layer, applied R times, whose gains and gates depend on the time."""

import copy
import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float, Int64
from pydantic import Field
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lengthwise.layers.positions.base import CausalAttention
from lengthwise.layers.timestep import ConstantScales, LoopScales, TimestepScales
from lengthwise.layers.transformer_layer import LayerKind, Scales, TransformerLayer
from lengthwise.models.base import MODELS
from lengthwise.models.causal_transformer import CausalTransformer, CausalTransformerConfig
from lengthwise.validation import validated

Variant = Literal["timestep", "control", "code", "code-in-context"]


class LoopedTransformerConfig(CausalTransformerConfig):
    """Sizes of a looped transformer, its number of loops R, and which layer it loops.

    `injection`: what was read is added to the state before every loop (`"input"`), or is only the first state
    (`"none"`). `activations`: kept for the gradient in all loops, or recomputed, loop by loop in segments of about
    sqrt(R), from the states between segments (`"recomputed"`): a third more time, and memory that grows as sqrt(R).
    """

    num_loops: int = Field(10, ge=1, le=10_000)
    variant: Variant = "timestep"
    injection: Literal["none", "input"] = "none"
    activations: Literal["kept", "recomputed"] = "kept"


_LAYERS: dict[Variant, LayerKind] = {
    "timestep": "scaled",
    "control": "scaled",
    "code": "rms",
    "code-in-context": "gpt2",
}

_SCALES: dict[Variant, type[LoopScales]] = {"timestep": TimestepScales, "control": ConstantScales}


@MODELS.register("looped-transformer")
class LoopedTransformer(CausalTransformer):
    """x_r = layer_r(x_{r-1}), r = 1 ... R, where the layers share all weights but those that a loop's number decides.

    Variants: `"timestep"`, gains and gates are functions of the loop (`TimestepScales`); `"control"`, the same gains
    and gates, learned, and the same in all loops, so that time is all that tells the two apart; `"code"` and
    `"code-in-context"`, the plain loops of the published code, which have another norm (with a gain of its own) and
    another activation than its timestep model. With timestep encoding or control, a loop does nothing at the start of
    training: gates are 0.

    With input injection, x_r = layer_r(norm(x_{r-1}) + z), where z is what was read and norm is the read-out's; the
    first loop sees z alone. All loops share one position encoding.

    A model may be run with other numbers of loops than it was trained with: `with_loops`.

    Source: Xu and Sato (2024), section 4.2 and Appendix C; injection: Yang et al., "Looped transformers are better at
        learning learning algorithms" (ICLR 2024).
    Differs from the source: its code adds the positions once more wherever it injects, which is z here, too; the code's
        in-context baseline is trained by truncated back-propagation through loops, which the source dropped.
    """

    Config = LoopedTransformerConfig
    config: LoopedTransformerConfig

    def __init__(
        self, config: LoopedTransformerConfig, *, generator: torch.Generator | None = None, **sizes: Any
    ) -> None:
        super().__init__(config, num_layers=1, **sizes)
        width, variant = config.d_model, config.variant
        layer = TransformerLayer(d_model=width, num_heads=config.num_heads, kind=_LAYERS[variant])
        self.layers = nn.ModuleList([layer])
        self.scales = _SCALES[variant](d_model=width) if variant in _SCALES else None
        self.reset_parameters(generator or torch.Generator())

    def reset_parameters(self, generator: torch.Generator) -> None:
        super().reset_parameters(generator)
        if self.scales is not None:
            self.scales.reset_parameters(generator)

    def with_loops(self, num_loops: int) -> "LoopedTransformer":
        """This model, its parameters shared, with another number of loops.

        Example:
            >>> config = LoopedTransformerConfig(d_model=8, num_loops=2)
            >>> model = LoopedTransformer(config, vocab_size=3, num_classes=2)
            >>> deeper = model.with_loops(50)
            >>> deeper.config.num_loops, deeper.readout is model.readout
            (50, True)
        """
        other = copy.copy(self)
        settings = self.config.model_dump() | {"num_loops": num_loops}
        other.config = validated(LoopedTransformerConfig, settings, path="model")
        return other

    @property
    def depth(self) -> int:
        return self.config.num_loops

    def states(self, read: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        *before, last = self._scales_of_loops()
        (attention,) = self._attention(read)
        state = self._looped(read, before, attention)
        (layer,) = self.layers
        states: Tensor = layer(self._loop_input(state, read), last, attention)
        return states

    def states_at(self, read: Float[Tensor, "B T D"], indices: Int64[Tensor, " B"]) -> Float[Tensor, "B D"]:
        *before, last = self._scales_of_loops()
        (attention,) = self._attention(read)
        state = self._looped(read, before, attention)
        (layer,) = self._layers()
        return layer.at(self._loop_input(state, read), indices, last, attention)

    def _scales_of_loops(self) -> Sequence[Scales | None]:
        """The gains and gates of every loop, computed once for all positions and strings."""
        if self.scales is None:
            return [None] * self.config.num_loops
        scales: Sequence[Scales] = self.scales(self.config.num_loops)
        return scales

    def _looped(
        self, read: Float[Tensor, "B T D"], scales: Sequence[Scales | None], attention: CausalAttention
    ) -> Float[Tensor, "B T D"] | None:
        """The state after loops with these scales; None after none."""
        if self.config.activations == "kept" or not torch.is_grad_enabled():
            return self._segment(None, read, scales, attention)
        size, state = math.isqrt(self.config.num_loops), None
        for start in range(0, len(scales), size):
            arguments = (state, read, scales[start : start + size], attention)
            state = checkpoint(self._segment, *arguments, use_reentrant=False, preserve_rng_state=False)
        return state

    def _segment(
        self,
        state: Float[Tensor, "B T D"] | None,
        read: Float[Tensor, "B T D"],
        scales: Sequence[Scales | None],
        attention: CausalAttention,
    ) -> Float[Tensor, "B T D"] | None:
        for loop in scales:
            state = self.layers[0](self._loop_input(state, read), loop, attention)
        return state

    def _loop_input(self, state: Float[Tensor, "B T D"] | None, read: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        if state is None:
            return read
        if self.config.injection == "none":
            return state
        normed: Tensor = self.readout[0](state)
        return normed + read
