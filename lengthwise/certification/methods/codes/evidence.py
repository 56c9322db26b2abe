"""Evidence of the enumerated merges of a model that quantizes its states to codes."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence, Requirement, check_lead
from lengthwise.certification.parts import PositiveCount, describe_lead, refusal


@EVIDENCE.register("codes")
class CodeEvidence(Evidence):
    """The evidence that each merge of leaves and codes gives the machine's code, however float32 rounds.

    `slack`: the smallest distance of a merged state, after rounding, from states that are nearest to another code; None
    if there is only one code. `logit_margin`: the smallest lead of the logit of the machine's answer over the
    other logits; None if the task has only one answer.
    """

    requires = Requirement("tree", {"codebook-gpt": {}})
    assumes = "the model merges codes as the machine does"

    method: Literal["codes"] = "codes"
    num_codes: PositiveCount
    num_merges: PositiveCount
    slack: float | None
    logit_margin: float | None

    def describe(self) -> str:
        slack = "" if self.slack is None else f"states are at least {self.slack:.2g} away from another code's region; "
        return (
            f"{self.num_codes:,}, all {self.num_merges:,} merges enumerated; {slack}{describe_lead(self.logit_margin)}"
        )

    def check_numbers(self, certificate: Certificate) -> None:
        if not (self.num_codes == 1 if self.slack is None else self.slack > 0):
            raise refusal(f"expected a positive slack, or None for a single code, got {self.slack}", "evidence")
        check_lead(self.logit_margin, certificate)
