"""Evidence of intervals around the prototypes of a recurrent model."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Certificate
from lengthwise.certification.methods.around import AroundPrototypes

KINDS = ("gru", "lstm", "rnn", "wrapped")


@EVIDENCE.register("intervals")
class IntervalEvidence(AroundPrototypes):
    """Intervals around the prototypes that every step of the model maps into one another, and the margin in them.

    `radius` is half the length of the longest interval.
    """

    method: Literal["intervals"] = "intervals"

    def check(self, certificate: Certificate) -> str:
        name = certificate.model["name"]
        if name not in KINDS or certificate.is_of_tree:
            raise ValueError(
                f"evidence: expected intervals for one of {', '.join(KINDS)}, got some for {name}; certify again"
            )
        self.check_sets(certificate)
        return "the model maps the intervals around its prototypes into one another"
