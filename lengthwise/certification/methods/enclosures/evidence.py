"""Evidence of zonotope enclosures around the prototypes of a tree model."""

from typing import Literal

from lengthwise.certification.certificate import EVIDENCE, Requirement
from lengthwise.certification.methods.around import AroundPrototypes


@EVIDENCE.register("enclosures")
class EnclosureEvidence(AroundPrototypes):
    """Enclosures around the prototypes, and the smallest logit margin inside the enclosures.

    Each merge maps enclosures into the enclosure of the merged state's class. `radius` is the largest radius of an
    enclosure along one of its axes.
    """

    requires = Requirement(
        "tree", {name: {"variant": "merge", "thickness": 1} for name in ("regular-gpt", "codebook-gpt")}
    )
    assumes = "the model maps the enclosures of its prototypes into one another"

    method: Literal["enclosures"] = "enclosures"
