"""Change modules in one place at a time, and count the changes that their tests notice.

    python tests/mutation_score.py lengthwise/certification/checker.py --tests tests/certification --sample 150
    python tests/mutation_score.py lengthwise/automata --tests tests/automata tests/contracts --sample 100

Each change is a fault that a typing error could make: another comparison, another sign, a number off by one, a check
left out. The doctests of a changed module and the tests of its name run first. A change that no test notices is printed
with its line. Some of these changes are harmless, such as a limit that is one higher or a bound that is wider. Review
the list by hand.

The checkout is copied to a temporary folder. Tests are collected once, and run once to record which of them execute the
statement of each change. To try a change inside a function, a fork of that process replaces the function's code, and
runs these tests. Changes outside functions, and changes that no test executes,
are written to the copy, and all tests run in a process that has only imported third-party libraries.
"""

import argparse
import ast
import builtins
import gc
import importlib
import math
import os
import pickle
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import _lru_cache_wrapper
from itertools import accumulate
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from mutations import Change, changed, changes, insert, spots

PYTEST = (
    *("-x", "-q", "-n0", "-m", "not slow and not gpu", "-p", "no:cacheprovider"),
    # Changed modules are named for their doctests. Names such as `Tested` and `tested_lengths` are not tests.
    *("-o", "python_classes=Test[A-Z]*", "-o", "python_functions=test_*"),
)


NO_TESTS = 5
"""What pytest exits with if it finds no test."""


