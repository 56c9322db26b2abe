"""Writes docs/results/regular-gpt-inside.md: Figures 3 and 4a of Chi et al. (2023), for runs of regular-gpt/ours.

python benchmarks/inside.py RUN ... [--to FOLDER]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import vl_convert
from speed_page import ROOT, environment, provenance

from lengthwise.analysis.overview import analyze
from lengthwise.files import write_by_rename
from lengthwise.report.pages.analysis import analysis_charts, level_table, reach_table, summary
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.runs.folder import Run, load_run

CAPTIONS = {
    "elements": "Figure 3: outputs of the blocks of all levels along the first two principal axes of all of them, "
    "colored by the element of the task's monoid that the block's window is",
    "clusters": "Clusters of each level against the distance that joins states",
    "field": "Figure 4a: share of the answer's gradient that lies at a position or later",
    "flips": "How often the answer changes when the symbol at a position is replaced",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "results", help="folder of the page")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    runs = [load_run(folder) for folder in options.runs]
    page = options.to / "regular-gpt-inside.md"
    write_by_rename(page, _page(runs, [_section(run, options.to) for run in runs]).encode())
    print(f"wrote {page}")


def _page(runs: Sequence[Run], sections: Sequence[str]) -> str:
    commands = ["lengthwise reproduce regular-gpt/ours"]
    commands.append("python benchmarks/inside.py " + " ".join(f"runs/{run.spec.id}" for run in runs))
    parts = [
        "# Inside RegularGPT: Figures 3 and 4a",
        "\n".join(["```console", *commands, "```"]),
        "Chi et al. (2023) show the states of a net (Figure 3) and how far its gradients reach (Figure 4a). Here are "
        "the same for nets of preset `fast`, each next to a check: whether clusters of states are the elements of the "
        "task's monoid, and whether the answer changes when a symbol does. For a group every position matters alike; "
        "gradients need not say so. `lengthwise analyze RUN` makes a page of this kind, to point at, of any run.",
        *sections,
        provenance(environment()),
    ]
    return "\n\n".join(parts) + "\n"


def _section(run: Run, folder: Path) -> str:
    """What the page says of a run; its pictures are written next to the page."""
    found = analyze(run.model, run.spec.task)
    charts = analysis_charts(found)
    pictures = []
    for name, caption in CAPTIONS.items():
        file = f"inside-{run.spec.task.name}-{name}.png"
        write_by_rename(folder / file, vl_convert.vegalite_to_png(charts[name].to_dict(), scale=1.5))
        pictures.append(f"![{caption}]({file})\n\n*{caption}.*")
    tables = [markdown_table(table.header, table.lines) for table in (level_table(found), reach_table(found))]
    elements, clusters, field, flips = pictures
    title = f"## {run.spec.task.name.capitalize()}"
    return "\n\n".join([title, summary(run, found), elements, clusters, tables[0], field, flips, tables[1]])


if __name__ == "__main__":
    main()
