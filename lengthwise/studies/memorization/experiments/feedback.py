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
    """The smallest dimensions for a word: without feedback, with feedback, and with a W_h that contracts."""

    word: str
    no_feedback: int
    unconstrained: int
    contracting: FeedbackBounds


@EXPERIMENTS.register("rnn-memorization/feedback")
def feedback(scale: Scale = "small") -> Experiment:
    """Find the smallest linear RNNs with feedback for binary words up to period 8, for any W_h and contracting W_h."""
    check_is_not_paper(scale, "the note has no such search")
    return Experiment(
        title="The smallest linear RNNs that read their own answers",
        about=(
            'The note "update on rnn memorization" sets W_x, by which a net reads its own output, to 0; this page '
            "measures the benefit of W_x.\n"
            "The tables have the smallest dimensions of linear RNNs that repeat a word indefinitely, for all binary "
            "words up to period 8 (up to rotation and exchange of symbols)."
        ),
        study=lambda root: study(PERIODS[scale]),
    )


def study(periods: range) -> list[Smallest]:
    """Return the smallest dimensions for all words of these periods.

    A net with feedback counts only if it generates its word.
    """
    rows = []
    for word in (word for period in periods for word in binary_words(period)):
        net = digits(word)
        if net.generate(4 * word.period) != 4 * word.text:
            raise AssertionError(f"word: the digits of {word.text} do not say it")
        rows.append(Smallest(word.text, memorize(word.text).upper, net.dimension, contracting_dimension(word)))
    return rows