def forked(work: Callable[[], object], seconds: int) -> tuple[int, Any]:
    """Do work in a fork; return its exit status and result. The status is -1 if it does not end in time."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setpgid(0, 0)
            os.close(reader)
            with os.fdopen(writer, "wb") as file:
                pickle.dump(work(), file)
            code = 0
        except BaseException as problem:  # whatever it is, this process must not go on as its parent
            os.write(2, f"{problem!r}\n".encode())
        finally:
            os._exit(code)
    os.close(writer)
    status, deadline = None, time.monotonic() + seconds
    with os.fdopen(reader, "rb") as file:
        os.set_blocking(reader, False)
        content = b""
        while status is None and time.monotonic() < deadline:
            ended, code = os.waitpid(child, os.WNOHANG)
            status = code if ended else None
            content += file.read() or b""
            time.sleep(0.02)
    if status is None:
        os.killpg(child, 9)
        os.waitpid(child, 0)
        return -1, None
    return status, pickle.loads(content) if content else None


def silence() -> None:
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def is_noticed(copy: Path, tests: Iterable[str], seconds: int) -> bool:
    """Return whether a test fails in the copy. They run in a separate process; a timeout counts as a failure."""

    def run() -> None:
        os.chdir(copy)
        sys.path[0] = str(copy)
        silence()
        if pytest.main([*PYTEST, *tests]) not in (0, NO_TESTS):
            os._exit(1)

    return forked(run, seconds)[0] != 0


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of every function of a module, from the outermost ones inwards."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)


class Functions:
    """The functions of imported modules, whose code can be replaced."""

    def __init__(self) -> None:
        gc.unfreeze()
        self.by_name: dict[tuple[str, str], list[FunctionType]] = {}
        self.cached: list[Any] = []
        for value in gc.get_objects():
            if type(value) is _lru_cache_wrapper:
                module = sys.modules.get(value.__module__)  # the code itself may be a type checker's
                if (getattr(module, "__file__", None) or "").startswith(os.getcwd()):
                    self.cached.append(value)
            elif type(value) is FunctionType:  # `isinstance` asks objects that warn
                key = (value.__code__.co_filename, value.__code__.co_qualname)
                self.by_name.setdefault(key, []).append(value)
        gc.freeze()

    def replace(self, path: Path, tree: ast.Module, names: set[str]) -> bool:
        """Replace the code of functions by their code in a tree; return whether that succeeds for all of them."""
        compiled = compile(ast.fix_missing_locations(tree), str(path), "exec")
        by_name: dict[str, list[CodeType]] = {}
        for code in codes(compiled):
            by_name.setdefault(code.co_qualname, []).append(code)
        for name in names:
            functions = self.by_name.get((str(path), name), [])
            if not functions or len(by_name[name]) != 1:  # as the two functions of a property
                return False
            for function in functions:
                if len(function.__code__.co_freevars) != len(by_name[name][0].co_freevars):
                    return False
                function.__code__ = by_name[name][0]
        self.clear_caches()
        return True

    def clear_caches(self) -> None:
        """Forget results of the package's functions from before a change, such as those from the tests' collection."""
        for function in self.cached:
            function.cache_clear()


class Trial:
    """A plugin of pytest that tries changes inside functions instead of running each test once."""

    def __init__(
        self, drawn: list[Change], report: Callable[[Change, bool], None], seconds: int, budget: float
    ) -> None:
        self.drawn, self.report, self.seconds, self.budget = drawn, report, seconds, budget
        self.left: list[Change] = []
        self.failed: list[str] = []
        self.is_traced = False
        self.in_fixtures: set[int] = set()
        self.trees = {change.module: change.module.read_text(encoding="utf-8") for change in drawn}
        self.spots = {module: spots(ast.parse(text)) for module, text in self.trees.items()}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            if not self.is_traced:
                os._exit(1)
            self.failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        functions, items = Functions(), session.items
        status, traced = forked(lambda: self.trace(functions, items), 10 * self.seconds)
        if status or traced is None:
            sys.exit("the tests do not end without any change")
        failed, reached, cost = traced
        if failed:
            sys.exit(f"the tests fail without any change: {failed[:3]}")
        for number, change in enumerate(self.drawn):
            chosen = {index for index, seen in enumerate(reached) if number in seen}
            outcome = self.attempt(functions, change, self.in_order(items, chosen, cost)) if chosen else None
            if outcome is None:
                self.left.append(change)
            else:
                self.report(change, outcome)
        return True

    def in_order(self, items: list[pytest.Item], chosen: set[int], cost: list[float]) -> list[pytest.Item]:
        """Return tests by their files, fastest files first, since the tests of a file share fixtures.

        Tests beyond the budget are left out, so a change that only these notice counts as unnoticed.
        """
        of_file: dict[Path, float] = {}
        for index in chosen:
            of_file[items[index].path] = of_file.get(items[index].path, 0.0) + cost[index]
        key = lambda index: (of_file[items[index].path], str(items[index].path), cost[index])  # noqa: E731
        ordered = sorted(chosen, key=key)
        spent = accumulate(cost[index] for index in ordered)
        return [items[index] for index, total in zip(ordered, spent, strict=True) if total <= self.budget] or [
            items[ordered[0]]
        ]

    def trace(self, functions: Functions, items: list[pytest.Item]) -> tuple[list[str], list[set[int]], list[float]]:
        """Run every test; return the failing ones, and for each test the changes that it executes, and its seconds."""
        silence()
        items[0].config.pluginmanager.unregister(name="terminalreporter")
        self.is_traced = True
        for module in self.trees:
            tree = ast.parse(self.trees[module])
            own = spots(tree)
            inside = {number: own[change.node] for number, change in enumerate(self.drawn) if change.module == module}
            for number, spot in inside.items():
                marker = ast.parse(f"_executed_.add({number})").body[0]
                insert(tree, spot.statement, marker)
            for spot in inside.values():
                functions.replace(module.absolute(), tree, {spot.name})
        reached, cost = list[set[int]](), list[float]()
        in_fixtures: dict[Path, set[int]] = {}
        for item, successor in zip(items, [*items[1:], None], strict=True):
            builtins._executed_ = set[int]()  # type: ignore[attr-defined]
            functions.clear_caches()
            began = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=successor)
            reached.append(builtins._executed_)  # type: ignore[attr-defined]
            cost.append(time.process_time() - began)
            in_fixtures.setdefault(item.path, set()).update(self.in_fixtures)
        # The tests of a file share fixtures, which only the first of them makes.
        reached = [seen | in_fixtures[item.path] for seen, item in zip(reached, items, strict=True)]
        return self.failed, reached, cost

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        if self.is_traced:
            self.in_fixtures = set(builtins._executed_)  # type: ignore[attr-defined]

    def attempt(self, functions: Functions, change: Change, items: list[pytest.Item]) -> bool | None:
        """Return whether a test notices a change; None if the function's code cannot be replaced."""

        def run() -> bool:
            silence()
            items[0].config.pluginmanager.unregister(name="terminalreporter")
            resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds))
            name = self.spots[change.module][change.node].name
            if not functions.replace(change.module.absolute(), changed(self.trees[change.module], change), {name}):
                return False
            for item, successor in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=successor)
            return True

        status, is_replaced = forked(run, 4 * self.seconds)
        return True if status else (False if is_replaced else None)


