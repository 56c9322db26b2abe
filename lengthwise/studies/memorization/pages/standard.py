"""The page about standard and linear RNNs that learn to repeat words."""

from collections.abc import Sequence

import altair as alt

from lengthwise.report.charts.colors import color_by
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING
from lengthwise.studies.memorization.experiments.standard import KINDS, Size, Standard, Success


@STUDY_PAGES.register("rnn-memorization/standard")
def standard_page(study: Standard, stem: str) -> StudyPage:
    """Return the study's page: successes of each kind of net below, at and above `Success.smallest`, and by word."""
    size = study.size
    sections = [
        f"## Success against dimension\n\n![Success against dimension]({stem}.svg)",
        _sides(study),
        *(f"### {kind}\n\n{_by_word(study, kind)}" for kind in KINDS),
        "## Protocol",
        _protocol(size),
    ]
    return StudyPage(sections, {f"{stem}.svg": success_chart(study).to_dict()}, headline=_headline(study))


def _headline(study: Standard) -> str:
    linear, linear_fed, tanh, tanh_fed = KINDS
    (below, _, of_below), (at, lasting, of_at) = (_counts(study, linear, side) for side in (-1, 0))
    (tanh_below, *_), (tanh_at, tanh_lasting, _) = (_counts(study, tanh, side) for side in (-1, 0))
    fed, tanh_with_fed = (_counts(study, kind, -1)[0] for kind in (linear_fed, tanh_fed))
    return (
        f"Without feedback of their answers, {below} of {of_below} linear RNNs learn to repeat their word in fewer "
        "dimensions than d_min, the smallest dimension that is enough in theory.\n"
        f"At d_min, also without feedback, {at} of {of_at} linear nets are right at the first {study.size.length} "
        f"symbols, and {lasting} of these {at} at the first {study.size.longest:,}. With tanh and without feedback, "
        f"{tanh_below} of {of_below} nets are right below d_min. At d_min, {tanh_at} of {of_at} nets with tanh are "
        f"right, and {tanh_lasting} of these {tanh_at} at the first {study.size.longest:,} symbols.\n"
        f"If nets read their own answers, {fed} of {of_below} linear nets and {tanh_with_fed} of {of_below} nets with "
        "tanh are right below d_min."
    )


def _protocol(size: Size) -> str:
    descent = size.descent
    return (
        f"For each word, kind and dimension, {size.seeds} nets are trained on the first {size.length} symbols of the "
        f"repeated word. Training takes {descent.steps:,} steps of Adam on the cross-entropy. The learning rate falls "
        f"from {descent.learning_rate:g} to 0 on a cosine schedule. W_h is initialized as a random orthogonal matrix, "
        f"and gradients are clipped at norm {descent.clip:g}. Final weights are measured, and nothing is selected."
    )


def _sides(study: Standard) -> str:
    lines = []
    for kind in KINDS:
        for side, name in ((-1, "below d_min"), (0, "at d_min"), (1, "above d_min")):
            right, lasting, count = _counts(study, kind, side)
            lines.append([kind, name, _part(right, count), _part(lasting, count)])
    about = (
        f"*Right*: in float64, the net generates each of the first {study.size.length} symbols correctly. *Lasting*: "
        f"the net generates each of the first {study.size.longest:,} symbols correctly. Nets with W_x = 0 have no "
        "feedback: they do not read their own answers."
    )
    return f"{markdown_table(['net', 'dimension', 'right', 'lasting'], lines)}\n\n{about}"


def _counts(study: Standard, kind: str, side: int) -> tuple[int, int, int]:
    """Count the right nets, the lasting nets (`Success`) and all nets of a kind on one side of d_min (`_side`)."""
    rows = [row for row in study.rows if row.kind == kind and _side(row) == side]
    return sum(row.num_right for row in rows), sum(row.num_lasting for row in rows), len(rows) * study.size.seeds


def _part(number: int, count: int) -> str:
    return f"{number} of {count}" if count else NOTHING


def _side(row: Success) -> int:
    """Return -1, 0 or 1 if the nets' dimension is below, at or above the smallest dimension for their word."""
    return (row.dimension > row.smallest) - (row.dimension < row.smallest)


def _by_word(study: Standard, kind: str) -> str:
    header = ["word", "d_min", *(f"d={d}" for d in study.size.dimensions)]
    lines = []
    for word in study.size.words:
        rows = [row for row in study.rows if (row.word, row.kind) == (word, kind)]
        lines.append([word, str(rows[0].smallest), *(f"{row.num_right} / {row.num_lasting}" for row in rows)])
    entries = f"Each entry has the number of nets, out of {study.size.seeds}, that are right / lasting."
    return f"{markdown_table(header, lines)}\n\n{entries}"


def success_chart(study: Standard) -> alt.HConcatChart:
    """Draw the shares of right and of lasting nets (`Success`) against dimension, with a line for each kind of net."""
    panels = []
    kinds = list(KINDS)
    for name, measured in (("right", "num_right"), ("lasting", "num_lasting")):
        values = [
            {"dimension": d, "net": kind, "share": _share(study, measured, kind, d)}
            for kind in kinds
            for d in study.size.dimensions
        ]
        x = alt.X("dimension:Q", title="dimension", axis=alt.Axis(values=list(study.size.dimensions), format="d"))
        y = alt.Y("share:Q", title=name, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
        color = color_by("net", kinds, sort=kinds)
        chart = alt.Chart(alt.InlineData(values=values), width=230, height=200)
        panels.append(chart.mark_line(point=True, strokeWidth=1.5).encode(x=x, y=y, color=color))
    return alt.HConcatChart(hconcat=panels, config=alt.Config(background="white"))


def _share(study: Standard, measured: str, kind: str, dimension: int) -> float:
    rows: Sequence[Success] = [row for row in study.rows if (row.kind, row.dimension) == (kind, dimension)]
    return sum(int(getattr(row, measured)) for row in rows) / (len(rows) * study.size.seeds)
