"""Evidence of balls around the prototypes of a recurrence that preserves distances, which grow with the length."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate, Distance, PositiveCount
from lengthwise.certification.evidence.around import AroundPrototypes


@EVIDENCE.register("isometries")
class IsometryEvidence(AroundPrototypes):
    """How far states drift from their prototypes in a step, and up to which length they stay in balls of `radius`.

    `drift` is that of the first step; later steps drift no less.
    """

    method: Literal["isometries"] = "isometries"
    drift: Distance
    max_length: PositiveCount

    @property
    def proved_up_to(self) -> int:
        return self.max_length

    def describe(self) -> str:
        return f"{super().describe()}; states drift {self.drift:.2g} a step from them, up to {self.max_length:,} steps"

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
        return f"the model's states drift {self.drift:.2g} a step from its prototypes"
