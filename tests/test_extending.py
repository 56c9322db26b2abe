"""Members of one file keep the promises of every contract, without another edit."""

import ast
import builtins
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lengthwise.registry import EXTENSIONS

ROOT = Path(__file__).parent.parent

PYTEST = (
    sys.executable,
    "-m",
    "pytest",
    "-v",
    "-p",
    "no:xdist",
    "-p",
    "no:cacheprovider",
    str(ROOT / "tests/contracts"),
)


def page_blocks() -> list[str]:
    """Return the Python of the page about extending, which registers a member of nearly every family."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def page_code() -> str:
    return "\n".join(page_blocks())


def test_files_of_the_page_could_be_files_of_the_package() -> None:
    """They need no block above them, and import no name from the top level, which files of the package may not do."""
    files = [block for block in page_blocks() if block.startswith('"""')]
    assert [re.findall(r"@(\w+)\.register", file) for file in files] == [
        [registry] for registry in ("TASKS", "MODELS", "POSITIONS", "PRESETS", "EXPERIMENTS")
    ]
    for file in files:
        assert "from lengthwise import" not in file
        assert not free_names(file)


def free_names(code: str) -> set[str]:
    """Return the names that a file uses without a definition or an import."""
    bound, used = {*dir(builtins)}, set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias):
            bound.add(getattr(node, "asname", None) or node.name)
    return used - bound


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code"),
    [("extending.md", page_code()), ("new_kind.py", (ROOT / "tests" / "new_kind.py").read_text(encoding="utf-8"))],
    ids=["extending.md", "new_kind.py"],
)
def test_members_of_one_file_keep_all_contracts(name: str, code: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(code, encoding="utf-8")
    members = re.findall(r"\.register\(\"([^\"]+)\"\)", code)
    done = subprocess.run(
        [*PYTEST, "-k", " or ".join(members)],
        cwd=tmp_path,  # the page writes files into the current folder
        env=os.environ | {EXTENSIONS: str(file)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    assert members
    for member in members:
        assert re.search(rf"[\[-]{member}\b.* PASSED", done.stdout), f"{member} of {name} is tested"
