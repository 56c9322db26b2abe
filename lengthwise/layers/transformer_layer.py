"""The causal pre-norm transformer layer, with optional gains and gates for looped models."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.positions.base import CAUSAL, CausalAttention
from lengthwise.ops.shapes import check_tensors
from lengthwise.validation import check_choice, check_divisor, check_kind

LayerKind = Literal["scaled", "rms", "gpt2"]
"""The kind of a layer, which sets the norm and the default activation. `scaled` layers have RMSNorm without a gain, and
SiLU. `rms` layers have RMSNorm with a learned gain, and GELU. `gpt2` layers have LayerNorm with gain and bias, and
GELU. GELU is the tanh approximation here."""

Activation = Literal["silu", "gelu", "gelu-tanh"]
"""The activation of a feed-forward block: SiLU, the exact GELU, or its tanh approximation."""

States = Float[Tensor, "B T D"]
"""The states of a layer: D numbers at each position of each string."""


class Scales(NamedTuple):
    """Elementwise factors of a layer's normed inputs (gains) and of its outputs (gates).

    The fields have the order of the published code: gains before gates, and attention before feed-forward.
    """

    attention_gain: Float[Tensor, " D"]
    feed_forward_gain: Float[Tensor, " D"]
    attention_gate: Float[Tensor, " D"]
    feed_forward_gate: Float[Tensor, " D"]


class _Maps(NamedTuple):
    """Weights and biases of a layer's four linear maps."""

    query_key_value: tuple[Tensor, Tensor]
    output: tuple[Tensor, Tensor]
    widen: tuple[Tensor, Tensor]
    narrow: tuple[Tensor, Tensor]


