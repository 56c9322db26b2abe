"""The page on the speed of recurrences: its tables, its chart, and the dated numbers."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import vl_convert
from speed_page import environment, length_chart, provenance, write_results

from lengthwise.report.tables.markdown import markdown_table

PUBLISHED = {"the paper's scan": {40: 355, 500: 10_603}, "loop, autograd": {40: 239, 500: 43_281}}
"""The CPU ms of a step of the published code's layer, on the core for which aims were set; its loop indexes by time."""


SECTION_4_5_FORMS = ("tables", "sequential", "scan", "the paper's scan")
SECTION_4_5 = {
    (8, 8): {
        ("training", "sequential"): " (33)",
        ("training", "the paper's scan"): " (21)",
        ("test", "sequential"): " (30)",
        ("test", "the paper's scan"): " (30)",
    },
    (64, 1): {("test", "sequential"): " (2)", ("test", "the paper's scan"): " (0.8)"},
}
"""The paper's milliseconds, by the number and width of blocks, then by what was timed and by form."""


def save(measurements: Sequence[Any], memory: Mapping[str, float]) -> None:
    """Write page, chart and numbers."""
    where = environment()
    long = [m for m in measurements if m.what == "long"]
    chart = length_chart(long, "CPU ms, forward and backward, batch 8, 8 blocks of 8 x 8")
    record = {"cpu_milliseconds": [m._asdict() for m in measurements], "peak_megabytes": dict(memory)}
    pages = {
        "recurrence-speed.svg": vl_convert.vegalite_to_svg(chart.to_dict()),
        "recurrence-speed.md": _page(measurements, memory, where),
    }
    write_results("recurrence", where, record, pages)


def _page(measurements: Sequence[Any], memory: Mapping[str, float], where: Mapping[str, str]) -> str:
    parts = [
        "# Speed of linear recurrences",
        _headline(measurements),
        "## A layer that reads token ids",
        _by_length(measurements, "layer", PUBLISHED),
        "The measured layer is the layer of Fan et al. (2024), with states h_t = A_t h_(t-1) + v_t and 5 symbols. "
        "Two linear maps compute A_t, and two other linear maps compute v_t. *Tables*: A_t and v_t are computed once "
        "for each symbol of the alphabet. All other forms compute them for every position, as the published code "
        "does. In brackets are times of the published code on another core. The published code's loop indexes a "
        "tensor by time, so the cost of its gradient is quadratic in the length.",
        "Times are medians of the CPU time of the forward and backward pass together. All times are from one run, on "
        "one core and one thread. Before the measurement, a check showed that all forms have equal states and "
        "gradients. Unless noted, A_t has 8 blocks of 8 x 8, and a batch has 128 strings. *Sequential*, *scan* and "
        "*chunked* are the forms of our function `recurrence`. *The paper's scan* is our implementation of appendix "
        "A.2 of Fan et al. (2024), with autograd's gradient, as in the published code. *Loop, autograd* is a plain "
        "loop over the symbols, with which the other forms are checked.",
        "```console\npython benchmarks/recurrence.py --save\n```",
        "## The recurrence alone\n\n"
        "A_t and v_t are given for every position. Gradients are taken with respect to A_t, v_t and the first state.",
        _by_length(measurements, "matrices", {}),
        "## Section 4.5 of the paper\n\n"
        "Entries are milliseconds for a batch of 128. *Training* is a training step of the layer at T=40, and *test* "
        "computes its states at T=500. In brackets are the paper's times on a Quadro RTX 8000. They are for an "
        "*instance*, which the paper does not define. For blocks of 1 x 1, the paper does not give the length either.",
        _section_4_5(measurements),
        "On the paper's GPU, the scan takes less time than the sequential form to train, and to read blocks of 1 x "
        "1. For the test with blocks of 8 x 8, both forms take the same time. On this core, both scans take longer "
        "than the sequential form in every row, because a batch of 128 already fills the core's vector units. In "
        "batches of 1 and 8 strings, a scan is sometimes faster (see *The rule*). The paper's claim is about another "
        "device, so these numbers do not decide it.",
        "## Cost against the block dimension\n\n"
        "The entries are for the recurrence alone, with "
        + _dimension_text(measurements)
        + " Section 3.4 of the paper counts a cost of b^3 h log T for these blocks. At a fixed width, this is "
        "proportional to b^2 log T, so the counted exponent is 2. The sequential form multiplies matrices with "
        "vectors only, so its counted exponent is 1. The fitted exponents are lower. With small blocks, a core spends "
        "its time on memory and calls instead of products.",
        _dimension(measurements),
        "## Aims\n\n" + markdown_table(["aim", "measured", "met"], _aims(measurements, memory)),
        _core(measurements),
        *filter(None, [_repeated(measurements)]),
        "## Memory\n\nA step of the layer at T=500 adds this memory to the process: "
        + "; ".join(f"{form} {megabytes:,.0f} MB" for form, megabytes in memory.items())
        + ".",
        "## Long strings\n\n"
        "![Cost against length](recurrence-speed.svg)\n\n"
        f"A batch has 8 strings. {_slopes(measurements)}",
        "## The rule\n\n"
        "The function `recurrence` uses the form in column *chosen*. Strings of at least 64 symbols are read in chunks "
        "if one step of the batch has at most 2,048 multiplications. Otherwise, the form is sequential. *X fastest*: "
        "the time of the chosen form, divided by the time of the fastest form.",
        _rule(measurements),
        "If the alphabet has few symbols, the form *tables* multiplies all states by the matrices of all symbols at "
        "once, and selects the results. If the alphabet has many symbols, this form gathers the matrices of the "
        "symbols at each step.",
        _symbols(measurements),
        provenance(where),
    ]
    return "\n\n".join(parts) + "\n"


