"""Reports, as commands write them."""

from collections.abc import Sequence
from pathlib import Path


def write_report_of(folders: Sequence[Path], page: Path) -> None:
    """Write the report about these runs' folders, and a line for each file of it."""
    from rich.console import Console

    from lengthwise.report.pages.run import read_measured, write_report

    for path in write_report([read_measured(folder) for folder in folders], page):
        Console().print(f"wrote {path}", soft_wrap=True)
