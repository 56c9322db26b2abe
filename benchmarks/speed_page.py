"""Functions that all benchmarks share, and the page of RegularGPT: aims, a log-log chart, and the dated numbers."""

import argparse
import json
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from lengthwise.files import write_by_rename
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.runs.folder import versions

ROOT = Path(__file__).parent.parent

DENSE_MASK_MS = 336
"""The CPU ms of a training step of the plain dense mask (T=40, D=64, batch 128) on the core for which aims were set."""


def parse_options(about: str) -> argparse.Namespace:
    """Parse the options of a benchmark with this docstring: `save` its page, or `quick`, a test at small sizes."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--save", action="store_true", help="write the page and the dated numbers")
    parser.add_argument("--quick", action="store_true", help="small sizes, as a test that everything runs")
    return parser.parse_args()


def save(steps: Sequence[Any], evaluations: dict[str, float], data: dict[str, float]) -> None:
    """Write page, chart and numbers."""
    where = environment()
    drawn = [m for m in steps if m.what == "training step" and m.width == 64]
    chart = length_chart(drawn, "CPU ms of a training step, batch 128, D=64")
    record = {
        "cpu_milliseconds": [m._asdict() for m in steps],
        "evaluations": evaluations,
        "data_milliseconds": data,
    }
    pages = {
        "speed.svg": vl_convert.vegalite_to_svg(chart.to_dict()),
        "speed.md": _page(steps, evaluations, data, where),
    }
    write_results("regular_gpt", where, record, pages)


def environment() -> dict[str, str]:
    """Return the date, the processor and the versions with which a benchmark runs."""
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "processor": _processor(), **versions()}


def provenance(where: Mapping[str, str]) -> str:
    """Return the section of a page on the provenance of its numbers."""
    return "\n".join(["## Provenance\n", *(f"- {name}: {value}" for name, value in where.items())])


def keep_sections(page: str, stored: str) -> str:
    """Return a page with the sections of the stored page that it lacks, before its last one, the provenance."""
    *own, provenance = _sections(page)
    headings = {section.partition("\n")[0] for section in (*own, provenance)}
    kept = [section for section in _sections(stored) if section.partition("\n")[0] not in headings]
    return "\n\n".join([*own, *kept, provenance]) + "\n"


def _sections(page: str) -> list[str]:
    """Return the sections of a page, each from its heading on; the first one has the title."""
    return [section.strip() for section in re.split(r"^(?=## )", page, flags=re.MULTILINE)]


def write_files(files: Mapping[Path, str]) -> None:
    """Write each file by rename, and print its path; missing folders are made."""
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_by_rename(path, content.encode())
        print(f"wrote {path}")


def write_results(
    name: str, where: Mapping[str, str], record: Mapping[str, Any], pages: Mapping[str, str] | None = None
) -> None:
    """Write a benchmark's dated numbers, and its pages and charts in `docs/results`."""
    numbers = ROOT / "benchmarks" / "results" / f"{name}-{where['date']}.json"
    results = {ROOT / "docs" / "results" / page: content for page, content in (pages or {}).items()}
    write_files({numbers: json.dumps({"environment": where, **record}, indent=1) + "\n", **results})


