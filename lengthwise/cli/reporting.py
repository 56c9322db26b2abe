"""The command report."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lengthwise.cli.streams import Output


def report(
    runs: Annotated[tuple[Path, ...], Parameter(help="Folders of finished runs.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="The page; charts and a CSV file appear next to it.")] = Path("report.html"),
) -> int:
    """Write one self-contained HTML page about finished runs, with PNG, SVG and CSV next to it."""
    from lengthwise.report.pages.run import read_measured, write_report

    console = Output()
    for path in write_report([read_measured(folder) for folder in runs], out):
        console.print_line(f"wrote {path}")
    return 0


COMMANDS = {"report": report}
