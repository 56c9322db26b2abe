"""Files of records, one for each experiment: the results of its runs, from which its page is made.

A diverged run has no result. The file contains the run's status instead, so that a page from records alone can also
show the run.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import ValidationError

from lengthwise.files import UnreadableFile, open_file, write_by_rename
from lengthwise.models.base import MODELS
from lengthwise.registry import is_of_package
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.provenance import file_digests, files_of_others
from lengthwise.runs.result import RunResult, RunStatus
from lengthwise.runs.spec import RunSpec, spec_from_json
from lengthwise.validation import FrozenRecord, path_of

MAX_LINE = 10_000_000
MAX_SIZE = 500_000_000
"""The longest line and the largest file of records, in bytes after decompression. Both are ten times the present
sizes."""


class DivergedRun(FrozenRecord):
    """A run whose training diverged: its status and its settings."""

    diverged: RunStatus
    run_id: str
    spec: dict[str, Any]


_Record = TypeVar("_Record", RunResult, DivergedRun)


def shipped_docs() -> Path:
    """Return the folder of pages and records that the package comes with.

    In a checkout, this is the folder `docs`; a wheel has a copy below the package (``pyproject.toml``).
    """
    package = Path(str(files("lengthwise")))
    checkout = package.parent / "docs"
    return checkout if has_records(checkout) else package / "_docs"


def has_records(docs: Path) -> bool:
    """Return whether a folder of pages contains recorded results."""
    return (docs / "results" / "records").is_dir()


def records_file(pages: Path, stem: str) -> Path:
    """Return the file of an experiment's records: the file next to its page, or else the file in the package."""
    own = pages / "records" / f"{stem}.jsonl.gz"
    if own.exists() or stem.endswith("-smoke"):
        # Runs at scale `smoke` in a checkout are the user's own, so the package's records must not replace them.
        return own
    shipped = shipped_docs() / "results" / "records" / own.name
    return shipped if shipped.exists() else own


def write_records(
    path: Path,
    results: Iterable[RunResult],
    diverged: Iterable[DivergedRun] = (),
    earlier: Path | None = None,
) -> None:
    """Write a line of JSON for each result and each diverged run, compressed; equal contents give equal files.

    A record that the file `earlier` (by default, the old file at `path`) also contains keeps its line from that file.
    """
    # A field that is newer than a recorded line gets its default when the line is read. Writing this default would
    # change what was recorded.
    recorded = _recorded_lines(path if earlier is None else earlier)
    records: Iterable[RunResult | DivergedRun] = (*results, *diverged)
    lines = (_line_of(record, recorded.get((type(record), record.run_id))) for record in records)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A time in the gzip header would change the file although no result has changed.
    write_by_rename(path, gzip.compress("".join(lines).encode(), mtime=0))


def _to_line(record: RunResult | DivergedRun) -> str:
    return json.dumps(record.model_dump(mode="json"), separators=(",", ":")) + "\n"


def _line_of(record: RunResult | DivergedRun, recorded: tuple[str, RunResult | DivergedRun] | None) -> str:
    """Return the recorded line of a record if its contents are unchanged, and else a new line."""
    if recorded is not None:
        line, earlier = recorded
        # The first comparison is cheap. But NaN differs from itself, so unequal records are also compared as text.
        if record == earlier or _to_line(record) == _to_line(earlier):
            return line if line.endswith("\n") else line + "\n"
    return _to_line(record)


def _recorded_lines(path: Path) -> dict[tuple[type, str], tuple[str, RunResult | DivergedRun]]:
    """Return the records of a file and their lines, by kind and run; a missing file has no records."""
    if not path.exists():
        return {}
    records: Iterable[tuple[str, RunResult | DivergedRun]] = (*_read(path, RunResult), *_read(path, DivergedRun))
    return {(type(record), record.run_id): (line, record) for line, record in records}


def read_records(path: str | Path) -> list[RunResult]:
    """Read the results in a file of `write_records`; a missing or damaged file raises a ValueError.

    Example:
        >>> read_records(Path("none.jsonl.gz"))
        Traceback (most recent call last):
        ValueError: none.jsonl.gz: there is no such file; name a file that `lengthwise reproduce` wrote
    """
    return [result for _, result in _read(path_of("path", path), RunResult)]


def read_diverged(path: Path) -> list[DivergedRun]:
    """Read the diverged runs in a file of `write_records`; errors are as in `read_records`."""
    return [run for _, run in _read(path, DivergedRun)]


def _is_of_diverged(line: str) -> bool:
    """Return whether a line of a file of records is about a diverged run."""
    # Fields are written in their order, so the first key shows the kind of a line before it is parsed.
    return line.startswith('{"diverged":')


def _read(path: Path, kind: type[_Record]) -> Iterator[tuple[str, _Record]]:
    """Yield the lines of a file that are records of this kind, each with its record."""
    try:
        for line in _lines(path):
            if _is_of_diverged(line) == (kind is DivergedRun):
                yield line, kind.model_validate_json(line)
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file; name a file that `lengthwise reproduce` wrote") from None
    except UnreadableFile:
        raise
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, ValidationError) as error:
        if isinstance(error, ValidationError):
            raise ValueError(f"{path}: not results of this version of the package; run the experiment again") from None
        raise ValueError(f"{path}: damaged file ({type(error).__name__}); run the experiment again") from None


