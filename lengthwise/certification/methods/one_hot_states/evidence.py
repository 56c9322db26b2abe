"""Evidence of the enumerated one-hot states of a recurrence."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence, describe_lead, leads
from lengthwise.certification.parts import PositiveCount


@EVIDENCE.register("states")
class StateEvidence(Evidence):
    """All states of a recurrence whose columns are one-hot vectors, and all steps between them.

    `slack`: how much closer two logits of a column could come before float32 gave another column.
    `logit_margin`: by how much the logit of a state's answer leads (None: there is one answer only).
    """

    method: Literal["states"] = "states"
    num_states: PositiveCount
    num_steps: PositiveCount
    slack: float | None
    logit_margin: float | None

    def describe(self) -> str:
        slack = "" if self.slack is None else f"columns are one-hot vectors with {self.slack:.2g} to spare; "
        return (
            f"{self.num_states:,}, all {self.num_steps:,} steps enumerated; {slack}{describe_lead(self.logit_margin)}"
        )

    def check(self, certificate: Certificate) -> str:
        model, closure = certificate.model, certificate.closure
        is_one_hot = (model.get("columns"), model.get("num_layers")) == ("stochastic", 1)
        if model["name"] != "block-linear-rnn" or not is_one_hot or certificate.is_of_tree:
            raise ValueError(
                f"evidence: expected states of a BlockLinearRNN of one layer with one-hot columns, got those of "
                f"{model['name']}; certify again"
            )
        if closure is None or self.num_states != closure.num_prototypes:
            raise ValueError("evidence: expected one prototype for each state, got another number; certify again")
        if self.slack is not None and self.slack <= 0:
            raise ValueError("evidence: expected columns that rounding cannot change, got no slack; certify again")
        if not leads(self.logit_margin, certificate):
            raise ValueError("evidence: expected a positive logit margin, got none; certify again")
        return "the model's states and steps are those enumerated"
