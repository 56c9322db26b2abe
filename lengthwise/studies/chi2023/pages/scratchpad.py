"""The page about scratchpads and recency biases: accuracy with the net's own answers, windows of a net, and costs."""

from collections.abc import Mapping, Sequence
from statistics import fmean

import altair as alt

from lengthwise.report.charts.colors import GRAY, PALETTE
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.studies.chi2023.experiments.scratchpad import TRAINED_TO, WINDOW, Cost, Measured, Remedies


@STUDY_PAGES.register("regular-gpt/scratchpad")
def scratchpad_page(study: Remedies, stem: str) -> StudyPage:
    """Return the study's page: four sections and a chart.

    Two sections show accuracy, with the net's own and with the right intermediate answers. The other sections show the
    windows of nets, and costs.
    """
    lengths = study.size.lengths
    file = f"{stem}.svg"
    sections = [
        "## With the net's own answers",
        f"![Accuracy against length]({file})",
        _accuracies(study, own=True),
        "An entry has the mean accuracy over nets and, after the slash, the lowest accuracy. Each length has "
        f"{study.size.num_strings} strings, the same for all nets. Lengths count the symbols of the task. "
        'Intermediate answers are the net\'s own. The entry is "-" if a net would read a string of more than '
        f"{study.size.max_read_again} symbols again for each answer, which takes too long.",
        "## With the right intermediate answers",
        _accuracies(study, own=False),
        "The table has only the nets with a scratchpad. Here they read the right intermediate answers instead of "
        "their own.",
        "## Why recency alone fails",
        _about_windows(study.nets),
        _windows(study.nets),
        "## What it costs",
        markdown_table(["symbols", "window", "everything", "RegularGPT", "passes", "levels"], map(_cost, study.costs)),
        f"Times are CPU seconds for the final answers to {study.size.num_strings} strings on one core: the smallest "
        f"of three calls. *Window*: a net with a scratchpad and a window of {WINDOW} in both layers, which reads only "
        f"the last {_field(study.nets)} symbols for each of its answers. *Everything*: a net with a scratchpad and "
        f"ALiBi that reads the whole string again for each answer (not measured above {study.size.max_read_again} "
        "symbols). *Passes*: how many passes each of these two nets makes, one after another. From each pass to the "
        "next, the string grows by an answer and a symbol. *Levels*: the number of levels of RegularGPT for T "
        "symbols, log2 T (rounded up).",
    ]
    return StudyPage(sections, {file: _chart(study, lengths).to_dict()})


def _accuracies(study: Remedies, *, own: bool) -> str:
    lines = []
    for row, chance in study.chance.items():
        for column in dict.fromkeys(net.column for net in study.nets if net.row == row):
            parts = [net.own if own else net.told for net in study.nets if (net.row, net.column) == (row, column)]
            if any(parts):
                lines.append([row, column, *(_entry(parts, length) for length in study.size.lengths)])
        lines.append([row, "chance", *(percent(chance[length]) for length in study.size.lengths)])
    return markdown_table(["task", "net", *(f"{length:,}" for length in study.size.lengths)], lines)


def _entry(parts: Sequence[Mapping[int, float]], length: int) -> str:
    accuracies = [part[length] for part in parts if length in part]
    return f"{percent(fmean(accuracies))} / {percent(min(accuracies))}" if accuracies else NOTHING


def _field(nets: Sequence[Measured]) -> int:
    """Return the number of last symbols on which an answer of the nets with a window depends."""
    return next(net.windows.receptive_field for net in nets if net.windows is not None)


def _about_windows(nets: Sequence[Measured]) -> str:
    field = _field(nets)
    return (
        f"With a window of w = {WINDOW} symbols, L = 2 layers see the last L (w - 1) + 1 = {field} symbols. An answer "
        f"depends on these symbols alone. So strings that end with the same {field} symbols get the same answer. A "
        f"larger w only moves this limit. A net with a scratchpad and a window also sees only {field} symbols, but "
        "one of them is an answer about all earlier symbols. So each net with a window is a finite machine. Its "
        f"states are the strings of up to {field} symbols that the net can see, and column *windows* counts them. The "
        "net answered each of these strings once. The machine with these answers was compared with the task's "
        "machine at all lengths."
    )


def _windows(nets: Sequence[Measured]) -> str:
    lines = []
    seen = [(net.row, net.column, net.windows) for net in nets if net.windows is not None]
    for row, column in dict.fromkeys((row, column) for row, column, _ in seen):
        known = [windows for *names, windows in seen if names == [row, column]]
        errors = [windows.error for windows in known if windows.error is not None]
        lines.append(
            [
                row,
                column,
                f"{known[0].num_windows}",
                f"{sum(windows.error is None for windows in known)} of {len(known)}",
                ", ".join(dict.fromkeys(errors)) or NOTHING,
                f"{min(windows.margin for windows in known):.2g}",
            ]
        )
    header = ["task", "net", "windows", "right at every length", "shortest strings answered wrongly", "least margin"]
    about = (
        "*Least margin*: the smallest difference between the largest and the second largest logit, over all windows "
        "and nets. The float32 logits of a window differ between batches only by rounding, and these differences are "
        "far smaller than the margin."
    )
    return f"{markdown_table(header, lines)}\n\n{about}"


def _cost(cost: Cost) -> list[str]:
    times = (cost.window, cost.read_again, cost.regular_gpt)
    texts = [NOTHING if seconds is None else f"{seconds:.3f}" for seconds in times]
    return [f"{cost.length:,}", *texts, f"{cost.length:,}", f"{cost.levels}"]


def _chart(study: Remedies, lengths: Sequence[int]) -> alt.HConcatChart:
    """Draw a panel for each task: mean accuracy of nets that read their own answers, and chance, against the length."""
    columns = list(dict.fromkeys(net.column for net in study.nets))
    panels = []
    for row, chance in study.chance.items():
        nets = [net for net in study.nets if net.row == row]
        values = [
            {"length": length, "accuracy": fmean(accuracies), "net": column}
            for column in columns
            for length in lengths
            if (accuracies := [net.own[length] for net in nets if net.column == column and length in net.own])
        ]
        x = alt.X("length:Q", title="length", scale=alt.Scale(type="log"), axis=alt.Axis(values=[*lengths]))
        y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
        color = alt.Color("net:N", title="", scale=alt.Scale(domain=columns, range=PALETTE), sort=columns)
        by_chance = [{"length": length, "accuracy": chance[length]} for length in lengths]
        dashed = alt.Chart(alt.InlineData(values=by_chance)).mark_line(color=GRAY, strokeDash=[4, 3])
        marked = alt.Chart(alt.InlineData(values=values)).mark_line(point=True, strokeWidth=1.5)
        rule = alt.Chart(alt.InlineData(values=[{"length": TRAINED_TO}])).mark_rule(color=GRAY)
        layers = [dashed.encode(x=x, y=y), marked.encode(x=x, y=y, color=color), rule.encode(x=x)]
        panels.append(alt.LayerChart(layer=layers, width=220, height=220, title=row))
    return alt.HConcatChart(hconcat=panels, config=alt.Config(background="white"))
