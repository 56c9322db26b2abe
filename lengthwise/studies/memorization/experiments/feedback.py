"""The smallest linear RNNs that read their own answers: all binary words of short period, by search and by proof.

Like `rnn-memorization`, this study has no recorded runs.
"""

from collections.abc import Mapping
from typing import NamedTuple

from lengthwise.constructions.memorization.contracting import FeedbackBounds, contracting_dimension
from lengthwise.constructions.memorization.feedback import digits
from lengthwise.constructions.memorization.memorize import memorize
from lengthwise.constructions.memorization.words import binary_words
from lengthwise.experiment import EXPERIMENTS, Experiment, Scale, check_is_not_paper

PERIODS: Mapping[str, range] = {"small": range(2, 9), "smoke": range(2, 5)}


class Smallest(NamedTuple):
    """The smallest dimensions of nets that repeat a word.

    The fields are for nets without feedback, with feedback, and with feedback and a contracting recurrent matrix W_h.
    """

    word: str
    no_feedback: int
    unconstrained: int
    contracting: FeedbackBounds


@EXPERIMENTS.register("rnn-memorization/feedback")
def feedback(scale: Scale = "small") -> Experiment:
    """Find the smallest linear RNNs with feedback, unconstrained or contracting, for binary words up to period 8."""
    check_is_not_paper(scale, "the note has no such search")
    return Experiment(
        title="The smallest linear RNNs that read their own answers",
        about=(
            'A net reads its own last answer through the matrix W_x. The note "update on rnn memorization" (2023; '
            "see [memorization](../memorization.md)) sets W_x to 0; this page measures the benefit of W_x.\n"
            "The words are all binary words up to period 8. Words that differ by a rotation or by an exchange of the "
            "two symbols count once."
        ),
        study=lambda root: study(PERIODS[scale]),
    )


def study(periods: range) -> list[Smallest]:
    """Return the smallest dimensions of nets that repeat a word, for all binary words of these periods.

    Raises:
        AssertionError: a net that `digits` constructs does not generate its word.
    """
    rows = []
    for word in (word for period in periods for word in binary_words(period)):
        net = digits(word)
        if net.generate(4 * word.period) != 4 * word.text:
            raise AssertionError(f"word: the net that `digits` constructs does not generate {word.text}")
        rows.append(Smallest(word.text, memorize(word.text).upper, net.dimension, contracting_dimension(word)))
    return rows
