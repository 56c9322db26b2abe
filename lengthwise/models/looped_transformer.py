"""The looped transformer: one layer that is applied R times, with gains and gates that may depend on the loop."""

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Literal

import torch
from jaxtyping import Float, Int64
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lengthwise.layers.positions.base import CausalAttention
from lengthwise.layers.timestep import ConstantScales, Gates, LoopScales, TimestepScales
from lengthwise.layers.transformer_layer import Activation, LayerKind, Scales, States, TransformerLayer
from lengthwise.models.base import MODELS
from lengthwise.models.capabilities import changed_copy
from lengthwise.models.causal_transformer import CausalTransformer, CausalTransformerConfig
from lengthwise.models.checks import check_made_from
from lengthwise.ops.sinusoids import Time
from lengthwise.validation import validated

Variant = Literal[
    "timestep",
    "timestep-in-context",
    "timestep-language",
    "control",
    "control-in-context",
    "control-language",
    "code",
    "code-in-context",
    "code-language",
]

TIMESTEP: tuple[Variant, ...] = ("timestep", "timestep-in-context", "timestep-language")
CONTROL: tuple[Variant, ...] = ("control", "control-in-context", "control-language")

Loops = Literal["fixed", "length", "converged"]
"""The rule for the number of loops: a fixed number, the length of the prefix, or convergence of the states."""


class LoopedTransformerConfig(CausalTransformerConfig):
    """The settings of a looped transformer: sizes, the number of loops R, and the layer that every loop applies.

    - `loops`: with `"fixed"`, R is `num_loops`. With `"length"`, R is `num_loops` times the length of the prefix. With
      `"converged"`, loops end when no state of the prefix changes by more than `tolerance` times its norm, or after
      `max_loops` loops. Training then uses `"length"`.
    - `time`, for variants with timestep encoding: the number r of the loop (`"index"`), or r / R (`"fraction"`).
    - `gates`, for variants with timestep encoding and for control variants: gates start at 0 (`"closed"`) or at 1
      (`"open"`).
    - `injection`: the embedded input is added to the state before every loop (`"input"`), or is only the first state
      (`"none"`).
    - `activations`: the states of all loops are kept for the gradient (`"kept"`), or computed again in segments of
      about sqrt(R) loops (`"recomputed"`). `"recomputed"` takes a third more time, but its memory grows only as
      sqrt(R).
    """

    used_with = MappingProxyType(
        CausalTransformerConfig.used_with | {"time": ("variant", TIMESTEP), "gates": ("variant", (*TIMESTEP, *CONTROL))}
    )
    other_effects = MappingProxyType(
        {
            "tolerance": "is used by the rule 'converged', which can be chosen after training",
            "max_loops": "is used by the rule 'converged', which can be chosen after training",
            "activations": "decides which states are kept in memory",
        }
    )

    num_loops: int = Field(10, ge=1, le=10_000)
    loops: Loops = Field("fixed", exclude_if=lambda loops: loops == "fixed")
    tolerance: float = Field(1e-3, gt=0, lt=1, exclude_if=lambda tolerance: tolerance == 1e-3)
    max_loops: int = Field(500, ge=1, le=100_000, exclude_if=lambda loops: loops == 500)
    variant: Variant = "timestep"
    time: Time = Field("index", exclude_if=lambda time: time == "index")
    gates: Gates = Field("closed", exclude_if=lambda gates: gates == "closed")
    injection: Literal["none", "input"] = "none"
    activations: Literal["kept", "recomputed"] = "kept"

    @property
    def takes_probes(self) -> bool:
        """Return whether the number of loops is fixed.

        If not, a test on 500 symbols would need hundreds of loops, and take longer than training on short strings.
        """
        return self.loops == "fixed"

    @model_validator(mode="after")
    def _time_is_known(self) -> "LoopedTransformerConfig":
        if self.time == "fraction" and self.loops == "converged":
            raise ValueError(
                "time: expected 'index' with loops 'converged', got 'fraction', which needs the number of loops in "
                "advance; choose time 'index' or loops 'length'"
            )
        return self


AllScales = Sequence[Scales | None]
"""The gains and gates of consecutive loops, or None for each loop of a model without them."""