def _lines(path: Path) -> Iterator[str]:
    """Decompress a file line by line, within limits, because a small file can expand to a huge text."""
    size = 0
    with open_file(path) as packed, gzip.open(packed) as file:
        while line := file.readline(MAX_LINE + 1):
            size += len(line)
            if len(line) > MAX_LINE or size > MAX_SIZE:
                raise ValueError(
                    f"{path}: expected at most {MAX_LINE:,} bytes in a line and {MAX_SIZE:,} in all lines, got more; "
                    "run the experiment again"
                )
            yield line.decode()


def with_earlier(
    results: Iterable[RunResult], earlier: Iterable[RunResult], specs: Sequence[RunSpec]
) -> list[RunResult]:
    """Return the results, and earlier results of runs that have no new result, in the order of the experiment.

    Results of models that other users registered come last. The package does not have these models, but keeps their
    results.
    """
    by_id = {result.run_id: result for result in (*earlier, *results)}
    ids = [spec.id for spec in specs if spec.id in by_id]
    # Results of models that other users registered are kept. Results of the package's models are dropped if
    # the experiment no longer has their runs.
    models = {run_id: MODELS.get(by_id[run_id].spec["model"]["name"]) for run_id in by_id.keys() - set(ids)}
    others = [run_id for run_id, model in models.items() if model is None or not is_of_package(model)]
    return [by_id[run_id] for run_id in (*ids, *sorted(others))]


class Restored(NamedTuple):
    """The number of recorded results that `restore` wrote, and the number that it kept out.

    A recorded result is kept out if its run's folder has a result that lacks some of the recorded measurements. A page
    that is made from the folders counts such a run as not run yet.
    """

    num_taken: int
    num_kept_out: int


def restore(results: Iterable[RunResult], root: Path) -> Restored:
    """Make a run folder, with a result but without weights, for each run without a folder below `root`.

    Experiments may share a run and measure it by different plans. A folder without weights also gets the result if its
    own result has a smaller plan. A folder with weights is not changed, because more can be measured there.

    Results whose settings are invalid today, or would get another id, are skipped, because such a run would not be
    executed now. Results whose model or task is unknown here, or has changed in a user's file, are also skipped.
    """
    num_taken = num_kept_out = 0
    for result in results:
        if (spec := _spec_of_today(result)) is None:
            continue
        folder = RunFolder(root / spec.id)
        use = _use(folder, spec, result)
        num_kept_out += use == "keep out"
        owners = (type(spec.task), MODELS[spec.model_name])
        if use == "take" and not files_of_others(file_digests(result.versions), *owners):
            folder.create(spec, plan=result.plan)
            folder.write_result(result)
            num_taken += 1
    return Restored(num_taken, num_kept_out)


def _use(folder: RunFolder, spec: RunSpec, result: RunResult) -> Literal["take", "leave", "keep out"]:
    """Return what to do with a recorded result of the run in a folder.

    "take": the folder does not exist, or has no weights and a result of a smaller plan. "keep out": the folder's result
    lacks some of the recorded measurements, and cannot be replaced. "leave": all other cases.
    """
    if not folder.path.exists():
        return "take"
    try:
        earlier = folder.read_result()
    except ValueError:  # executing the run sets the file aside
        return "leave"
    if earlier is None:
        return "leave"
    plan, earlier_plan = result.plan.reset_unused(spec.task), earlier.plan.reset_unused(spec.task)
    if not folder.checkpoint.exists() and plan != earlier_plan and plan.covers(earlier_plan):
        return "take"
    return "leave" if earlier_plan.covers(plan) else "keep out"


def _spec_of_today(record: RunResult | DivergedRun) -> RunSpec | None:
    """Return the specification of a recorded run; None if its settings are invalid today."""
    try:
        spec = spec_from_json(record.spec)
    except ValueError:
        return None
    # Another id means that settings or defaults have changed since, so today's run would be another run.
    return spec if spec.id == record.run_id else None


def diverged_now(
    specs: Iterable[RunSpec], root: Path, earlier: Iterable[DivergedRun], results: Iterable[RunResult]
) -> list[DivergedRun]:
    """Return the diverged runs that have no result, according to their folders below `root` or to earlier records."""
    by_id, known = {run.run_id: run for run in earlier}, {result.run_id for result in results}
    runs = []
    for spec in specs:
        # A result counts, even if an earlier attempt at the same run diverged.
        if spec.id in known:
            continue
        try:
            status = RunFolder(root / spec.id).read_status()
        except ValueError:  # a damaged file, or a file of another version
            status = RunStatus()
        if status.status == "diverged":
            runs.append(DivergedRun(diverged=status, run_id=spec.id, spec=spec.to_json()))
        elif spec.id in by_id:
            runs.append(by_id[spec.id])
    return runs


def restore_diverged(diverged: Iterable[DivergedRun], root: Path) -> None:
    """Make a run folder for each diverged run that has no folder below `root`; see `restore`."""
    for run in diverged:
        spec = _spec_of_today(run)
        if spec is not None and not (folder := RunFolder(root / spec.id)).path.exists():
            folder.create(spec)
            folder.write_status(run.diverged)
