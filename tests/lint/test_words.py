"""Identifiers use the field's words, in American spelling; flag names stay on the command line."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

REPLACEMENTS = {
    r"places?": "index or position",
    r"at_(most|least)|(numbers|symbols)_at_once": "max_ or min_",
    r"asks?|asked": "supervised",
    r"wanted": "expected",
    r"mend(s|ed)?": "fix",
    r"anew": "again",
    r"learnt": "learned",
    r"glances?": "subsample",
    r"readings?": "evaluated strings",
    r"judged?": "graded",
    r"follow|followed|following": "trace",
    r"snap(s|ped|ping)?": "quantize",
    r"rooms?": "slack",
    r"representatives?": "prototype",
    r"box(es)?": "enclosure",
    r"half_widths?": "radius",
    r"refuses?": "reject",
    r"advance": "set_progress",
    r"letting_overflow|counting_from|evaluating|under_name": "overflow, offset, eval_mode, dump_named",
    r"shortened": "truncate",
    r"cheap": "shallow baseline",
    r"rivals?": "baseline",
}
"""Words of an identifier, as regular expressions: `place`, `num_places`, `ManyPlaces` match the first."""

WHOLE = {
    r"(most|least)_\w+|longest_(?!common_subsequence)\w+": "max_ or min_",
    r"some|of|said|found|beside|written": "what the value is",
    r"shown": "quoted",
}
"""Whole identifiers."""

BRITISH = re.compile(
    r"(initial|normal|optim|minim|maxim|memor|general|summar|factor|regular|quant|organ|serial|token)is(e|ing|ation)"
    r"|analys(e(?!s)|ing)|colour|behaviour|neighbour|labell|centre|grey"
)

PARTS = sorted(
    path.relative_to(ROOT)
    for top in ("lengthwise", "tests", "benchmarks", "examples")
    for path in (ROOT / top).iterdir()
    if path.suffix == ".py" or (path.is_dir() and list(path.rglob("*.py")))
)


@cache
def nodes(code: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(code)))


def identifiers(code: str) -> Iterator[tuple[int, str]]:
    """Lines and names: variables, attributes, arguments, functions, classes and what imports are called."""
    for node in nodes(code):
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str) and not (isinstance(node, ast.alias) and field == "name" and node.asname):
                yield getattr(node, "lineno", 0), name


@cache
def fault(name: str) -> str | None:
    """What to write instead of `name`, or None.

    >>> fault("NumPlaces"), fault("replaced"), fault("found"), fault("MOST_STATES"), fault("normalised")
    ('index or position', None, 'what the value is', 'max_ or min_', 'American spelling')
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).strip("_").lower()
    for pattern, better in REPLACEMENTS.items():
        if re.search(rf"(?:^|_)(?:{pattern})(?:$|_)", words):
            return better
    for pattern, better in WHOLE.items():
        if re.fullmatch(pattern, words):
            return better
    return "American spelling" if BRITISH.search(words) else None


def faults(code: str) -> list[str]:
    return [f"line {line}: {name}: {better}" for line, name in identifiers(code) if (better := fault(name))]


def test_a_fault_is_found_wherever_a_name_stands() -> None:
    code = """
import torch as places
from x import MOST_STATES
class Reading(of.wanted):
    def refuse(self, asked, *, initialise=1):
        some: int = self.boxes(half_width=3)
"""
    names = [line.split(": ")[1] for line in faults(code)]
    expected = "places MOST_STATES Reading of wanted refuse asked initialise some boxes half_width"
    assert sorted(names) == sorted(expected.split())
    assert not faults("import of.places\nlast_common_subsequence = replaced = office = analyses = normalize = 1")


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_identifiers_are_words_of_the_field(part: Path) -> None:
    path = ROOT / part
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        assert not faults(file.read_text(encoding="utf-8")), file.relative_to(ROOT)


@pytest.mark.parametrize(
    "part", [part for part in PARTS if part.parts[0] == "lengthwise" and part.name != "cli"], ids=str
)
def test_flags_are_named_by_the_command_line_only(part: Path) -> None:
    path = ROOT / part
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        for node in nodes(file.read_text(encoding="utf-8")):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                flags = re.findall(r"(?<![\w-])--[a-z][\w-]*", node.value)
                # An option of git, and an option of the checker, which is also a program of its own.
                assert not set(flags) - {"--porcelain", "--help"}, f"{file.relative_to(ROOT)}, line {node.lineno}"


PROSE = re.compile(
    r"\b(asks nothing|(is|are|nothing) asked|asked for|anew|for ever|beside|learnt|glances?|rivals?|so many"
    r"|snap(ped|s)?|carried out|gone through|cheap predictors?|half-width|in (its|their|the same) places?|told apart)\b"
    r"|\b(colour|neighbour|behaviour|normalis|initialis|optimis|minimis|memoris|generalis)"
)


@pytest.mark.parametrize("top", ["README.md", "CONTRIBUTING.md", "docs", "lengthwise", "benchmarks", "examples"])
def test_prose_uses_words_of_the_field(top: str) -> None:
    path = ROOT / top
    texts = [path] if path.is_file() else [text for ending in ("*.md", "*.py", "*.html") for text in path.rglob(ending)]
    assert texts
    for text in texts:
        for number, line in enumerate(text.read_text(encoding="utf-8").splitlines(), 1):
            assert not PROSE.search(line), f"{text.relative_to(ROOT)}, line {number}"
