"""A reader should see each file in one sitting."""

import ast
import dataclasses
import importlib
from pathlib import Path

import pytest
from pydantic import BaseModel

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "lengthwise").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SCRIPTS = sorted(file for folder in ("benchmarks", "docs", "examples") for file in (ROOT / folder).rglob("*.py"))


IN_ONE_PIECE = (ROOT / "lengthwise/certification/checker.py",)
"""The separate checker, which whoever doubts a proof reads and runs as a single file."""


FILE_SCHEMAS = ("Certificate", "LoopedTransformerConfig", "OptimizerRecipe", "Recipe", "RunResult")
"""Pydantic models whose fields are the keys of certificate.json, run.json and result.json. Grouping the fields would
make recorded files unreadable and change the ids of runs. The looped transformer inherits 8 of its 17 settings from
`CausalTransformerConfig`, and all of them are keys of recorded runs."""


@pytest.mark.parametrize("file", [*FILES, *TESTS, *SCRIPTS], ids=lambda file: str(file.relative_to(ROOT)))
def test_files_functions_and_constructors_are_short(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400 or file in IN_ONE_PIECE
    for node in ast.walk(ast.parse(text)):
        # Tests often unpack or choose several values of one case in one line.
        if isinstance(node, ast.Assign) and file not in TESTS:
            assert not is_packed(node), f"line {node.lineno} packs assignments; give each variable its own line"
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 60, f"{node.name} is over 60 lines"
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            assert num_parameters(node) <= 12 or node.name in FILE_SCHEMAS, f"{node.name} takes over 12 parameters"


def num_parameters(node: ast.FunctionDef | ast.ClassDef) -> int:
    """Return the parameters of a function or of the constructor that a class's own annotated fields make."""
    if isinstance(node, ast.FunctionDef):
        return len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs)
    fields = [line.annotation for line in node.body if isinstance(line, ast.AnnAssign)]
    return sum("ClassVar" not in ast.unparse(annotation) for annotation in fields)


def test_parameters_of_all_kinds_and_fields_are_counted() -> None:
    cases = {
        "def f(a, /, b, *, c): ...": 3,
        "class A(NamedTuple):\n    a: int\n    b: int = 0\n    def f(self): ...": 2,
        "class B(BaseModel):\n    a: ClassVar[int] = 0\n    b: int": 1,
    }
    assert {case: num_parameters(ast.parse(case).body[0]) for case in cases} == cases


def test_constructors_are_short_with_inherited_fields_except_the_schemas_of_files() -> None:
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES if file.stem != "__main__"]
    modules = [importlib.import_module(name.removesuffix(".__init__")) for name in names]
    kinds = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    large = {kind for kind in kinds if kind.__module__.startswith("lengthwise") and num_fields(kind) > 12}
    assert sorted(kind.__name__ for kind in large) == list(FILE_SCHEMAS)
    assert all(issubclass(kind, BaseModel) for kind in large)


def num_fields(kind: type) -> int:
    """Return the fields that the constructor of a pydantic model or a dataclass takes, inherited fields included."""
    if issubclass(kind, BaseModel):
        return len(kind.model_fields)
    return sum(field.init for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else 0


def test_inherited_fields_are_counted() -> None:
    class Base(BaseModel):
        a: int
        b: int

    class Derived(Base):
        b: int = 0
        c: int = 0

    @dataclasses.dataclass
    class Plain:
        a: int
        b: int = dataclasses.field(init=False)

    @dataclasses.dataclass
    class Inherited(Plain):
        c: int = 0

    assert [num_fields(kind) for kind in (Derived, Inherited, int)] == [3, 2, 0]


def is_packed(node: ast.Assign) -> bool:
    """Return whether a tuple of values is assigned to as many variables: three or more, or two on over 100 columns.

    Three constants may share a short line.
    """
    target = node.targets[0]
    if not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Tuple):
        return False
    if any(isinstance(part, ast.Starred) for part in target.elts):
        return False
    if node.lineno != node.end_lineno or node.end_col_offset > 100:
        return True
    return len(target.elts) > 2 and any(ast.unparse(part) != ast.unparse(part).upper() for part in target.elts)


def test_packed_assignments_are_noticed() -> None:
    cases = {
        "a, b, c = 1, 2, 3": True,
        "a, b = 1, 2": False,
        "A, B, C = 1, 2, 3": False,
        "a, b, c = made()": False,
        f"a, b = {'a' * 90}, 1": False,
        f"a, b = {'a' * 91}, 1": True,
        "a, b = (\n    1,\n    2,\n)": True,
        f"a, b = made({'a' * 120})": False,
    }
    assert {case: is_packed(ast.parse(case).body[0]) for case in cases} == cases


@pytest.mark.parametrize("name", ["utils", "common", "helpers"])
def test_no_drawers_for_odds_and_ends(name: str) -> None:
    assert not [file for file in FILES if file.stem == name]
