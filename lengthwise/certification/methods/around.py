"""Evidence of sets around prototypes, which several methods of proof share."""

from lengthwise.certification.certificate import Certificate, Evidence, check_lead
from lengthwise.certification.parts import Distance, PositiveCount, describe_lead, refusal
from lengthwise.display import counted


class AroundPrototypes(Evidence):
    """A set around each prototype, of radius at most `radius`, and the smallest logit margin in these sets.

    A prototype is a state of the model that represents a class of states. The logit margin is the logit of the
    machine's answer minus the largest other logit. `logit_margin` is None if the task has only one answer.
    """

    num_prototypes: PositiveCount
    radius: Distance
    logit_margin: float | None

    def describe(self) -> str:
        around = f"around {counted(self.num_prototypes, 'prototype')}, radii up to {self.radius:.2g}"
        return f"{around}; {describe_lead(self.logit_margin)}"

    def check_numbers(self, certificate: Certificate) -> None:
        """Raise a ValueError unless each prototype has a set in which the machine's answer has the largest logit."""
        closure = certificate.closure
        if closure is None or self.num_prototypes != closure.num_prototypes:
            raise refusal("expected one set around each prototype, got a different number of sets", "evidence")
        check_lead(self.logit_margin, certificate)
