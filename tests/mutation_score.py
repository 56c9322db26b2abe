"""Change modules in one place at a time, and count the changes that their tests notice.

    python tests/mutation_score.py lengthwise/certification/checker.py --tests tests/certification --sample 150
    python tests/mutation_score.py lengthwise/automata --tests tests/automata tests/contracts --sample 100

Each change is a fault that a typing error could make: another comparison, another sign, a number off by one, a check
left out. The doctests of a changed module and the tests of its name run first. A change that no test notices is printed
with its line. Some of these changes are harmless, such as a limit that is one higher or a bound that is wider. Review
the list by hand.

The checkout is copied to a temporary folder, where modules are changed. Third-party libraries are imported once. Each
batch of tests then runs in a fork of that process.
"""

import argparse
import ast
import importlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"max": "min", "min": "max", "any": "all", "all": "any", "maximum": "minimum", "minimum": "maximum"}

PYTEST = ("-x", "-q", "-n0", "-m", "not slow and not gpu", "-p", "no:cacheprovider")
NO_TESTS = 5
"""What pytest exits with if it finds no test."""


class Change(NamedTuple):
    """A change of a module: its line, what is changed, and which node of the tree it is at."""

    module: Path
    line: int
    what: str
    node: int


def changes(module: Path) -> list[Change]:
    """Return every change of a module."""
    nodes = enumerate(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    return [Change(module, getattr(node, "lineno", 0), what, index) for index, node in nodes for what in kinds_of(node)]


def changed(source: str, change: Change) -> ast.Module:
    """Return the changed module."""
    tree = ast.parse(source)
    apply(next(node for index, node in enumerate(ast.walk(tree)) if index == change.node), tree)
    return ast.fix_missing_locations(tree)


def kinds_of(node: ast.AST) -> list[str]:
    """What can be changed at a node, in words."""
    if isinstance(node, ast.Compare):
        return [f"{type(op).__name__} becomes {OTHER[type(op)].__name__}" for op in node.ops if type(op) in OTHER][:1]
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        return [f"{type(node.op).__name__} becomes {OTHER[type(node.op)].__name__}"] if type(node.op) in OTHER else []
    if isinstance(node, ast.UnaryOp):
        return [f"{type(node.op).__name__} left out"]
    if isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        return [f"{node.value} becomes {other_number(node.value)}"]
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return [f"{name} becomes {NAMES[name]}"] if name in NAMES else []
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return ["the condition is turned around"]
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return [f"left out: {ast.unparse(node)[:60]}"]
    return []


def other_number(value: float) -> float:
    """Truth values turn around, whole numbers grow by one, and others by a half."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value * 1.5


def apply(node: ast.AST, tree: ast.Module) -> None:
    """Make the change in the tree that contains the node."""
    if isinstance(node, ast.Compare):
        position = next(index for index, op in enumerate(node.ops) if type(op) in OTHER)
        node.ops[position] = OTHER[type(node.ops[position])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        node.op = OTHER[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Constant):
        node.value = other_number(node.value)  # type: ignore[arg-type]
    elif isinstance(node, ast.Name):
        node.id = NAMES[node.id]
    elif isinstance(node, ast.Attribute):
        node.attr = NAMES[node.attr]
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.UnaryOp):
        replace(tree, node, node.operand)
    else:
        replace(tree, node, ast.Pass())


def replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list) and any(item is old for item in value):
                value[:] = [new if item is old else item for item in value]


def is_noticed(copy: Path, tests: Iterable[str], seconds: int) -> bool:
    """Return whether a test fails in the copy. They run in a separate process; a timeout counts as a failure."""
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setpgid(0, 0)
            os.chdir(copy)
            sys.path[0] = str(copy)
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            import pytest

            code = int(pytest.main([*PYTEST, *tests]) not in (0, NO_TESTS))
        finally:
            os._exit(code)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status != 0
        time.sleep(0.02)
    os.killpg(child, 9)  # a loop without an end is noticed
    os.waitpid(child, 0)
    return True


def batches(module: Path, tests: list[str]) -> list[list[str]]:
    """Return batches of tests in the order to run them: the module's own, which notice most, and each given path."""
    named = [path for test in tests for path in sorted(Path(test).rglob(f"test*{module.stem}*.py"))]
    return [[str(module), *map(str, named)], *([test] for test in tests)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", type=Path, help="files, or folders of them")
    parser.add_argument("--tests", nargs="+", required=True, help="files or folders of tests")
    parser.add_argument("--sample", type=int, help="changes that are drawn; all of them if it is left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=600, help="time for the tests of one change")
    parser.add_argument("--load", nargs="*", default=["torch", "scipy", "sympy", "pydantic", "altair"])
    options = parser.parse_args()
    for name in options.load:
        importlib.import_module(name)
    modules = [
        path for given in options.modules for path in ([given] if given.is_file() else sorted(given.rglob("*.py")))
    ]
    every = [change for module in modules for change in changes(module)]
    drawn = every if options.sample is None else random.Random(options.seed).sample(every, options.sample)
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "checkout")
        shutil.copytree(".", copy, ignore=shutil.ignore_patterns(".git", ".venv*", "site", "__pycache__"))
        if is_noticed(copy, options.tests, options.seconds):
            sys.exit("the tests fail without any change")
        for number, change in enumerate(sorted(drawn), 1):
            sys.stderr.write(f"\r[{number}/{len(drawn)}]")
            original = (copy / change.module).read_text(encoding="utf-8")
            (copy / change.module).write_text(ast.unparse(changed(original, change)), encoding="utf-8")
            if not any(is_noticed(copy, batch, options.seconds) for batch in batches(change.module, options.tests)):
                survivors.append(f"{change.module}:{change.line}: {change.what}")
                sys.stdout.write(f"\r[{number}/{len(drawn)}] {survivors[-1]}\n")
                sys.stdout.flush()
            (copy / change.module).write_text(original, encoding="utf-8")
    noticed = len(drawn) - len(survivors)
    sys.stdout.write(f"{noticed} of {len(drawn)} changes are noticed ({noticed / len(drawn):.1%}), of {len(every)}\n")


if __name__ == "__main__":
    main()
