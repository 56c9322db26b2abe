"""Quick looks at accuracy beyond the training length, taken while a run trains."""

import numpy as np

from lengthwise.evaluation.length_curve import length_curve, max_legal_length
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import SymbolTask

PROBE_EVERY = 500
"""Steps from one probe to the next."""

PROBE_LENGTHS = (48, 100, 200, 300, 400, 500)
PROBE_STRINGS = 64
TEST_EVERY = 2 * PROBE_EVERY
TEST_STRINGS = 128


def probe_accuracy(model: SequenceModel, task: SymbolTask) -> float:
    """Mean accuracy on 64 fixed strings of each of six lengths (one symbol less where the task has none of a length).

    Where it has none of all these, at its longest below. The strings are neither those of training nor those of a run's
    final measurement.
    """
    lengths = [n if task.is_balanced_length(n) else n - 1 for n in PROBE_LENGTHS]
    lengths = [n for n in lengths if task.is_balanced_length(n)] or [
        n for n in PROBE_LENGTHS if task.is_legal_length(n)
    ]
    if not lengths and (longest := max_legal_length(task, PROBE_LENGTHS[0])):
        lengths = [longest]
    return length_curve(model, task, lengths, num_strings=PROBE_STRINGS, seed=1 << 40).mean() if lengths else 0.0


def fresh_accuracy(model: SequenceModel, task: SymbolTask, step: int) -> float | None:
    """Accuracy on 128 strings drawn again for every step, at `length_of_tests`; None where there is none."""
    length = length_of_tests(task)
    if length is None:
        return None
    return length_curve(model, task, [length], num_strings=TEST_STRINGS, seed=(1 << 41) + step).mean()


def length_of_tests(task: SymbolTask) -> int | None:
    """500 symbols, 499 where not every class can be the answer at 500, or the longest that the task has below."""
    longest = PROBE_LENGTHS[-1]
    if task.is_balanced_length(longest):
        return longest
    return max_legal_length(task, longest - 1)


def best_of_guesses(chance: float, num_tests: int) -> float:
    """What the best of several tests of 128 strings is expected to be for answers that are right by chance.

    With F the distribution of the number of right answers, the expectation of the largest of n is the sum over k of
    1 - F(k)^n.

    Example:
        >>> round(best_of_guesses(0.2, 40), 3), round(best_of_guesses(0.8, 40), 3)
        (0.279, 0.873)

    Source: ours. Fan et al. (2024) report the best test of a run (caption of Table 2), which the published code takes
        40 times on 128 strings, so that guessing one of five digits scores 0.28.
    """
    from scipy.special import bdtr

    counts = np.arange(TEST_STRINGS)
    return float(np.mean(1 - bdtr(counts, TEST_STRINGS, chance) ** num_tests))
