"""What transformers share: everything but their stack of layers."""

from abc import abstractmethod
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int64
from pydantic import Field, model_validator
from torch import Tensor, nn

from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.read_in import SymbolReadIn, VectorReadIn
from lengthwise.layers.transformer_layer import TransformerLayer
from lengthwise.models.base import Inputs, ModelConfig, SequenceModel, Width, check_divides_width
from lengthwise.models.capabilities import AcceptsPads, AcceptsVectors, HasHiddenMatrices


class CausalTransformerConfig(ModelConfig):
    """Width D, heads H (a divisor of D), positions, and how linear maps start.

    `learned_positions`: 0 for fixed sinusoids, which any length has; otherwise the size of a learned table, which is
    then the longest input. `initialization`: `"torch"`, uniform up to 1 / sqrt(inputs), or `"gpt2"`, N(0, 0.02^2) with
    biases 0 and the maps that end in the residual smaller by the square root of their number.
    """

    d_model: Width = 64
    num_heads: Width = 4
    learned_positions: int = Field(0, ge=0, le=1_000_000)
    initialization: Literal["torch", "gpt2"] = "torch"

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "CausalTransformerConfig":
        check_divides_width("num_heads", self.num_heads, self.d_model)
        return self


class CausalTransformer(AcceptsPads, AcceptsVectors, HasHiddenMatrices, SequenceModel):
    """A read-in, layers of causal attention, a LayerNorm and a linear read-out.

    Made for symbols (`vocab_size`), of which pads at the end are none, or for vectors (`input_dim`). Attention is
    causal, so that a pad changes no answer before it. A subclass makes `layers`, all that have weights of their own,
    and says how they follow one another (`states`, `states_at`).
    """

    default_preset: ClassVar[str] = "plain"
    config: CausalTransformerConfig
    layers: nn.ModuleList
    readout: nn.Sequential

    def __init__(
        self,
        config: CausalTransformerConfig,
        *,
        vocab_size: int | None = None,
        input_dim: int | None = None,
        num_classes: int,
    ) -> None:
        super().__init__()
        self.config = config
        if (vocab_size is None) == (input_dim is None):
            raise ValueError(
                "vocab_size: expected the number of symbols or, for vectors, input_dim; give one of the two"
            )
        sizes = {"d_model": config.d_model, "learned_positions": config.learned_positions}
        self.read_in: SymbolReadIn | VectorReadIn
        if vocab_size is not None:
            self.read_in = SymbolReadIn(vocab_size=vocab_size, **sizes)
        elif input_dim is not None:
            self.read_in = VectorReadIn(input_dim=input_dim, **sizes)
        self.readout = nn.Sequential(nn.LayerNorm(config.d_model), nn.Linear(config.d_model, num_classes))

    @abstractmethod
    def states(self, read: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """What the layers make of the inputs as they were read."""

    @abstractmethod
    def states_at(self, read: Float[Tensor, "B T D"], indices: Int64[Tensor, " B"]) -> Float[Tensor, "B D"]:
        """`states` at one position of each row, as cheaply as the layers can."""

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again; norms start at 1 and 0."""
        self.read_in.reset_parameters(generator)
        for layer in self._layers():
            layer.reset_parameters(generator)
        norm, linear = self.readout
        norm.reset_parameters()  # type: ignore[operator]  # Sequential forgets the type of its modules
        draw_linears(linear, generator)
        if self.config.initialization == "gpt2":
            self._draw_as_gpt2_does(generator)

    def _draw_as_gpt2_does(self, generator: torch.Generator) -> None:
        into_residual = {linear for layer in self._layers() for linear in (layer.output, layer.narrow)}
        for part in (self.read_in, self.layers, self.readout):
            for module in part.modules():
                if isinstance(module, nn.Linear):
                    smaller = len(into_residual) ** 0.5 if module in into_residual else 1.0
                    nn.init.normal_(module.weight, std=0.02 / smaller, generator=generator)
                    nn.init.zeros_(module.bias)
                if isinstance(module, nn.Embedding):
                    nn.init.normal_(module.weight, std=0.02, generator=generator)

    def _layers(self) -> list[TransformerLayer]:
        return list(self.layers)  # type: ignore[arg-type]  # ModuleList forgets the type of its modules

    @property
    def hidden_matrices(self) -> list[nn.Parameter]:
        """The matrices of all layers."""
        return [parameter for parameter in self.layers.parameters() if parameter.ndim == 2]

    def forward(self, inputs: Inputs) -> Float[Tensor, "B T Y"]:
        logits: Tensor = self.readout(self.states(self._read(inputs)))
        return logits

    def logits_at(
        self,
        inputs: Inputs,
        indices: Int64[Tensor, " B"],
    ) -> Float[Tensor, "B Y"]:
        logits: Tensor = self.readout(self.states_at(self._read(inputs), indices))
        return logits

    def last_state(self, inputs: Inputs) -> Float[Tensor, "B D"]:
        return self.states_at(self._read(inputs), inputs.new_full((len(inputs),), inputs.shape[1] - 1).long())

    def _read(self, inputs: Inputs) -> Float[Tensor, "B T D"]:
        if isinstance(self.read_in, SymbolReadIn):
            self.check_inputs(inputs, self.read_in.embedding.num_embeddings)
        else:
            self.check_vectors(inputs, self.read_in.linear.in_features)
        states: Tensor = self.read_in(inputs)
        return states
