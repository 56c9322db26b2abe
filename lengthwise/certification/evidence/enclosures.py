"""Evidence of zonotope enclosures around the prototypes of a tree model."""

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


@EVIDENCE.register("enclosures")
class EnclosureEvidence(Evidence):
    """Enclosures around the prototypes that the model maps into one another, and the logit margin in them.

    `radius` is the largest radius of an enclosure along one of its axes. `logit_margin` is None where there is one
    answer only.
    """

    method: Literal["enclosures"] = "enclosures"
    num_prototypes: PositiveCount
    radius: Distance
    logit_margin: float | None

    def describe(self) -> str:
        enclosures = f"around {self.num_prototypes} prototypes, radii up to {self.radius:.2g}"
        return f"{enclosures}; {describe_lead(self.logit_margin)}"

    def check(self, certificate: Certificate) -> str:
        model, closure = certificate.model, certificate.closure
        is_merge = model["name"] in ("regular-gpt", "codebook-gpt") and model.get("variant") == "merge"
        if not (is_merge and certificate.is_of_tree):
            raise ValueError(
                f"evidence: expected enclosures of a RegularGPT of variant merge, got those of {model['name']}; "
                "certify again"
            )
        if closure is None or self.num_prototypes != closure.num_prototypes:
            raise ValueError("evidence: expected one enclosure for each prototype, got another number; certify again")
        if not leads(self.logit_margin, certificate):
            raise ValueError("evidence: expected a positive logit margin, got none; certify again")
        return "the model maps the enclosures of its prototypes into one another"
