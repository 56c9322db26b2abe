"""Evidence of sets around prototypes, for several methods."""

from lengthwise.certification.certificate import Certificate, Evidence, check_lead, describe_lead
from lengthwise.certification.parts import Distance, PositiveCount


class AroundPrototypes(Evidence):
    """A set around each prototype, its radius at most `radius`, and the logit margin in all of them.

    `logit_margin` is None where there is one answer only.
    """

    num_prototypes: PositiveCount
    radius: Distance
    logit_margin: float | None

    def describe(self) -> str:
        around = f"around {self.num_prototypes} prototypes, radii up to {self.radius:.2g}"
        return f"{around}; {describe_lead(self.logit_margin)}"

    def check_numbers(self, certificate: Certificate) -> None:
        """Raise a ValueError unless each prototype has a set, and the right logit leads in each."""
        closure = certificate.closure
        if closure is None or self.num_prototypes != closure.num_prototypes:
            raise ValueError("evidence: expected one set around each prototype, got another number; certify again")
        check_lead(self.logit_margin, certificate)
