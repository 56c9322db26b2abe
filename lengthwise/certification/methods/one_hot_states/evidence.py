"""Evidence of the enumerated one-hot states of a recurrence."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence, Requirement, check_lead
from lengthwise.certification.parts import PositiveCount, describe_lead, refusal


@EVIDENCE.register("states")
class StateEvidence(Evidence):
    """All states of a recurrence whose matrices have one-hot columns, and all steps between these states.

    Each column is the softmax of logits. `slack`: the distance by which other logits may approach a column's largest
    logit while all columns stay one-hot in float32; None if each column has only one entry. `logit_margin`: the
    smallest lead of the right answer's logit over the other logits; None if the task has only one answer.
    """

    requires = Requirement("transducer", {"block-linear-rnn": {"columns": "stochastic", "num_layers": 1}})
    assumes = "the model has exactly the enumerated states and steps"

    method: Literal["states"] = "states"
    num_states: PositiveCount
    num_steps: PositiveCount
    slack: float | None
    logit_margin: float | None

    def describe(self) -> str:
        change = "no column changes unless the lead of its largest logit falls by"
        slack = "" if self.slack is None else f"{change} {self.slack:.2g}; "
        return (
            f"{self.num_states:,}, all {self.num_steps:,} steps enumerated; {slack}{describe_lead(self.logit_margin)}"
        )

    def check_numbers(self, certificate: Certificate) -> None:
        closure = certificate.closure
        if closure is None or self.num_states != closure.num_prototypes:
            raise refusal("expected one prototype for each state, got a different number of prototypes", "evidence")
        if self.slack is not None and self.slack <= 0:
            raise refusal(f"expected a positive slack, or None for blocks of one entry, got {self.slack}", "evidence")
        check_lead(self.logit_margin, certificate)