def _headline(measurements: Sequence[Any]) -> str:
    """Return sentences on section 4.5 of the paper, measured on this core with blocks of 8 x 8."""
    times = {(m.what, m.form): m.milliseconds for m in measurements if (m.blocks, m.width) == (8, 8)}
    training, test = (times[what, "the paper's scan"] / times[what, "sequential"] for what in ("training", "test"))
    return (
        f"On one CPU core, training on T=40 symbols takes {training:.1f} times as long with the parallel scan of Fan "
        f"et al. (2024) as with a sequential form, and answers at T=500 take {test:.1f} times as long.\n"
        "\n"
        "- On the paper's GPU, these ratios are 0.6 and 1.0. This page neither confirms nor refutes section 4.5 of "
        "the paper, which is about another device."
    )


def _by_length(measurements: Sequence[Any], what: str, published: Mapping[str, Mapping[int, int]]) -> str:
    rows = [m for m in measurements if m.what == what]
    lengths = sorted({m.length for m in rows})
    cells = {(m.form, m.length): f"{m.milliseconds:,.1f}" for m in rows}
    for form, times in published.items():
        for length, milliseconds in times.items():
            if (form, length) in cells:
                cells[form, length] += f" ({milliseconds:,})"
    lines = [[form, *(cells[form, length] for length in lengths)] for form in _forms(rows)]
    return markdown_table(["form", *(f"T={length}, ms" for length in lengths)], lines)


def _section_4_5(measurements: Sequence[Any]) -> str:
    lines = []
    for (blocks, width), published in SECTION_4_5.items():
        times = {(m.what, m.form): m.milliseconds for m in measurements if (m.blocks, m.width) == (blocks, width)}
        for what in ("training", "test"):
            cells = [f"{times[what, form]:,.1f}{published.get((what, form), '')}" for form in SECTION_4_5_FORMS]
            lines.append([f"{blocks} of {width} x {width}", what, *cells])
    return markdown_table(["blocks", "what", *SECTION_4_5_FORMS], lines)


def _forms(rows: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(m.form for m in rows))


def _aims(measurements: Sequence[Any], memory: Mapping[str, float]) -> list[list[str]]:
    times = {(m.what, m.form, m.length): m.milliseconds for m in measurements}
    for m in _again(measurements):
        key = ("matrices", "sequential", m.length)
        times[key] = max(times.get(key, 0.0), m.milliseconds)
    short, long = sorted({m.length for m in measurements if m.what == "layer"})
    limits = [
        (f"a layer from token ids, T={short}, in at most 20 ms", times["layer", "tables", short], 20, "ms"),
        (f"a layer from token ids, T={long}, in at most 200 ms", times["layer", "tables", long], 200, "ms"),
        (f"matrices given, T={long}, in at most 1,500 ms", times["matrices", "sequential", long], 1_500, "ms"),
    ]
    for baseline in ("torch's associative_scan", "jax's associative_scan"):
        for length in (short, long):
            if ("matrices", baseline, length) in times:
                ours = times["matrices", "sequential", length]
                limits.append(
                    (f"no slower than {baseline}, T={length}", ours, times["matrices", baseline, length], "ms")
                )
    tenth = memory["the paper's scan"] / 10
    limits.append((f"memory of at most a tenth of the paper's scan, T={long}", memory["tables"], tenth, "MB"))
    return [
        [text, f"{value:,.1f} {unit} (limit {limit:,.1f})", "yes" if value <= limit else "no"]
        for text, value, limit, unit in limits
    ]


def _again(measurements: Sequence[Any]) -> list[Any]:
    """Return the measurements of the rule that time the same call as the recurrence alone, step after step."""
    sizes = {m[2:6] for m in measurements if m.what == "matrices"}
    return [m for m in measurements if m.what == "rule" and m.form.startswith("sequential") and m[2:6] in sizes]


