"""Evidence of zonotope enclosures around the prototypes of a tree model."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate
from lengthwise.certification.methods.around import AroundPrototypes


@EVIDENCE.register("enclosures")
class EnclosureEvidence(AroundPrototypes):
    """Enclosures around the prototypes that the model maps into one another, and the logit margin in them.

    `radius` is the largest radius of an enclosure along one of its axes.
    """

    method: Literal["enclosures"] = "enclosures"

    def check(self, certificate: Certificate) -> str:
        model = certificate.model
        is_merge = model["name"] in ("regular-gpt", "codebook-gpt") and model.get("variant") == "merge"
        if not (is_merge and certificate.is_of_tree):
            raise ValueError(
                f"evidence: expected enclosures of a RegularGPT of variant merge, got those of {model['name']}; "
                "certify again"
            )
        if model.get("thickness") != 1:
            raise ValueError(
                f"evidence: expected enclosures of a RegularGPT of thickness 1, got {model.get('thickness')}; certify "
                "again"
            )
        self.check_sets(certificate)
        return "the model maps the enclosures of its prototypes into one another"
