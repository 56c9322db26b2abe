"""Which level a certificate of a model can reach at most, before anything is trained."""

from lengthwise.certification.methods.base import provers_of
from lengthwise.certification.parts import CLAIMS, Level
from lengthwise.extraction.base import reader_of
from lengthwise.models.base import SequenceModel


def highest_level(model: SequenceModel) -> Level:
    """The highest level for which there are a reader and a method of proof; whether it is reached, training decides.

    Example:
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> [highest_level(make_model(name, make_task("parity"))) for name in ("transformer", "regular-gpt")]
        ['tested', 'proved']
    """
    reader = reader_of(model, ())
    if reader is None:
        return "tested"
    levels = list(CLAIMS)
    reached = [prover.reaches(model) for prover in provers_of(reader.name, model)]
    return max(["extracted", *reached], key=levels.index)
