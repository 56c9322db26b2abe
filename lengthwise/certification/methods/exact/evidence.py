"""Evidence of merges that float32 computes without error."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence, Requirement, check_lead
from lengthwise.certification.parts import PositiveCount, describe_lead, refusal
from lengthwise.display import counted


@EVIDENCE.register("exact")
class ExactEvidence(Evidence):
    """The evidence that float32 computes each merge of a tree model's states without error.

    `logit_margin` is the smallest lead of the logit of the machine's answer over the other logits; None if the task has
    only one answer.
    """

    requires = Requirement("tree", {"regular-gpt": {"variant": "bare", "thickness": 1}})
    assumes = "the model merges its states as the machine does, without rounding errors"

    method: Literal["exact"] = "exact"
    num_prototypes: PositiveCount
    num_merges: PositiveCount
    logit_margin: float | None

    def describe(self) -> str:
        merges = f"all {counted(self.num_merges, 'merge')} of {counted(self.num_prototypes, 'prototype')}"
        return f"{merges}; {describe_lead(self.logit_margin)}"

    def check_numbers(self, certificate: Certificate) -> None:
        closure = certificate.closure
        if closure is None or (self.num_prototypes, closure.radius) != (closure.num_prototypes, 0):
            raise refusal("expected one class of radius 0 for each state, got other classes", "evidence")
        check_lead(self.logit_margin, certificate)
