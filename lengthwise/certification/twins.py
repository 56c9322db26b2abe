"""A model that joins two nets: it answers "same" to the strings on which the nets agree, and "different" to all others.

A search for wrong answers of this model is a search for strings on which the two nets differ.
"""

from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.certification.attacks.grading import margins_of
from lengthwise.evaluation.continuations import continued_logits
from lengthwise.models.base import RecurrentModel, SequenceModel
from lengthwise.models.capabilities import ReadsContinuations
from lengthwise.ops.answers import answers_of

ANSWERS = ("same", "different")
"""The answers of `Twins`, in the order of its logits."""

SMALLEST, LARGEST = 1e-30, 1e30
"""The bounds on a lead, in logits (see `Agreement`).

The absolute value of a lead is at most `LARGEST`, so it is finite. If the answers differ, the lead is at most
-`SMALLEST`, so it is not 0.
"""


class Agreement(nn.Module):
    """A module that returns the logits of "same" and "different", from the logits of both nets.

    A net's lead is its logit for the other net's answer, minus the largest of its logits for all other answers. The
    logit of "different" is 0. The logit of "same" is the smaller of both nets' leads. It is at least 0 if the nets'
    answers agree, and below 0 if they differ. So hill climbing approaches strings on which one of the nets is about to
    change its answer. If both nets have a logit that is not finite, they count as agreeing.

    Example:
        >>> logits = torch.tensor([[3.0, 1.0, 2.5, 2.0], [3.0, 1.0, 0.0, 4.0]])
        >>> Agreement(2)(logits).tolist()
        [[0.5, 0.0], [-4.0, 0.0]]
    """

    def __init__(self, num_answers: int) -> None:
        super().__init__()
        self.num_answers = num_answers

    def forward(self, logits: Float[Tensor, "*N Y2"]) -> Float[Tensor, "*N 2"]:
        first, second = logits.split(self.num_answers, -1)
        answer, other = answers_of(first), answers_of(second)
        lead = torch.minimum(margins_of(first, other), margins_of(second, answer)).clamp(-LARGEST, LARGEST)
        lead = torch.where(answer == other, lead.clamp(min=0.0), lead.clamp(max=-SMALLEST)).float()
        return torch.stack([lead, torch.zeros_like(lead)], -1)


class Twins(SequenceModel):
    """Two nets as one model: `readout` takes the concatenated logits of both nets (`Agreement`)."""

    name: ClassVar[str] = "twins"
    readout: Agreement

    def __init__(self, net: SequenceModel, other: SequenceModel, num_answers: int) -> None:
        super().__init__()
        self.net, self.other = net, other
        self.readout = Agreement(num_answers)

    @property
    def max_length(self) -> int | None:
        """Return the largest length that both nets read."""
        return min((one.max_length for one in (self.net, self.other) if one.max_length is not None), default=None)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw new parameters for both nets."""
        self.net.reset_parameters(generator)
        self.other.reset_parameters(generator)

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T 2"]:
        logits: Tensor = self.readout(_joined(self.net(inputs), self.other(inputs)))
        return logits

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B Y2"]:
        return _joined(self.net.last(inputs), self.other.last(inputs))


class ContinuedTwins(ReadsContinuations, Twins):
    """A model of two nets that can both continue reading after a prefix."""

    def continued_logits(self, inputs: Int64[Tensor, "B T"], tails: Int64[Tensor, "W S"]) -> Float[Tensor, "B P W S 2"]:
        both = (continued_logits(one, inputs, tails) for one in (self.net, self.other))
        logits: Tensor = self.readout(_joined(*both))
        return logits


def twins_of(net: SequenceModel, other: SequenceModel, num_answers: int) -> Twins:
    """Join two nets into one model. Both nets must have the same symbols and the same number of answers."""
    can_continue = all(isinstance(one, ReadsContinuations | RecurrentModel) for one in (net, other))
    return (ContinuedTwins if can_continue else Twins)(net, other, num_answers)


def _joined(first: Float[Tensor, "*N Y"], second: Float[Tensor, "*N Y"]) -> Float[Tensor, "*N Y2"]:
    return torch.cat([first.to(dtype := torch.promote_types(first.dtype, second.dtype)), second.to(dtype)], -1)
