"""Charts and drawings as files: PNG, SVG and PDF."""

import base64
import json
import signal
import subprocess
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lengthwise.files import check_suffix, write_by_rename

Chart = dict[str, Any]
"""A Vega-Lite specification, as `to_dict` of an Altair chart returns it."""

SUFFIXES = (".png", ".svg", ".pdf")
"""The suffixes of picture files."""


class Picture(NamedTuple):
    """A drawing as SVG, which notebooks display in the text color of the page. In files, it has a white background.

    Example:
        >>> Picture("<svg></svg>")._repr_svg_()
        '<svg></svg>'
    """

    svg: str

    def save(self, path: str | Path) -> None:
        """Write the drawing into a PNG, SVG or PDF file; errors are as in `save_drawing`."""
        head, _, rest = self.svg.partition(">")
        save_drawing(f'{head} color="black"><rect width="100%" height="100%" fill="white"/>{rest}', Path(path))

    def _repr_svg_(self) -> str:
        return self.svg


def check_picture(path: Path, argument: str = "picture") -> None:
    """Raise a ValueError unless `path` is named as a PNG, SVG or PDF file."""
    check_suffix(argument, path, SUFFIXES, any_case=True)


def pictures(requests: Sequence[tuple[str, Chart | str]]) -> list[bytes] | None:
    """Draw charts, or drawings in SVG, and return the content of a file for each.

    A request is a pair of a format and a chart or a drawing. The formats are `"svg"`, `"pdf"`, and `"png"` at twice the
    size. Return None, with a warning, if the chart library crashes. One separate process draws all pictures, because
    starting a process takes a second.

    Raises:
        RuntimeError: a chart is invalid.
    """
    done = _run_renderer(json.dumps(requests))
    if done.returncode == 0:
        return [base64.b64decode(content) for content in json.loads(done.stdout)]
    if done.returncode > 0:  # the process raised an exception; a negative code would be a signal
        raise RuntimeError(done.stderr)
    warnings.warn(
        f"picture: the chart library crashed with {signal.Signals(-done.returncode).name}, so no picture is drawn. All "
        "other results are complete. The library reserves over 40 GB of address space; try again after `ulimit -v "
        "unlimited`",
        stacklevel=2,
    )
    return None


def _run_renderer(requests: str) -> subprocess.CompletedProcess[str]:
    # V8 may end its process if address space is short. A separate process protects this process.
    command = [sys.executable, "-m", "lengthwise.renderer"]
    return subprocess.run(command, input=requests, capture_output=True, check=False, text=True)


def write_picture(chart: Chart | str, path: Path) -> bool:
    """Draw a chart, or a drawing in SVG, into a file; return False, with a warning, if the chart library crashes.

    Raises:
        ValueError: the name does not end in one of `SUFFIXES`.
        OSError: the file cannot be written.
        RuntimeError: the chart is invalid.
    """
    check_picture(path)
    # A drawing in SVG is ready to write, without the renderer.
    kind = path.suffix[1:].lower()
    contents = [chart.encode()] if kind == "svg" and isinstance(chart, str) else pictures([(kind, chart)])
    if contents is None:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_by_rename(path, contents[0])
    return True


def save_drawing(svg: str, path: Path) -> None:
    """Write a drawing in SVG into a PNG, SVG or PDF file.

    Raises:
        ValueError: the name does not end in one of `SUFFIXES`.
        OSError: the file cannot be written.
        RuntimeError: the chart library crashed, or the drawing is invalid. Writing an SVG file needs no library.
    """
    if not write_picture(svg, path):
        raise RuntimeError(f"{path}: not written, because the picture could not be drawn; write an .svg file instead")


@cache
def chart_library() -> str | None:
    """Return the JavaScript that draws charts on a page, or None, with a warning, if the chart library crashes."""
    contents = pictures([("library", {})])
    return None if contents is None else contents[0].decode()