def cpu_times(work: Callable[[], object], repeats: int, warm_ups: int = 1) -> list[float]:
    """Return the CPU seconds of each repeated call, after calls that are not counted."""
    times = []
    for _ in range(warm_ups + repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return times[warm_ups:]


def _processor() -> str:
    """Return the name of the processor, if the system provides it."""
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def length_chart(measurements: Sequence[Any], what: str) -> alt.Chart:
    """Draw milliseconds (with the title `what`) against length, a line for each form, on logarithmic axes."""
    log = alt.Scale(type="log")
    return (
        alt.Chart(alt.Data(values=[m._asdict() for m in measurements]), width=520, height=340)
        .mark_line(point=True)
        .encode(
            x=alt.X("length:Q", scale=log, title="length"),
            y=alt.Y("milliseconds:Q", scale=log, title=what),
            color=alt.Color("form:N", title=None),
        )
    )


def _page(
    steps: Sequence[Any], evaluations: dict[str, float], data: dict[str, float], environment: dict[str, str]
) -> str:
    by_shape = {(m.form, m.width, m.length): m.milliseconds for m in steps if m.what == "training step"}
    parts = [
        "# Speed of RegularGPT",
        "The tables compare the CPU times of four implementations of RegularGPT, and of two whole training loops.",
        "![Cost of a training step against length](speed.svg)",
        *[_table(what, steps) for what in ("training step", "forward")],
        "All times are CPU times from one run, on one core and one torch thread. D is the width, and T the length of "
        "a string. The task is parity. RegularGPT has chunk size C=2 and one layer for each level, and a batch has "
        "128 strings. The first four forms compute the same values and gradients. At each level, RegularGPT merges "
        "windows of two states into one state. In *tree, tables*, the form that the package uses, a level with many "
        "equal windows merges each different window once. *Tree, no tables* merges every window. *Masked definition* "
        "is the short definition that tests use. *Training step*: forward, backward and AdamW on final answers. "
        "*Preset fast* is a step of the training loop as users run it, with data, pads, noise, Muon and the moving "
        "average of weights; *bare* leaves out pads and noise. *Plain dense mask* is torch's own attention with a "
        'full mask, on the string padded to a power of two. "-": not measured.',
        "```console\nmake benchmark\n```",
        "## Aims\n\n" + markdown_table(["aim", "measured", "met"], _aims(by_shape, evaluations, data)),
        f"Limits in ms and s were set on a core on which the plain dense mask takes {DENSE_MASK_MS} ms at T=40, D=64. "
        f"On the core of this page, the mask takes {by_shape['plain dense mask', 64, 40]:,.0f} ms. The table does not "
        "convert the limits. Some strings outside the language are drawn by editing strings in the language. If few "
        "edits lead out of the language, edits are often repeated, and drawing data is slow. An example is Tomita 4, "
        "whose strings do not contain `000`.",
        "\n".join(["## Whole evaluations\n", *(f"- {name}: {value:.2f}" for name, value in evaluations.items())]),
        "*One-pass*: 512 random strings are read once, and their prefixes count as strings of the shorter lengths. "
        "*Independent*: each length has its own strings. Times are in seconds (s). The last item is the largest "
        "memory of the process up to this point.",
        "\n".join(
            [
                "## A batch of data, 128 strings of 40 symbols\n",
                *(f"- {name}: {ms:.2f} ms" for name, ms in data.items()),
            ]
        ),
        provenance(environment),
    ]
    return "\n\n".join(parts) + "\n"


def _table(what: str, steps: Sequence[Any]) -> str:
    rows = [m for m in steps if m.what == what]
    columns = sorted({(m.width, m.length) for m in rows})
    lines = []
    for form in dict.fromkeys(m.form for m in rows):
        cells = {(m.width, m.length): f"{m.milliseconds:,.1f}" for m in rows if m.form == form}
        lines.append([form, *(cells.get(column, "-") for column in columns)])
    header = ["form", *(f"D={width}, T={length}" for width, length in columns)]
    return f"## {what.capitalize()}, CPU ms\n\n" + markdown_table(header, lines)


def _aims(
    by_shape: dict[tuple[str, int, int], float], evaluations: dict[str, float], data: dict[str, float]
) -> list[list[str]]:
    """Return a line for each aim with its measurement; the keys of `by_shape` are form, width and length."""
    lines = []
    for length, ratio in ((40, 20), (500, 250)):
        faster = by_shape["plain dense mask", 64, length] / by_shape["tree, tables", 64, length]
        text = f"at least {ratio} times faster than the plain dense mask, T={length}"
        lines.append([text, f"{faster:,.0f} times", "yes" if faster >= ratio else "no"])
    limits = [
        (
            f"training step of at most {limit} ms, D={width}, T={length}",
            by_shape["tree, tables", width, length],
            limit,
            "ms",
        )
        for width, length, limit in ((64, 40, 14), (256, 40, 90), (64, 500, 240))
    ]
    for name, value in evaluations.items():
        if "one-pass, D=64" in name:
            limits.append(("all lengths 1-500, 512 strings each, in at most 10 s, D=64", value, 10, "s"))
        if "64 strings, D=64" in name:
            limits.append(("64 strings of 100,000 symbols in at most 60 s", value, 60, "s"))
        if "peak memory" in name:
            limits.append(("64 strings of 100,000 symbols with at most 4 GB", value, 4, "GB"))
    slowest = max(data, key=lambda name: data[name])
    limits.append(
        (
            f"a batch of 128 strings of 40 symbols, of any task, in at most 3 ms (slowest: {slowest})",
            data[slowest],
            3,
            "ms",
        )
    )
    return lines + [
        [text, f"{value:,.1f} {unit}", "yes" if value <= limit else "no"] for text, value, limit, unit in limits
    ]
