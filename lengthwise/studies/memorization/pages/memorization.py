"""The page about memorizing words: success of training, the learned frequencies, and how long nets are right."""

from collections.abc import Sequence
from statistics import median

import altair as alt

from lengthwise.constructions.memorization.lifetime import Precision
from lengthwise.report.charts.colors import GRAY, PALETTE
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.studies.memorization.experiments.memorization import (
    LOW,
    Lasting,
    Learned,
    Memorized,
    Size,
    Trained,
)

MODES = {False: "W_x = 0", True: "W_x learned"}


@STUDY_PAGES.register("rnn-memorization")
def memorization_page(study: Memorized, stem: str) -> StudyPage:
    """Return success against dimension, learned frequencies, lifetimes, and the chart of success."""
    size, trained = study.size, study.trained
    sections = [
        f"## Success against dimension\n\n![Success against dimension]({stem}.svg)",
        *(f"### {name}\n\n{_success_table(trained, size, learns)}" for learns, name in MODES.items()),
        "### In all",
        _success_text(trained, size),
        "## Learned eigenvalues and the frequencies of linear programs",
        _frequency_text(study.learned),
        "## Lifetime at low precision",
        _lifetime_text(study.lasting, size),
        "### Trained nets",
        _trained_lifetime_text(trained, size),
        "## Protocol",
        _protocol(size, len(study.words)),
    ]
    chart = success_chart(trained, size).to_dict()
    return StudyPage(sections, {f"{stem}.svg": chart}, headline=_headline(trained, size))


def _headline(trained: Sequence[Trained], size: Size) -> str:
    plain, fed = ([net for net in trained if net.learns_inputs == learns] for learns in MODES)
    below, at, above = (_share([net for net in plain if _side(net) == side], size) for side in (-1, 0, 1))
    num_right, num_lasting = _lasting(trained, size)
    return (
        f"Without feedback {below} nets learn their word below the smallest dimension, {at} at it and {above} above "
        "it.\n"
        f"With their own answers as inputs, {_share([net for net in fed if _side(net) < 0], size)} nets learn their "
        "word below the smallest dimension.\n"
        f"{num_right:,} nets are right at {size.length} symbols, and {num_lasting:,} of them are right at "
        f"{size.longest}. The page does not show whether more training would change that."
    )


def _lasting(trained: Sequence[Trained], size: Size) -> tuple[int, int]:
    """Count the nets that are right on their training symbols, and the nets that are right on all generated symbols."""
    right = [net for net in trained if net.is_right(size.length)]
    return len(right), sum(net.is_right(size.longest) for net in right)


def _protocol(size: Size, num_words: int) -> str:
    descent = size.descent
    return (
        f"The {num_words} words have periods {size.periods[0]} to {size.periods[-1]}. Each period has 0^a 1^b in "
        "halves, a binary word drawn at random and, up to period 8, a word of three letters. Every word is learned by "
        f"{size.seeds} nets of each dimension from 1 to its period, from its first {size.length} symbols. Training "
        f"takes {descent.steps:,} steps of Adam by cross-entropy, at a rate of {descent.learning_rate:g} that falls to "
        f"0 along a cosine. W_h is orthogonal at first, and gradients are clipped at norm {descent.clip:g}. Final "
        "weights are measured, and nothing is selected. *Right*: the net, which reads its own answers and is run in "
        f"float64, is right at each of the {size.length} symbols. A constant answer is never right."
    )


def _success_text(trained: Sequence[Trained], size: Size) -> str:
    lines = []
    for learns, name in MODES.items():
        below, at, above = (
            _share([net for net in trained if net.learns_inputs == learns and _side(net) == side], size)
            for side in (-1, 0, 1)
        )
        lines.append(f"- {name}: {below} below d_min, {at} at d_min, {above} above it.")
    num_right, num_lasting = _lasting(trained, size)
    return (
        (
            "Entries are shares of nets that are right on their training symbols. The smallest dimension d_min is for "
            "generators with W_x = 0, for any length. With W_x learned, fewer dimensions can be enough.\n"
            "\n"
        )
        + "\n".join(lines)
        + f"\n- {num_right:,} nets are right at {size.length} symbols, and {num_lasting:,} of them are right at "
        f"{size.longest}."
    )


def _side(net: Trained) -> int:
    """Return -1, 0 or 1 if the net's dimension is below, at or above the smallest dimension for its word."""
    return (net.dimension > net.word.upper) - (net.dimension < net.word.upper)


