"""The page about the smallest linear RNNs that read their own answers."""

from collections import Counter
from collections.abc import Sequence

import altair as alt

from lengthwise.constructions.memorization.contracting import FeedbackBounds
from lengthwise.display import counted, listed
from lengthwise.report.charts.colors import color_by
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING
from lengthwise.studies.memorization.experiments.feedback import Smallest

_HOW = (
    'Entries are numbers of words, by their smallest dimension, and "-" means 0. For example, column *contracting: '
    "2* counts the words whose smallest dimension is 2 if nets are contracting. *Any W_h*: W_h may have any value. "
    "The state of such a net is a number whose binary digits are the letters of the word, and W_h = 2 shifts out one "
    "digit at each step. A net needs at least one dimension, because without a state, the bias gives the same answer "
    "at every step. *Contracting*: all eigenvalues of W_h are inside the unit circle, so the net forgets errors, and "
    "its states repeat with the period of the word.\n"
    "\n"
    "With one dimension, Sturm's theorem, in exact fractions, decides the contracting case. With two dimensions, all "
    "contracting W_h form a triangle in the plane of trace and determinant. The signs of polynomials in trace and "
    "determinant are computed with integers. These signs show that some W_h in the triangle generates the word, or "
    "that no read-out separates the answers on any part of the triangle. There are two reasons why a read-out cannot "
    "separate the answers. Either the segment between two states of one answer crosses the segment between two "
    "states of the other answer, or a state is inside a triangle of states of the other answer.\n"
    "\n"
    "With more than two dimensions, a search tries nets with random eigenvalues. The smallest net whose state is a "
    "shift register of the last answers gives an upper bound. A net with random eigenvalues counts only if it "
    "generates its word 50 times in a row. *No feedback*, in the chart and in the next table: the smallest dimension "
    "with W_x = 0, which the function `memorize` finds."
)


@STUDY_PAGES.register("rnn-memorization/feedback")
def feedback_page(study: Sequence[Smallest], stem: str) -> StudyPage:
    """Return the study's page: number of words by period and by smallest dimension of a net, a chart, and all words."""
    picture = f"![Words by period and smallest dimension]({stem}.svg)"
    by_period = f"## Dimensions by period\n\n{picture}\n\n{_by_period(study)}\n\n{_HOW}"
    sections = [by_period, f"## All words\n\n{_all(study)}"]
    return StudyPage(sections, {f"{stem}.svg": dimensions_chart(study).to_dict()}, headline=_headline(study))


def _headline(study: Sequence[Smallest]) -> str:
    counts = Counter(row.contracting for row in study)
    small = sum(row.unconstrained == 1 for row in study)
    parts = listed([f"{_bounds(bounds)} for {counted(counts[bounds], 'word')}" for bounds in sorted(counts)])
    return (
        f"With one dimension, linear RNNs that read their own answers can repeat {small} of the {len(study)} words "
        "indefinitely.\n"
        "These nets multiply their state by the matrix W_h = 2 at each step, which doubles every error in the state. "
        "So after an error in its state, such a net no longer generates its word. If a net has to forget its errors "
        f"(*contracting*), the smallest dimension is {parts}."
    )


def dimensions_chart(study: Sequence[Smallest]) -> alt.HConcatChart:
    """Draw the numbers of words by period in three bar charts: nets without feedback, with feedback, and contracting.

    Colors show the smallest dimension of such a net that repeats the word.
    """
    kinds = {
        "no feedback": [str(row.no_feedback) for row in study],
        "any W_h": [str(row.unconstrained) for row in study],
        "contracting": [_bounds(row.contracting) for row in study],
    }
    dimensions = sorted({dimension for of_kind in kinds.values() for dimension in of_kind})
    panels = []
    for kind, of_kind in kinds.items():
        counts = Counter((len(row.word), dimension) for row, dimension in zip(study, of_kind, strict=True))
        values = [{"period": p, "dimension": d, "words": count} for (p, d), count in counts.items()]
        y = alt.Y("words:Q", title=f"words, {kind}", axis=alt.Axis(format="d", tickMinStep=1))
        color = color_by("dimension", dimensions, "dimension")
        chart = alt.Chart(alt.InlineData(values=values), width=150, height=160).mark_bar()
        panels.append(chart.encode(x=alt.X("period:O", title="period"), y=y, color=color))
    return alt.HConcatChart(hconcat=panels, config=alt.Config(background="white"))


def _by_period(study: Sequence[Smallest]) -> str:
    kinds = sorted({row.contracting for row in study})
    header = ["period", "words", "any W_h: 1", *(f"contracting: {_bounds(kind)}" for kind in kinds)]
    lines = []
    for period in sorted({len(row.word) for row in study}):
        rows = [row for row in study if len(row.word) == period]
        counts = [sum(row.contracting == kind for row in rows) for kind in kinds]
        small = sum(row.unconstrained == 1 for row in rows)
        lines.append([str(period), str(len(rows)), str(small), *(str(count) if count else NOTHING for count in counts)])
    return markdown_table(header, lines)


def _all(study: Sequence[Smallest]) -> str:
    lines = [[row.word, str(row.no_feedback), str(row.unconstrained), _bounds(row.contracting)] for row in study]
    return markdown_table(["word", "no feedback", "any W_h", "contracting"], lines)


def _bounds(bounds: FeedbackBounds) -> str:
    return str(bounds.lower) if bounds.lower == bounds.upper else f"{bounds.lower} to {bounds.upper}"
