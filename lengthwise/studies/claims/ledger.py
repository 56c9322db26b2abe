"""Claims with their verdicts and numbers, computed from recorded results and pages."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from lengthwise.evaluation.interval import difference_from_zero, mean_interval
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale
from lengthwise.files import read_file
from lengthwise.report.pages.results import file_stem
from lengthwise.report.tables.cells import accuracies_scored, results_of
from lengthwise.report.tables.differences import compared_columns, signed
from lengthwise.report.tables.experiment import cell_table
from lengthwise.report.tables.numbers import percent
from lengthwise.report.tables.printed import as_share, printed_range
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.records import has_records, read_records
from lengthwise.studies.claims.claim import (
    CLAIMS,
    Claim,
    Contrast,
    Effect,
    Entry,
    Number,
    Paper,
    Parameters,
    Phrase,
    Rows,
    Stated,
    Unrun,
    Verdict,
)
from lengthwise.studies.claims.decide import contrast_verdict, effect_verdict, entry_verdict
from lengthwise.studies.claims.numbers import number_in, phrase_in


class LedgerLine(NamedTuple):
    """A claim of a paper with its verdict, our number, the paper's number, the page and the command."""

    section: str
    claim: str
    verdict: Verdict
    ours: str = ""
    published: str = ""
    page: str = ""
    command: str = ""


class Evaluated(NamedTuple):
    """A verdict on a claim, with our number and the paper's number."""

    verdict: Verdict
    ours: str = ""
    published: str = ""


