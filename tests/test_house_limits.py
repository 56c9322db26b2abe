"""A reader should see each file in one sitting."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "lengthwise").rglob("*.py"))


IN_ONE_PIECE = ("checker.py",)
"""The separate checker, which whoever doubts a proof reads and runs as a single file."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_functions_and_constructors_are_short(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400 or file.name in IN_ONE_PIECE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 60, f"{node.name} is over 60 lines"
            arguments = node.args
            assert len(arguments.args + arguments.kwonlyargs) <= 12, f"{node.name} takes over 12 parameters"


@pytest.mark.parametrize("name", ["utils", "common", "helpers"])
def test_no_drawers_for_odds_and_ends(name: str) -> None:
    assert not [file for file in FILES if file.stem == name]
