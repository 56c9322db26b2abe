"""Make the index and the navigation of the pages of results from the pages; run it after a page is new or has changed.

    python docs/results_pages.py

mkdocs runs this file as a hook. A test compares the index with what this script makes of the pages.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
INDEX = RESULTS / "index.md"

OTHERS = "Other results"

SECTIONS: Mapping[str, Sequence[str]] = {
    "Proofs": ["within-a-minute-*"],
    "Leaderboard": ["leaderboard*", "state-tracking"],
    "Benchmarks": ["bench-*"],
    "RegularGPT": ["regular-gpt-*", "shallow-features"],
    "Transformers": ["transformers-*"],
    "Linear RNNs": ["linear-rnn-*", "rnn-*"],
    "Ordinary recurrences": ["recurrent-*"],
    "Machines from examples": ["learning-*"],
    "Dynamic programming": ["grid-*"],
    "Looped transformers": ["looped-*"],
    OTHERS: [],
    "Speed": ["*speed", "peers"],
}
"""The sections of the index and the file names of their pages. If several match, the last section takes the page."""


def pages_by_section() -> dict[str, list[Path]]:
    """Return the pages of each section in alphabetical order, without trials and without empty sections."""
    sections: dict[str, list[Path]] = {heading: [] for heading in SECTIONS}
    for page in sorted(RESULTS.glob("*.md"), key=lambda page: page.stem):
        if page != INDEX and not page.stem.endswith("-smoke"):
            matching = [heading for heading, names in SECTIONS.items() if any(fnmatch(page.stem, n) for n in names)]
            sections[matching[-1] if matching else OTHERS].append(page)
    return {heading: pages for heading, pages in sections.items() if pages}


def index() -> str:
    """Return the index: its text above the first section, then each page with its title and opening sentence."""
    about, *_ = INDEX.read_text(encoding="utf-8").split("\n\n## ")
    parts = [about]
    for heading, pages in pages_by_section().items():
        parts += [f"## {heading}", "\n".join(["| page | first sentence |", "|---|---|", *map(_row, pages)])]
    return "\n\n".join(parts) + "\n"


def _row(page: Path) -> str:
    title, opening, *_ = page.read_text(encoding="utf-8").split("\n\n")
    return f"| [{title.removeprefix('# ')}]({page.name}) | {opening} |"


def on_config(config: Any) -> Any:
    """Put the pages below the index in the navigation, which takes their titles."""
    sections = [{heading: [f"results/{page.name}" for page in pages]} for heading, pages in pages_by_section().items()]
    results = next(entry["Results"] for entry in config.nav if isinstance(entry, dict) and "Results" in entry)
    results += sections
    return config


if __name__ == "__main__":
    INDEX.write_text(index(), encoding="utf-8")
