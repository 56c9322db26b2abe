"""The grid recurrence: one cell is applied at every entry of the table of two strings, as in dynamic programming."""

from types import MappingProxyType
from typing import Literal

import torch
from jaxtyping import Float, Int64
from pydantic import Field
from torch import Tensor

from lengthwise.conventions import BAR, NUM_SPECIAL
from lengthwise.layers.grid_cells import CategoricalCell, FreeCell, GridCell, NumberReadout
from lengthwise.models.base import MODELS, ModelConfig, SymbolModel, Width
from lengthwise.models.capabilities import AcceptsPads, AnswersNumbers, FollowsTraining
from lengthwise.models.checks import check_indices
from lengthwise.ops.grid import last_row

MAX_MESSAGES = 64
"""The largest number of classes of categorical messages, and of relations between letters. The table of a cell has a
row for each pair of classes and each relation."""

FALL_START, FALL_END = 0.6, 0.9
"""The fractions of training between which the temperature of categorical messages falls. Afterwards, it is 0."""


class GridRecurrenceConfig(ModelConfig):
    """The settings of a `GridRecurrence`: the kind of its messages, and their sizes.

    - `messages="categorical"`: a message is one of `num_messages` classes, and a pair of letters has one of
      `num_relations` relations. The temperature is 1 in the first 60 % of training. Until 90 %, it falls to
      `end_temperature` by the same factor at each step, while the numbers that are summed in an answer move towards
      integers. In the last 10 %, the temperature is 0, and the net is a finite rule.
    - `messages="free"`: a message is a vector of `d_model` numbers, computed by a layer of `hidden` units.
    - `sharpness`: the factor of squared distances in logits and loss (`AnswersNumbers`).
    """

    used_with = MappingProxyType(
        dict.fromkeys(("num_messages", "num_relations", "end_temperature"), ("messages", ("categorical",)))
        | dict.fromkeys(("d_model", "hidden"), ("messages", ("free",)))
    )

    messages: Literal["categorical", "free"] = "categorical"
    num_messages: int = Field(6, ge=2, le=MAX_MESSAGES)
    num_relations: int = Field(2, ge=1, le=MAX_MESSAGES)
    end_temperature: float = Field(0.1, gt=0, le=1)
    d_model: Width = 16
    hidden: Width = 64
    sharpness: float = Field(4.0, ge=0.5, le=1e6)


@MODELS.register("grid-recurrence")
class GridRecurrence(AcceptsPads, AnswersNumbers, FollowsTraining, SymbolModel):
    """A cell that passes messages over a grid of two strings. The answer is a number: a sum of numbers along a row.

    The grid has a row for each letter of the first string, and a column for each letter of the second. The model reads
    problems with two strings, written as ``a b c | a c <sep>``. Letters before the first ``|`` are the first string,
    which runs down the grid. Letters after the first ``|`` are the second string, which runs to the right. Other
    symbols and pads are not letters. After i letters of the first string and j letters of the second, the answer is

        y = c i + sum over j' <= j of r(down message from row i, column j').

    Here c is a learned number, and r maps a message to a number. So each prefix is answered from the rows and columns
    of the letters that the prefix contains. The state of a string is the number y. The logit of class k, an integer, is
    -s (k - y)^2 with `sharpness` s, so the answer is the integer nearest to y. No parameter depends on the number of
    classes, so a net can answer longer strings if there are classes for their answers.

    Source: Graves et al., "Multi-dimensional recurrent neural networks" (ICANN 2007); Kalchbrenner et al., "Grid long
        short-term memory" (ICLR 2016), a separate message along each dimension; Kaiser and Sutskever, "Neural GPUs
        learn algorithms" (ICLR 2016), one rule everywhere, learned on short strings.
    Differs from the source: the cell is a table of classes or a small net, the messages at the borders are learned, and
        the answer is a sum of numbers instead of a symbol.
    """

    Config = GridRecurrenceConfig
    default_preset = "growing-grid"
    config: GridRecurrenceConfig

    def build(self, vocab_size: int, num_classes: int) -> None:
        config = self.config
        self.num_symbols = vocab_size
        num_letters = max(0, vocab_size - NUM_SPECIAL)
        self.cell: GridCell
        if config.messages == "categorical":
            self.cell = CategoricalCell(
                num_letters=num_letters, num_messages=config.num_messages, num_relations=config.num_relations
            )
        else:
            self.cell = FreeCell(num_letters=num_letters, d_model=config.d_model, hidden=config.hidden)
        self.readout = NumberReadout(num_classes, sharpness=config.sharpness)

    def reset_parameters(self, generator: torch.Generator) -> None:
        self.cell.reset_parameters(generator)

    @property
    def sharpness(self) -> float:
        """Return the factor s of logits and loss: the logit of integer k is -s (k - y)^2 for the computed number y."""
        return self.config.sharpness

    def set_progress(self, fraction: float) -> None:
        """Set temperature and rounding of a `CategoricalCell`, given the fraction of training that is done."""
        if isinstance(self.cell, CategoricalCell):
            progress = min(1.0, max(0.0, (fraction - FALL_START) / (FALL_END - FALL_START)))
            # At the end the temperature is exactly 0, so the cell looks classes up, and its sums are exact.
            self.cell.temperature.fill_(self.config.end_temperature**progress if fraction < FALL_END else 0.0)
            self.cell.rounding.fill_(progress)

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        return self.logits_of(self.numbers(inputs)[..., None])

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B 1"]:
        return self.numbers(inputs)[:, -1:]

    def logits_at(self, inputs: Int64[Tensor, "B T"], indices: Int64[Tensor, " B"]) -> Float[Tensor, "B Y"]:
        numbers = self.numbers(inputs)
        check_indices(indices, inputs)
        return self.logits_of(numbers.gather(1, indices[:, None].to(inputs.device)))

    def numbers(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """Return the number that answers each prefix."""
        self.check_inputs(inputs, self.num_symbols)
        is_letter, is_second = inputs >= NUM_SPECIAL, (inputs == BAR).cumsum(1) > 0
        in_first, in_second = is_letter & ~is_second, is_letter & is_second
        heights = in_first.sum(1)
        first, second = (_compact(inputs - NUM_SPECIAL, which) for which in (in_first, in_second))
        row = last_row(self.cell.rule(), *self.cell.borders(), first, second, heights)
        return self.cell.numbers(row, in_first.cumsum(1), in_second.cumsum(1))


def _compact(letters: Int64[Tensor, "B T"], taken: Tensor) -> Int64[Tensor, "B _"]:
    """Return the letters of each row that are `taken`, moved to the left in their order and padded with letter 0."""
    width = int(taken.sum(1).max())
    # A stable sort keeps the letters in their order.
    order = (~taken).to(torch.int8).argsort(dim=1, stable=True)[:, :width]
    return letters.gather(1, order) * taken.gather(1, order)
