"""The page about the inside of trained nets: Figures 3 and 4a of Chi et al. (2023)."""

from lengthwise.analysis.overview import Analysis
from lengthwise.experiments.inside import Inside
from lengthwise.report.charts.pictures import Chart
from lengthwise.report.pages.analysis import analysis_charts, level_table, reach_table, summary
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.runs.folder import Run

CAPTIONS = {
    "elements": "Figure 3: outputs of the blocks of all levels along the first two principal axes of all of them, "
    "colored by the element of the task's monoid that the block's window is",
    "clusters": "Clusters of each level against the distance that joins states",
    "field": "Figure 4a: share of the answer's gradient that lies at a position or later",
    "flips": "How often the answer changes when the symbol at a position is replaced",
}


@STUDY_PAGES.register("regular-gpt/inside")
def inside_page(inside: Inside, stem: str) -> StudyPage:
    """A section and four pictures for each run."""
    sections: list[str] = []
    pictures: dict[str, Chart] = {}
    for run, analysis in zip(inside.runs, inside.analyses, strict=True):
        files = {name: f"{stem}-{run.spec.task.name}-{name}.png" for name in CAPTIONS}
        charts = analysis_charts(analysis)
        pictures |= {file: charts[name].to_dict() for name, file in files.items()}
        sections += _section(run, analysis, files)
    return StudyPage(sections, pictures)


def _section(run: Run, analysis: Analysis, files: dict[str, str]) -> list[str]:
    elements, clusters, field, flips = (
        f"![{caption}]({files[name]})\n\n*{caption}.*" for name, caption in CAPTIONS.items()
    )
    levels, reach = (
        markdown_table(table.header, table.lines) for table in (level_table(analysis), reach_table(analysis))
    )
    title = f"## {run.spec.task.name.capitalize()}"
    return [title, summary(run, analysis), elements, clusters, levels, field, flips, reach]
