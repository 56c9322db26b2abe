"""The common base of transformers, which contains everything except their stack of layers."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int64
from pydantic import Field, model_validator
from torch import Tensor, nn

from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.positions.base import POSITIONS, CausalAttention, PositionSizes
from lengthwise.layers.read_in import ReadInKind, SymbolReadIn, VectorReadIn
from lengthwise.layers.tied_readout import TiedReadout
from lengthwise.layers.transformer_layer import States, TransformerLayer, draw_gpt2_linear, draw_gpt2_weights
from lengthwise.models.base import Inputs, ModelConfig, SequenceModel, Width
from lengthwise.models.capabilities import (
    AcceptsPads,
    AcceptsVectors,
    BoundedReceptiveField,
    DrawsInTraining,
    HasHiddenMatrices,
)
from lengthwise.models.checks import check_indices
from lengthwise.registry import NameIn, nearest
from lengthwise.validation import check_divisor, check_one_given, check_sizes, truncate

DEFAULT_RANGE = 2048

IMPLIED = ("sinusoidal", "learned")
"""Encodings whose names are omitted from stored settings. The setting `learned_positions` is 0 for
`"sinusoidal"` and above 0 for `"learned"`."""


class EncodingsOfSize(Sequence[str]):
    """The names of the position encodings whose size a setting determines, including encodings registered later."""

    def __init__(self, setting: Literal["learned_positions", "position_range"]) -> None:
        self.setting = setting

    def _names(self) -> list[str]:
        return [name for name, encoding in POSITIONS.items() if encoding.size_setting == self.setting]

    def __getitem__(self, index: Any) -> Any:
        return self._names()[index]

    def __len__(self) -> int:
        return len(self._names())


class CausalTransformerConfig(ModelConfig):
    """The settings of a causal transformer: width D, heads H (a divisor of D), positions, initialization and more.

    - `positions`: the name of an encoding in `lengthwise.layers.positions`.
    - `learned_positions`: the size of the table of positions `"learned"`, which is also the largest length of an input.
      If a size is set without `positions`, the encoding is `"learned"`.
    - `position_range`: with `"randomized"`, the number of positions to draw from; with `"local"`, the number of
      positions that a layer sees.
    - `initialization`: `"torch"` draws maps of n inputs uniformly within 1 / sqrt(n) of 0. `"gpt2"` draws weights from
      N(0, 0.02^2), with biases of 0. With `"gpt2"`, weights of maps whose results are added to the residual are also
      divided by the square root of the number of such maps. Position encodings are initialized as in their sources.
    - `read_in`: embeddings with their positions are normalized (`"normed"`) or left unchanged (`"plain"`, as in GPT-2).
      If the inputs are vectors, it must be `"normed"`, the default.
    - `readout`: logits come from a separate linear map (`"linear"`) or from the embedding (`"tied"`, `TiedReadout`).
      If the inputs are vectors, it must be `"linear"`, the default.

    GPT-2's language model has read-in `"plain"`, read-out `"tied"`, positions `"learned"` and initialization `"gpt2"`.
    """

    used_with = MappingProxyType(
        {name: ("positions", EncodingsOfSize(name)) for name in ("learned_positions", "position_range")}
    )

    d_model: Width = 64
    num_heads: Width = 4
    # Descriptions omit default values, so that older runs keep their ids.
    positions: Annotated[str, NameIn(POSITIONS)] = Field("sinusoidal", exclude_if=lambda name: name in IMPLIED)
    learned_positions: int = Field(0, ge=0, le=1_000_000)
    position_range: int = Field(DEFAULT_RANGE, ge=1, le=1_000_000, exclude_if=lambda size: size == DEFAULT_RANGE)
    initialization: Literal["torch", "gpt2"] = "torch"
    read_in: ReadInKind = Field("normed", exclude_if=lambda name: name == "normed")
    readout: Literal["linear", "tied"] = Field("linear", exclude_if=lambda name: name == "linear")

    @model_validator(mode="before")
    @classmethod
    def _a_table_means_learned(cls, settings: Any) -> Any:
        """Add the name `"learned"` to settings that only give the size of the table, as the settings of old runs do."""
        if isinstance(settings, Mapping) and settings.get("learned_positions") and "positions" not in settings:
            return {**settings, "positions": "learned"}
        return settings

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "CausalTransformerConfig":
        check_divisor("num_heads", self.num_heads, self.d_model)
        return self

    @model_validator(mode="after")
    def _positions_fit(self) -> "CausalTransformerConfig":
        if self.positions not in POSITIONS:
            raise ValueError(
                f"positions: expected one of {', '.join(POSITIONS)}, got {truncate(repr(self.positions))}"
                f"{nearest(self.positions, POSITIONS)}"
            )
        if self.positions == "learned" and not self.learned_positions:
            raise ValueError(
                "learned_positions: expected at least 1 with positions 'learned', got 0; give the largest length of an "
                "input"
            )
        return self


class CausalTransformer(
    AcceptsPads, AcceptsVectors, BoundedReceptiveField, DrawsInTraining, HasHiddenMatrices, SequenceModel
):
    """A read-in, layers of causal attention, a LayerNorm and a linear read-out.

    It is made for strings of symbols (`vocab_size`), which may end in pads, or for vectors (`input_dim`). Attention is
    causal, so a pad does not change any answer before it. A subclass makes `layers`, which contains every layer that
    has its own weights, and defines the order in which they are applied (`states`, `states_at`).
    """

    default_preset: ClassVar[str] = "plain"
    config: CausalTransformerConfig
    layers: nn.ModuleList
    readout: nn.Sequential

    def __init__(
        self,
        config: CausalTransformerConfig,
        *,
        num_layers: int,
        vocab_size: int | None = None,
        input_dim: int | None = None,
        num_classes: int,
    ) -> None:
        super().__init__()
        self.config = config
        check_one_given("vocab_size", "the number of symbols or, for vectors, input_dim", vocab_size, input_dim)
        read_size = {"vocab_size": vocab_size} if input_dim is None else {"input_dim": input_dim}
        check_sizes(num_classes=num_classes, **read_size)
        # No encoding has both a table and a range, so one number describes either.
        width, max_positions = config.d_model, config.learned_positions or config.position_range
        sizes = PositionSizes(width, config.num_heads, num_layers, max_positions)
        positions = POSITIONS[config.positions](sizes)
        self.read_in: SymbolReadIn | VectorReadIn
        to_logits: nn.Module
        if vocab_size is not None and config.readout == "tied":
            # The read-in and the read-out share one table, which may need rows for classes that are not symbols.
            num_rows = TiedReadout.num_rows(vocab_size, num_classes)
            self.read_in = SymbolReadIn(
                vocab_size=vocab_size, d_model=width, positions=positions, kind=config.read_in, num_rows=num_rows
            )
            to_logits = TiedReadout(self.read_in.embedding, num_classes)
        else:
            to_logits = nn.Linear(width, num_classes)
            if vocab_size is not None:
                self.read_in = SymbolReadIn(
                    vocab_size=vocab_size, d_model=width, positions=positions, kind=config.read_in
                )
            elif input_dim is not None:
                _check_read_in_of_vectors(config)
                self.read_in = VectorReadIn(input_dim=input_dim, d_model=width, positions=positions)
        self.readout = nn.Sequential(nn.LayerNorm(width), to_logits)

    @property
    @abstractmethod
    def depth(self) -> int:
        """Return the number of layers that are applied one after another to compute an answer."""

    @property
    def receptive_field(self) -> int | None:
        """Return L (w - 1) + 1 for depth L if a layer sees the last w positions; None if layers see all positions."""
        window = self.read_in.positions.window
        return None if window is None else self.depth * (window - 1) + 1

    @property
    def max_length(self) -> int | None:
        return self.read_in.positions.max_length

    @abstractmethod
    def states(self, read: States) -> States:
        """Return the states after all layers, given the results of the read-in."""

    @abstractmethod
    def states_at(self, read: States, indices: Int64[Tensor, " B"]) -> Float[Tensor, "B D"]:
        """Return the result of `states` at one position of each string, as cheaply as the layers can."""

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again; weights of norms become 1, and their biases 0."""
        self.read_in.reset_parameters(generator)
        for layer in self._layers():
            layer.reset_parameters(generator)
        norm, linear = self.readout
        norm.reset_parameters()  # type: ignore[operator]  # Sequential forgets the type of its modules
        draw_linears(linear, generator)
        # This must come last, because it overwrites all other draws except the draws for position encodings.
        if self.config.initialization == "gpt2":
            self._draw_gpt2_weights(generator)

    def _draw_gpt2_weights(self, generator: torch.Generator) -> None:
        if isinstance(self.read_in, SymbolReadIn):
            nn.init.normal_(self.read_in.embedding.weight, std=0.02, generator=generator)
        else:
            draw_gpt2_linear(self.read_in.linear, generator)
        draw_gpt2_weights(self._layers(), generator)
        if isinstance(self.readout[1], nn.Linear):
            draw_gpt2_linear(self.readout[1], generator)

    def _layers(self) -> list[TransformerLayer]:
        return list(self.layers)  # type: ignore[arg-type]  # ModuleList forgets the type of its modules

    @property
    def hidden_matrices(self) -> list[nn.Parameter]:
        """Return the matrices of all layers."""
        return [parameter for parameter in self.layers.parameters() if parameter.ndim == 2]

    def forward(self, inputs: Inputs) -> Float[Tensor, "B T Y"]:
        return self.logits_of(self.states(self._read(inputs)))

    def logits_at(self, inputs: Inputs, indices: Int64[Tensor, " B"]) -> Float[Tensor, "B Y"]:
        read = self._read(inputs)
        check_indices(indices, inputs)
        return self.logits_of(self.states_at(read, indices))

    def last_state(self, inputs: Inputs) -> Float[Tensor, "B D"]:
        return self.states_at(self._read(inputs), torch.full((len(inputs),), inputs.shape[1] - 1))

    def _attention(self, read: States) -> Sequence[CausalAttention]:
        """Return the attention of each layer, as the position encoding defines it for the results of the read-in."""
        return self.read_in.positions.attention(read)

    def _read(self, inputs: Inputs) -> States:
        if isinstance(self.read_in, SymbolReadIn):
            self.check_inputs(inputs, self.read_in.vocab_size)
        else:
            self.check_vectors(inputs, self.read_in.linear.in_features)
        states: Tensor = self.read_in(inputs, self.generator)
        return states


def _check_read_in_of_vectors(config: CausalTransformerConfig) -> None:
    """Raise a ValueError if a model for vectors has a setting that only models for symbols can have."""
    for name, default in (("read_in", "normed"), ("readout", "linear")):
        if getattr(config, name) != default:
            raise ValueError(
                f"{name}: expected {default!r} in a model for vectors, which has no embedding, got "
                f"{getattr(config, name)!r}; leave {name} out"
            )
