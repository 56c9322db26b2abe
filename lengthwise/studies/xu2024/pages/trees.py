"""The page about decision trees of the paper's size: errors by number of examples, and a chart."""

from statistics import fmean

import altair as alt

from lengthwise.report.charts.colors import GRAY, PALETTE
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING
from lengthwise.studies.xu2024.experiments.trees import TreeErrors

COLUMNS = (0, 5, 10, 25, 50, 75, 100)
"""The numbers of examples in the table. Numbers that are too large for the prompts are left out."""


@STUDY_PAGES.register("looped/trees")
def trees_page(study: TreeErrors, stem: str) -> StudyPage:
    """Return the study's page: the errors of nets and simple learners after some numbers of examples, and a chart."""
    curves = _curves(study)
    longest = max(map(len, curves.values()))
    counts = [count for count in COLUMNS if count < longest]
    lines = [
        [name, *(f"{errors[count]:.3f}" if count < len(errors) else NOTHING for count in counts)]
        for name, errors in curves.items()
    ]
    sections = [
        f"## Error by number of examples\n\n![Error by number of examples]({stem}.svg)",
        markdown_table(["answers by", *(f"after {count}" for count in counts)], lines),
        "Entries are squared errors of the answer after this number of examples, averaged over prompts and runs. "
        "Unlike in the first table, they are not divided by the number of dimensions. The best constant answer "
        "has an error of 1. *Nearest neighbor* answers with the value of the nearest earlier point, and *mean so "
        "far* with the mean of the earlier values.",
    ]
    return StudyPage(sections, {f"{stem}.svg": error_chart(study).to_dict()})


def _curves(study: TreeErrors) -> dict[str, list[float]]:
    """Return the error curve of each simple learner, and of each column as the mean over its runs."""
    points = {column: zip(*(curve.points for curve in curves), strict=True) for column, curves in study.runs.items()}
    of_runs = {column: [fmean(point.error for point in each) for each in own] for column, own in points.items()}
    return {column: errors for column, errors in of_runs.items() if errors} | study.learners


def error_chart(study: TreeErrors) -> alt.Chart:
    """Draw squared error against number of preceding examples, with gray lines for the simple learners."""
    curves = _curves(study)
    values = [
        {"examples": count, "error": error, "answers by": name}
        for name, errors in curves.items()
        for count, error in enumerate(errors)
    ]
    names = list(curves)
    colors = [GRAY if name in study.learners else PALETTE[index % len(PALETTE)] for index, name in enumerate(names)]
    dashes = [[4, 3] if index % 2 else [1, 0] for index in range(len(names))]
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=values), width=460, height=280)
        .mark_line(strokeWidth=1.5)
        .encode(
            x=alt.X("examples:Q", title="examples before"),
            y=alt.Y("error:Q", title="squared error", scale=alt.Scale(zero=True)),
            color=alt.Color("answers by:N", title="", scale=alt.Scale(domain=names, range=colors), sort=names),
            strokeDash=alt.StrokeDash("answers by:N", title="", scale=alt.Scale(domain=names, range=dashes)),
        )
        .configure(background="white")
    )
    return chart
