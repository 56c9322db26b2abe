"""A linear recurrent network with block-diagonal transitions that depend on the input."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int64
from pydantic import Field, model_validator
from torch import Tensor, nn

from lengthwise.layers.block_linear import (
    HARDENED,
    NORMALIZED,
    BlockLinearLayer,
    Columns,
    FirstState,
    InputMap,
    num_symbol_features,
)
from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.recurrent_layer import MixtureReadout, hidden_layer_readout
from lengthwise.models.base import MAX_WIDTH, MODELS, Depth, Ids, ModelConfig, RecurrentModel, State, SymbolModel, Width
from lengthwise.models.capabilities import Distributions, FollowsTraining, HoldsDistributions
from lengthwise.ops.answer_likelihood import answer_log_probabilities
from lengthwise.ops.in_range import Steps, states_in_range, steps_by_position, steps_by_symbol
from lengthwise.ops.symbol_recurrence import symbol_final_state
from lengthwise.validation import check_divisor

MAX_ELEMENTS_PER_CHUNK = 1 << 24
"""The largest number of elements in a chunk of positions that is computed at once. In a net of one layer, the elements
of states count. In a deeper net, the elements of transitions count."""

MAX_TABLED_SYMBOLS = 256
"""The largest vocabulary for which tables have a row for every symbol. For a larger vocabulary, only the symbols of the
input have rows."""


class SymbolTables(NamedTuple):
    """Tables of the first layer with one row for each symbol: embeddings, transitions and inputs."""

    embedded: Float[Tensor, "V _"]
    transitions: Float[Tensor, "V N S S"]
    values: Float[Tensor, "V N S"]


class BlockLinearRNNConfig(ModelConfig):
    """The settings of a `BlockLinearRNN`: width D, block dimension S (a divisor of D), number of layers, and more.

    - `columns`, `p`, `input_map`, `first_state`: as in `BlockLinearLayer`, for all layers.
    - `hidden`: the number of hidden units between a symbol's embedding and its transition. With 0 units, the embedding
      itself contains the numbers that determine the symbol's matrix and, with `"unit"` columns, the symbol's input.
    - `read`: the read-out has a hidden layer, which reads the states of all layers (`"all"`) or of the last layer
      (`"last"`). In a net with one layer of one block, `"mixture"` gives each state its own distribution over answers,
      and mixes these distributions (`MixtureReadout`).
    - `alignment`: in a mixture, this number is added to the initial logit of class s mod Y in state s, for Y classes.
      Each state then begins with one preferred answer, so states do not compete for answers.
    - `end_temperature`: with `"stochastic"` or `"reflected"` columns, the temperature is 1 in the first 40 % of
      training. From 40 % to 90 %, it falls to this value by the same factor at each step. In the last 10 %, it is 0.

    At temperature 0, stochastic columns are one-hot vectors, and the net is a finite machine. The transitions of all
    layers then stop learning. Blocks of reflected columns become the identity or a reflection, and both preserve all
    distances between states.

    Eq. (5) and (6) of Fan et al. (2024), taken literally, correspond to `"clamped"` columns with a `"linear"` input
    map. The equations name no first state; our experiments with them use `"zero"`. SD-SSM (preset `sd2025`) has
    `"unit"` columns without hidden units, so each symbol learns its own matrix and input directly. States with unit
    columns may grow without limit. So a state is scaled down if its largest number exceeds 2^30
    (`lengthwise.ops.in_range`). The norms before later layers and before the read-out keep only the direction of a
    state.
    """

    used_with = MappingProxyType(
        {
            "p": ("columns", tuple(NORMALIZED)),
            "end_temperature": ("columns", HARDENED),
            "alignment": ("read", ("mixture",)),
        }
    )

    d_model: Width = 64
    block_dim: Width = 8
    num_layers: Depth = 1
    columns: Columns = "stochastic"
    p: float = Field(1.2, ge=1, le=8)
    hidden: int = Field(512, ge=0, le=MAX_WIDTH)
    read: Literal["all", "last", "mixture"] = "all"
    alignment: float = Field(0.0, ge=0, le=30, exclude_if=lambda alignment: alignment == 0)
    end_temperature: float = Field(0.001, ge=1e-30, le=1)
    input_map: InputMap = Field("two-layer", exclude_if=lambda name: name == "two-layer")
    first_state: FirstState = Field("learned", exclude_if=lambda name: name == "learned")

    @model_validator(mode="after")
    def _parts_fit(self) -> "BlockLinearRNNConfig":
        check_divisor("block_dim", self.block_dim, self.d_model)
        if self.block_dim == 1 and self.columns == "rescaled":
            raise ValueError(
                "block_dim: expected at least 2 with columns 'rescaled', got 1; a column of one number becomes 0 when "
                "its mean is subtracted, so choose a larger block_dim or columns='clamped'"
            )
        if not self.hidden and (self.columns not in (*HARDENED, "unit") or self.num_layers > 1):
            raise ValueError(
                f"hidden: expected at least 1 unit with columns {self.columns!r} and num_layers={self.num_layers}, "
                "got 0; set hidden, or choose a single layer of columns 'stochastic', 'reflected' or 'unit'"
            )
        if not self.hidden and self.columns == "unit" and self.input_map != "linear":
            raise ValueError(
                "input_map: expected 'linear' with columns 'unit' and hidden=0, which learn each symbol's input "
                f"directly, got {self.input_map!r}; choose 'linear', or set hidden"
            )
        if self.columns in HARDENED and (self.input_map, self.first_state) != ("two-layer", "learned"):
            name = "input_map" if self.input_map == "linear" else "first_state"
            raise ValueError(
                f"{name}: expected its default with columns 'stochastic' or 'reflected', whose states have no inputs "
                f"and cannot start at 0, got {getattr(self, name)!r}; leave {name} out, or choose columns='clamped'"
            )
        mixed = (self.columns, self.num_layers, self.block_dim)
        if self.read == "mixture" and mixed != ("stochastic", 1, self.d_model):
            raise ValueError(
                "read: expected 'all' or 'last' unless the net is one layer of one block with columns 'stochastic', "
                f"got 'mixture' with {self.num_layers} layers of {self.d_model // self.block_dim} blocks and columns "
                f"{self.columns!r}; choose block_dim={self.d_model}, num_layers=1 and columns='stochastic'"
            )
        return self


@MODELS.register("block-linear-rnn")
class BlockLinearRNN(FollowsTraining, HoldsDistributions, SymbolModel, RecurrentModel):
    """x_t = A(u_t) x_{t-1} + v(u_t) with A(u) = diag(A^(1), ..., A^(N)), in one or more layers.

    Here x_t is the state after t symbols, u_t is the input of the layer, and A^(1), ..., A^(N) are blocks of size S.
    With a linear input map, this is eq. (5): x_t = A(u_t) x_{t-1} + B u_t. Eq. (5) names no first state.

    The first layer reads the normalized embeddings of symbols. Without hidden units, it reads the embeddings unchanged.
    Each further layer reads the normalized sum of the embedding and the states of all layers below. Transitions of the
    first layer depend only on the symbol, so they are computed once for each symbol
    (`lengthwise.ops.symbol_recurrence`). For a large vocabulary, they are computed only for the symbols of the input.
    The state of a string consists of the states of all layers, one after another.

    Source: Fan et al. (2024), eq. (1), (5), (6). The published code defines what the paper leaves open: the nets that
        compute transitions, the normalization, the residuals (around all layers but the last) and the read-out.
    Differs from the source: by default, columns are distributions that end as one-hot vectors, and answers are read
        from all layers instead of the last. The variants of the paper and of its code are settings. Two settings are
        ours: matrices that are learned without hidden units, and answers from a mixture.
    """

    Config = BlockLinearRNNConfig
    config: BlockLinearRNNConfig
    default_goal_preset = "likelihood"

    def build(self, vocab_size: int, num_classes: int) -> None:
        config = self.config
        width = config.d_model
        # Without hidden units, an embedding contains the symbol's matrix and input, which a norm must not change.
        numbers = num_symbol_features(width, config.block_dim, config.columns)
        self.embedding = nn.Embedding(vocab_size, width if config.hidden else numbers)
        self.norms = nn.ModuleList(
            nn.LayerNorm(width) if config.hidden else nn.Identity() for _ in range(config.num_layers)
        )
        self.layers = nn.ModuleList(
            BlockLinearLayer(**config.for_layer(BlockLinearLayer)) for _ in range(config.num_layers)
        )
        read = width * (config.num_layers if config.read == "all" else 1)
        mixes = config.read == "mixture"
        self.readout = MixtureReadout(width, num_classes) if mixes else hidden_layer_readout(read, width, num_classes)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw embeddings from N(0, 1), and maps of n inputs uniformly within 1 / sqrt(n) of 0.

        Weights of norms become 1, and their biases 0. If embeddings contain unit columns, they are drawn from
        N(0, 1 / S) for blocks of size S, so that the 2-norms of columns are about 1.
        """
        holds_columns = not self.config.hidden and self.config.columns == "unit"
        std = self.config.block_dim**-0.5 if holds_columns else 1.0
        nn.init.normal_(self.embedding.weight, std=std, generator=generator)
        for layer in self.layers:
            layer.reset_parameters(generator)  # type: ignore[operator]  # ModuleList forgets the type of its modules
        if isinstance(self.readout, MixtureReadout):
            self.readout.reset_parameters(generator, alignment=self.config.alignment)
        draw_linears(self.readout, generator)
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()

    def set_progress(self, fraction: float) -> None:
        """Set the temperature of the columns, given the fraction of training that is done."""
        fallen = max(0.0, (fraction - 0.4) / 0.5)
        temperature = self.config.end_temperature**fallen if fraction < 0.9 else 0.0
        for layer in self._layers():
            layer.temperature.fill_(temperature)

    @property
    def distributions(self) -> tuple[Distributions, ...]:
        (layer, *_), size = self._layers(), self.config.block_dim
        if not isinstance(self.readout, MixtureReadout) or self.config.hidden:
            raise ValueError(
                "train.optimizer.name: expected 'adamw' or 'adam' for a block-linear-rnn that is not a hidden "
                f"Markov model, got 'baum-welch' with read={self.config.read!r} and hidden={self.config.hidden}; set "
                "model.read to 'mixture' and model.hidden to 0, as preset likelihood does"
            )
        assert isinstance(layer.first_state, nn.Parameter), "stochastic columns have a learned first state"
        return (
            Distributions(self.embedding.weight, (self.embedding.num_embeddings, size, size), 1),
            Distributions(self.readout.weight, tuple(self.readout.weight.shape), 1),
            Distributions(layer.first_state, (1, size), 1),
        )

    def answer_log_probabilities(
        self, inputs: Int64[Tensor, "B T"], targets: Int64[Tensor, "B T"]
    ) -> Float[Tensor, "B T"]:
        self.check_inputs(inputs, self.embedding.num_embeddings)
        transitions, answers, first = (d.logits.view(d.shape).exp() for d in self.distributions)
        return answer_log_probabilities(transitions, answers.T, inputs, targets, first.expand(len(inputs), -1))

    def initial_state(self, batch_size: int) -> Float[Tensor, "B D"]:
        return torch.cat([layer.initial_state(batch_size).flatten(1) for layer in self._layers()], 1)

    def step(self, token: Ids, state: State) -> tuple[Float[Tensor, "B Y"], State]:
        self.check_step(token, state, self.embedding.num_embeddings)
        layers = self._layer_states(*self._tables(token[:, None]), self._split(state))
        joined = torch.cat([states.flatten(1) for states in layers], 1)
        return self.readout(joined), joined

    def states(self, inputs: Int64[Tensor, "B T"]) -> Iterator[Float[Tensor, "B _ D"]]:
        """Yield the states at every position, in chunks."""
        latest = self._split(self.initial_state(len(inputs)))
        tables, rows = self._tables(inputs)
        for tokens in self._chunks(rows):
            layers = self._layer_states(tables, tokens, latest)
            latest = [states[:, -1] for states in layers]
            yield torch.cat([states.flatten(2) for states in layers], 2)

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        # The fast path needs a single layer, which reads only symbols, and columns that cannot make states grow.
        if self.config.num_layers > 1 or self.config.columns == "unit":
            return super().last_state(inputs)
        (state,) = self._split(self.initial_state(len(inputs)))
        tables, rows = self._tables(inputs)
        for tokens in self._chunks(rows):
            state = symbol_final_state(tables.transitions, tables.values, tokens, state, overflow="keep")
        return state.flatten(1)

    def _chunks(self, inputs: Int64[Tensor, "B T"]) -> Sequence[Int64[Tensor, "B _"]]:
        """Return the strings in chunks of positions, limited by `MAX_ELEMENTS_PER_CHUNK`."""
        # Layers above the first need a transition matrix at each position. The first layer looks up its matrices in a
        # table.
        numbers = self.config.d_model * (self.config.block_dim if self.config.num_layers > 1 else 1)
        size = max(1, MAX_ELEMENTS_PER_CHUNK // max(1, len(inputs) * numbers))
        return torch.split(inputs, size, 1)

    def _layer_states(
        self,
        tables: SymbolTables,
        tokens: Int64[Tensor, "B T"],
        before: Sequence[Float[Tensor, "B N S"]],
    ) -> list[Float[Tensor, "B T N S"]]:
        """Return the states of all layers, given each layer's previous state; `tokens` are rows of the tables."""
        lowest, *others = before
        steps = steps_by_symbol(tables.transitions, tables.values, tokens)
        layers = [self._all_states(steps, tokens.shape[1], lowest)]
        if not others:
            return layers
        stream = nn.functional.embedding(tokens, tables.embedded)
        # The first norm is skipped here, because the table of symbols is already normalized.
        for norm, layer, state in zip(self.norms[1:], self._layers()[1:], others, strict=True):
            stream = stream + layers[-1].flatten(2)
            features = norm(stream)
            steps = steps_by_position(layer.transitions(features), layer.inputs(features))
            layers.append(self._all_states(steps, tokens.shape[1], state))
        return layers

    def _all_states(self, steps: Steps, length: int, initial: Float[Tensor, "B N S"]) -> Float[Tensor, "B T N S"]:
        """Return the states of a layer; with unit columns, states can grow and are kept in range."""
        if self.config.columns == "unit":
            return states_in_range(steps, length, initial, driven=True)
        return steps(0, length, initial)

    def _tables(self, inputs: Int64[Tensor, "B T"]) -> tuple[SymbolTables, Int64[Tensor, "B T"]]:
        """Return the tables and the row of each position; in a large vocabulary, only the input's symbols have rows."""
        self.check_inputs(inputs, self.embedding.num_embeddings)
        embedded = self.embedding.weight
        if len(embedded) > MAX_TABLED_SYMBOLS:
            symbols, inputs = inputs.unique(return_inverse=True)
            embedded = self.embedding(symbols)
        return self._tables_of(embedded), inputs

    def _tables_of(self, embedded: Float[Tensor, "V _"]) -> SymbolTables:
        features, layer = self.norms[0](embedded), self._layers()[0]
        return SymbolTables(embedded, layer.transitions(features), layer.inputs(features))

    def _layers(self) -> Sequence[BlockLinearLayer]:
        return list(self.layers)  # type: ignore[arg-type]

    def _split(self, state: Float[Tensor, "B D"]) -> list[Float[Tensor, "B N S"]]:
        """Split a string's state into the states of its layers, in blocks."""
        return [part.unflatten(1, (-1, self.config.block_dim)) for part in state.split(self.config.d_model, 1)]
