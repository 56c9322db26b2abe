"""Charts as files."""

import json
import signal
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from lengthwise.files import write_by_rename

Chart = dict[str, Any]
"""A Vega-Lite specification, as `to_dict` of an Altair chart gives it."""


def check_picture(path: Path) -> None:
    """Raise a ValueError unless `path` is named as a PNG or SVG file."""
    if path.suffix not in (".png", ".svg"):
        raise ValueError(f"picture: expected a name that ends in .png or .svg, got {path.name!r}")


def picture(chart: Chart, kind: str) -> bytes | None:
    """A chart as `"svg"`, or as `"png"` at twice its size; None, with a warning, where it cannot be drawn."""
    return _rendered(kind, json.dumps(chart))


def write_picture(chart: Chart, path: Path) -> bool:
    """Draw a chart into a PNG or SVG file; False, with a warning, where it cannot be drawn.

    Raises:
        ValueError: the name ends in neither .png nor .svg.
    """
    check_picture(path)
    content = picture(chart, path.suffix[1:])
    if content is None:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_by_rename(path, content)
    return True


@cache
def chart_library() -> str | None:
    """The JavaScript that draws charts on a page, made once (a second); None, with a warning, where it cannot be."""
    content = _rendered("library", "")
    return None if content is None else content.decode()


def _rendered(kind: str, text: str) -> bytes | None:
    command = [sys.executable, "-m", "lengthwise.report.charts.renderer", kind]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode == 0:
        return done.stdout
    if done.returncode > 0:  # an exception in Python: the chart is wrong
        raise RuntimeError(done.stderr.decode(errors="replace"))
    warnings.warn(
        f"picture: the chart library ended with {signal.Signals(-done.returncode).name}, so none is drawn; all else is "
        "done, and without a limit on address space (`ulimit -v unlimited`, it reserves over 40 GB) it can be drawn",
        stacklevel=3,
    )
    return None
