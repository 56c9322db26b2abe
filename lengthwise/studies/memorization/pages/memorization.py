"""The page about memorizing words: success of training, the learned frequencies, and how long nets are right."""

from collections.abc import Sequence
from statistics import median

import altair as alt

from lengthwise.constructions.memorization.lifetime import Precision
from lengthwise.report.charts.colors import GRAY, color_by
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.studies.memorization.experiments.memorization import LOW, Lasting, Learned, Memorized, Size, Trained

MODES = {False: "W_x = 0", True: "W_x learned"}

_TERMS = (
    "The state of a net is `h_i = W_h h_(i-1) + W_x x_i`, where x_i is the last answer of the net. The answer at "
    "step i is the index of the largest entry of `W_y h_i + b_y`. With W_x = 0, a net has no feedback: it does not "
    "read its own answers.\n"
    "\n"
    "A *generator* is a net that repeats its word at every length. *d_min* is the smallest dimension of a generator "
    "with W_x = 0. Let p be the period of the word. In a generator with W_x = 0 and d_min dimensions, W_h rotates "
    "planes, each by an angle of 2 pi k / p in a step. The whole number k is the *frequency* of the plane; k = p / 2 "
    "takes only one dimension. A set of frequencies is *readable* if a net that rotates planes at these frequencies "
    "is a generator of the word with some W_y and b_y. The *margin* of a generator is the smallest distance of a "
    "state from the region of another answer. The *most robust* generator has the widest margin in d_min dimensions."
)


@STUDY_PAGES.register("rnn-memorization")
def memorization_page(study: Memorized, stem: str) -> StudyPage:
    """Return the page about nets that repeat words: success against dimension, learned frequencies, and lifetimes."""
    size, trained = study.size, study.trained
    sections = [
        f"## Success against dimension\n\n![Success against dimension]({stem}.svg)",
        *(f"### {name}\n\n{_success_table(trained, size, learns)}" for learns, name in MODES.items()),
        "### Totals",
        _success_text(trained, size),
        f"## Terms\n\n{_TERMS}",
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
        f"Without feedback of their answers (W_x = 0), {below} linear RNNs learn to repeat their word in fewer "
        "dimensions than d_min, the smallest dimension that is enough in theory.\n"
        f"At d_min, {at} nets learn their word, and {above} above d_min. If nets read their own answers, "
        f"{_share([net for net in fed if _side(net) < 0], size)} nets below d_min learn their word.\n"
        f"{num_right:,} of {len(trained):,} nets are right at the first {size.length} symbols, and {num_lasting:,} of "
        f"these {num_right:,} at the first {size.longest}. It is not known whether more training would make more nets "
        f"right at the first {size.longest} symbols."
    )


def _lasting(trained: Sequence[Trained], size: Size) -> tuple[int, int]:
    """Count the nets that are right on their training symbols, and the nets that are right on all generated symbols."""
    right = [net for net in trained if net.is_right(size.length)]
    return len(right), sum(net.is_right(size.longest) for net in right)