class Ledger:
    """An evaluation of claims from a folder of pages and of recorded results; each file of records is read once.

    `reproduce` is the command that repeats an experiment, with the placeholders {name} and {scale}.

    Raises:
        ValueError: the folder has no records, or evidence names a row, column, page or number that does not exist.
    """

    def __init__(self, docs: Path, reproduce: str) -> None:
        self.docs, self.reproduce = docs, reproduce
        if not has_records(docs):
            raise ValueError(
                f"docs: expected the folder docs of a checkout, with results/records in it, got {docs}; leave out "
                "this argument to use the results in the package"
            )
        self._recorded: dict[tuple[str, Scale], list[Outcome]] = {}

    def lines(self, paper: Paper) -> list[LedgerLine]:
        """Return a line for each claim of a paper."""
        return [self._line(claim, paper) for claim in paper.claims]

    def _line(self, claim: Claim, paper: Paper) -> LedgerLine:
        evidence = claim.evidence
        if isinstance(evidence, Unrun):
            name, scale = evidence.experiment, evidence.scale
            command = self.reproduce.format(name=name, scale=scale) if name else ""
            return LedgerLine(claim.section, claim.claim, "not run", evidence.why, claim.published, command=command)
        if isinstance(evidence, Stated):
            self._check_page(evidence.page)
            numbers = "; ".join(self._number(number) for number in evidence.numbers)
            ours = f"{numbers} ({evidence.why})" if numbers and evidence.why else numbers or evidence.why
            command = evidence.command or f"python -m pytest {evidence.test}"
            return LedgerLine(
                claim.section, claim.claim, evidence.verdict, ours, claim.published, evidence.page, command
            )
        verdict, ours, published = self._evaluated(evidence, evidence.experiment in paper.smaller)
        name, scale = evidence.experiment, evidence.scale
        command = self.reproduce.format(name=name, scale=scale)
        page = f"results/{file_stem(name, scale)}.md" if verdict != "not run" else ""
        if page:
            self._check_page(page)
        else:
            takes = paper.takes.get(name, "") if scale == "paper" else ""
            ours = f"takes {takes}" if takes else "not run yet"
        return LedgerLine(claim.section, claim.claim, verdict, ours, claim.published or published, page, command)

    def _evaluated(self, evidence: Entry | Effect | Contrast | Rows, is_smaller: bool) -> Evaluated:
        smaller = is_smaller and evidence.scale != "paper"
        if isinstance(evidence, Entry):
            return self._entry(evidence, smaller)
        if isinstance(evidence, Effect):
            return self._effect(evidence, smaller)
        if isinstance(evidence, Contrast):
            return self._contrast(evidence, smaller)
        return self._rows(evidence, smaller)

    def _entry(self, entry: Entry, smaller: bool) -> Evaluated:
        experiment, cell = self._cell(entry, entry.row, entry.column)
        if (figures := self._figures(entry, cell, entry.figures)) is None:
            return Evaluated("not run", published=cell.published)
        if entry.expected is None and not cell.published:
            raise ValueError(
                f"{entry.experiment}, row {entry.row!r}, column {entry.column!r}: the paper prints no score here; add "
                "the lowest score at which the claim holds, as the key `expected` of the claim"
            )
        limits = (entry.expected, 1.0) if entry.expected is not None else printed_range(cell.published)
        fit = None
        if entry.fits is not None:
            column, figure = entry.fits
            fitted = self._figures(entry, self._cell(entry, entry.row, column)[1], (figure,))
            fit = as_share(fitted[0]) if fitted else math.nan
        ours = as_share(figures[-1])
        if experiment.scoring.measure == "error":  # the lower error is the better result
            ours, limits = -ours, (-limits[1], -limits[0])
        verdict = entry_verdict(ours, limits, smaller=smaller, fails=entry.fails, fit=fit)
        text = " / ".join(figures) + ("" if fit is None else f" ({percent(fit)} at the training length)")
        return Evaluated(verdict, text, cell.published)

    def _effect(self, effect: Effect, smaller: bool) -> Evaluated:
        experiment, outcomes = _experiment(effect.experiment, effect.scale), self._outcomes(effect)
        names = (effect.row, effect.first, effect.second)
        matching = [line for line in compared_columns(experiment, outcomes) if line[:3] == names]
        if not matching:
            raise ValueError(
                f"{effect.experiment}: expected a row and two columns that the experiment compares in this row, got "
                f"{names}; name another row or pair of columns"
            )
        (line,) = matching
        if not line.num_seeds:
            return Evaluated("not run")
        errors = experiment.scoring.measure == "error"
        sign = (1 if effect.better == effect.first else -1) * (-1 if errors else 1)
        low, high = signed(line.low, errors), signed(line.high, errors)
        unit = " in error" if errors else " points"
        text = f"{signed(line.mean, errors)}{unit} ({low} to {high}; p {line.corrected:.2g} by Holm)"
        return Evaluated(effect_verdict(line.mean, line.corrected, sign=sign, smaller=smaller), text)

    def _contrast(self, contrast: Contrast, smaller: bool) -> Evaluated:
        scores = [self._scores(contrast, contrast.row, name) for name in (contrast.first, contrast.second)]
        entries = [self._cell(contrast, contrast.row, name)[1].published for name in (contrast.first, contrast.second)]
        published = " against ".join(entries) if all(entries) else ""
        if not all(scores):
            return Evaluated("not run", published=published)
        cell = self._cell(contrast, contrast.row, contrast.first)[1]
        chance = as_share((self._figures(contrast, cell, ("chance",)) or ["0 %"])[0])
        text = " against ".join(percent(fmean(of_column)) for of_column in scores)
        evaluated = Evaluated(contrast_verdict(*scores, chance=chance, smaller=smaller), text, published)
        return _by_equal_steps(evaluated, _experiment(contrast.experiment, contrast.scale), contrast, contrast.row)

    def _rows(self, rows: Rows, smaller: bool) -> Evaluated:
        experiment = _experiment(rows.experiment, rows.scale)
        gaps = []
        for row in dict.fromkeys(cell.row for cell in experiment.cells):
            first, second = (self._scores(rows, row, column) for column in (rows.first, rows.second))
            if first and second:
                gaps.append(fmean(first) - fmean(second))
        if len(gaps) < 2:
            return Evaluated("not run")
        low, high = (signed(limit, errors=False) for limit in mean_interval(gaps))
        text = f"{signed(fmean(gaps), errors=False)} points over {len(gaps)} rows ({low} to {high})"
        verdict = effect_verdict(fmean(gaps), difference_from_zero(gaps), sign=1, smaller=smaller)
        return _by_equal_steps(Evaluated(verdict, text), experiment, rows)

    def _scores(self, evidence: Contrast | Rows, row: str, column: str) -> list[float]:
        """Return the mean accuracy of each recorded run of a cell."""
        experiment, cell = self._cell(evidence, row, column)
        results = results_of(cell, self._outcomes(evidence))
        return [accuracies_scored(result, cell, experiment).mean() for result in results]

    def _figures(self, evidence: Entry | Contrast, cell: Cell, names: Sequence[str]) -> list[str] | None:
        """Return the texts of the figures `names` of a cell as on its page, or None if the cell has no recorded run."""
        experiment = _experiment(evidence.experiment, evidence.scale)
        outcomes = self._outcomes(evidence)
        if not results_of(cell, outcomes):
            return None
        table = cell_table(experiment._replace(cells=[cell]), outcomes)
        if missing := [name for name in names if name not in table.header]:
            raise ValueError(
                f"{evidence.experiment}: no column {missing[0]!r} in the table of this experiment (columns: "
                f"{', '.join(table.header)}); name one of these as the figure"
            )
        return [table.lines[0][table.header.index(name)] for name in names]

    def _cell(self, evidence: Entry | Contrast | Rows, row: str, column: str) -> tuple[Experiment, Cell]:
        experiment = _experiment(evidence.experiment, evidence.scale)
        (cell,) = experiment.select(row, column).cells
        return experiment, cell

    def _outcomes(self, evidence: Entry | Effect | Contrast | Rows) -> list[Outcome]:
        """Return an outcome for each run that the experiment now has, with the recorded result if there is one."""
        key = evidence.experiment, evidence.scale
        if key not in self._recorded:
            path = self.docs / "results" / "records" / f"{file_stem(*key)}.jsonl.gz"
            results = {result.run_id: result for result in (read_records(path) if path.exists() else [])}
            self._recorded[key] = [Outcome(spec, results.get(spec.id)) for spec in _experiment(*key).specs]
        return self._recorded[key]

    def _number(self, number: Number) -> str:
        if isinstance(number, Parameters):
            (cell,) = _experiment(number.experiment, "paper").select(number.row, number.column).cells
            return f"{sum(p.numel() for p in cell.specs[0].outline().parameters()):,}"
        self._check_page(number.page)
        text = read_file(self.docs / number.page).decode()
        return phrase_in(text, number) if isinstance(number, Phrase) else number_in(text, number)

    def _check_page(self, page: str) -> None:
        if not (self.docs / page).is_file():
            raise ValueError(
                f"{page}: expected a page below {self.docs}, got none; correct the name of the page, or pass the "
                "folder docs of a checkout"
            )


