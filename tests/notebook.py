"""Notebooks run cell by cell, as a kernel would: what the last expression of a cell gives is shown."""

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def code_cells(path: Path) -> list[dict[str, Any]]:
    """The cells with code."""
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def run_cells(
    path: Path, change: Callable[[str], str], names: dict[str, Any] | None = None
) -> list[tuple[object, str]]:
    """Run all cells, each changed before; what is shown, and as what: rich where an object can do that.

    An error in a cell is raised. `names` gets the variables of the cells.
    """
    names = {} if names is None else names
    names["__name__"] = "__main__"
    results = []
    for number, cell in enumerate(code_cells(path)):
        tree = ast.parse(change("".join(cell["source"])))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name}, code cell {number}", "exec"), names)
        if last is not None:
            expression = ast.Expression(last.value)
            value = eval(compile(expression, f"{path.name}, code cell {number}", "eval"), names)
            if value is not None:
                results.append((value, _as_text(value)))
    return results


def _as_text(value: object) -> str:
    for name in ("_repr_html_", "_repr_svg_"):
        if (method := getattr(value, name, None)) is not None and (text := method()) is not None:
            return text
    return repr(value)
