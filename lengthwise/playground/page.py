"""The playground as one HTML file, which loads nothing and may run no script but its own."""

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from lengthwise.files import check_suffix, write_by_rename
from lengthwise.playground.contents import run_contents
from lengthwise.runs.provenance import versions

COMPUTING = ("tensors.js", "recurrent.js", "tree.js", "transformer.js", "machines.js", "analysis.js")
"""The scripts that compute answers without access to the page, each after the scripts that it needs."""

SHOWING = ("words.js", "pictures.js", "attention.js", "app.js")
"""The scripts that show results on the page."""


def write_playground(paths: Sequence[Path], page: Path, *, title: str = "Playground", command: str = "") -> int:
    """Write a page about the models at these paths (`run_contents`), and return its size in bytes.

    `command` is the command that the page names as its origin.

    Raises:
        ValueError: no path is given, or a path is given twice; the page cannot run a model; or the name of the page
            does not end in .html.
    """
    check_suffix("page", page, [".html"])
    if not paths:
        raise ValueError("runs: expected at least one run, got none; `lengthwise train` makes one")
    resolved = [path.resolve() for path in paths]
    if repeated := [path for path in paths if resolved.count(path.resolve()) > 1]:
        raise ValueError(f"runs: expected each run once, got {repeated[-1]} more than once; name this run once")
    content = playground_page(
        _with_distinct_names([run_contents(path) for path in paths], paths), title, command
    ).encode()
    page.parent.mkdir(parents=True, exist_ok=True)
    write_by_rename(page, content)
    return len(content)


def _with_distinct_names(runs: Sequence[dict[str, Any]], paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Add the folder's name to runs with equal names, or the whole path if folders also have equal names."""
    folders = [path.resolve().name for path in paths]
    named = []
    for run, path, folder in zip(runs, paths, folders, strict=True):
        alike = sum(other["name"] == run["name"] for other in runs) > 1
        added = f" ({folder if folders.count(folder) == 1 else path})" if alike else ""
        named.append({**run, "name": run["name"] + added})
    return named


def playground_page(runs: Sequence[dict[str, Any]], title: str, command: str) -> str:
    """Return the HTML text of a page about models; `runs` has one result of `run_contents` for each model."""
    style, script = part("style.css"), "\n".join(part(name) for name in (*COMPUTING, *SHOWING))
    script = f'"use strict";\n{script}'
    made_by = versions()
    about = {"lengthwise": made_by["lengthwise"], "commit": made_by["commit"], "command": command}
    # A "<" in a title or symbol could otherwise end the script element.
    data = json.dumps({"about": about, "runs": list(runs)}, separators=(",", ":")).replace("<", "\\u003c")
    return Template(part("page.html")).substitute(
        title=escape(title),
        style=style,
        script=script,
        data=data,
        style_source=content_source(style),
        script_source=content_source(script),
    )


def content_source(text: str) -> str:
    """Return the expression by which a Content Security Policy allows this text in a style or script element.

    Example:
        >>> content_source("")
        "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def part(name: str) -> str:
    """Return the text of a file from which the page is made, such as `app.js`."""
    return files("lengthwise.playground").joinpath(name).read_text(encoding="utf-8")
