"""The command compare."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lengthwise.cli.options import NOTHING_GIVEN, Given, Longest, Root, Workers
from lengthwise.cli.outputs import AsJSON, check_writable, write_object
from lengthwise.cli.streams import Output
from lengthwise.cli.training import MAX_SEEDS, parse_seeds
from lengthwise.files import check_suffix

if TYPE_CHECKING:
    from lengthwise.report.tables.compared import Comparison
    from lengthwise.runs.pools.outcome import Outcome
    from lengthwise.runs.result import RunResult
    from lengthwise.runs.spec import RunSpec


Certificates = Annotated[
    bool, Parameter(negative="--no-certificates", help="With a task: certify each net, if possible.")
]


def compare(
    compared: Annotated[tuple[str, ...], Parameter(help="Folders of runs; or a task, then models.")],
    /,
    *,
    seeds: Annotated[
        str | None, Parameter(help="With a task: the number of seeds (3 means 0-2), or a list such as 0,1 or 5-9.")
    ] = None,
    preset: Annotated[
        str | None,
        Parameter(help="With a task: preset of all models; by default each model's own preset, which `show` prints."),
    ] = None,
    given: Given = NOTHING_GIVEN,
    certificates: Certificates = True,
    workers: Workers = 1,
    runs: Root = Path("runs"),
    longest: Longest = 100_000,
    out: Annotated[
        Path | None,
        Parameter(
            help="Write a page (.html, .md), with a chart and a CSV file next to it, or only tables (.tex, .csv)."
        ),
    ] = None,
    as_json: AsJSON = False,
) -> int:
    """Compare models on a task, paired by seed: accuracies, differences with intervals, certificates, cost.

    Give folders of runs with the same task, measurements and seeds, or a task and names of models. Missing runs of the
    named models are trained. `diff` compares two machines, and `certify --machine` compares a net with a machine.
    """
    from lengthwise.report.pages.compared import print_comparison
    from lengthwise.report.pages.terminal import print_failures
    from lengthwise.report.tables.compared import compare_models, comparison_facts

    if out is not None:
        _check_out(out)
    console = Output(is_error=as_json)
    outcomes: list[Outcome] = []
    if _is_task(compared):
        from lengthwise.runs.spec import make_spec

        task, *models = compared
        settings, numbers = given.read(), _seeds("3" if seeds is None else seeds)
        specs = [make_spec(task, model, settings, preset=preset, seed=seed) for model in models for seed in numbers]
        outcomes = _execute(specs, certificates, workers, runs, longest)
        results = [outcome.result for outcome in outcomes if outcome.result is not None]
    else:
        training = {"--seeds": seeds, "--preset": preset, "--workers": workers > 1, "--runs": runs != Path("runs")}
        measuring = {"--longest": longest != 100_000, "--no-certificates": not certificates}
        _check_trained({**training, **measuring}, given)
        results = _read(compared)
    failed = print_failures(console, outcomes)
    comparison = compare_models(results)
    print_comparison(console, comparison)
    if out is not None:
        console.print_lines(f"wrote {path}" for path in _write(comparison, out))
    if as_json:
        missing = [outcome.spec.id for outcome in outcomes if outcome.result is None]
        write_object({**comparison_facts(comparison), "failed": missing})
    return 1 if failed else 0


TABLES = (".tex", ".csv")
"""The suffixes of files that contain only the tables."""


def _check_out(out: Path) -> None:
    """Raise a ValueError if a file cannot be written, or if its suffix belongs neither to a page nor to a table."""
    from lengthwise.report.pages.comparison import PAGES

    check_suffix("out", out, (*PAGES, *TABLES))
    check_writable(out)


def _write(comparison: "Comparison", out: Path) -> "Sequence[Path]":
    """Write a page with its chart and CSV file, or only the tables; return the paths."""
    from lengthwise.report.pages.comparison import write_comparison
    from lengthwise.report.tables.compared import comparison_tables
    from lengthwise.report.tables.files import write_tables

    if out.suffix not in TABLES:
        return write_comparison(comparison, out)
    write_tables(comparison_tables(comparison), out)
    return [out]


def _is_task(compared: Sequence[str]) -> bool:
    """Return whether the first word is a task's name.

    Raise a ValueError if this word is neither a task nor a path, or if a task is not followed by at least two different
    models.
    """
    from lengthwise.registry import nearest
    from lengthwise.tasks.base import TASKS

    first = compared[0]
    if (Path(first) / "run.json").exists():
        return False
    if first not in TASKS and not Path(first).exists() and "/" not in first:
        way_out = nearest(first, TASKS) or "; name a run's folder or a task"
        raise ValueError(f"{first}: expected a run's folder or a task, got neither{way_out}")
    models = compared[1:]
    if first in TASKS and (len(models) < 2 or len(set(models)) < len(models)):
        has_comma = any("," in model for model in models)
        raise ValueError(
            f"compare: expected at least two different models on {first}, got {', '.join(models) or 'none'}; "
            f"{'write blanks instead of commas between the names' if has_comma else 'name each model once'}"
        )
    return first in TASKS


def _check_trained(options: Mapping[str, object], given: Given) -> None:
    """Raise a ValueError if options about training or measuring are given for runs that are finished."""
    options = {**options, "--config": given.config, "--set": given.set_, "--text": given.text}
    if superfluous := [name for name, option in options.items() if option]:
        raise ValueError(
            f"{superfluous[0]}: not allowed with folders of runs, which are already trained; leave out {superfluous[0]}"
        )


def _seeds(text: str) -> list[int]:
    """Parse the number of seeds, or a list of seeds.

    Example:
        >>> _seeds("3"), _seeds("3,4")
        ([0, 1, 2], [3, 4])
    """
    if not text.isdecimal():
        return parse_seeds(text)
    if len(text) > 30 or not 1 <= int(text) <= MAX_SEEDS:
        raise ValueError(f"seeds: expected 1 to {MAX_SEEDS:,} seeds, got {text[:40]}; give a number in this range")
    return list(range(int(text)))


def _execute(specs: "Sequence[RunSpec]", certificates: bool, workers: int, root: Path, longest: int) -> "list[Outcome]":
    """Train and measure the missing runs, all with the same plan of measurements."""
    from lengthwise.cli.progress import run_all
    from lengthwise.evaluation.plan import EvaluationPlan
    from lengthwise.runs.pools.base import PoolOptions
    from lengthwise.tasks.base import MachineTask

    is_certified = certificates and isinstance(specs[0].task, MachineTask)
    # One plan for all models, because only runs with the same plan can be compared.
    plan = EvaluationPlan(certificate=is_certified).limit_lengths(longest, specs[0].task)
    return run_all(specs, [plan] * len(specs), root, PoolOptions(workers))


def _read(folders: Sequence[str]) -> "list[RunResult]":
    """Return the results of finished runs, with the certificates in their folders."""
    from lengthwise.report.pages.run import read_measured

    results = []
    for folder in folders:
        result = read_measured(Path(folder)).result
        if result is None:
            raise ValueError(
                f"{folder}: expected a finished run, got an unfinished run; `lengthwise resume` continues the run"
            )
        results.append(result)
    return results


COMMANDS = {"compare": compare}
