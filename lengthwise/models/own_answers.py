"""A model of a scratchpad that reads its own answers, one after another."""

from collections.abc import Iterator
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Generator, Tensor

from lengthwise.models.base import SequenceModel
from lengthwise.models.capabilities import BoundedReceptiveField


class OwnAnswers(SequenceModel):
    """Answers strings s_1 s_2 ... s_T by a model that reads s_1 =q_1 s_2 =q_2 ... s_T, where q_t is its answer at s_t.

    Such a model is trained on the task `scratchpad`: symbol v < V of a string is its symbol v, and answer y is its
    symbol V + y. A string therefore takes T passes, one after another, while other models read it at once. If the model
    has a `BoundedReceptiveField`, each pass reads that many of the last positions, otherwise all of them. The weights
    are shared with the model.

    Args:
        model: the model, which reads symbols and answers.
        num_symbols: V, the number of symbols of the strings.

    Example:
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> task = make_task("scratchpad", base="parity")
        >>> model = OwnAnswers(make_model("gru", task, d_model=8), num_symbols=2)
        >>> model(torch.tensor([[0, 1, 1]])).shape
        torch.Size([1, 3, 2])

    Source: Chi et al. (2023), section 2.2: all intermediate answers have to be generated sequentially.
    Differs from the source: an answer and the symbol after it are read in one pass, so that there are T passes, not 2T.
    """

    name: ClassVar[str] = "own-answers"

    def __init__(self, model: SequenceModel, *, num_symbols: int) -> None:
        super().__init__()
        self.config = model.config
        self.model = model
        self.readout = model.readout
        self.num_symbols = num_symbols

    def reset_parameters(self, generator: Generator) -> None:
        self.model.reset_parameters(generator)

    @property
    def num_positions_read(self) -> int | None:
        """Return how many of the last positions a pass reads; None means all."""
        return self.model.receptive_field if isinstance(self.model, BoundedReceptiveField) else None

    @property
    def max_length(self) -> int | None:
        """Return the largest T for which the model can read 2T - 1 symbols; None means any."""
        longest, num_read = self.model.max_length, self.num_positions_read
        # A pass never reads more than the receptive field.
        if longest is None or (num_read is not None and num_read <= longest):
            return None
        return (longest + 1) // 2

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        logits: Tensor = self.readout(torch.stack(list(self._states(inputs)), 1))
        return logits

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        for state in self._states(inputs):
            last = state
        return last

    def by_definition(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        """Return the same numbers as `forward`, by reading everything so far again for each answer."""
        string, logits = inputs[:, :0], []
        for symbol in inputs.split(1, 1):
            string = torch.cat([string, symbol], 1)
            logits.append(self.model(string)[:, -1:])
            string = torch.cat([string, self.num_symbols + logits[-1].argmax(2)], 1)
        return torch.cat(logits, 1)

    def _states(self, inputs: Int64[Tensor, "B T"]) -> Iterator[Float[Tensor, "B D"]]:
        """Yield the model's state at each symbol."""
        self.check_inputs(inputs, self.num_symbols)
        string = torch.stack([inputs, torch.zeros_like(inputs)], 2).flatten(1)  # with a gap for an answer per symbol
        num_read = self.num_positions_read or string.shape[1]
        for stop in range(1, string.shape[1], 2):
            # The string is changed below, so the model gets a copy, which the gradient may still need.
            state = self.model.last_state(string[:, max(0, stop - num_read) : stop].clone())
            string[:, stop] = self.num_symbols + self.readout(state).argmax(1)
            yield state
