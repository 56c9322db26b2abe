"""The page of an experiment: our numbers next to the paper's, with all details needed to judge and repeat them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from lengthwise.display import literal
from lengthwise.experiment import Experiment
from lengthwise.files import write_by_rename
from lengthwise.pictures import pictures
from lengthwise.report.pages.matrix import matrix_page
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.differences import differences
from lengthwise.report.tables.experiment import about_columns, detail_table, main_table
from lengthwise.report.tables.headline import headline
from lengthwise.report.tables.levels import COUNT_COLUMNS, level_counts, level_sentences, machine_table, reasons
from lengthwise.report.tables.markdown import definitions, folded, table_paragraphs
from lengthwise.report.tables.perplexities import paired_columns
from lengthwise.report.tables.protocol import chance_table, protocol_methods
from lengthwise.report.tables.runs import run_rows
from lengthwise.report.tables.settings import versions_of
from lengthwise.report.tables.shallow_baselines import with_shallow_baselines
from lengthwise.report.tables.sources import seeds_text
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import NOT_RUN, Outcome
from lengthwise.runs.provenance import versions
from lengthwise.runs.result import RunResult

_SCORED = {
    "balanced": ["Accuracies are for final answers, at lengths at which every answer of the task can occur."],
    "legal": ["Accuracies count final answers at all lengths, including lengths at which only one answer can occur."],
    "error": [],
    "attempts": [],
    "perplexity": [
        "Perplexities are for the last tokens of chunks of the test split. These are the same tokens at all lengths "
        "and for all models, so differences between models or lengths are far more certain than the perplexities."
    ],
    "search": [
        "Accuracies are for final answers of the chosen runs, at lengths at which every answer of the task can occur."
    ],
}

NO_RESULT = "no recorded result, because it has not been run yet or has diverged (early records omit diverged runs)"

MAX_NAMED = 5
"""If more runs than this lack a result for the same reason, the page shows their number instead of their names."""

_SMOKE = "**This is a smoke run: it shows that everything works, and its numbers have no meaning.**"

_MACHINE_COLUMNS = {
    "states": "the number of states of the machine that was read off the net",
    "least distance": (
        "each state of the machine has prototypes, which are states of the net. The entry is the smallest distance "
        "between prototypes of different states of the machine, in any run"
    ),
    "CPU s": "CPU seconds of one certificate, tests included",
}

_GRID_STATES = "the number of classes of messages. A net passes a message from each row of its table to the next"

_NO_STUDY = "The results and pictures that need all runs of this experiment are left out until each run has a result."


def file_stem(name: str, scale: str) -> str:
    """Return the file name of an experiment's page without suffix. The file of its records has the same name."""
    return name.replace("/", "-") + ("" if scale == "small" else f"-{scale}")


def write_page(
    name: str, scale: str, command: str, experiment: Experiment, outcomes: Sequence[Outcome], runs: Path, page: Path
) -> list[Path]:
    """Write the page of an experiment with its pictures and other files, and return the paths.

    The pictures of a study are written only if all runs have results. `runs` is the folder of the runs, which a study
    reads. `command` is the command that the page names for repeating the experiment.
    """
    study = StudyPage([], {})
    if experiment.is_matrix:
        study = matrix_page(experiment, outcomes, page.stem)
    elif experiment.study is not None:
        # A study of some runs would look like a study of all runs.
        is_whole = all(outcome.result is not None for outcome in outcomes)
        study = STUDY_PAGES[name](experiment.study(runs), page.stem) if is_whole else StudyPage([_NO_STUDY], {})
    charts = [(Path(file).suffix[1:], chart) for file, chart in study.pictures.items()]
    contents = (pictures(charts) if charts else None) or []
    page.parent.mkdir(parents=True, exist_ok=True)
    paths = [page.with_name(file) for file, _ in zip(study.pictures, contents, strict=False)]
    paths += [page.with_name(file) for file in study.files]
    for path, content in zip(paths, [*contents, *(text.encode() for text in study.files.values())], strict=True):
        write_by_rename(path, content)
    today = datetime.now(UTC).date()
    # The page is written last, so it never names a picture that does not exist yet.
    text = markdown_page(name, scale, command, experiment, outcomes, today, study)
    write_by_rename(page, text.encode())
    return [*paths, page]


