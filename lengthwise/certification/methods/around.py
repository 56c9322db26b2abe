"""What evidence of sets around prototypes has in common."""

from lengthwise.certification.certificate import Certificate, Evidence, describe_lead, leads
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

    def check_sets(self, certificate: Certificate) -> None:
        """Raise a ValueError unless there is one for each prototype, and a lead in each."""
        closure = certificate.closure
        if closure is None or self.num_prototypes != closure.num_prototypes:
            raise ValueError("evidence: expected one set around each prototype, got another number; certify again")
        if not leads(self.logit_margin, certificate):
            raise ValueError("evidence: expected a positive logit margin, got none; certify again")
