"""Probes: quick measurements of the accuracy beyond the training length, while a run trains."""

import numpy as np

from lengthwise.evaluation.length_curve import length_curve, max_legal_length
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import SymbolTask

PROBE_EVERY = 500
"""The number of training steps from one probe to the next."""

PROBE_LENGTHS = (48, 100, 200, 300, 400, 500)
"""The lengths of the strings of a probe, in symbols."""

PROBE_STRINGS = 64
"""The number of strings of each length in a probe."""

TEST_EVERY = 2 * PROBE_EVERY
"""The number of training steps from one test with new strings to the next."""

TEST_STRINGS = 128
"""The number of strings in a test."""


def probe_accuracy(model: SequenceModel, task: SymbolTask) -> float:
    """Return the mean accuracy on 64 fixed strings of each of the six `PROBE_LENGTHS`.

    If some class cannot occur at a length, strings of one symbol less are used. The length is left out if some class
    cannot occur there either. If no length remains, the accuracy is measured at each of the six lengths for which the
    task has strings. If the task has strings at none of the six lengths, its longest length below them is used. Strings
    are drawn from another seed than training strings and the strings of a run's final measurement.
    """
    lengths = [n if task.is_balanced_length(n) else n - 1 for n in PROBE_LENGTHS]
    lengths = [n for n in lengths if task.is_balanced_length(n)] or [
        n for n in PROBE_LENGTHS if task.is_legal_length(n)
    ]
    if not lengths and (longest := max_legal_length(task, PROBE_LENGTHS[0])):
        lengths = [longest]
    return length_curve(model, task, lengths, num_strings=PROBE_STRINGS, seed=1 << 40).mean() if lengths else 0.0


def fresh_accuracy(model: SequenceModel, task: SymbolTask, step: int) -> float | None:
    """Return the accuracy on 128 strings that are drawn for this training step.

    The function `length_of_tests` gives the strings' length. If it returns None, the result is None.
    """
    length = length_of_tests(task)
    if length is None:
        return None
    return length_curve(model, task, [length], num_strings=TEST_STRINGS, seed=(1 << 41) + step).mean()


def length_of_tests(task: SymbolTask) -> int | None:
    """Return 500 if every class can be the answer at this length.

    Otherwise, return the longest length below 500 at which the task has strings, or None if there is no such length.
    """
    longest = PROBE_LENGTHS[-1]
    if task.is_balanced_length(longest):
        return longest
    return max_legal_length(task, longest - 1)


def best_of_guesses(chance: float, num_tests: int) -> float:
    """Return the expected best accuracy of several tests of 128 strings, given the `chance` of a right answer.

    Let F be the distribution function of the number of right answers in a test, and n the number of tests. The
    expectation of the largest of n such numbers is the sum over k of 1 - F(k)^n.

    Example:
        >>> round(best_of_guesses(0.2, 40), 3), round(best_of_guesses(0.8, 40), 3)
        (0.279, 0.873)

    Source: ours. Fan et al. (2024) report the best test of a run (caption of Table 2). The published code tests 40
        times on 128 strings, so a guess of one of five digits scores 0.28.
    """
    from scipy.special import bdtr

    counts = np.arange(TEST_STRINGS)
    return float(np.mean(1 - bdtr(counts, TEST_STRINGS, chance) ** num_tests))