_LAYERS: dict[Variant, tuple[LayerKind, Activation]] = {
    "timestep": ("scaled", "silu"),
    "timestep-in-context": ("scaled", "gelu-tanh"),
    "timestep-language": ("scaled", "gelu"),
    "control": ("scaled", "silu"),
    "control-in-context": ("scaled", "gelu-tanh"),
    "control-language": ("scaled", "gelu"),
    "code": ("rms", "gelu-tanh"),
    "code-in-context": ("gpt2", "gelu-tanh"),
    "code-language": ("scaled", "gelu"),
}
"""The kind of layer and the activation of each variant."""


@MODELS.register("looped-transformer")
class LoopedTransformer(CausalTransformer):
    """x_r = layer_r(x_{r-1}), r = 1 ... R. All loops share the weights; gains and gates may depend on the loop.

    Here x_r is the state after loop r.

    Variants:

    - `"timestep"`: gains and gates are functions of the loop (`TimestepScales`).
    - `"control"`: gains and gates are learned and the same in all loops. So this variant has neither an encoding of the
      loop's number nor the parameters of this encoding. At width 64, layer and scales have 49,984 parameters, but
      86,976 with `"timestep"`.
    - `"code"`: the plain loop of the published code, without gains and gates.

    At the start of training, a loop has no effect in variants with timestep encoding and in control variants, unless
    `gates` are `"open"`.

    The published code has a different layer in each of its experiments. The ending of a variant names the experiment,
    which determines norm and activation:

    | ending | experiment | `timestep` and `control` | `code` |
    | --- | --- | --- | --- |
    | none | dynamic programming | RMSNorm without gain, SiLU | RMSNorm with gain, GELU (tanh) |
    | `-in-context` | decision trees | RMSNorm without gain, GELU (tanh) | LayerNorm, GELU (tanh) |
    | `-language` | language | RMSNorm without gain, GELU (exact) | RMSNorm without gain, GELU (exact) |

    In the experiment on language, the plain loop differs from the loop with timestep encoding only in gains and gates.
    In the other experiments, norms or activations also differ.

    With input injection, x_r = layer_r(norm(x_{r-1}) + z), where z is the embedded input, and norm is the norm of the
    read-out. The first loop reads only z. All loops share one position encoding.

    R may depend on the input (`loops`). Then each prefix has its own R. This R depends only on the symbols of the
    prefix, not on later symbols or on other strings of the batch.

    After training, `with_loops` returns the model with another number of loops.

    Source: Xu and Sato (2024), section 4.2 and Appendix C; injection: Yang et al., "Looped transformers are better at
        learning learning algorithms" (ICLR 2024); loops by length: Fan et al., "Looped transformers for length
        generalization" (ICLR 2025).
    Differs from the source: the control variants are ours. In the variants for language, linear maps and the last norm
        have biases, unlike in the published code. The published code adds the positions again with every injection, but
        here z already contains them. The in-context baseline of the code is trained by truncated back-propagation
        through loops, which is missing here. Fan et al. stop at the loop with the most confident answer, which is known
        only after all loops.
    """

    Config = LoopedTransformerConfig
    config: LoopedTransformerConfig

    def __init__(
        self, config: LoopedTransformerConfig, *, generator: torch.Generator | None = None, **sizes: Any
    ) -> None:
        check_made_from(type(self).Config, config, generator)
        # All loops share one layer and one position encoding.
        super().__init__(config, num_layers=1, **sizes)
        width, variant = config.d_model, config.variant
        kind, activation = _LAYERS[variant]
        layer = TransformerLayer(d_model=width, num_heads=config.num_heads, kind=kind, activation=activation)
        self.layers = nn.ModuleList([layer])
        self.scales = _loop_scales(config)
        self.reset_parameters(generator or torch.Generator())

    def reset_parameters(self, generator: torch.Generator) -> None:
        super().reset_parameters(generator)
        if self.scales is not None:
            self.scales.reset_parameters(generator)

    def with_loops(self, num_loops: int | None = None, loops: Loops | None = None) -> "LoopedTransformer":
        """Return a copy with another `num_loops` or another rule `loops`; the copy shares all parameters.

        Example:
            >>> config = LoopedTransformerConfig(d_model=8, num_loops=2)
            >>> model = LoopedTransformer(config, vocab_size=3, num_classes=2)
            >>> deeper = model.with_loops(50)
            >>> deeper.config.num_loops, deeper.readout is model.readout
            (50, True)
            >>> model.with_loops(1, "length").config.loops
            'length'
        """
        changes = {"num_loops": num_loops, "loops": loops}
        settings = self.config.model_dump() | {name: value for name, value in changes.items() if value is not None}
        # The settings are validated again, because the new loops may not fit the other settings.
        return changed_copy(self, config=validated(LoopedTransformerConfig, settings, path="model"))

    @property
    def depth(self) -> int:
        return self.config.num_loops

    @property
    def receptive_field(self) -> int | None:
        """Return the receptive field of `num_loops` layers, or None if the number of loops depends on the input."""
        return super().receptive_field if self._rule() == "fixed" else None

    def states(self, read: States) -> States:
        rule, lengths = self._rule(), range(1, read.shape[1] + 1)
        if rule == "converged":
            return self._converged(read)
        if rule == "length" and self.config.time == "fraction":  # r / R depends on the length, so loops are not shared
            return torch.stack([self._last_states_by_length(read[:, :length]) for length in lengths], 1)
        if rule == "length":
            return self._states_by_length(read)
        return self._states_after(self.config.num_loops, read)

    def states_at(self, read: States, indices: Int64[Tensor, " B"]) -> Float[Tensor, "B D"]:
        rule = self._rule()
        if rule == "converged":
            # Positions after the last index cannot change these answers, so they are skipped.
            states = self._converged(read[:, : int(indices.max()) + 1])
            return states[torch.arange(len(indices), device=read.device), indices.to(read.device)]
        if rule == "length":
            # The number of loops depends on the length, so strings are grouped by length.
            order = indices.argsort(stable=True)
            lengths, counts = (indices + 1).unique(return_counts=True)
            groups = read[order.to(read.device)].split(counts.tolist())
            parts = [
                self._last_states_by_length(group[:, :length])
                for group, length in zip(groups, lengths.tolist(), strict=True)
            ]
            return torch.cat(parts)[order.argsort().to(read.device)]
        return self._at(indices.to(read.device), self.config.num_loops, read)

    def states_by_definition(self, read: States) -> States:
        """Return the results of `states`, computed for each prefix of each string by itself, loop by loop."""
        strings = [
            torch.cat([self._last_by_definition(row[None, :length]) for length in range(1, len(row) + 1)])
            for row in read
        ]
        return torch.stack(strings)

    def _last_by_definition(self, read: Float[Tensor, "1 T D"]) -> Float[Tensor, "1 D"]:
        rule, config = self._rule(), self.config
        num_loops = {"fixed": config.num_loops, "length": config.num_loops * read.shape[1]}.get(rule, config.max_loops)
        (layer,), (attention,) = self._layers(), self._attention(read)
        first, *others = self._scales_of_loops(num_loops)
        state = layer.by_definition(read, first, attention)
        for scales in others:
            before = state
            state = layer.by_definition(self._loop_input(state, read), scales, attention)
            if rule == "converged" and bool((_change(before, state) <= config.tolerance).all()):
                break
        return state[:, -1]

    def _rule(self) -> Loops:
        """Return the rule for the number of loops. In training, `"length"` replaces `"converged"`."""
        return "length" if self.training and self.config.loops == "converged" else self.config.loops

    def _states_after(self, num_loops: int, read: States) -> States:
        *before, last = self._scales_of_loops(num_loops)
        (layer,), (attention,) = self._layers(), self._attention(read)
        states: Tensor = layer(self._loop_input(self._looped(read, before, attention), read), last, attention)
        return states

    def _at(self, indices: Int64[Tensor, " B"], num_loops: int, read: States) -> Float[Tensor, "B D"]:
        """Return `_states_after` at one position of each string; the last loop computes only these positions."""
        *before, last = self._scales_of_loops(num_loops)
        (layer,), (attention,) = self._layers(), self._attention(read)
        return layer.at(self._loop_input(self._looped(read, before, attention), read), indices, last, attention)

    def _last_states_by_length(self, read: States) -> Float[Tensor, "B D"]:
        """Return the last states of strings that all have one length, after the number of loops for this length."""
        length = read.shape[1]
        return self._at(torch.full((len(read),), length - 1, device=read.device), self.config.num_loops * length, read)

    def _states_by_length(self, read: States) -> States:
        """Return the states of all prefixes in one pass; each state is recorded after its own number of loops.

        Prefixes share their loops, because a state does not depend on later symbols.
        """
        length, recomputed = read.shape[1], self._is_recomputed()
        scales = self._scales_of_loops(self.config.num_loops * length)
        (attention,) = self._attention(read)
        # With about sqrt(length) segments, stored states and recomputed states need about the same memory.
        size = math.isqrt(length) if recomputed else length
        state = None
        parts = []
        for first in range(0, length, size):
            arguments = (state, read, scales, attention, range(first, min(first + size, length)))
            if recomputed:
                state, part = checkpoint(self._record_states, *arguments, use_reentrant=False, preserve_rng_state=False)
            else:
                state, part = self._record_states(*arguments)
            parts.append(part)
        return torch.cat(parts, 1)

    def _record_states(
        self, state: States | None, read: States, scales: AllScales, attention: CausalAttention, positions: range
    ) -> tuple[States | None, Float[Tensor, "B _ D"]]:
        """Return the states after the last position's loops, and each position's state after its own loops."""
        each, columns = self.config.num_loops, []
        for position in positions:
            state = self._segment(state, read, scales[position * each : (position + 1) * each], attention)
            assert state is not None
            columns.append(state[:, position])
        return state, torch.stack(columns, 1)

    def _converged(self, read: States) -> States:
        """Return the states of all prefixes in one pass; a state is recorded when its prefix has stopped changing."""
        first, *others = self._scales_of_loops(self.config.max_loops)
        (layer,), (attention,) = self._layers(), self._attention(read)
        state: Tensor = layer(read, first, attention)
        taken = state
        waits = read.new_ones(read.shape[:2], dtype=torch.bool)
        for scales in others:
            before, state = state, layer(self._loop_input(state, read), scales, attention)
            # A prefix that has converged keeps its answer, while longer prefixes continue.
            taken = torch.where(waits[..., None], state, taken)
            # A prefix continues while any of its positions changes, so the maximum is cumulative over positions.
            waits = waits & (_change(before, state).cummax(1).values > self.config.tolerance)
            if not waits.any():
                break
        return taken

    def _scales_of_loops(self, num_loops: int) -> AllScales:
        """Return the gains and gates of every loop, computed once for all positions and strings.

        A model without gains and gates has None for every loop.
        """
        if self.scales is None:
            return [None] * num_loops
        scales: Sequence[Scales] = self.scales(num_loops)
        return scales

    def _is_recomputed(self) -> bool:
        return self.config.activations == "recomputed" and torch.is_grad_enabled()

    def _looped(self, read: States, scales: AllScales, attention: CausalAttention) -> States | None:
        """Run one loop for each entry of `scales`, and return the last state, or None if `scales` is empty."""
        if not self._is_recomputed():
            return self._segment(None, read, scales, attention)
        # About sqrt(R) segments of sqrt(R) loops need the least memory.
        size, state = math.isqrt(len(scales) + 1), None
        for start in range(0, len(scales), size):
            arguments = (state, read, scales[start : start + size], attention)
            state = checkpoint(self._segment, *arguments, use_reentrant=False, preserve_rng_state=False)
        return state

    def _segment(
        self, state: States | None, read: States, scales: AllScales, attention: CausalAttention
    ) -> States | None:
        for loop in scales:
            state = self.layers[0](self._loop_input(state, read), loop, attention)
        return state

    def _loop_input(self, state: States | None, read: States) -> States:
        if state is None:
            return read
        if self.config.injection == "none":
            return state
        normed: Tensor = self.readout[0](state)
        return normed + read


def _loop_scales(config: LoopedTransformerConfig) -> LoopScales | None:
    if config.variant in TIMESTEP:
        return TimestepScales(d_model=config.d_model, time=config.time, gates=config.gates)
    return ConstantScales(d_model=config.d_model, gates=config.gates) if config.variant in CONTROL else None


def _change(before: States, after: States) -> Float[Tensor, "B T"]:
    """Return the distance between the states before and after a loop, relative to the norm of the state after."""
    change: Tensor = (after - before).norm(dim=-1) / after.norm(dim=-1)
    return change
