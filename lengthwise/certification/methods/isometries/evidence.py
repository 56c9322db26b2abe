"""Evidence of balls around the prototypes of a recurrence that preserves distances, which grow with the length."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate, describe_lead
from lengthwise.certification.methods.around import AroundPrototypes
from lengthwise.certification.parts import Distance, PositiveCount


@EVIDENCE.register("isometries")
class IsometryEvidence(AroundPrototypes):
    """How far states drift from their prototypes in a step, and up to which length they stay in balls of `radius`.

    `logit_margin` is the margin at the prototypes. The balls around them are nearly the largest in which the answer
    stays the same; the margin nearly vanishes at their edge. `drift` is the drift of the first step; later steps drift
    no less.
    """

    method: Literal["isometries"] = "isometries"
    drift: Distance
    max_length: PositiveCount

    @property
    def proved_up_to(self) -> int:
        return self.max_length

    def describe(self) -> str:
        return (
            f"around {self.num_prototypes} prototypes; at them {describe_lead(self.logit_margin)}, "
            f"and up to a distance of {self.radius:.2g} the answer stays the same; "
            f"states drift {self.drift:.2g} a step, up to {self.max_length:,} steps"
        )

    def check(self, certificate: Certificate) -> str:
        model = certificate.model
        kind = (model["name"], model.get("columns"), model.get("num_layers"), model.get("hidden"))
        if kind != ("block-linear-rnn", "reflected", 1, 0) or certificate.is_of_tree:
            raise ValueError(
                "evidence: expected isometries of a BlockLinearRNN with columns 'reflected', of one layer without "
                f"hidden units, got those of {model['name']}; certify again"
            )
        self.check_sets(certificate)
        if self.drift * self.max_length > self.radius * (1 + 1e-9):
            raise ValueError("evidence: expected states that stay in their balls, got a longer drift; certify again")
        return (
            f"the model's states drift {self.drift:.2g} a step from its prototypes, "
            f"and its answers stay the same up to a distance of {self.radius:.2g}"
        )
