"""RegularGPT as a language model: GPT-2's layers, shared by all levels, over windows that widen with the level."""

from types import MappingProxyType
from typing import Literal

import torch
from jaxtyping import Float, Int64
from pydantic import Field, model_validator
from torch import Tensor, nn

from lengthwise.layers.positions.base import CausalAttention, Heads, Scores
from lengthwise.layers.tied_readout import TiedReadout
from lengthwise.layers.transformer_layer import States, TransformerLayer, draw_gpt2_weights
from lengthwise.models.base import MODELS, Depth, ModelConfig, SymbolModel, Width
from lengthwise.models.capabilities import BoundedReceptiveField, HasHiddenMatrices, changed_copy
from lengthwise.ops.dilated_attention import dilated_attention, dilated_mask
from lengthwise.ops.tree import num_levels
from lengthwise.validation import check_divisor, validated

MAX_CHUNK = 4096
MAX_LEVELS = 32


class RegularGPTLMConfig(ModelConfig):
    """Sizes of a RegularGPT for language: width D, heads H (a divisor of D), chunk size C, thickness K.

    - `depth`: with `"prefix"`, each position is answered after as many levels as a string that ends there has. With
      `"input"`, all positions are answered after the levels of the whole input, so answers depend on the length of the
      input. The answer at the last position is the same with both values.
    - `max_levels`: the largest number of levels at any length; None means no limit.
    - `num_tables`: level l uses table min(l, `num_tables` - 1) of the attention biases r. With 1, all levels share one
      table. With 2, the lowest level has its own table.
    - `activations`: all activations are kept for the gradient (`"kept"`), or the activations after attention are
      computed again (`"recomputed"`). `"recomputed"` takes up to a fifth more time, but less memory.
    """

    other_effects = MappingProxyType({"activations": "decides which states are kept in memory"})

    d_model: Width = 64
    num_heads: Width = 4
    chunk_size: int = Field(16, ge=2, le=MAX_CHUNK)
    thickness: Depth = 2
    depth: Literal["prefix", "input"] = "prefix"
    max_levels: int | None = Field(None, ge=1, le=MAX_LEVELS, exclude_if=lambda levels: levels is None)
    num_tables: int = Field(1, ge=1, le=MAX_LEVELS)
    activations: Literal["kept", "recomputed"] = "kept"

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "RegularGPTLMConfig":
        check_divisor("num_heads", self.num_heads, self.d_model)
        return self


class DilatedAttention(CausalAttention):
    """Attention to C positions that are a stride apart, each with its own bias (`ops.dilated_attention`)."""

    def __init__(self, bias: Float[Tensor, "H C"], stride: int) -> None:
        self.bias, self.stride = bias, stride

    def attend(self, query: Heads, key: Heads, value: Heads) -> Heads:
        return dilated_attention(query, key, value, self.bias, self.stride)

    def scores(self, query: Heads, key: Heads) -> Scores:
        return super().scores(query, key) + dilated_mask(self.bias, self.stride, query.shape[2])