def _share(nets: Sequence[Trained], size: Size) -> str:
    right = sum(net.is_right(size.length) for net in nets)
    return f"{right:,} of {len(nets):,} ({percent(right / len(nets))})" if nets else NOTHING


def _success_table(trained: Sequence[Trained], size: Size, learns: bool) -> str:
    """Return a row for each word with the number of right nets by dimension. The smallest dimension is bold."""
    nets = [net for net in trained if net.learns_inputs == learns]
    dimensions = sorted({net.dimension for net in nets})
    words = dict.fromkeys(net.word.word.text for net in nets)
    lines = []
    for text in words:
        own = [net for net in nets if net.word.word.text == text]
        cells = []
        for d in dimensions:
            group = [net for net in own if net.dimension == d]
            count = str(sum(net.is_right(size.length) for net in group)) if group else ""
            cells.append(f"**{count}**" if group and d == own[0].word.upper else count)
        lines.append([text, *cells])
    return markdown_table(["word", *(f"d={d}" for d in dimensions)], lines) + (
        f"\n\nEntries: the number of nets that are right, of {size.seeds}; bold: d_min."
    )


def _frequency_text(rows: Sequence[Learned]) -> str:
    lines = [
        [
            row.word.word.text,
            str(row.word.upper),
            ", ".join(map(str, row.word.frequencies)),
            str(row.num_right),
            f"{row.off:.3f}" if row.num_right else NOTHING,
            str(row.readable),
            str(row.robust),
            f"{row.sets} of {row.all_sets}",
        ]
        for row in rows
    ]
    right, readable, robust = (sum(getattr(row, name) for row in rows) for name in ("num_right", "readable", "robust"))
    header = ["word", "d_min", "most robust", "right", "off", "readable", "robust", "readable sets"]
    return (
        "The table has nets of dimension d_min with W_x = 0 that are right. Each eigenvalue of W_h counts as the "
        "nearest k / p. *Off*: the largest distance of an eigenvalue from its k / p, in units of 1 / p, in the median "
        "net. *Readable*: nets from whose frequencies the word can be read indefinitely. *Robust*: nets that have the "
        "set with the widest margin. *Readable sets*: their number among all sets of that dimension, as a baseline for "
        "guesses.\n"
        "\n"
        f"In all {right} nets: {readable} readable, {robust} most robust.\n"
        "\n"
        f"{markdown_table(header, lines)}"
    )


def _lifetime_text(rows: Sequence[Lasting], size: Size) -> str:
    lines = [
        [
            row.word.word.text,
            row.precision,
            str(row.word.upper),
            f"{row.threshold:.2f}",
            *(_steps(number) for number in (row.formula, row.predicted, row.measured)),
            _steps(row.wholly) if row.precision == "bfloat16" else "",
        ]
        for row in rows
    ]
    header = ["word", "precision", "d", "threshold", "formula", "predicted", "measured", "wholly in it"]
    soon = [row for row in rows if row.measured or (row.predicted or size.max_written + 1) <= size.max_written]
    agree = sum(row.measured == row.predicted for row in soon)
    return (
        (
            "Entries are first wrong steps of the most robust generators. The entries of W_h are rounded; states and "
            "read-out are in float64. *Threshold* is the spread of b_y. *Formula*: (pi / p) / |dtheta| of the plane "
            "that drifts fastest; it holds for one plane and threshold 0. *Predicted*: the first wrong step, computed "
            "from the drift of all planes. For one plane and threshold 0, it is the formula, rounded up to the next "
            "step whose state has a neighbor with another letter on the side of the drift. Only such states can reach "
            "a line. *Wholly in it*: states and read-out are also in bfloat16. inf: never, or, in the last two "
            f"columns, not within {size.max_written:,} steps.\n"
            "\n"
            f"Within these steps, {len(soon)} generators were measured or predicted to go wrong, and the first wrong "
            f"steps of {agree} of these generators were predicted exactly. "
        )
        + " ".join(
            f"{name}: the formula is within 5 % for {_near([(row.formula, row.measured) for row in group])}."
            for name, group in (
                ("One plane, threshold 0", [row for row in soon if row.is_plain]),
                ("Others", [row for row in soon if not row.is_plain]),
            )
        )
        + "\n\n"
        f"{markdown_table(header, lines)}"
    )


def _steps(number: float | int | None) -> str:
    return "inf" if number is None or number == float("inf") else f"{number:,.0f}"


