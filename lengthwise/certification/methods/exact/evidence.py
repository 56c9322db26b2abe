"""Evidence of merges that float32 computes without an error."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence, describe_lead, leads
from lengthwise.certification.parts import PositiveCount


@EVIDENCE.register("exact")
class ExactEvidence(Evidence):
    """All merges of the states of a tree model, each of which float32 computes without an error.

    `logit_margin` is None where there is one answer only.
    """

    method: Literal["exact"] = "exact"
    num_prototypes: PositiveCount
    num_merges: PositiveCount
    logit_margin: float | None

    def describe(self) -> str:
        return f"all {self.num_merges:,} merges of {self.num_prototypes:,}; {describe_lead(self.logit_margin)}"

    def check(self, certificate: Certificate) -> str:
        model, closure = certificate.model, certificate.closure
        is_bare = (model["name"], model.get("variant"), model.get("thickness")) == ("regular-gpt", "bare", 1)
        if not is_bare or not certificate.is_of_tree:
            raise ValueError(
                f"evidence: expected exact merges of a RegularGPT of variant bare and thickness 1, got those of "
                f"{model['name']}; certify again"
            )
        if closure is None or (self.num_prototypes, closure.radius) != (closure.num_prototypes, 0):
            raise ValueError("evidence: expected a class for each of the states, got fewer; certify again")
        if not leads(self.logit_margin, certificate):
            raise ValueError("evidence: expected a positive logit margin, got none; certify again")
        return "the model merges its states as the machine does, without an error of rounding"
