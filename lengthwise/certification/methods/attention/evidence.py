"""Evidence that a transformer's answers follow from bounds on its attention, up to a length."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence, Requirement, check_lead
from lengthwise.certification.parts import PositiveCount, describe_lead, refusal
from lengthwise.display import counted


@EVIDENCE.register("attention")
class AttentionEvidence(Evidence):
    """Boxes that contain the attention masses (see below) of all strings of up to `max_length` symbols.

    Each box has one right answer. This answer has the largest logit for all masses in the box.

    The mass of a kind of positions is the sum of a head's attention weights over these positions. In the first layer,
    the kind of a position is its symbol. In later layers, it is the symbol and the state of the task's machine.

    `num_blocks` is the number of ranges of lengths, each with its own boxes. The boxes of the last layer are halved
    into pieces, and `num_pieces` counts the pieces of all boxes. `logit_margin` is the smallest lead of the right
    answer's logit over the other logits in any piece; None if the task has only one answer. The method follows the
    task's own machine, so no machine is extracted.
    """

    requires = Requirement(None, {"transformer": {}})
    assumes = (
        "the model's attention gives each kind of position a mass within its bounds, and the right answer leads "
        "everywhere within these bounds"
    )

    method: Literal["attention"] = "attention"
    num_blocks: PositiveCount
    num_pieces: PositiveCount
    logit_margin: float | None
    max_length: PositiveCount

    def describe(self) -> str:
        return (
            f"attention to each kind of position is bounded in {counted(self.num_blocks, 'range')} of lengths up to "
            f"{self.max_length:,} symbols; in {counted(self.num_pieces, 'piece')} of these bounds "
            f"{describe_lead(self.logit_margin)}"
        )

    def check_numbers(self, certificate: Certificate) -> None:
        check_lead(self.logit_margin, certificate)
        if self.num_blocks > self.max_length:
            raise refusal("expected at most one range for each length, got more ranges than lengths", "evidence")