def _near(pairs: Sequence[tuple[float, int | None]]) -> str:
    """Count the formulas within 5 % of the measured steps, in words."""
    near = sum(measured is not None and abs(formula - measured) <= 0.05 * measured for formula, measured in pairs)
    return f"{near} of {len(pairs)}"


def _trained_lifetime_text(trained: Sequence[Trained], size: Size) -> str:
    """Return median first wrong steps of trained nets, in float64 and with W_h rounded, then measured and predicted."""
    right = [net for net in trained if net.is_right(size.length)]
    lines = []
    for learns, name in MODES.items():
        own = [net for net in right if net.learns_inputs == learns]
        steps = [[net.first_wrong for net in own], *([net.when_rounded[low].first_wrong for net in own] for low in LOW)]
        lines.append([name, str(len(own)), *(_middle([step or size.longest + 1 for step in group]) for group in steps)])
    return (
        f"The table has nets that are right at {size.length} symbols. Entries are medians of first wrong steps "
        f"({size.longest + 1}: no wrong step), with W_h as learned and rounded.\n\n"
        + markdown_table(["", "nets", "first wrong step", *(f"W_h in {low}" for low in LOW)], lines)
        + f"\n\n{_formula_text(right, size)}"
    )


def _formula_text(right: Sequence[Trained], size: Size) -> str:
    """Compare the lifetimes of nets of the smallest dimension with the formula."""
    nets = [net for net in right if not net.learns_inputs and net.dimension == net.word.upper]
    lines = [
        [
            net.word.word.text,
            str(net.dimension),
            *(_steps(number) for low in LOW for number in net.when_rounded[low]),
        ]
        for net in nets
    ]
    header = ["word", "d", *(f"{low}: {name}" for low in LOW for name in ("formula", "measured"))]
    return (
        "Nets of dimension d_min with W_x = 0 need every plane. Their first wrong steps are compared with (pi / p) / "
        "|dtheta|, where dtheta is the largest distance of an eigenvalue's angle from a multiple of 2 pi / p, after "
        "rounding. The formula assumes the best line, through 0, and eigenvalues of size 1, which training does not "
        f"ensure. inf: not within {size.longest} steps.\n\n"
        + "\n".join(f"- {low}: {_formula_counts(nets, low)}" for low in LOW)
        + f"\n\n{markdown_table(header, lines)}"
    )


def _formula_counts(nets: Sequence[Trained], low: Precision) -> str:
    wrong = [(formula, step) for formula, step in (net.when_rounded[low] for net in nets) if step is not None]
    shares = [step / formula for formula, step in wrong]
    return (
        f"{len(wrong)} of {len(nets)} nets go wrong; the formula is within 5 % for {_near(wrong)}, within a factor of "
        f"2 for {sum(0.5 <= share <= 2 for share in shares)}; the median of measured / formula is "
        f"{f'{median(shares):.2f}' if shares else NOTHING}."
    )


def _middle(steps: list[int]) -> str:
    return f"{median(steps):,.0f}" if steps else NOTHING


def success_chart(trained: Sequence[Trained], size: Size) -> alt.LayerChart:
    """Draw the share of right nets against dimension less d_min, with a line for W_x = 0 and one for W_x learned."""
    values = []
    for learns, name in MODES.items():
        own = [net for net in trained if net.learns_inputs == learns]
        for gap in sorted({net.dimension - net.word.upper for net in own}):
            group = [net for net in own if net.dimension - net.word.upper == gap]
            share = sum(net.is_right(size.length) for net in group) / len(group)
            values.append({"gap": gap, "share": share, "inputs": name, "nets": len(group)})
    base = alt.Chart(alt.InlineData(values=values))
    color = alt.Color(
        "inputs:N",
        title="",
        scale=alt.Scale(domain=[*MODES.values()], range=PALETTE[:2]),
        legend=alt.Legend(orient="top"),
    )
    x = alt.X("gap:Q", title="dimension less d_min", axis=alt.Axis(tickMinStep=1, format="d", grid=False))
    y = alt.Y("share:Q", title="nets that are right", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    rule = alt.Chart(alt.InlineData(values=[{"gap": 0}])).mark_rule(color=GRAY, strokeDash=[4, 3])
    layers = [rule.encode(x=x), base.mark_line(point=True).encode(x=x, y=y, color=color)]
    return alt.LayerChart(layer=layers, width=420, height=240)