def _protocol(size: Size, num_words: int) -> str:
    descent = size.descent
    return (
        f"The {num_words} words have periods {size.periods[0]} to {size.periods[-1]}. Each period has the word 0^a "
        "1^b with a = b or a = b + 1, and a random binary word. At period 2, both words are 01. Periods 3 to 8 also "
        f"have a random word of three letters. For each word and each dimension from 1 to its period, {size.seeds} "
        f"nets with W_x = 0 and {size.seeds} nets with learned W_x are trained on the first {size.length} symbols of "
        f"the repeated word. Training takes {descent.steps:,} steps of Adam on the cross-entropy. The learning rate "
        f"falls from {descent.learning_rate:g} to 0 on a cosine schedule. W_h is initialized as a random orthogonal "
        f"matrix, and gradients are clipped at norm {descent.clip:g}. Final weights are measured, and nothing is "
        f"selected. *Right*: in float64, the net generates each of the first {size.length} symbols correctly. Nets "
        "with learned W_x read their own answers. A net that always gives the same answer is never right."
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
            f"Each item gives the share of nets that are right at the first {size.length} symbols. Percentages are "
            "rounded down. Nets with learned W_x may need fewer dimensions than d_min.\n"
            "\n"
        )
        + "\n".join(lines)
        + f"\n- {num_right:,} of {len(trained):,} nets are right at the first {size.length} symbols, and "
        f"{num_lasting:,} of these {num_right:,} at the first {size.longest}."
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
        "\n\n"
        f"Each entry is the number of nets, out of {size.seeds}, that are right at the first {size.length} symbols. "
        "The entry at d_min is bold."
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
        "The table is about the nets with W_x = 0 and dimension d_min that are right. The angle of each eigenvalue "
        "of W_h, divided by 2 pi / p, is rounded to the nearest whole number k. *Most robust*: the frequencies of "
        "the most robust generator. *Right*: the number of nets in this row. *Off*: the largest error of this "
        'rounding in a net. The entry is the median over the nets of the row, or "-" if the row has no nets. '
        "*Readable*: the number of nets whose rounded frequencies are readable. *Robust*: the number of nets whose "
        "rounded frequencies equal the frequencies of the most robust generator. *Readable sets*: the number of "
        "readable sets of frequencies among all sets of dimension d_min. This share shows how often a random set "
        "would be readable.\n"
        "\n"
        f"All rows together have {right} nets. The frequencies of {readable} nets are readable. {robust} nets have "
        "the frequencies of the most robust generator of their word.\n"
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
    header = ["word", "precision", "d", "threshold", "formula", "predicted", "measured", "all in bfloat16"]
    soon = [row for row in rows if row.measured or (row.predicted or size.max_written + 1) <= size.max_written]
    agree = sum(row.measured == row.predicted for row in soon)
    return (
        (
            "The table is about constructed nets: each row is the most robust generator of a word, with the entries "
            "of W_h rounded to a low precision. So a plane turns by a slightly wrong angle, or changes the size of "
            "its states, and the states of the net drift. States and read-out are in float64. *Threshold*: the "
            "largest minus the smallest entry of b_y. *Formula*: (pi / p) / |dtheta|, where dtheta is the angular "
            "error per step of the plane that drifts fastest. The formula is meant for one plane and threshold 0. "
            "*Predicted*: the first wrong step, computed from the drift of all planes. For one plane and threshold "
            "0, the states are the corners of a regular p-gon. An error is then possible only at a state whose next "
            "corner, in the direction of the drift, has another letter. The predicted wrong symbol comes from the "
            "first such state after at least as many steps as the formula gives. The state after i steps gives "
            "symbol i + 1. *Measured*: the first wrong step of the generator. *All in bfloat16*: the first wrong "
            "step if states and read-out are also in bfloat16. *inf*: never; in the last two columns, not within "
            f"{size.max_written:,} steps.\n"
            "\n"
            f"In {len(soon)} rows, an error within {size.max_written:,} steps was measured or predicted. The "
            f"predicted step is exact in {agree} of these rows. "
        )
        + " ".join(
            "The formula is within 5 % of the measured step in "
            f"{_near([(row.formula, row.measured) for row in group])} rows {name}."
            for name, group in (
                ("with one plane and threshold 0", [row for row in soon if row.is_plain]),
                ("with more planes or another threshold", [row for row in soon if not row.is_plain]),
            )
        )
        + "\n\n"
        f"{markdown_table(header, lines)}"
    )


def _steps(number: float | int | None) -> str:
    return "inf" if number is None or number == float("inf") else f"{number:,.0f}"


def _near(pairs: Sequence[tuple[float, int | None]]) -> str:
    """Return how many formulas are within 5 % of their measured steps, as "k of n"."""
    near = sum(measured is not None and abs(formula - measured) <= 0.05 * measured for formula, measured in pairs)
    return f"{near} of {len(pairs)}"