def _repeated(measurements: Sequence[Any]) -> str:
    """Return a paragraph about the distance of measurements of one call; aims take the slowest of them."""
    of_call = {(m.what, m.form, *m[2:6]): m.milliseconds for m in measurements}
    alone = [(f"T={m.length}", of_call["matrices", "sequential", *m[2:6]], m) for m in _again(measurements)]
    steps = [
        (m.form, of_call["layer", m.form, *m[2:6]], m)
        for m in measurements
        if m.what == "training" and ("layer", m.form, *m[2:6]) in of_call
    ]
    if not alone:
        return ""
    factor = max(math.exp(abs(math.log(m.milliseconds / first))) for _, first, m in [*alone, *steps])
    pairs = [
        ", ".join(f"{first:,.1f} and {m.milliseconds:,.1f} ms ({name})" for name, first, m in of_kind)
        for of_kind in (alone, steps)
    ]
    return (
        "Some calls are measured twice on this page. Under *The recurrence alone* and *The rule*, the sequential form "
        f"takes {pairs[0]}. Under *A layer that reads token ids* and *Section 4.5 of the paper*, a training step of "
        f"the layer takes {pairs[1]}. So differences of less than a factor of {factor:.2f} between tables are noise of "
        "this core. The table of aims cites the slower time."
    )


def _core(measurements: Sequence[Any]) -> str:
    """Return a sentence about the speed of this core next to the core for which limits were set."""
    form, there = "the paper's scan", 40
    length, here = min((m.length, m.milliseconds) for m in measurements if (m.what, m.form) == ("layer", form))
    return (
        f"Limits in ms were set on a core on which the published code's scan takes {PUBLISHED[form][there]} ms at "
        f"T={there}. On the core of this page, our implementation of this scan takes {here:,.0f} ms at T={length}."
    )


def _dimension(measurements: Sequence[Any]) -> str:
    """Return milliseconds by block dimension, and the exponent for the upper half of the dimensions."""
    rows = [m for m in measurements if m.what == "dimension"]
    widths = sorted({m.width for m in rows})
    lines = []
    for form in _forms(rows):
        times = {m.width: m.milliseconds for m in rows if m.form == form}
        points = [(math.log(width), math.log(times[width])) for width in widths[len(widths) // 2 :]]
        slopes = [statistics.linear_regression(*zip(*ends, strict=True)).slope for ends in (points, points[-2:])]
        lines.append([form, *(f"{times[width]:,.1f}" for width in widths), *(f"{slope:.2f}" for slope in slopes)])
    return markdown_table(["form, ms", *(f"b={width}" for width in widths), "exponent", "last doubling"], lines)


def _dimension_text(measurements: Sequence[Any]) -> str:
    first = next(m for m in measurements if m.what == "dimension")
    width = first.blocks * first.width
    return (
        f"batch {first.batch}, T={first.length} and width {width}, which consists of h blocks of dimension b. "
        "*Exponent*: the exponent of b, fitted to the upper half of the dimensions. *Last doubling*: the exponent, "
        "fitted to the last two dimensions."
    )


def _slopes(measurements: Sequence[Any]) -> str:
    """Return the growth with length: the exponent of the best line through the longer half of the chart's points."""
    rows = [m for m in measurements if m.what == "long"]
    slopes = []
    for form in _forms(rows):
        points = [(math.log(m.length), math.log(m.milliseconds)) for m in rows if m.form == form]
        slope = statistics.linear_regression(*zip(*points[-max(2, len(points) // 2) :], strict=True)).slope
        slopes.append(f"{form} {slope:.2f}")
    return (
        "The cost grows with a power of the length. Its exponent, fitted to the longer half of the lengths, is: "
        + ", ".join(slopes)
        + "."
    )


def _rule(measurements: Sequence[Any]) -> str:
    rows = [m for m in measurements if m.what == "rule"]
    lines = []
    for size in dict.fromkeys(m[2:6] for m in rows):
        times = {m.form.removesuffix(" (chosen)"): m for m in rows if m[2:6] == size}
        (chosen,) = (form for form, m in times.items() if m.form.endswith(" (chosen)"))
        fastest = min(times, key=lambda form, times=times: times[form].milliseconds)
        lost = times[chosen].milliseconds / times[fastest].milliseconds
        batch, length, blocks, width = size
        sizes = (f"{batch}", f"{length}", f"{blocks} of {width} x {width}")
        cells = [f"{times[form].milliseconds:,.1f}" for form in ("sequential", "scan", "chunked")]
        lines.append([*sizes, *cells, chosen, f"{lost:.2f}"])
    header = ["batch", "T", "blocks", "sequential, ms", "scan, ms", "chunked, ms", "chosen", "x fastest"]
    return markdown_table(header, lines)


def _symbols(measurements: Sequence[Any]) -> str:
    rows = [m for m in measurements if m.what == "symbols"]
    return markdown_table(["table, T=40", "ms"], [[m.form, f"{m.milliseconds:,.1f}"] for m in rows])
