"""Evidence of the enumerated one-hot states of a recurrence."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence, Requirement, check_lead, describe_lead
from lengthwise.certification.parts import PositiveCount


@EVIDENCE.register("states")
class StateEvidence(Evidence):
    """All states of a recurrence whose columns are one-hot vectors, and all steps between them.

    `slack`: the smallest change of the difference of two logits that may change a column in float32; None if blocks
    have one entry.
    `logit_margin`: the smallest lead of a state's answer over other answers; None if the task has only one answer.
    """

    requires = Requirement("transducer", {"block-linear-rnn": {"columns": "stochastic", "num_layers": 1}})
    assumes = "the model has exactly the enumerated states and steps"

    method: Literal["states"] = "states"
    num_states: PositiveCount
    num_steps: PositiveCount
    slack: float | None
    logit_margin: float | None

    def describe(self) -> str:
        slack = "" if self.slack is None else f"no column changes unless a lead of a logit falls by {self.slack:.2g}; "
        return (
            f"{self.num_states:,}, all {self.num_steps:,} steps enumerated; {slack}{describe_lead(self.logit_margin)}"
        )

    def check_numbers(self, certificate: Certificate) -> None:
        closure = certificate.closure
        if closure is None or self.num_states != closure.num_prototypes:
            raise ValueError(
                "evidence: expected one prototype for each state, got a different number of prototypes; certify again"
            )
        if self.slack is not None and self.slack <= 0:
            raise ValueError(
                "evidence: expected columns with a margin larger than the rounding errors, got no margin; certify again"
            )
        check_lead(self.logit_margin, certificate)