def _by_equal_steps(evaluated: Evaluated, experiment: Experiment, columns: Contrast | Rows, row: str = "") -> Evaluated:
    """Return the evaluation. A reproduced claim becomes undecided if the second column's nets had fewer steps."""
    first, second = (
        max(spec.recipe.steps for spec in experiment.select(row, name).specs)
        for name in (columns.first, columns.second)
    )
    if evaluated.verdict != "reproduced" or second >= first:
        return evaluated
    return evaluated._replace(verdict="not decided", ours=f"{evaluated.ours}, after {first:,} steps against {second:,}")


@cache
def _experiment(name: str, scale: Scale) -> Experiment:
    """Return an experiment. Experiments of whole papers take seconds to make, so they are made once."""
    return EXPERIMENTS[name](scale)


def ledger_lines(docs: Path, reproduce: str, papers: Iterable[str]) -> dict[str, tuple[Paper, list[LedgerLine]]]:
    """Return each paper with its claims, evaluated by a `Ledger`. An unknown paper raises a ValueError."""
    ledger = Ledger(docs, reproduce)
    made = {name: CLAIMS[name]() for name in papers}
    return {name: (paper, ledger.lines(paper)) for name, paper in made.items()}


def count_verdicts(lines: Iterable[LedgerLine]) -> Counter[Verdict]:
    """Return the number of claims with each verdict."""
    return Counter(line.verdict for line in lines)
