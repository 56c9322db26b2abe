"""A wrapper by which a model of the task `scratchpad` reads its own answers, one after another."""

from collections.abc import Iterator
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Generator, Tensor

from lengthwise.models.base import SequenceModel
from lengthwise.models.capabilities import BoundedReceptiveField


class OwnAnswers(SequenceModel):
    """A wrapper by which a model reads its own answers: for s_1 ... s_T, the model reads s_1 =q_1 s_2 =q_2 ... s_T.

    Here =q_t is the symbol for q_t, which is the model's answer at s_t. Such a model is trained on the task
    `scratchpad`. Its symbols are the V symbols of the strings, followed by one symbol for each answer: answer y is
    symbol V + y. A string takes T passes, one after another, whereas other models read it at once. A pass reads all
    positions so far, or only the last ones if the model has a `BoundedReceptiveField`. The wrapper shares the model's
    weights.

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
    Differs from the source: an answer and the symbol after it are read in one pass, so there are T passes, not 2T.
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
        """Return the number of latest positions that the model reads to compute an answer; None means all positions."""
        return self.model.receptive_field if isinstance(self.model, BoundedReceptiveField) else None

    @property
    def max_length(self) -> int | None:
        """Return the largest length T for which the model can read 2T - 1 symbols; None means any length."""
        longest, num_read = self.model.max_length, self.num_positions_read
        # A pass never reads more than the receptive field.
        if longest is None or (num_read is not None and num_read <= longest):
            return None
        return (longest + 1) // 2

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        return self.logits_of(torch.stack(list(self._states(inputs)), 1))

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        for state in self._states(inputs):
            last = state
        return last

    def by_definition(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        """Return the logits of `forward`; for each answer, the model reads the prefix and all earlier answers again."""
        string, logits = inputs[:, :0], []
        for symbol in inputs.split(1, 1):
            string = torch.cat([string, symbol], 1)
            logits.append(self.model(string)[:, -1:])
            string = torch.cat([string, self.num_symbols + logits[-1].argmax(2)], 1)
        return torch.cat(logits, 1)

    def _states(self, inputs: Int64[Tensor, "B T"]) -> Iterator[Float[Tensor, "B D"]]:
        """Yield the model's state at each symbol."""
        self.check_inputs(inputs, self.num_symbols)
        string = torch.stack([inputs, torch.zeros_like(inputs)], 2).flatten(1)  # each symbol, then a gap for its answer
        num_read = self.num_positions_read or string.shape[1]
        for stop in range(1, string.shape[1], 2):
            # The model gets a copy, because the next line changes the string, and the gradient may still need it.
            state = self.model.last_state(string[:, max(0, stop - num_read) : stop].clone())
            string[:, stop] = self.num_symbols + self.readout(state).argmax(1)
            yield state
