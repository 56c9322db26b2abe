"""The page about moduli of continuity of trained looped transformers: a table, and a chart of each net."""

import altair as alt

from lengthwise.report.charts.colors import color_by
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import percent
from lengthwise.studies.xu2024.experiments.moduli import KINDS, Moduli, Study


@STUDY_PAGES.register("looped/moduli")
def moduli_page(study: Study, stem: str) -> StudyPage:
    """Return the study's page: a table of the largest changes of logits by net, modulus and distance, and a chart."""
    size = study.size
    header = ["net", "accuracy", "modulus", *(f"t = {distance:g}" for distance in size.distances)]
    lines = [
        [_name(one), percent(one.accuracy), kind, *(f"{one.values[kind][t]:.3f}" for t in size.distances)]
        for one in study.moduli
        for kind in KINDS
    ]
    sections = [
        f"## Largest changes found\n\n![Moduli against distance]({stem}.svg)",
        markdown_table(header, lines),
        f"Nets are trained on parity of strings of up to {size.length} symbols, and the answer to every prefix is "
        f"supervised. They have width 32, 2 heads and {size.num_loops} loops. They are trained with preset `plain` "
        f"for {size.steps:,} steps of 64 strings with seed 0, and nothing is selected. In the paper's theorem, the "
        "error of a net grows with the contextual and token moduli of the function that the net approximates. The "
        "table instead has the moduli of the functions that the nets compute. A search finds these moduli, so the "
        "entries are lower bounds.",
        f"*Accuracy*: the accuracy of final answers to 1,000 strings of {size.length} symbols. *t*: the Euclidean "
        "distance between two sequences of embeddings, which both lie in the box that the embeddings of symbols "
        "span. An entry is the largest change of the logits that was found, in the 2-norm. For each distance, there "
        f"are {size.num_starts} searches from random pairs. Up to {size.num_starts} more searches use pairs of inputs "
        "that were found for larger distances. Each begins at two points on the segment between the inputs of such a "
        f"pair. A search has {size.num_steps} steps of gradient ascent.",
    ]
    chart = alt.HConcatChart(hconcat=moduli_panels(study), config=alt.Config(background="white"))
    return StudyPage(sections, {f"{stem}.svg": chart.to_dict()}, headline=_headline(study))


def _headline(study: Study) -> str:
    distance = study.size.distances[len(study.size.distances) // 2]
    trained = [f"{one.values['contextual'][distance]:.3f} ({one.net})" for one in study.moduli if one.is_trained]
    untrained = [f"{one.values['contextual'][distance]:.3f}" for one in study.moduli if not one.is_trained]
    return (
        "In looped transformers trained on parity, the logits at one position changed by up to "
        f"{' and '.join(trained)} when the embeddings at all other positions moved by a distance of {distance:g}.\n"
        f"Before training, these changes were {' and '.join(untrained)}. The page has one net of each kind: *plain "
        "loop* is the net of the published code, and *timestep* adds gains and gates that are functions of the loop's "
        "number."
    )


def _name(one: Moduli) -> str:
    return f"{one.net}, {'trained' if one.is_trained else 'untrained'}"


def moduli_panels(study: Study) -> list[alt.Chart]:
    """Draw a chart for each net before and after training, with a line for each of the three moduli."""
    panels = []
    for one in study.moduli:
        values = [
            {"distance": distance, "change": value, "modulus": kind}
            for kind in KINDS
            for distance, value in one.values[kind].items()
        ]
        axis = alt.Axis(values=list(study.size.distances))
        x = alt.X("distance:Q", title="distance t", scale=alt.Scale(type="log"), axis=axis)
        y = alt.Y("change:Q", title="change of logits", scale=alt.Scale(zero=True))
        color = color_by("modulus", KINDS)
        chart = alt.Chart(alt.InlineData(values=values), width=170, height=190, title=_name(one))
        panels.append(chart.mark_line(point=True, strokeWidth=1.5).encode(x=x, y=y, color=color))
    return panels
