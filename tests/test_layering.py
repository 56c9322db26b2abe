"""Imports point downwards only, and light things stay light."""

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "lengthwise"

FLOORS = [
    {"cli", "__main__"},
    {"report", "playground"},
    {"experiments"},
    {"runs"},
    {"constructions", "certification", "analysis"},
    {"training", "presets"},
    {"extraction", "evaluation"},
    {"models", "tasks"},
    {"layers"},
    {"ops", "automata"},
    {"registry", "conventions", "validation", "randomness", "threads", "files", "peak_memory"},
]
"""From the roof down. A room imports from lower floors and from itself; rooms on one floor are strangers."""

GROUND = {
    "cli",
    "__main__",
    "registry",
    "conventions",
    "validation",
    "randomness",
}  # single files, which may know one another
LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}


def imported_rooms(file: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("lengthwise.")}
    return rooms - {"__version__"}


def test_imports_point_down() -> None:
    upward = []
    for file in sorted(PACKAGE.rglob("*.py")):
        room = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        upward += [
            f"{file.relative_to(PACKAGE)} imports {other}"
            for other in imported_rooms(file) - {room}
            if LEVEL[other] <= LEVEL[room] and not {room, other} <= GROUND
        ]
    assert not upward


def test_every_room_has_a_floor() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms - {"__init__"} <= set(LEVEL)


def loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_automata_never_import_torch() -> None:
    modules = [f"lengthwise.automata.{file.stem}" for file in sorted((PACKAGE / "automata").glob("[a-z]*.py"))]
    assert "torch" not in loaded_by(f"import {', '.join(modules)}")


def test_the_command_line_starts_without_torch_and_charts() -> None:
    assert not {"torch", "altair", "pydantic"} & loaded_by("import lengthwise, lengthwise.cli.app")
