"""Docstrings, comments and pages are plain English: the marks of compressed prose are rare."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MARKS = {
    "that of": (r"\b(those|that) of\b", 0.3),
    "is no N": (r"\b(is|are|was|were) no (?!longer|more|way|need)\w+", 0.1),
    "says": (r"\bsays?\b", 0.2),
    "is none": (r"\b(is|are|or|had|has) none\b|\b[Nn]one (?=is|are|was|of them|where|stand)", 0.3),
    "Where": (r"(?:^|[.:] )Where\b", 0.0),
    "Of": (r"(?:^|[.:;] )Of (?:a|an|the|all|each|these|those|this|two|several|some|such|\w+s)\b", 0.0),
    ", too": (r", too\b", 0.1),
    "stands": (r"\bstands?\b(?! for\b)(?!alone)", 0.1),
    "long sentence": (r"^(?:[^ \n]+ ){30}", 1.0),
}
"""Patterns, and how often each may occur in 1,000 words."""

NOT_A_VERB = re.compile(r"(A|An|The|All|Each|No|Of|What|Whether|Which|How|Where|Why|When|This|If|One|Same)\b")
"""Words with which the docstring of a function does not open; properties open with a noun."""

MAX_OTHER_OPENINGS = 0.01
"""The fraction of functions whose docstring may open with another word than a verb."""


@cache
def docstrings(file: Path) -> tuple[tuple[ast.AST, str], ...]:
    """Return the modules, classes and functions of a file with their docstrings, and strings below an assignment."""
    parents, kept = [ast.parse(file.read_text(encoding="utf-8"))], []
    while parents:
        parent = parents.pop()
        for index, child in enumerate(parent.body):
            if (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Constant)
                and isinstance(child.value.value, str)
            ):
                kept.append(((child if index else parent), child.value.value))
            elif isinstance(child, ast.ClassDef | ast.FunctionDef):
                parents.append(child)
    return tuple(kept)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text without examples and sources, with code as one word.

    >>> sentences("Return `a + b`. It is\\n new (Fan et al. 2024).\\n\\n- An item\\n\\nExample:\\n    >>> f(x)")
    ['Return X.', 'It is new (Fan et al. 2024).', '- An item', 'Example:']
    """
    text = re.sub(r"(Source|Differs from the source): [^\n]*(\n[^\n]+)*|>>>[^\n]*(\n[^\n]+)*", "", text)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.|Raises:|Example:) ?)", re.sub(r"`[^`]*`", "X", text))
    kept = [re.split(r"(?<=[.!?])(?<!\bal\.)(?<!\beq\.)\s+", " ".join(block.split())) for block in blocks]
    return [sentence for of_block in kept for sentence in of_block if sentence]


def prose(path: Path) -> Iterator[str]:
    """Yield the docstrings and comments of Python files, and the paragraphs of pages without tables and code."""
    for file in sorted(path.rglob("*") if path.is_dir() else [path]):
        if file.suffix == ".py":
            yield from (text for _, text in docstrings(file))
            yield from re.findall(r"^ *# ?(.*)", file.read_text(encoding="utf-8"), re.MULTILINE)
        elif file.suffix == ".md":
            text = re.sub(
                r"^```.*?^```|^\|[^\n]*", "", file.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
            )
            yield from re.split(r"\n\s*\n", text)


def rates(texts: Iterable[str]) -> dict[str, float]:
    """Return how often each mark occurs in 1,000 words."""
    kept = [sentence for text in texts for sentence in sentences(text)]
    lines, num_words = "\n".join(kept), sum(len(sentence.split()) for sentence in kept)
    counts = {mark: len(re.findall(pattern, lines, re.MULTILINE)) for mark, (pattern, _) in MARKS.items()}
    return {mark: 1_000 * count / num_words for mark, count in counts.items()}


@pytest.mark.parametrize("top", ["lengthwise", "docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_marks_of_compressed_prose_are_rare(top: str) -> None:
    for mark, rate in rates(prose(ROOT / top)).items():
        assert rate <= MARKS[mark][1] + 0.05, f"{top}: {mark}: {rate:.2f} in 1,000 words"


@pytest.mark.parametrize(
    ("mark", "text"),
    {
        "that of": "The mean is that of all runs.",
        "is no N": "It is no number.",
        "says": "The file says when.",
        "is none": "There is none.",
        "Where": "Where it is not, stop.",
        "Of": "Of nets that fit, two are right.",
        ", too": "It is read, too.",
        "stands": "It stands below.",
        "long sentence": "It is " + "very " * 30 + "long.",
    }.items(),
)
def test_every_mark_is_noticed(mark: str, text: str) -> None:
    noticed = [name for name, rate in rates([text, "A plain sentence."]).items() if rate]
    assert noticed == [mark]


@cache
def openings() -> tuple[tuple[str, str], ...]:
    """Return the names and docstrings of the package's functions that are not properties."""
    kept = []
    for file in sorted((ROOT / "lengthwise").rglob("*.py")):
        for node, text in docstrings(file):
            if isinstance(node, ast.FunctionDef) and not any("property" in ast.unparse(d) for d in node.decorator_list):
                kept.append((f"{file.relative_to(ROOT)}: {node.name}", text))
    return tuple(kept)


def test_docstrings_of_functions_open_with_a_verb() -> None:
    others = [name for name, text in openings() if NOT_A_VERB.match(text)]
    assert len(others) <= MAX_OTHER_OPENINGS * len(openings()), "\n".join(others)


HEADING = re.compile(r"(Args|Raises|Example|Source|Differs from [^:]*):")


def crowded_sections(text: str) -> list[str]:
    """Return the headings of a docstring without a blank line before them; differences follow their source directly."""
    crowded, previous, section = [], "", ""
    for line in inspect.cleandoc(text).splitlines():
        if heading := HEADING.match(line):
            if previous and not (section == "Source" and line.startswith("Differs")):
                crowded.append(line)
            section = heading[1]
        previous = line
    return crowded


def test_sections_of_docstrings_begin_after_a_blank_line() -> None:
    files = sorted((ROOT / "lengthwise").rglob("*.py"))
    crowded = {
        file.relative_to(ROOT): lines
        for file in files
        for _, text in docstrings(file)
        if (lines := crowded_sections(text))
    }
    assert not crowded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Return it.\n    Raises:\n        ValueError: it is 0.\n    ", ["Raises:"]),
        ("Return it.\n\n    Raises:\n        ValueError: it is 0.\n    Example:\n    ", ["Example:"]),
        ("Return it.\n\n    Source: a book,\n        page 3.\n    Differs from the source: no difference.\n    ", []),
        ("Return it.\n\n    Differs from the source: no difference.\n    Source: a book.\n    ", ["Source: a book."]),
    ],
)
def test_crowded_sections_are_noticed(text: str, expected: list[str]) -> None:
    assert crowded_sections(text) == expected


RESULT_PAGES = [page for page in sorted((ROOT / "docs" / "results").glob("*.md")) if page.stem != "index"]


@pytest.mark.parametrize("page", RESULT_PAGES, ids=lambda page: page.stem)
def test_a_page_of_results_opens_with_a_sentence_then_bullets_then_its_table(page: Path) -> None:
    title, opening, *blocks = page.read_text(encoding="utf-8").split("\n\n")
    assert title.startswith("# ")
    assert len(sentences(re.sub(r"\be?[qt]\. |\bal\. ", "", opening))) == 1, opening
    if blocks[0].startswith("- "):
        assert len(re.findall(r"^- ", blocks.pop(0), re.MULTILINE)) <= 3
    table = next(block for block in blocks if not block.startswith(("#", "!")))
    assert table.startswith("|"), table[:200]
