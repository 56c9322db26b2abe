"""Change a module in one place at a time, and count the changes that its tests notice.

    python tests/mutation_score.py lengthwise/certification/checker.py tests/certification/test_checker*.py --sample 300

Each change is a fault that a typing error could make: another comparison, another sign, a number off by one, a check
left out. A change that no test notices is printed with its line. Some of these change nothing that matters: a limit
that is one higher, or a bound that is wider; whoever reads the list says which.
"""

import argparse
import ast
import importlib
import io
import os
import random
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
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

PYTEST = ("-x", "-q", "-n0", "-m", "not slow", "--noconftest", "-c", os.devnull, "-p", "no:cacheprovider")
"""Without the configuration that checks shapes and types of arguments, which the tests check in their own runs."""


class Change(NamedTuple):
    """A change of a module: its line, what is changed, and which node of the tree it is at."""

    line: int
    what: str
    node: int


def changes(source: str) -> list[Change]:
    """Return every change of a module."""
    nodes = enumerate(ast.walk(ast.parse(source)))
    return [Change(getattr(node, "lineno", 0), what, index) for index, node in nodes for what in kinds_of(node)]


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


def is_noticed(module: ModuleType, tree: ast.Module, tests: list[str], seconds: int) -> bool:
    """Whether the tests fail in a process of their own in which the module is changed."""
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        noticed = 1
        try:
            users = [other for other in sys.modules.values() if other is not None and other is not module]
            before = dict(vars(module))
            exec(compile(tree, str(module.__file__), "exec"), vars(module))
            for other in users:  # names that other modules imported from this one
                for name, value in list(vars(other).items()) if isinstance(other, ModuleType) else []:
                    if name in before and value is before[name] and getattr(value, "__module__", "") == module.__name__:
                        setattr(other, name, vars(module)[name])
            import pytest

            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                noticed = int(pytest.main([*PYTEST, *tests]) != 0)
        finally:
            os._exit(noticed)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status != 0
        time.sleep(0.02)
    os.killpg(child, 9)  # a loop without an end is noticed
    os.waitpid(child, 0)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--sample", type=int, help="changes that are drawn; all of them if it is left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=300, help="time for the tests of one change")
    parser.add_argument("--load", nargs="*", default=["torch", "hypothesis"], help="modules that are imported once")
    options = parser.parse_args()
    sys.path[:0] = [str(Path.cwd()), str(Path(__file__).parent)]
    for name in options.load:
        importlib.import_module(name)
    source = options.module.read_text(encoding="utf-8")
    module = importlib.import_module(".".join(options.module.with_suffix("").parts))
    if is_noticed(module, ast.parse(source), options.tests, options.seconds):
        sys.exit("the tests fail without any change")
    every = changes(source)
    drawn = every if options.sample is None else random.Random(options.seed).sample(every, options.sample)
    survivors = []
    for number, change in enumerate(sorted(drawn), 1):
        sys.stderr.write(f"\r[{number}/{len(drawn)}]")
        if not is_noticed(module, changed(source, change), options.tests, options.seconds):
            survivors.append(f"{options.module}:{change.line}: {change.what}")
            sys.stdout.write(f"\r[{number}/{len(drawn)}] {survivors[-1]}\n")
            sys.stdout.flush()
    noticed = len(drawn) - len(survivors)
    sys.stdout.write(f"{noticed} of {len(drawn)} changes are noticed ({noticed / len(drawn):.1%}), of {len(every)}\n")


if __name__ == "__main__":
    main()