def batches(module: Path, tests: list[str]) -> list[list[str]]:
    """Return batches of tests in the order to run them: the module's own, which notice most, and each given path."""
    named = [path for test in tests for path in sorted(Path(test).rglob(f"test*{module.stem}*.py"))]
    return [[str(module), *map(str, named)], *([test] for test in tests)]


def requested() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", type=Path, help="files, or folders of them")
    parser.add_argument("--tests", nargs="+", required=True, help="files or folders of tests")
    parser.add_argument("--sample", type=int, help="changes that are drawn; all of them if it is left out")
    parser.add_argument("--inside", action="store_true", help="only changes inside functions, which take less time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=600, help="time for the tests of one change")
    parser.add_argument(
        "--budget", type=float, default=math.inf, help="CPU seconds of tests for a change inside a function"
    )
    parser.add_argument("--load", nargs="*", default=["torch", "scipy", "sympy", "pydantic", "altair"])
    return parser.parse_args()


def main() -> None:
    options = requested()
    for name in options.load:
        importlib.import_module(name)
    modules = [
        path for given in options.modules for path in ([given] if given.is_file() else sorted(given.rglob("*.py")))
    ]
    every = [change for module in modules for change in changes(module)]
    trees = {module: spots(ast.parse(module.read_text(encoding="utf-8"))) for module in modules}
    if options.inside:
        every = [change for change in every if change.node in trees[change.module]]
    drawn = every if options.sample is None else random.Random(options.seed).sample(every, options.sample)
    output = os.fdopen(os.dup(1), "w")
    survivors: list[str] = []
    count = 0

    def report(change: Change, is_seen: bool) -> None:
        nonlocal count
        count += 1
        sys.stderr.write(f"\r[{count}/{len(drawn)}]")
        if not is_seen:
            survivors.append(f"{change.module}:{change.line}: {change.what}")
            output.write(f"\r[{count}/{len(drawn)}] {survivors[-1]}\n")
            output.flush()

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "checkout")
        shutil.copytree(".", copy, ignore=shutil.ignore_patterns(".git", ".venv*", "site", "__pycache__"))
        os.chdir(copy)
        sys.path[0] = str(copy)
        inside = [change for change in sorted(drawn) if change.node in trees[change.module]]

        def try_inside() -> tuple[list[Change], list[str], int]:
            trial = Trial(inside, report, options.seconds, options.budget)
            paths = [*options.tests, *map(str, dict.fromkeys(change.module for change in inside))]
            if pytest.main([*PYTEST, f"--basetemp={folder}/tests", *paths], plugins=[trial]) not in (0, NO_TESTS):
                sys.exit(1)
            return trial.left, survivors, count

        left: list[Change] = []
        if inside:
            _, result = forked(try_inside, 100 * options.seconds)
            if result is None:
                sys.exit("the tests cannot be run")
            left, survivors[:], count = result
        for change in sorted({*left, *drawn} - ({*inside} - {*left})):
            original = change.module.read_text(encoding="utf-8")
            change.module.write_text(ast.unparse(changed(original, change)), encoding="utf-8")
            report(
                change, any(is_noticed(copy, batch, options.seconds) for batch in batches(change.module, options.tests))
            )
            change.module.write_text(original, encoding="utf-8")
    noticed = len(drawn) - len(survivors)
    output.write(f"{noticed} of {len(drawn)} changes are noticed ({noticed / len(drawn):.1%}), of {len(every)}\n")
    output.flush()


if __name__ == "__main__":
    main()
