"""Each number of docs/solved.md is on a page that it links there, or is computed from the records of such a page."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from solved_counts import COUNTS, Values

from lengthwise.runs.records import read_records

DOCS = Path(__file__).parent.parent / "docs"
NAMES = ("even-pairs", "parity", "cycle-navigation", "modular-arithmetic")
WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
NUMBERS = {word: number for number, word in enumerate(WORDS.split())} | {"fifty": 50, "half": 0.5}
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
COMPARED = re.compile(
    # Percentages, also before "and 5 %"; decimal numbers; numbers of two or more digits. No range such as 41-500.
    rf"(?<![\w.,-])(?:(?:{NUMBER})(?: %|(?=(?:(?:, | and | to ){NUMBER})+ %))|\d+(?:,\d{{3}})*\.\d+|\d{{2,}}|"
    rf"\d+(?:,\d{{3}})+)(?![\w-]|[.,]\d)"
)
NOT_MEASURED = (
    "In Delétang et al., the best runs",  # a citation, rounded; a test of its own compares it
    "In the paper, the perplexity grows",  # quotients of cited numbers; the same test
    "but fails at 500 symbols",  # a length of the protocol, in a section without results
)
"""Parts of sentences whose numbers are citations or settings."""


def plain(text: str) -> str:
    """Remove the targets of links, and make each space a single ordinary one."""
    return " ".join(re.sub(r"\]\([^)]*\)", "]", text).split())


PAGE = (DOCS / "solved.md").read_text(encoding="utf-8")
WHOLE = plain(PAGE)


def value(words: str) -> float | set[str]:
    """Read what a group of an expression matched: a number, or the names of tasks."""
    text = words.lower().replace(",", "")
    if text in NUMBERS or re.fullmatch(r"[\d.]+", text):
        return NUMBERS[text] if text in NUMBERS else float(text)
    names = {name for name in NAMES if name in text.replace(" ", "-")} | set(re.findall(r"\b[A-Z]_\d+\b", words))
    tomita = " ".join(re.findall(r"Tomita (\d(?:(?:,| and|, and) \d)*)", words))
    return names | {f"Tomita {index}" for index in re.findall(r"\d", tomita)}


@cache
def computed(stem: str) -> Values:
    """Compute the numbers that docs/solved.md takes from the records of a page."""
    return COUNTS[stem](read_records(DOCS / "results" / "records" / f"{stem}.jsonl.gz"))


def matches_of(form: str, text: str) -> list[re.Match[str]]:
    """Find text of this form: `#` stands for a number, `@` for names, and `...` for text in the same cell."""
    marks = {r"\#": r"(?<![\w.,])([\d.,]*\d|[A-Za-z]+)", "@": r"([^.|`]+)", r"\.\.\.": "[^|]*"}
    expression = re.escape(form)
    for mark, group in marks.items():
        expression = expression.replace(mark, group)
    return list(re.finditer(expression, text))


@pytest.mark.parametrize("stem", COUNTS)
def test_numbers_computed_from_records_are_right(stem: str) -> None:
    assert f"](results/{stem}.md)" in PAGE, "docs/solved.md links the page of these records"
    for form, values in computed(stem).items():
        (match,) = matches_of(form, WHOLE)
        assert [value(group) for group in match.groups()] == values, f"docs/solved.md: {match.group()}"


def blanked(text: str) -> str:
    """Remove the numbers that are computed, and sentences whose numbers are not measured."""
    for sentence in re.findall(r"[^.]+(?:\.\S[^.]*)*\.", text):
        if any(part in sentence for part in NOT_MEASURED):
            text = text.replace(sentence, "")
    for match in (match for stem in COUNTS for form in computed(stem) for match in matches_of(form, text)):
        for first, end in (match.span(group) for group in range(1, len(match.groups()) + 1)):
            text = text[:first] + "x" * (end - first) + text[end:]
    return text


def stated() -> Iterator[tuple[str, str, list[str]]]:
    """Yield the numbers of each paragraph, list item and table row, with the pages to look for them.

    These are the pages that it links, or else the pages that the nearest text before it links in the same section.
    """
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE):
        linked: list[str] = []
        for item in re.split(r"\n\n|\n(?=[-|])", section):
            linked = re.findall(r"\]\(results/([\w-]+)\.md", item) or linked
            for number in COMPARED.findall(blanked(plain(item))):
                yield plain(item), number, linked


@cache
def text_of(stem: str) -> str:
    """Return the text of a page of results with its CSV file, if it has one."""
    files = [DOCS / "results" / f"{stem}{suffix}" for suffix in (".md", ".csv")]
    return " ".join(plain(file.read_text(encoding="utf-8")) for file in files if file.exists())


def test_all_other_numbers_are_on_a_linked_page() -> None:
    numbers = list(stated())
    assert len(numbers) > 40
    for item, number, linked in numbers:
        expression = re.compile(rf"(?<![\d.,]){re.escape(number)}(?!\d|[.,]\d)")
        assert any(expression.search(text_of(stem)) for stem in linked), f"{number} is not on {linked}: {item}"


def test_numbers_of_papers_are_in_column_paper() -> None:
    cells = re.findall(r"\| (?!Bucket)\w+ \w+ (?:\| [^|]*){6}\| ([\d.]+) \|", text_of("leaderboard-strings"))
    (best,) = matches_of("LSTMs and transformers score # to # %", WHOLE)
    assert [value(group) for group in best.groups()] == [round(pick(map(float, cells))) for pick in (min, max)]
    factors = set()
    for row in re.findall(r"\d+/\d+: ((?:[\d.]+ / )+[\d.]+) \|", text_of("regular-gpt-table-3")):
        perplexities = [float(number) for number in row.split(" / ")]
        factors.add(max(round(after / before) for before, after in pairwise(perplexities)))
    (growth,) = matches_of("In the paper, the perplexity grows by factors of # and # at these lengths", WHOLE)
    assert [value(group) for group in growth.groups()] == sorted(factors - {1})


def test_numbers_of_learned_machines_are_in_the_rows_of_a_page_without_records() -> None:
    rows = re.findall(
        r"\| machines of (\d+)-(\d+) states \| (\d+) % \| (\d+) of (\d+) ", text_of("learning-wrong-labels")
    )
    low, high, _, recovered, machines = rows[0]
    wrong = [labels for _, _, labels, count, _ in rows if count == machines]
    (last,) = [[count, labels] for _, _, labels, count, _ in rows if count != machines]
    (match,) = matches_of("machines of # to # states: all # with #, # and # % of wrong labels, and # with # %.", WHOLE)
    assert list(match.groups()) == [low, high, recovered, *wrong, *last]


def test_the_numbers_that_are_compared_are_recognized() -> None:
    text = "0, 1 and 5 % of 8,196 at 41-500, 2 of 27, 0.52 to 3.27, 100,000. 2^-8, 50 to 62 %, 99.30 %: 40"
    assert COMPARED.findall(text) == [
        *("0", "1", "5 %", "8,196", "27", "0.52", "3.27", "100,000", "50", "62 %", "99.30 %", "40"),
    ]
