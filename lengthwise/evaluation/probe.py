"""A quick look at accuracy beyond the training length, taken while a run trains."""

from lengthwise.evaluation.length_curve import length_curve
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import SymbolTask

PROBE_EVERY = 500
"""Steps from one probe to the next."""

PROBE_LENGTHS = (48, 100, 200, 300, 400, 500)
PROBE_STRINGS = 64


def probe_accuracy(model: SequenceModel, task: SymbolTask) -> float:
    """Mean accuracy on 64 fixed strings of each of six lengths (one symbol less where the task has none of a length).

    The strings are neither those of training nor those of a run's final measurement.
    """
    lengths = [n if task.is_balanced_length(n) else n - 1 for n in PROBE_LENGTHS]
    lengths = [n for n in lengths if task.is_balanced_length(n)] or [
        n for n in PROBE_LENGTHS if task.is_legal_length(n)
    ]
    return length_curve(model, task, lengths, num_strings=PROBE_STRINGS, seed=1 << 40).mean() if lengths else 0.0
