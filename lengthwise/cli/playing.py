"""The command play."""

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lengthwise.cli.outputs import check_writable
from lengthwise.cli.streams import Output


def play(
    runs: Annotated[
        tuple[Path, ...], Parameter(help="Folders of runs, compiled or learned models, or TOML files about nets.")
    ],
    /,
    *,
    out: Annotated[Path, Parameter(help="File for the page, which needs no other files.")] = Path("play.html"),
    title: Annotated[str, Parameter(help="The heading of the page.")] = "Playground",
) -> int:
    """Write a page on which you type strings. It shows a net's answers with reasons, next to its machine and its task.

    The page runs the net in the browser and loads nothing from the network. A model without a certificate is certified
    first.
    """
    from lengthwise.playground.page import write_playground

    check_writable(out)
    command = shlex.join(["lengthwise", "play", *(run.name for run in runs), "--out", out.name])
    size = write_playground(runs, out, title=title, command=command)
    Output().print_line(f"wrote {out}: {size / 1000:,.0f} kB")
    return 0


COMMANDS = {"play": play}
