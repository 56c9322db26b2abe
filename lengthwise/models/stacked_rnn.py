"""The common base of recurrent networks with residual layers, which contains everything except the recurrence."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from pydantic import Field
from torch import Tensor, nn

from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.recurrent_layer import BoundedLayer, Gated, RecurrentLayer, TabledLayer, hidden_layer_readout
from lengthwise.models.base import MAX_WIDTH, Depth, Ids, Logits, ModelConfig, RecurrentModel, State, SymbolModel, Width
from lengthwise.models.capabilities import BoundsSteps
from lengthwise.ops.intervals import Intervals


class StackedConfig(ModelConfig):
    """The settings that all stacked networks share: width D and number of layers."""

    d_model: Width = 64
    num_layers: Depth = 1


class StateSpaceConfig(StackedConfig):
    """The settings of S4 and S5: width D, number of layers, and the size P of a state.

    In S4, every channel has a state of P real numbers. In S5, all channels together have one such state.
    """

    d_state: int = Field(64, ge=2, le=MAX_WIDTH, multiple_of=2)


class StackedRNN(SymbolModel, RecurrentModel):
    """Embedded symbols, residual layers z + layer(norm(z)), a norm, and a read-out with a hidden ReLU layer.

    The state of a string consists of the states of all layers, one after another, and the output of the last layer for
    the newest symbol. The answer is read from this output. Embedding, norms and read-out are as in `block-linear-rnn`.
    But `block-linear-rnn` has no residual around its last layer, no gates, and no mixing of channels outside its
    recurrence.
    """

    positions_per_chunk: ClassVar[int] = 512
    """The largest number of symbols in a chunk. Long strings are read chunk by chunk."""

    Config: ClassVar[type[ModelConfig]] = StackedConfig
    config: StackedConfig
    layer_kinds: ClassVar[Sequence[type[RecurrentLayer]]]
    readout: nn.Sequential

    def build(self, vocab_size: int, num_classes: int) -> None:
        width = self.config.d_model
        self.embedding = nn.Embedding(vocab_size, width)
        self.layers = nn.ModuleList(layer for _ in range(self.config.num_layers) for layer in self.make_layers())
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in self.layers)
        self.readout = hidden_layer_readout(width, width, num_classes)

    def make_layers(self) -> Sequence[RecurrentLayer]:
        """Make the modules of one of the `num_layers` layers: by default, one module of each class in `layer_kinds`."""
        return [kind(**self.config.for_layer(kind)) for kind in self.layer_kinds]

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw embeddings from N(0, 1), the read-out as torch draws linear maps, and each layer by its own rule.

        Weights of norms become 1, and their biases 0.
        """
        nn.init.normal_(self.embedding.weight, generator=generator)
        for layer in self._layers():
            layer.reset_parameters(generator)
        draw_linears(self.readout, generator)
        for module in (*self.norms, self.readout[1]):
            module.reset_parameters()

    def initial_state(self, batch_size: int) -> Float[Tensor, "B Z"]:
        like = self.embedding.weight.new_zeros(batch_size, self.config.d_model)
        return torch.cat([*(layer.initial_state(like) for layer in self._layers()), like], 1)

    def step(self, token: Ids, state: State) -> tuple[Logits, State]:
        self.check_step(token, state, self.embedding.num_embeddings)
        ((_, state),) = self._parts(token[:, None], state)
        return self.readout(state), state

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        self.check_inputs(inputs, self.embedding.num_embeddings)
        parts = self._parts(inputs, self.initial_state(len(inputs)))
        return torch.cat([self.readout(features) for features, _ in parts], 1)

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B Z"]:
        self.check_inputs(inputs, self.embedding.num_embeddings)
        for _, state in self._parts(inputs, self.initial_state(len(inputs))):
            last = state
        return last

    def _parts(
        self, inputs: Int64[Tensor, "B T"], state: Float[Tensor, "B Z"]
    ) -> Iterator[tuple[Float[Tensor, "B _ D"], Float[Tensor, "B Z"]]]:
        """Yield the outputs of the last layer for each chunk of positions, and the state after the chunk."""
        sizes = [layer.state_size for layer in self._layers()]
        for tokens in inputs.split(self.positions_per_chunk, 1):
            features: Tensor = self.embedding(tokens)
            after: list[Tensor] = []
            # The last part of the state, the output for the previous symbol, is only for the read-out.
            *before, _ = state.split([*sizes, self.config.d_model], 1)
            for norm, layer, latest in zip(self.norms, self._layers(), before, strict=True):
                # The lowest layer reads only embeddings, so computing once per symbol is cheaper than per position.
                if not after and isinstance(layer, TabledLayer) and self._repeats(tokens):
                    outputs, latest = layer.through_rows(norm(self.embedding.weight), tokens, latest)
                else:
                    outputs, latest = layer(norm(features), latest)
                features = features + outputs
                after.append(latest)
            # Answers are read from the output of the last layer, so this output is part of the state.
            state = torch.cat([*after, features[:, -1]], 1)
            yield features, state

    def _repeats(self, tokens: Int64[Tensor, "B T"]) -> bool:
        """Return whether there are more positions than symbols; True for exported graphs, which cover both cases."""
        return torch.compiler.is_exporting() or tokens.numel() > self.embedding.num_embeddings

    def _layers(self) -> Sequence[RecurrentLayer]:
        return list(self.layers)  # type: ignore[arg-type]


class StateSpaceRNN(StackedRNN):
    """A stacked network of state-space layers of one kind, each with a gate."""

    Config = StateSpaceConfig
    config: StateSpaceConfig

    def make_layers(self) -> Sequence[RecurrentLayer]:
        return [Gated(layer, d_model=self.config.d_model) for layer in super().make_layers()]


class BoundedStackedRNN(BoundsSteps, StackedRNN):
    """A stack of layers, each of which can compute bounds on the results of its steps."""

    layer_kinds: ClassVar[Sequence[type[BoundedLayer]]]

    def bounds_after(self, states: Intervals, token: Int64[Tensor, "*N"]) -> Intervals:
        features = Intervals.around(self.embedding(token).to(states.low.dtype))
        layers: list[BoundedLayer] = list(self.layers)  # type: ignore[arg-type]
        *before, _ = states.split([*(layer.state_size for layer in layers), self.config.d_model])
        after = []
        for norm, layer, state in zip(self.norms, layers, before, strict=True):
            assert isinstance(norm, nn.LayerNorm)
            outputs, latest = layer.bounds(features.normed(norm), state)
            features = features + outputs
            after.append(latest)
        return Intervals.joined([*after, features])
