"""The page about the inside of trained nets: Figures 3 and 4a of Chi et al. (2023)."""

from lengthwise.analysis.receptive_field import receptive_window
from lengthwise.pictures import Chart
from lengthwise.report.pages.analysis import analysis_charts, level_table, reach_table, summary
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.studies.chi2023.experiments.inside import OURS, Inside, Net

CAPTIONS = {
    "elements": (
        "Figure 3: states at all levels along their first two principal axes, colored by the monoid element of the "
        "state's window"
    ),
    "clusters": "Clusters of each level against the distance that joins states",
    "field": "Figure 4a: share of the answer's gradient that lies at a position or later",
    "flips": "How often the answer changes when the symbol at a position is replaced",
}

HEADER = (
    *("task", "layer", "right at 500", "levels whose clusters are elements", "symbols with 99 % of gradient"),
    *("changed", "should change"),
)


@STUDY_PAGES.register("regular-gpt/inside")
def inside_page(inside: Inside, stem: str) -> StudyPage:
    """Return the study's page: a table of nets, and a section for each net (four pictures for ours, two for others)."""
    sections = [
        "## All nets",
        markdown_table(HEADER, map(_line, inside.nets)),
        "*Levels whose clusters are elements*: a level counts if its clusters match the elements of the monoid at "
        "some clustering distance. All states of each element are then in one cluster, and no cluster has states "
        "of two elements. *Symbols with 99 % of gradient*: the smallest number of last symbols that hold more than "
        "99 % of the gradient, averaged over strings. *Changed*: how often the net's answer changed when one symbol "
        "was replaced. *Should change*: how often the right answer changed.\n"
        "\n"
        "In the tables of levels, *window* is the number of symbols below a state. *Clusters at* a distance: the "
        "number of clusters if states at most this far apart are joined. *Each element in one cluster from*: the "
        "smallest distance at which all states of each element are in one cluster. *Elements apart up to*: the "
        "smallest distance between states of two different elements.",
    ]
    pictures: dict[str, Chart] = {}
    for net in inside.nets:
        files = _files(net, stem)
        charts = analysis_charts(net.analysis)
        pictures |= {file: charts[name].to_dict() for name, file in files.items()}
        sections += _section(net, files)
    return StudyPage(sections, pictures)


def _files(net: Net, stem: str) -> dict[str, str]:
    """Return the file names of a net's pictures, by chart name."""
    is_ours = net.column == OURS
    names = CAPTIONS if is_ours else ("elements", "field")
    suffix = "" if is_ours else f"-{net.run.spec.model_config.model_dump()['variant']}"
    return {name: f"{stem}-{net.run.spec.task.name}{suffix}-{name}.png" for name in names}


def _line(net: Net) -> list[str]:
    analysis, flips = net.analysis, net.analysis.flips
    pairs = sum(point.num_strings for point in flips)
    counts = [sum(point.num_changed for point in flips), sum(point.num_expected for point in flips)]
    return [
        net.row,
        net.column,
        percent(analysis.num_right / analysis.num_graded),
        f"{sum(level.are_elements for level in analysis.levels)} of {len(analysis.levels)}",
        f"{float(receptive_window(analysis.cumulative).double().mean()):,.0f}",
        *(percent(count / pairs) if pairs else NOTHING for count in counts),
    ]


def _section(net: Net, files: dict[str, str]) -> list[str]:
    figures = {name: f"![{CAPTIONS[name]}]({file})\n\n*{CAPTIONS[name]}.*" for name, file in files.items()}
    levels, reach = (
        markdown_table(table.header, table.lines) for table in (level_table(net.analysis), reach_table(net.analysis))
    )
    states = [figures[name] for name in ("elements", "clusters") if name in figures]
    reaches = [figures[name] for name in ("field", "flips") if name in figures]
    title = f"## {net.row}, layer: {net.column}"
    return [title, summary(net.run, net.analysis), *states, levels, *reaches, reach]
