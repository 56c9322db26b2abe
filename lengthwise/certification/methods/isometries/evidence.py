"""Evidence of a recurrence that does not enlarge distances: up to a length, states stay in balls around prototypes."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate, Requirement
from lengthwise.certification.methods.around import AroundPrototypes
from lengthwise.certification.parts import Distance, PositiveCount, describe_lead, refusal


@EVIDENCE.register("isometries")
class IsometryEvidence(AroundPrototypes):
    """The drift of states from prototypes in the first step, and the largest length up to which states stay close.

    `radius` is a little smaller than the largest radius that was found for balls in which the answer stays the same. At
    the edge of the largest balls, the margin may be almost 0, so `logit_margin` is the margin at the prototypes.
    `drift` is a bound on the drift in the first step; the bounds for later steps are at least as large.
    """

    requires = Requirement("transducer", {"block-linear-rnn": {"columns": "reflected", "num_layers": 1, "hidden": 0}})
    assumes = (
        "up to the proved length, the model's states stay within the radius in the file around its prototypes, and its "
        "answers stay the same within this radius"
    )

    method: Literal["isometries"] = "isometries"
    drift: Distance
    max_length: PositiveCount

    def describe(self) -> str:
        return (
            f"around {self.num_prototypes} prototypes; at the prototypes {describe_lead(self.logit_margin)}, "
            f"and up to a distance of {self.radius:.2g} the answer stays the same; "
            f"states drift {self.drift:.2g} in the first step, and stay within {self.radius:.2g} for "
            f"{self.max_length:,} steps"
        )

    def check_numbers(self, certificate: Certificate) -> None:
        super().check_numbers(certificate)
        # Each step adds at least `drift` to the bound on the distance from a prototype. So the product of `drift` and
        # `max_length` may not exceed the radius. The factor 1 + 1e-9 covers the rounding of this product.
        if self.drift * self.max_length > self.radius * (1 + 1e-9):
            raise refusal("expected a drift of at most radius / max_length, got a larger drift", "evidence")
