"""Commands that write pages from finished work: report, claims."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lengthwise.cli.outputs import AsJSON, check_writable, write_object
from lengthwise.cli.streams import Output


def report(
    runs: Annotated[tuple[Path, ...], Parameter(help="Folders of finished runs.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="The page; charts and a CSV file appear next to it.")] = Path("report.html"),
) -> int:
    """Write one self-contained HTML page about finished runs, with PNG, SVG and CSV next to it."""
    from lengthwise.report.pages.run import read_measured, write_report

    check_writable(out)
    console = Output()
    console.print_lines(f"wrote {path}" for path in write_report([read_measured(folder) for folder in runs], out))
    return 0


def claims(
    *,
    paper: Annotated[
        str | None, Parameter(help="chi2023, fan2024, memorization or xu2024; all papers if not given.")
    ] = None,
    docs: Annotated[
        Path | None, Parameter(help="The folder docs of a checkout; the folder of this package if not given.")
    ] = None,
    write: Annotated[
        Path | None, Parameter(help="Write all claims as a page to this file, instead of listing them.")
    ] = None,
    out: Annotated[Path | None, Parameter(help="Also write the tables: .tex, .md or .csv.")] = None,
    as_json: AsJSON = False,
) -> int:
    """List the papers' claims, each with our number and a verdict: reproduced, contradicted, not decided or not run.

    Numbers come from the recorded results, which are part of the package.
    """
    from lengthwise.files import check_suffix, write_by_rename
    from lengthwise.report.pages.terminal import print_table
    from lengthwise.report.tables.files import SUFFIXES, write_tables
    from lengthwise.runs.records import shipped_docs
    from lengthwise.studies.claims.claim import CLAIMS
    from lengthwise.studies.claims.ledger import ledger_lines
    from lengthwise.studies.claims.page import claims_page, claims_table, verdict_sentence

    if write is not None and paper is not None:
        raise ValueError(
            f"--write: expected no --paper, because the page covers all papers, got {paper}; leave out --paper"
        )
    if write is not None and (out is not None or as_json):
        raise ValueError(f"--write: expected no {'--json' if as_json else '--out'}, got both; leave out one of the two")
    if out is not None:
        check_suffix("out", out, SUFFIXES)
    for file in (write, out):
        if file is not None:
            check_writable(file)
    console = Output(is_error=as_json)
    evaluations = ledger_lines(docs or shipped_docs(), REPRODUCE, CLAIMS if paper is None else [paper])
    if write is not None:
        write_by_rename(write, claims_page(evaluations, WRITE_CLAIMS).encode())
        console.print_line(f"wrote {write}")
        return 0
    tables = {f"{name}: {described.title}": claims_table(lines) for name, (described, lines) in evaluations.items()}
    for (title, table), (name, (_, lines)) in zip(tables.items(), evaluations.items(), strict=True):
        print_table(console, title, table)
        console.print_line(f"{name}: {verdict_sentence(lines)}")
        console.print_line("")
    if out is not None:
        write_tables(tables, out)
        console.print_line(f"wrote {out}")
    if as_json:
        papers = {
            name: {"title": described.title, "claims": [line._asdict() for line in lines]}
            for name, (described, lines) in evaluations.items()
        }
        write_object({"papers": papers})
    return 0


REPRODUCE = "lengthwise reproduce {name} --scale {scale}"
WRITE_CLAIMS = "lengthwise claims --write docs/claims.md"
"""The commands on the page of claims: one repeats an experiment, the other writes the page."""

COMMANDS = {"report": report, "claims": claims}