def _trained_lifetime_text(trained: Sequence[Trained], size: Size) -> str:
    """Return medians of the first wrong steps of trained nets, then a comparison with the formula of `Rounded`."""
    right = [net for net in trained if net.is_right(size.length)]
    lines = []
    for learns, name in MODES.items():
        own = [net for net in right if net.learns_inputs == learns]
        steps = [[net.first_wrong for net in own], *([net.when_rounded[low].first_wrong for net in own] for low in LOW)]
        medians = [median(step or size.longest + 1 for step in group) if group else None for group in steps]
        lines.append([name, str(len(own)), *(NOTHING if step is None else f"{step:,.0f}" for step in medians)])
    return (
        f"The table is about trained nets that are right at the first {size.length} symbols. Entries are medians of "
        "the first wrong step: with the learned W_h, then with W_h rounded to each precision. A net without a wrong "
        f"step counts as {size.longest + 1}.\n\n"
        + markdown_table(["", "nets", "first wrong step", *(f"W_h in {low}" for low in LOW)], lines)
        + f"\n\n{_formula_text(right, size)}"
    )


def _formula_text(right: Sequence[Trained], size: Size) -> str:
    """Compare the lifetimes of nets of the smallest dimension with the formula of `Rounded`."""
    nets = [net for net in right if not net.learns_inputs and net.dimension == net.word.upper]
    lines = [
        [net.word.word.text, str(net.dimension), *(_steps(number) for low in LOW for number in net.when_rounded[low])]
        for net in nets
    ]
    header = ["word", "d", *(f"{low}: {name}" for low in LOW for name in ("formula", "measured"))]
    return (
        "The next table is about nets with W_x = 0 and dimension d_min. These nets need all of their planes to "
        "separate the letters. Their first wrong steps are compared with (pi / p) / |dtheta|. Here dtheta is the "
        "largest distance of an eigenvalue's angle from a multiple of 2 pi / p, after W_h is rounded. The formula "
        "assumes that the decision line passes through 0, and that eigenvalues have absolute value 1. Training ensures "
        f"neither. *Measured*: inf means no wrong step within {size.longest} steps. *Formula*: inf means no drift.\n\n"
        + "\n".join(f"- {low}: {_formula_counts(nets, low)}" for low in LOW)
        + f"\n\n{markdown_table(header, lines)}"
    )


def _formula_counts(nets: Sequence[Trained], low: Precision) -> str:
    wrong = [(formula, step) for formula, step in (net.when_rounded[low] for net in nets) if step is not None]
    shares = [step / formula for formula, step in wrong]
    return (
        f"{len(wrong)} of {len(nets)} nets go wrong. The formula is within 5 % of the measured step for {_near(wrong)} "
        f"nets, and within a factor of 2 for {sum(0.5 <= share <= 2 for share in shares)} nets. The median of measured "
        f"/ formula is {f'{median(shares):.2f}' if shares else NOTHING}."
    )


def success_chart(trained: Sequence[Trained], size: Size) -> alt.LayerChart:
    """Draw the share of right nets against dimension minus d_min, with and without feedback (learned W_x or W_x = 0).

    The dimension d_min is the smallest dimension of a linear RNN without feedback that repeats the net's word.
    """
    values = []
    for learns, name in MODES.items():
        own = [net for net in trained if net.learns_inputs == learns]
        for gap in sorted({net.dimension - net.word.upper for net in own}):
            group = [net for net in own if net.dimension - net.word.upper == gap]
            share = sum(net.is_right(size.length) for net in group) / len(group)
            values.append({"gap": gap, "share": share, "inputs": name, "nets": len(group)})
    base = alt.Chart(alt.InlineData(values=values))
    color = color_by("inputs", [*MODES.values()], legend=alt.Legend(orient="top"))
    x = alt.X("gap:Q", title="dimension less d_min", axis=alt.Axis(tickMinStep=1, format="d", grid=False))
    y = alt.Y("share:Q", title="nets that are right", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    rule = alt.Chart(alt.InlineData(values=[{"gap": 0}])).mark_rule(color=GRAY, strokeDash=[4, 3])
    layers = [rule.encode(x=x), base.mark_line(point=True).encode(x=x, y=y, color=color)]
    return alt.LayerChart(layer=layers, width=420, height=240)
