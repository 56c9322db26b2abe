"""Draw the two pictures of architecture.md from the code; run it after a change of the parts or of the pipeline.

    python docs/architecture_picture.py

A part is a folder of `lengthwise`, or its module `experiment`. Its floor follows from the imports: one floor above the
highest part that it imports. A test compares the drawn files with what this script makes of the code.
"""

import ast
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent
PACKAGE = DOCS.parent / "lengthwise"

BASE = "base"
"""The name under which the small modules at the top level are drawn."""

BASE_NOTE = "registry, validation, files, threads, randomness: small modules that every room may import"

WIDTH = 960
MARGIN = 16
TITLE_HEIGHT = 36
LINE_HEIGHT = 15
LETTER_WIDTH = 6.3
GAP = 12
FONT = 'font-family="system-ui, sans-serif"'


class Step(NamedTuple):
    """A step of the data flow: a caption, the function that does it, as `module:name`, and what it hands on."""

    caption: str
    function: str
    result: str


FLOW = (
    Step("train", "training.loop:train", "a trained net"),
    Step("trace", "certification.traces:traced_strings", "states along strings"),
    Step("extract", "extraction.base:Reader", "a finite machine"),
    Step("prove", "certification.methods.base:Prover", "sets that no step leaves"),
    Step("certify", "certification.certify:certify", "a certificate"),
    Step("check", "certification.checker:check", "accepted, or why not"),
)


def packages() -> dict[str, Path]:
    """Return the folders of the package, and the module `experiment`, which is a floor of its own."""
    folders = {path.parent.name: path.parent for path in PACKAGE.glob("*/__init__.py")}
    return folders | {"experiment": PACKAGE / "experiment.py"}


@cache
def imports(package: str) -> frozenset[str]:
    """Return the other parts that a part imports, inside functions or for annotations as well."""
    path = packages()[package]
    imported = set()
    for file in [path] if path.suffix else path.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                imported.add(str(node.module))
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
    names = {name.split(".")[1] for name in imported if name.startswith("lengthwise.")}
    return frozenset(names & packages().keys() - {package})


@cache
def floor(package: str) -> int:
    """Return one more than the highest floor that a part imports from; a circle of parts is a RecursionError."""
    return 1 + max((floor(other) for other in imports(package)), default=0)


def note(package: str) -> str:
    """Return the first sentence of a part's docstring, without its own name in front."""
    path = packages()[package]
    file = path if path.suffix else path / "__init__.py"
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = text.split("\n\n")[0].replace("\n", " ").split(". ")[0].rstrip(".")
    name, _, rest = first.partition(": ")
    return rest if name.lower() == package else first


def floors() -> list[list[str]]:
    """Return the parts by floor, the top one first."""
    highest = max(map(floor, packages()))
    return [sorted(package for package in packages() if floor(package) == level) for level in range(highest, 0, -1)]


def packages_picture() -> str:
    """Draw each floor as a row of parts; imports point downwards only."""
    boxes = []
    top = float(MARGIN)
    for row in [*floors(), [BASE]]:
        width = (WIDTH - 2 * MARGIN - (len(row) - 1) * GAP) / len(row)
        notes = {package: _wrapped(BASE_NOTE if package == BASE else note(package), width) for package in row}
        height = TITLE_HEIGHT + LINE_HEIGHT * max(map(len, notes.values()))
        for column, (package, lines) in enumerate(notes.items()):
            boxes.append(_box(MARGIN + column * (width + GAP), top, width, height, package, lines))
        top += height + GAP
    return _svg(WIDTH, top - GAP + MARGIN, "Rooms of the package; each imports from lower floors only", boxes)


def flow_picture() -> str:
    """Draw the steps from a task and a model to a checked certificate, each with its function in the code."""
    for step in FLOW:
        _check_defined(step.function)
    width = (WIDTH - 2 * MARGIN - (len(FLOW) - 1) * 2 * GAP) / len(FLOW)
    top, height = MARGIN + 24, TITLE_HEIGHT + 2 * LINE_HEIGHT
    parts = [_text(MARGIN, MARGIN + 8, "a task, a model and a recipe", 12)]
    for index, step in enumerate(FLOW):
        left = MARGIN + index * (width + 2 * GAP)
        module, name = step.function.split(":")
        parts.append(_box(left, top, width, height, step.caption, [module.split(".")[0], name]))
        parts.append(_text(left, top + height + 18, step.result, 12))
        if index:
            start, middle = left - 2 * GAP + 3, top + height / 2
            arrow = f"M{start:.1f} {middle:.1f}h{2 * GAP - 8}m-6-4l6 4l-6 4"
            parts.append(f'<path d="{arrow}" fill="none" stroke="#57606a"/>')
    return _svg(WIDTH, top + height + 34, "From a task and a model to a checked certificate", parts)


def pictures() -> Mapping[str, str]:
    """Return the text of each picture by the name of its file."""
    return {"architecture-rooms.svg": packages_picture(), "architecture-flow.svg": flow_picture()}


def _check_defined(function: str) -> None:
    """Raise a ValueError if a module of the package does not define a function or class of this name."""
    module, name = function.split(":")
    file = PACKAGE / (module.replace(".", "/") + ".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    if not any(isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name for node in tree.body):
        raise ValueError(f"FLOW: {file} defines no {name}; change the step in this script")


def _wrapped(text: str, width: float) -> list[str]:
    return textwrap.wrap(text, int(width / LETTER_WIDTH) - 3)


def _box(left: float, top: float, width: float, height: float, title: str, lines: Sequence[str]) -> str:
    size = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"'
    shape = f'<rect {size} rx="6" fill="#fff" stroke="#afb8c1"/>'
    words = [_text(left + 9, top + 19, title, 14, bold=True)]
    words += [_text(left + 9, top + 37 + LINE_HEIGHT * index, line, 12) for index, line in enumerate(lines)]
    return shape + "".join(words)


def _text(left: float, top: float, text: str, size: int, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{left:.1f}" y="{top:.1f}" font-size="{size}" {FONT}{weight} fill="#1f2328">{escape(text)}</text>'


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#f6f8fa"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for name, text in pictures().items():
        (DOCS / name).write_text(text, encoding="utf-8")
