"""Evidence of intervals around the prototypes of a recurrent model."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Requirement
from lengthwise.certification.methods.around import AroundPrototypes


@EVIDENCE.register("intervals")
class IntervalEvidence(AroundPrototypes):
    """Intervals around the prototypes, and the smallest logit margin in the intervals.

    Each step of the model maps the intervals of a class into the intervals of the next class. `radius` is half the
    length of the longest interval. `logit_margin` is the smallest logit margin in the intervals.
    """

    requires = Requirement("transducer", {name: {} for name in ("gru", "lstm", "rnn", "wrapped")})
    assumes = "the model maps the intervals around its prototypes into one another"

    method: Literal["intervals"] = "intervals"