@MODELS.register("regular-gpt-lm")
class RegularGPTLM(BoundedReceptiveField, HasHiddenMatrices, SymbolModel):
    """K layers that all levels share. At level l = 0, 1, ..., they attend to windows of C positions that are C^l apart.

    An input of T symbols has max(1, ceil(log_C T)) levels. The layers are GPT-2's. Only the offsets r, which are biases
    of attention scores, distinguish positions. A window that begins before the first position has fewer than C states,
    as in the mask of eq. (1) of the paper. In `regular-gpt`, such a window contains pads. Read-in and read-out share a
    table (`TiedReadout`).

    After training, `with_max_levels` returns the model with another number of levels.

    Source: Chi et al. (2023), sections 3 and 6 and Table 5; layers and initialization: Radford et al., "Language models
        are unsupervised multitask learners" (2019), and nanoGPT, from which the paper's runs started.
    Differs from the source: the paper's footnote 1 pads strings to a multiple of C, and this model does not. At
        initialization, maps into the residual are divided by the square root of 2 K, the number of such maps with
        separate weights. Levels are not counted, because their number depends on the length. `depth` `"prefix"`,
        `max_levels` and `num_tables` are ours. The paper does not give the initialization of r, and N(0, 0.02^2) is
        from its code for regular languages.
    """

    Config = RegularGPTLMConfig
    config: RegularGPTLMConfig
    default_preset = "plain"
    readout: nn.Sequential

    def build(self, vocab_size: int, num_classes: int) -> None:
        config, self.vocab_size = self.config, vocab_size
        self.embedding = nn.Embedding(TiedReadout.num_rows(vocab_size, num_classes), config.d_model)
        self.layers = nn.ModuleList(
            TransformerLayer(
                d_model=config.d_model, num_heads=config.num_heads, kind="gpt2", activations=config.activations
            )
            for _ in range(config.thickness)
        )
        self.offsets = nn.Parameter(
            torch.empty(config.num_tables, config.thickness, config.num_heads, config.chunk_size)
        )
        self.readout = nn.Sequential(nn.LayerNorm(config.d_model), TiedReadout(self.embedding, num_classes))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw matrices and offsets from N(0, 0.02^2), and divide maps into the residual by sqrt(2 K) for K layers.

        Weights of norms become 1, and all biases 0.
        """
        nn.init.normal_(self.embedding.weight, std=0.02, generator=generator)
        nn.init.normal_(self.offsets, std=0.02, generator=generator)
        draw_gpt2_weights(self._layers(), generator)
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()

    def with_max_levels(self, max_levels: int | None) -> "RegularGPTLM":
        """Return a copy with another limit on the number of levels; the copy shares all parameters.

        Example:
            >>> model = RegularGPTLM(RegularGPTLMConfig(d_model=8, chunk_size=2), vocab_size=3, num_classes=3)
            >>> model.num_levels(64), model.with_max_levels(2).num_levels(64)
            (6, 2)
        """
        settings = self.config.model_dump() | {"max_levels": max_levels}
        return changed_copy(self, config=validated(RegularGPTLMConfig, settings, path="model"))

    def num_levels(self, length: int) -> int:
        """Return the number of levels for an input of this length."""
        return min(num_levels(length, self.config.chunk_size), self.config.max_levels or MAX_LEVELS)

    @property
    def receptive_field(self) -> int | None:
        """Return 1 + K (C^L - 1) if the number of levels has a limit L, else None.

        A window has C positions, so each of the K layers of level l reaches (C - 1) C^l positions back. The sum
        over all levels is C^L - 1 positions for each layer.
        """
        if self.config.max_levels is None:
            return None
        reach: int = self.config.chunk_size**self.config.max_levels
        return 1 + self.config.thickness * (reach - 1)

    @property
    def hidden_matrices(self) -> list[nn.Parameter]:
        """Return the matrices of all layers."""
        return [parameter for parameter in self.layers.parameters() if parameter.ndim == 2]

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        states = self._read(inputs)
        length = inputs.shape[1]
        read = []
        levels, chunk = self.num_levels(length), self.config.chunk_size
        for level in range(levels):
            states = self._after(states, level, chunk**level)
            if self.config.depth == "prefix":
                # Prefixes with exactly this number of levels are read before the next level changes their states.
                start = chunk**level if level else 0
                stop = chunk ** (level + 1) if level + 1 < levels else length
                read.append(states[:, start:stop])
        return self.logits_of(torch.cat(read, 1) if read else states)

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        """Return each string's last state. For windows of length C, only every C^l-th state of level l is computed."""
        states = self._read(inputs)
        levels = self.num_levels(inputs.shape[1])
        chunk = self.config.chunk_size
        for level in range(levels):
            if level:
                # From the last position, this level and higher levels reach only these positions.
                states = states[:, (states.shape[1] - 1) % chunk :: chunk]
            states = self._after(states, level, 1)
        return states[:, -1]

    def forward_by_definition(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        """Return the logits of `forward` by the masks of eq. (1) of Chi et al. (2023), reading each prefix separately.

        The function is only for short strings.
        """
        length = inputs.shape[1]
        if self.config.depth == "input":
            return self._masked(inputs)
        return torch.stack([self._masked(inputs[:, :stop])[:, -1] for stop in range(1, length + 1)], 1)

    def _masked(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        states = self._read(inputs)
        for level in range(self.num_levels(inputs.shape[1])):
            for layer, bias in zip(self._layers(), self._offsets(level), strict=True):
                attention = DilatedAttention(bias, self.config.chunk_size**level)
                states = layer.by_definition(states, attention=attention)
        return self.logits_of(states)

    def _after(self, states: States, level: int, stride: int) -> States:
        """Return the states after the K layers of a level, whose windows contain every `stride`-th given position."""
        for layer, bias in zip(self._layers(), self._offsets(level), strict=True):
            states = layer(states, attention=DilatedAttention(bias, stride))
        return states

    def _offsets(self, level: int) -> Float[Tensor, "K H C"]:
        return self.offsets[min(level, self.config.num_tables - 1)]

    def _layers(self) -> list[TransformerLayer]:
        return list(self.layers)  # type: ignore[arg-type]  # ModuleList forgets the type of its modules

    def _read(self, inputs: Int64[Tensor, "B T"]) -> States:
        self.check_inputs(inputs, self.vocab_size)
        states: Tensor = self.embedding(inputs)
        return states