def markdown_page(
    name: str,
    scale: str,
    command: str,
    experiment: Experiment,
    outcomes: Sequence[Outcome],
    today: date,
    study: StudyPage | None = None,
) -> str:
    """Return an experiment's page in Markdown: main table, sections of its study, certificates, and folded details."""
    study = study or StudyPage([], {})
    is_known = scale == experiment.headline_scale != "smoke"
    stated = (study.headline or headline(experiment, outcomes)) if is_known else ""
    head = [f"# {experiment.title}", experiment.introduction(scale, stated), *([_SMOKE] if scale == "smoke" else [])]
    listing = f"```console\n{command}\n```"
    if not experiment.cells:
        lines = [f"- date: {today}", *(f"- {what}: {value}" for what, value in versions().items())]
        return "\n\n".join([*head, *study.sections, listing, "## Provenance", "\n".join(lines)]) + "\n"
    results = [outcome.result for outcome in outcomes if outcome.result is not None]
    of_results = _matrix_parts if experiment.is_matrix else _table_parts
    parts = [
        *head,
        *of_results(experiment, outcomes, listing, study.sections),
        *_measured(results),
        _provenance(results, today),
        f"[{file_stem(name, scale)}.jsonl.gz](records/{file_stem(name, scale)}.jsonl.gz) contains all results, one "
        f"line of JSON for each run. {_of_records(name, experiment)}",
    ]
    return "\n\n".join(parts) + "\n"


def _of_records(name: str, experiment: Experiment) -> str:
    """Return sentences on whether recorded results can replace runs when the page is written."""
    if experiment.requires.weights:
        return (
            "These records contain no weights. This page needs the weights, so the command trains every net whose run "
            "it does not find."
        )
    return (
        f"With option `recorded`, `lengthwise reproduce {name}` counts these runs as finished. Option `page-only` "
        "trains nothing, and writes the page from finished runs."
    )


def _table_parts(experiment: Experiment, outcomes: Sequence[Outcome], listing: str, study: Sequence[str]) -> list[str]:
    """Return the main table with its columns explained, the study's sections, and certificates."""
    table = main_table(experiment, outcomes)
    return [
        *table_paragraphs(table),
        *_SCORED[experiment.scoring.measure],
        definitions(about_columns(experiment, table)),
        listing,
        *_failures(experiment, outcomes),
        *_notes(experiment),
        *study,
        *with_shallow_baselines(experiment, outcomes),
        *(paired_columns if experiment.scoring.measure == "perplexity" else differences)(experiment, outcomes),
        *_certificates(experiment, outcomes),
        *_overflows(experiment, outcomes),
        "## Protocol and provenance",
        _details(experiment, outcomes),
    ]


def _matrix_parts(experiment: Experiment, outcomes: Sequence[Outcome], listing: str, study: Sequence[str]) -> list[str]:
    """Return the heat map, and tables with a line for each column; the numbers of the cells are in a separate file."""
    return [
        *study,
        listing,
        *_notes(experiment),
        *with_shallow_baselines(experiment, outcomes),
        "## Protocol and provenance",
    ]


def _details(experiment: Experiment, outcomes: Sequence[Outcome]) -> str:
    table = detail_table(experiment, outcomes)
    return folded("All other columns", [*table_paragraphs(table), definitions(about_columns(experiment, table))])


