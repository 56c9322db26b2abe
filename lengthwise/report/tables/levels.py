"""Levels of certificates: their meaning, and the number of runs at each level."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from lengthwise.certification.certificate import FORMAT, Certificate
from lengthwise.experiment import Experiment
from lengthwise.report.tables.cells import results_of
from lengthwise.report.tables.numbers import NOTHING, span
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult

LEVELS = {
    "proved": "at every length, the float32 net itself is proved right on every string that has a right answer",
    "bounded": "the float32 net itself is proved right on every string that has a right answer, up to a stated length",
    "extracted": (
        "at every length, a finite machine read off the net is proved right on every string that has a right answer. "
        "Tests found no difference between the net and this machine, but nothing is proved about the net itself"
    ),
    "tested": "no wrong answer was confirmed; nothing is proved",
    "refuted": "the net answers a string wrongly, and the certificate contains this string",
}
"""The meaning of each level, highest first."""

COUNT_COLUMNS = {
    "independently checked": (
        'the number of proofs that a second program, the separate checker, accepted. "Not run on N": the checker was '
        "not run on N proofs, whose certificates have an earlier format"
    ),
    "right up to": "the length in symbols up to which all runs of level *bounded* are proved right",
    "length of counterexample": "the number of symbols of the string that a refuted net answers wrongly",
}
"""The meaning of each column of `level_counts` that is not a level, by the column's name."""

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


def level_sentences(levels: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs (certificate level, meaning) for the levels that occur, highest first."""
    occurring = set(levels)
    return [(level, sentence) for level, sentence in LEVELS.items() if level in occurring]


def level_counts(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each `Cell`: the number of certificates of each level, and facts about the certificates.

    `COUNT_COLUMNS` explains the columns that are not levels.
    """
    lines = []
    for cell in experiment.cells:
        certificates = _certificates(results_of(cell, outcomes))
        counts = [sum(certificate.level == level for certificate in certificates) for level in LEVELS]
        errors = [len(c.counterexample.string) for c in certificates if c.counterexample]
        lengths = [certificate.max_length for certificate in certificates if certificate.max_length]
        named = (independently_checked(certificates), f"{min(lengths):,}" if lengths else "", span(errors))
        lines.append((cell.row, cell.column, *(str(count) if count else "" for count in counts), *named))
    return _table(("row", "column", *LEVELS, *COUNT_COLUMNS), lines)


def independently_checked(certificates: Iterable[Certificate]) -> str:
    """Return how many proofs the separate checker accepted and skipped, or "" without proofs.

    Proofs in certificates of an earlier format count as skipped, because `certify` did not yet run the checker on them.
    """
    accepted, tried, skipped = _checker_counts(certificates)
    parts = [f"{accepted} of {tried}"] if tried else []
    return ", ".join([*parts, f"not run on {skipped:,}"] if skipped else parts)


def checker_sentences(certificates: Iterable[Certificate]) -> str:
    """Return the counts of `independently_checked` as sentences, or an empty text if there are no proofs."""
    accepted, tried, skipped = _checker_counts(certificates)
    parts = [f"A second program, the separate checker, accepted {accepted:,} of {tried:,} proofs."] if tried else []
    if skipped:
        parts.append(f"The separate checker was not run on {'the other' if tried else 'the'} {skipped:,} proofs.")
    return " ".join(parts)


def _checker_counts(certificates: Iterable[Certificate]) -> tuple[int, int, int]:
    """Return how many proofs the checker accepted, on how many it was run, and on how many it was not run."""
    proofs = [certificate for certificate in certificates if certificate.evidence is not None]
    tried = [proof for proof in proofs if proof.format == FORMAT]
    return sum(proof.independently_checked for proof in tried), len(tried), len(proofs) - len(tried)


def reasons(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """Return the reasons why certificates have no higher level, each with the number of affected runs by cell."""
    texts: dict[str, list[str]] = defaultdict(list)
    cells: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    one_column = len({cell.column for cell in experiment.cells}) == 1
    for cell in experiment.cells:
        for certificate in _certificates(results_of(cell, outcomes)):
            # These levels need no reason why they are not higher.
            if certificate.level not in ("proved", "refuted"):
                # Reasons contain sizes and margins of a net. Without these numbers, equal reasons of several runs share
                # a line.
                skeleton = _NUMBER.sub("#", certificate.reason)
                texts[skeleton].append(certificate.reason)
                cells[skeleton][cell.row if one_column else f"{cell.row}, {cell.column}"] += 1
    return [
        (_merged(texts[skeleton]), "; ".join(f"{name} ({count})" for name, count in runs.items()))
        for skeleton, runs in cells.items()
    ]


def _merged(sentences: Sequence[str]) -> str:
    """Merge sentences that differ only in their numbers into one, in which the numbers are spans.

    Example:
        >>> _merged(["at most 7 merges, got 1,080", "at most 5 merges, got 812"])
        'at most 5-7 merges, got 812-1,080'
    """
    columns = iter(zip(*(_NUMBER.findall(sentence) for sentence in sentences), strict=True))

    def spanned(_: re.Match[str]) -> str:
        numbers = sorted(next(columns), key=lambda text: float(text.replace(",", "")))
        return numbers[0] if numbers[0] == numbers[-1] else f"{numbers[0]}-{numbers[-1]}"

    return _NUMBER.sub(spanned, sentences[0])


def machine_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each `Cell`: sizes of machines in certificates, least distance of states, and CPU seconds."""
    lines = []
    for cell in experiment.cells:
        certificates = _certificates(results_of(cell, outcomes))
        sizes = [certificate.num_classes[0] for certificate in certificates if certificate.machine]
        gaps = [c.closure.gap for c in certificates if c.closure and c.closure.gap is not None]
        seconds = span([round(certificate.seconds) for certificate in certificates])
        lines.append((cell.row, cell.column, span(sizes), f"{min(gaps):.1f}" if gaps else NOTHING, seconds))
    return _table(("row", "column", "states", "least distance", "CPU s"), lines)


def _certificates(results: Sequence[RunResult]) -> list[Certificate]:
    return [result.certificate for result in results if result.certificate]


def _table(header: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> Table:
    """Return the table without empty columns, and without the column `column` if all its entries are equal."""
    return Table(header, tuple(lines)).without_empty().folded(["column"])._replace(shared=())
