"""The claims of papers as a page, and as tables for a terminal."""

from collections.abc import Iterable, Mapping, Sequence

from lengthwise.report.tables.markdown import definitions, markdown_table
from lengthwise.report.tables.table import Table
from lengthwise.studies.claims.claim import RULES, Paper
from lengthwise.studies.claims.ledger import LedgerLine, count_verdicts

Evaluations = Mapping[str, tuple[Paper, Sequence[LedgerLine]]]
"""Each paper and the lines of its claims, under the paper's name."""


def claims_page(evaluations: Evaluations, command: str) -> str:
    """Return the study's page: counts of verdicts, the conditions of verdicts, and a table of claims for each paper.

    The page names `command` as the command that writes the page.
    """
    lines = [line for _, of_paper in evaluations.values() for line in of_paper]
    counts = count_verdicts(lines)
    decided = [line for line in lines if line.verdict in ("reproduced", "contradicted")]
    tested = sum("pytest" in line.command for line in decided)
    parts = [
        "# The claims of the papers",
        f"Out of {len(lines)} claims of {len(evaluations)} papers, {counts['reproduced']} are reproduced, "
        f"{counts['contradicted']} contradicted, {counts['not decided']} not decided and {counts['not run']} not run. "
        f"{tested} of the decided claims are definitions, theorems and constructions, which tests check. Most trained "
        "nets are smaller here than in the papers, so our results rarely contradict a paper.",
        markdown_table(*_counts(evaluations)),
        f"```console\n{command}\n```",
        "The command looks numbers up in the recorded results, or in tables that benchmarks wrote. A test fails if "
        "this page differs from these numbers. A claim such as *Parity, RNN.* means that this net has at least the "
        "score that the paper prints.",
        definitions(RULES.items()),
        "[What the open claims would cost](plan-of-claims.md) names the runs that would decide them, with CPU hours.",
        "Scores on D_n and Tomita languages are measured on the published strings. A score below [shallow "
        "features](results/shallow-features.md) does not show that a language was learned, here or in the paper.",
    ]
    for name, (paper, of_paper) in evaluations.items():
        smaller = [
            f"Our runs in {' and '.join(f'`{name}`' for name, size in paper.smaller.items() if size == text)}: {text}."
            for text in dict.fromkeys(paper.smaller.values())
        ]
        note = [paper.note] if paper.note else []
        parts += [f"## {name}", f"{paper.title}.", *smaller, *note, markdown_table(_HEADER, map(_cells, of_paper))]
    return "\n\n".join(parts) + "\n"


def claims_table(lines: Sequence[LedgerLine]) -> Table:
    """Return a table of a paper's claims, for a terminal."""
    header = ("section", "claim", "verdict", "ours", "paper")
    return Table(header, tuple((line.section, line.claim, line.verdict, line.ours, line.published) for line in lines))


def verdict_sentence(lines: Iterable[LedgerLine]) -> str:
    """Return the number of claims with each verdict, in words."""
    counts = count_verdicts(lines)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in RULES)


_HEADER = ("section", "claim", "verdict", "ours", "paper", "page", "command")


def _cells(line: LedgerLine) -> tuple[str, ...]:
    name = line.page.rpartition("/")[2].removesuffix(".md")
    page = f"[{name}]({line.page})" if line.page else ""
    command = f"`{line.command}`" if line.command else ""
    return line.section, line.claim, line.verdict, line.ours, line.published, page, command


def _counts(evaluations: Evaluations) -> tuple[Sequence[str], list[list[str]]]:
    """Return header and lines of the table of verdicts by paper."""
    rows = []
    for name, (_, lines) in evaluations.items():
        counts = count_verdicts(lines)
        rows.append([f"[{name}](#{name})", *(str(counts[verdict]) for verdict in RULES), str(len(lines))])
    return ("paper", *RULES, "all"), rows