def _certificates(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    if not experiment.plan.certificate:
        return []
    table = level_counts(experiment, outcomes)
    kept_back = Table(("why no higher level", "number of runs"), tuple(reasons(experiment, outcomes)))
    machines = machine_table(experiment, outcomes)
    certificates = [outcome.result.certificate for outcome in outcomes if outcome.result]
    is_grid = any(certificate and certificate.machine_kind == "grid" for certificate in certificates)
    columns = _MACHINE_COLUMNS | ({"states": _GRID_STATES} if is_grid else {})
    sizes = [*table_paragraphs(machines), definitions(_meanings(columns, machines))]
    return [
        "## Certificates",
        "A column with the name of a level contains the number of runs with a certificate of this level. The list "
        "explains all columns:",
        definitions([*level_sentences(table.header), *_meanings(COUNT_COLUMNS, table)]),
        *table_paragraphs(table),
        *(table_paragraphs(kept_back) if kept_back.lines else []),
        folded("Sizes of the machines" if "states" in machines.header else "Cost of the certificates", sizes),
    ]


def _meanings(columns: Mapping[str, str], table: Table) -> list[tuple[str, str]]:
    """Return pairs of column and meaning for the columns that a table has."""
    return [(name, meaning) for name, meaning in columns.items() if name in table.header]


def _notes(experiment: Experiment) -> list[str]:
    return ["## Notes", "\n".join(f"- {note}" for note in experiment.notes)] if experiment.notes else []


def _failures(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """Return the runs without a result, with reasons. If many runs have the same reason, they are only counted."""
    runs: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.result is None:
            reason = NO_RESULT if outcome.reason == NOT_RUN else outcome.reason
            runs.setdefault(literal(reason), []).append(outcome.spec.id)
    names = _names_of_runs(experiment) if runs else {}
    lines = []
    for reason, ids in runs.items():
        is_short = len(ids) <= MAX_NAMED
        lines += [f"- {names[run]}: {reason}" for run in ids] if is_short else [f"- {len(ids)} runs: {reason}"]
    return ["## Without a result\n\n" + "\n".join(lines)] if lines else []


def _names_of_runs(experiment: Experiment) -> dict[str, str]:
    """Return for each run the row and column of its first cell, with the run's id in brackets."""
    names: dict[str, str] = {}
    for cell in experiment.cells:
        for spec in cell.specs:
            run = spec.id  # a hash of all settings, so it is computed once
            names.setdefault(run, f"{', '.join(filter(None, (cell.row, cell.column)))} ({run})")
    return names


def _overflows(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """Return the runs whose states overflow, with the number of strings on which they overflow."""
    names: dict[str, str] = {}
    lines = []
    for outcome in outcomes:
        curves = outcome.result.curves if outcome.result else ()
        points = [point for curve in curves for point in curve.points]
        if affected := [point for point in points if point.num_overflowed]:
            overflowed = sum(p.num_overflowed for p in points)
            strings = sum(p.num_strings for p in points)
            shortest = min(point.length for point in affected)
            names = names or _names_of_runs(experiment)
            lines.append(
                f"- {names[outcome.spec.id]}: on {overflowed:,} of {strings:,} strings; the shortest of "
                f"them has {shortest:,} symbols"
            )
    about = "If states overflow on a string, the answer counts as wrong."
    return ["## States that overflow", about, "\n".join(lines)] if lines else []


def _measured(results: Sequence[RunResult]) -> list[str]:
    rows = run_rows(results)
    methods = definitions((name, literal(sentence)) for name, sentence in protocol_methods(results, rows))
    return [folded("Measurement", [methods, *table_paragraphs(chance_table(results, rows))])] if methods else []


def _provenance(results: Sequence[RunResult], today: date) -> str:
    versions = [f"- {name}: {', '.join(values)}" for name, values in versions_of(results)]
    weights = "; in other runs: ".join(dict.fromkeys(result.weights for result in results))
    about = [f"- page written: {today}", f"- seeds: {seeds_text(results)}", f"- weights: {weights}"]
    return folded("Provenance", ["\n".join([*about, *versions])])
