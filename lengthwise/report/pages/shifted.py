"""The page about parity at other probabilities of a one: nets that were trained with as many ones as zeros."""

from collections.abc import Sequence

from lengthwise.experiments.regular_gpt_tables import PROBABILITIES, WINDOWS, Shifted
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import percent


@STUDY_PAGES.register("regular-gpt/table-2")
def shifted_page(measured: Sequence[Shifted], stem: str) -> StudyPage:
    """A line for each model and part of the table, a column for each probability: mean over all nets, and the best."""
    lines = [
        [f"{column}, {part}", *(_entry(measured, column, part, probability) for probability in PROBABILITIES)]
        for part in WINDOWS
        for column in dict.fromkeys(one.column for one in measured)
    ]
    header = ["trained at 0.5, measured at P(1) =", *map(str, PROBABILITIES)]
    about = (
        "The nets of the row 0.5, on strings with another probability of a one: the mean over lengths, of the best net "
        "and (after the stroke) over all rates."
    )
    return StudyPage(["## Trained at 0.5", markdown_table(header, lines), about], {})


def _entry(measured: Sequence[Shifted], column: str, part: str, probability: float) -> str:
    means = [one.means[part] for one in measured if (one.column, one.probability) == (column, probability)]
    return f"{percent(max(means))} / {percent(sum(means) / len(means))}"