class TransformerLayer(nn.Module):
    """x' = x + g_1 * Attn(a_1 * norm(x)), then x' + g_2 * FF(a_2 * norm(x')), with causal attention of H heads.

    FF(x) = W_2 f(W_1 x) has 4 D hidden units and biases in both maps. The function f is the `activation`, by default
    the activation of the layer's `kind` (`LayerKind`). A call may pass gains a and gates g as `Scales`. Otherwise all
    gains and gates are 1, as in GPT-2. A call may also pass the `CausalAttention`, which determines how attention
    depends on positions. The layer maps states [B, T, D] to states [B, T, D].

    A gain before a linear map multiplies the map's columns, and a gate after it multiplies the map's rows. So `forward`
    multiplies the matrices once for each call, whereas `by_definition` multiplies every state. The results are equal up
    to rounding. With activations `"recomputed"`, the backward pass computes the part of the layer after attention
    again, so the intermediate results of this part are not kept.

    Source: Xu and Sato (2024), section 4.2, and their code (`scaled`, `rms`); Radford et al., "Language models are
        unsupervised multitask learners" (2019) (`gpt2`).
    Differs from the source: it has no dropout.
    """

    def __init__(
        self,
        *,
        d_model: int,
        num_heads: int,
        kind: LayerKind,
        activation: Activation | None = None,
        activations: Literal["kept", "recomputed"] = "kept",
    ) -> None:
        super().__init__()
        check_divisor("num_heads", num_heads, d_model)
        check_choice("kind", kind, get_args(LayerKind))
        if activation is not None:
            check_choice("activation", activation, get_args(Activation))
        self.num_heads = num_heads
        check_choice("activations", activations, ("kept", "recomputed"))
        self.activations = activations
        self.activation = _ACTIVATIONS[activation or ("silu" if kind == "scaled" else "gelu-tanh")]
        self.norms = nn.ModuleList(_norm(d_model, kind) for _ in range(2))
        self.query_key_value = nn.Linear(d_model, 3 * d_model)
        self.output = nn.Linear(d_model, d_model)
        self.widen = nn.Linear(d_model, 4 * d_model)
        self.narrow = nn.Linear(4 * d_model, d_model)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw linear maps as torch does, and set the gains of norms to 1 and their biases to 0."""
        draw_linears(self, generator)
        for norm in self.norms:
            norm.reset_parameters()  # type: ignore[operator]  # ModuleList forgets the type of its modules

    def forward(self, states: States, scales: Scales | None = None, attention: CausalAttention = CAUSAL) -> States:
        if not torch.compiler.is_exporting():
            self._check(states, scales, attention)
        maps = self._maps(scales)
        query, key, value = self._heads(F.linear(self.norms[0](states), *maps.query_key_value), 3)
        attended = attention.attend(query, key, value)
        if self.activations == "recomputed" and torch.is_grad_enabled():
            arguments = (states, attended, maps)
            # `_respond` draws no random numbers, so the states of generators need not be saved.
            answered: Tensor = checkpoint(self._respond, *arguments, use_reentrant=False, preserve_rng_state=False)
            return answered
        return self._respond(states, attended, maps)

    def _check(self, states: States, scales: Scales | None, attention: CausalAttention) -> None:
        check_tensors(states=states)
        width = self.output.in_features
        if states.ndim != 3 or states.shape[2] != width:
            got = list(states.shape)
            raise ValueError(f"states: expected shape [B, T, {width}], got {got}; give one vector for each position")
        if scales is not None:
            check_kind("scales", scales, Scales, "Scales or None")
        check_kind("attention", attention, CausalAttention, "a CausalAttention")

    def at(
        self,
        states: States,
        positions: Int64[Tensor, " B"],
        scales: Scales | None = None,
        attention: CausalAttention = CAUSAL,
    ) -> Float[Tensor, "B D"]:
        """Return the result of `forward` at one position of each string; only keys and values need all positions."""
        maps = self._maps(scales)
        normed = self.norms[0](states)
        here = torch.arange(len(positions), device=states.device)
        (to_query, to_key_value), (query_bias, key_value_bias) = (
            tensor.tensor_split([states.shape[-1]]) for tensor in maps.query_key_value
        )
        (query,) = self._heads(F.linear(normed[here, positions][:, None], to_query, query_bias), 1)
        key, value = self._heads(F.linear(normed, to_key_value, key_value_bias), 2)
        attended = attention.attend_at(query, key, value, positions)
        return self._respond(states[here, positions][:, None], attended, maps)[:, 0]

    def continued(
        self, states: States, tails: Float[Tensor, "B W P S D"], attention: CausalAttention = CAUSAL
    ) -> Float[Tensor, "B W P S D"]:
        """Return the results of `forward` at the symbols of W tails, which each follow every prefix of the string.

        A tail has S symbols, and a prefix has 1 ... P positions, with P = T - S. `states` contains the state at each
        position of the string. ``tails[:, w, p, s]`` is the state of symbol s of tail w after a prefix of p + 1
        positions, that is, at position p + 1 + s. This symbol attends to its prefix, to earlier symbols of its tail,
        and to itself.
        """
        maps = self._maps(None)
        num_prefixes, num_symbols = tails.shape[2:4]
        _, key, value = self._heads(F.linear(self.norms[0](states), *maps.query_key_value), 3)
        key, value = (part.repeat_interleave(tails.shape[1], 0) for part in (key, value))
        # One row for each pair of a string and a tail, [B W, H, S, P, E].
        rows = tails.flatten(0, 1).transpose(1, 2)
        projected = F.linear(self.norms[0](rows), *maps.query_key_value).flatten(1, 2)
        query, own_key, own_value = (
            part.unflatten(2, (num_symbols, num_prefixes)) for part in self._heads(projected, 3)
        )
        later = states.new_ones(num_prefixes, num_prefixes, dtype=torch.bool).triu(1)
        attended = []
        for index in range(num_symbols):
            # Encodings score pairs of positions, so each query and each key of the tail moves to its own position.
            moved = _at_positions(query[:, :, index], index + 1, states.shape[1])
            at_prefix = attention.scores_of_pairs(moved, key)[:, :, index + 1 :][:, :, :num_prefixes, :num_prefixes]
            scores = [at_prefix.masked_fill(later, -torch.inf)]
            for earlier in range(index + 1):
                own = attention.scores_of_pairs(
                    moved, _at_positions(own_key[:, :, earlier], earlier + 1, states.shape[1])
                )
                diagonal = own.diagonal(earlier - index, -2, -1)[..., earlier + 1 :][..., :num_prefixes]
                scores.append(diagonal[..., None])
            weights = torch.cat(scores, -1).softmax(-1)
            own_weights = weights[..., num_prefixes:].transpose(-1, -2)[..., None]
            own_part = (own_weights * own_value[:, :, : index + 1]).sum(2)
            attended.append(weights[..., :num_prefixes] @ value[:, :, :num_prefixes] + own_part)
        answered = self._respond(rows.flatten(1, 2), torch.cat(attended, 2), maps)
        by_prefix = answered.unflatten(1, (num_symbols, num_prefixes)).transpose(1, 2)
        return torch.unflatten(by_prefix, 0, tails.shape[:2])

    def by_definition(
        self, states: States, scales: Scales | None = None, attention: CausalAttention = CAUSAL
    ) -> States:
        """Return the results of `forward`, computed by the equations with all attention weights."""
        ones = states.new_ones(states.shape[-1])
        gain_1, gain_2, gate_1, gate_2 = scales or Scales(ones, ones, ones, ones)
        query, key, value = self._heads(self.query_key_value(gain_1 * self.norms[0](states)), 3)
        scores = attention.scores(query, key)
        later = states.new_ones(states.shape[1], states.shape[1], dtype=torch.bool).triu(1)
        attended = scores.masked_fill(later, -torch.inf).softmax(-1) @ value
        states = states + gate_1 * self.output(attended.transpose(1, 2).flatten(2))
        answered: Tensor = gate_2 * self.narrow(self.activation(self.widen(gain_2 * self.norms[1](states))))
        return states + answered

    def _maps(self, scales: Scales | None) -> _Maps:
        if scales is None:
            gains, gates = (None, None), (None, None)
        else:
            gains, gates = scales[:2], scales[2:]  # type: ignore[assignment]
        return _Maps(
            _scaled(self.query_key_value, gain=gains[0]),
            _scaled(self.output, gate=gates[0]),
            _scaled(self.widen, gain=gains[1]),
            _scaled(self.narrow, gate=gates[1]),
        )

    def _heads(self, projected: Float[Tensor, "B T _"], count: int) -> tuple[Float[Tensor, "B H T E"], ...]:
        """Split a projection into `count` tensors, such as queries, keys and values, each split into heads."""
        return torch.unflatten(projected, -1, (count, self.num_heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)

    def _respond(self, states: States, attended: Float[Tensor, "B H T E"], maps: _Maps) -> States:
        """Return the results of the part of the layer after attention, computed position by position."""
        states = states + F.linear(attended.transpose(1, 2).flatten(2), *maps.output)
        return states + F.linear(self.activation(F.linear(self.norms[1](states), *maps.widen)), *maps.narrow)


def _at_positions(states: Float[Tensor, "B H P E"], first: int, length: int) -> Float[Tensor, "B H T E"]:
    """Return states moved to positions `first`, `first` + 1, ... of a string, with zeros at all other positions."""
    return F.pad(states, (0, 0, first, length - first - states.shape[2]))


def draw_gpt2_weights(layers: Sequence[TransformerLayer], generator: torch.Generator) -> None:
    """Draw matrices from N(0, 0.02^2) and set biases to 0.

    Matrices whose results are added to the residual are divided by the square root of the number of such matrices. This
    division keeps the size of the residual independent of the depth.

    Source: Radford et al., "Language models are unsupervised multitask learners" (2019), and their code.
    """
    for layer in layers:
        for linear in (layer.query_key_value, layer.output, layer.widen, layer.narrow):
            draw_gpt2_linear(
                linear, generator, (2 * len(layers)) ** 0.5 if linear in (layer.output, layer.narrow) else 1.0
            )


def draw_gpt2_linear(linear: nn.Linear, generator: torch.Generator, smaller: float = 1.0) -> None:
    """Draw a linear map's matrix from N(0, 0.02^2), divide the matrix by `smaller`, and set the bias to 0."""
    nn.init.normal_(linear.weight, std=0.02 / smaller, generator=generator)
    nn.init.zeros_(linear.bias)


def _scaled(linear: nn.Linear, *, gain: Tensor | None = None, gate: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the weight and the bias of the map x -> gate * linear(gain * x)."""
    weight: Tensor = linear.weight
    bias: Tensor = linear.bias
    if gain is not None:
        weight = weight * gain
    if gate is not None:
        weight, bias = weight * gate[:, None], bias * gate
    return weight, bias


def _norm(d_model: int, kind: LayerKind) -> nn.Module:
    if kind == "gpt2":
        return nn.LayerNorm(d_model)
    return nn.RMSNorm(d_model, elementwise_affine=kind == "rms")


_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
}
