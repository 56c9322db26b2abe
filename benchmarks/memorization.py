"""Writes docs/results/rnn-memorization.md: linear RNNs that learn words, their eigenvalues, and how long they last.

python benchmarks/memorization.py [--scale small|smoke] [--to FOLDER]
"""

import argparse
from pathlib import Path

import vl_convert
from speed_page import ROOT, environment, provenance

from lengthwise.experiments.base import parse_scale
from lengthwise.experiments.rnn_memorization import size_at
from lengthwise.files import write_by_rename
from lengthwise.report.pages.memorization import memorization_page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", default="small", help="small (the real thing) or smoke (seconds)")
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "results", help="folder of the page")
    options = parser.parse_args()
    size = size_at(parse_scale(options.scale))
    options.to.mkdir(parents=True, exist_ok=True)
    text, chart = memorization_page(size, provenance(environment()))
    head = "# Learning to repeat words\n\n```console\npython benchmarks/memorization.py\n```\n\n"
    if options.scale == "smoke":
        head += "**A smoke run: it shows that everything works, and its numbers say nothing.**\n\n"
    page = options.to / "rnn-memorization.md"
    write_by_rename(options.to / "rnn-memorization.svg", vl_convert.vegalite_to_svg(chart.to_dict()).encode())
    write_by_rename(page, (head + text).encode())
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
