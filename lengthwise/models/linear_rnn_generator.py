"""The linear RNN that generates a word: its step is linear, and it reads its own answers."""

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.conventions import Tie
from lengthwise.devices import in_full_precision
from lengthwise.layers.initialization import draw_uniformly
from lengthwise.models.base import MODELS, Ids, Logits, ModelConfig, RecurrentModel, State, SymbolModel, Width
from lengthwise.models.capabilities import HasHiddenMatrices

Ties = Literal["lowest", "error"]

MAX_STATES_PER_CHUNK = 4096
"""The largest number of steps whose states are in memory at once."""


class LinearRNNGeneratorConfig(ModelConfig):
    """The setting of a `LinearRNNGenerator`: the width d of its state."""

    d_model: Width = 64


@MODELS.register("linear-rnn-generator")
class LinearRNNGenerator(HasHiddenMatrices, SymbolModel, RecurrentModel):
    """h_i = W_h h_{i-1} + W_x x_i, y_i = W_y h_i + b_y from h_0 = 0; `generate` sets x_{i+1} to the argmax of y_i.

    Here h_i is the state, x_i is the one-hot vector of the i-th symbol, and y_i are the logits. The matrices W_h, W_x
    and W_y and the bias b_y are parameters.

    Like every model of this package, it can answer given strings. To generate, its symbols must be its classes, in the
    same order, followed by START as the last symbol. Generation begins with START, so h_1 is START's column of W_x.

    Source: "update on rnn memorization" (20 November 2023), its definition.
    Differs from the source: the source does not mention ties. Here, the lowest index wins a tie, or a tie is an error.
    """

    Config = LinearRNNGeneratorConfig
    config: LinearRNNGeneratorConfig
    readout: nn.Linear

    def build(self, vocab_size: int, num_classes: int) -> None:
        config = self.config
        self.hidden_weight = nn.Parameter(torch.empty(config.d_model, config.d_model))
        self.input_weight = nn.Parameter(torch.empty(config.d_model, vocab_size))
        self.readout = nn.Linear(config.d_model, num_classes)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again, uniformly within 1 / sqrt(d) of 0 for a state of width d."""
        draw_uniformly(self.parameters(), self.config.d_model, generator)

    @property
    def hidden_matrices(self) -> Sequence[nn.Parameter]:
        """Return the recurrent matrix W_h."""
        return [self.hidden_weight]

    def initial_state(self, batch_size: int) -> Float[Tensor, "B D"]:
        return self.hidden_weight.new_zeros(batch_size, self.config.d_model)

    @in_full_precision
    def step(self, token: Ids, state: State) -> tuple[Logits, State]:
        self.check_step(token, state, self.input_weight.shape[1])
        state = state @ self.hidden_weight.T + self.input_weight.T[token]
        return self.readout(state), state

    def states(self, inputs: Int64[Tensor, "B T"]) -> Iterator[Float[Tensor, "B _ D"]]:
        """Yield the states at every position, one by one."""
        self.check_inputs(inputs, self.input_weight.shape[1])
        yield from super().states(inputs)

    @torch.no_grad()
    def generate(self, count: int, *, ties: Ties = "lowest") -> Int64[Tensor, " n"]:
        """Return the first `count` symbols after START, in the precision of the parameters.

        If W_x is 0 except in the column of START, states do not depend on the generated symbols. The states are then
        computed first, and the read-out reads up to `MAX_STATES_PER_CHUNK` states at once.

        Raises:
            ValueError: `count` is negative, or the model does not have exactly one symbol more than classes.
            Tie: `ties` is "error" and the largest logit of a step is tied.

        Example:
            >>> model = LinearRNNGenerator(LinearRNNGeneratorConfig(d_model=1), vocab_size=3, num_classes=2)
            >>> alternating = ([[-1.0]], [[0.0, 0.0, 1.0]], [[1.0], [-1.0]], [0.0, 0.0])
            >>> for parameter, numbers in zip(model.parameters(), alternating):
            ...     parameter.data = torch.tensor(numbers)
            >>> model.generate(5).tolist()
            [0, 1, 0, 1, 0]
        """
        self._check_generates(count)
        if self.input_weight[:, :-1].any():
            return generate_by_definition(self, count, ties=ties)
        # h_1 is START's column of W_x, because h_0 is 0.
        state, tokens = self.input_weight[:, -1], []
        for start in range(0, count, MAX_STATES_PER_CHUNK):
            states = []
            for _ in range(min(MAX_STATES_PER_CHUNK, count - start)):
                states.append(state)
                state = self.hidden_weight @ state
            tokens.append(_largest(self.readout(torch.stack(states)), ties, start))
        return torch.cat(tokens) if tokens else torch.zeros(0, dtype=torch.int64)

    def _check_generates(self, count: int) -> None:
        num_symbols, num_classes = self.input_weight.shape[1], self.readout.out_features
        if num_symbols != num_classes + 1:
            raise ValueError(
                f"vocab_size: expected {num_classes + 1}, a symbol for each class and one for START, got "
                f"{num_symbols}; make the model for an alphabet whose last symbol is START"
            )
        if count < 0:
            raise ValueError(f"count: expected at least 0 symbols, got {count}; give the number of symbols to generate")


@torch.no_grad()
def generate_by_definition(model: RecurrentModel, count: int, *, ties: Ties = "lowest") -> Int64[Tensor, " n"]:
    """Return the symbols that a model generates: it reads START (its highest symbol id) and then its own answers."""
    start = model.readout.out_features
    token, state = torch.tensor([start]), model.initial_state(1)
    tokens = []
    for i in range(count):
        logits, state = model.step(token, state)
        token = _largest(logits, ties, i)
        tokens.append(token)
    return torch.cat(tokens) if tokens else torch.zeros(0, dtype=torch.int64)


def _largest(logits: Float[Tensor, "T Y"], ties: Ties, start: int) -> Int64[Tensor, " T"]:
    largest = logits.amax(1, keepdim=True)
    if ties == "error":
        # Comparisons with NaN are False, so a NaN counts as a tie and not as an answer.
        clear = (logits < largest).sum(1) == logits.shape[1] - 1
        if not bool(clear.all()):
            step = int((~clear).int().argmax())
            way_out = "correct the weights" if bool(logits[step].isnan().any()) else "ties='lowest' takes the first"
            raise Tie(f"step {start + step + 1}: expected one largest logit, got {logits[step].tolist()}; {way_out}")
    return logits.argmax(1)
