"""Evidence of intervals around the prototypes of a recurrent model."""

from typing import Literal

from lengthwise.certification.certificate import (
    EVIDENCE,
    Certificate,
    Distance,
    Evidence,
    PositiveCount,
    describe_lead,
    leads,
)

KINDS = ("gru", "lstm", "rnn")


@EVIDENCE.register("intervals")
class IntervalEvidence(Evidence):
    """Intervals around the prototypes that every step of the model maps into one another, and the margin in them.

    `radius` is half the length of the longest interval. `logit_margin` is None where there is one answer only.
    """

    method: Literal["intervals"] = "intervals"
    num_prototypes: PositiveCount
    radius: Distance
    logit_margin: float | None

    def describe(self) -> str:
        around = f"around {self.num_prototypes} prototypes, radii up to {self.radius:.2g}"
        return f"{around}; {describe_lead(self.logit_margin)}"

    def check(self, certificate: Certificate) -> str:
        model, closure = certificate.model, certificate.closure
        if model["name"] not in KINDS or certificate.is_of_tree:
            raise ValueError(
                f"evidence: expected intervals for one of {', '.join(KINDS)}, got some for {model['name']}; certify "
                "again"
            )
        if closure is None or self.num_prototypes != closure.num_prototypes:
            raise ValueError("evidence: expected intervals around each prototype, got another number; certify again")
        if not leads(self.logit_margin, certificate):
            raise ValueError("evidence: expected a positive logit margin, got none; certify again")
        return "the model maps the intervals around its prototypes into one another"
