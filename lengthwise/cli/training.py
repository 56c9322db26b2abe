"""Commands that train: train, resume."""

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lengthwise.cli.devices import check_alone, workers_on
from lengthwise.cli.options import (
    NOTHING_GIVEN,
    ONE_PROCESS,
    Given,
    Longest,
    Processes,
    Root,
    Seed,
    Workers,
    whole_number,
)
from lengthwise.cli.outputs import AsJSON, write_object
from lengthwise.cli.streams import Output
from lengthwise.cli.tracking import tracked
from lengthwise.display import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lengthwise.evaluation.plan import EvaluationPlan
    from lengthwise.runs.progress import Listener
    from lengthwise.runs.result import RunResult
    from lengthwise.runs.spec import RunSpec


@Parameter(name="*")
@dataclass(frozen=True)
class Until:
    """The goal of training, and the CPU time for reaching it."""

    until: Annotated[
        str | None, Parameter(help="Train until this goal: solved (a low loss), extracted, bounded or proved.")
    ] = None
    budget: Annotated[
        float | None,
        Parameter(help="With --until: CPU seconds after which no further attempt begins; 600 if not given."),
    ] = None

    def budget_seconds(self) -> float:
        """Return the given budget in CPU seconds, or else `BUDGET`; a budget without a goal raises a ValueError."""
        from lengthwise.runs.goal import BUDGET

        if self.budget is not None and self.until is None:
            raise ValueError(f"budget: not allowed without --until, got {self.budget:g}; add --until proved")
        return BUDGET if self.budget is None else self.budget


NO_GOAL = Until()


@Parameter(name="*")
@dataclass(frozen=True)
class Seeds:
    """The seed of one run, or the seeds of several runs and how many of them train at a time."""

    seed: Seed = None
    seeds: Annotated[
        str | None, Parameter(help="Train one run for each of these seeds, such as 0,1,2 or 0-4 (3 means seed 3 only).")
    ] = None
    workers: Workers = 1

    def parse(self, parallel: str | None) -> list[int]:
        """Return the seeds; raise a ValueError if options for one run and for several seeds are combined."""
        if self.seeds is None:
            if self.workers > 1:
                raise ValueError(
                    f"workers: expected 1 for one run, got {self.workers}; give --seeds to train several runs"
                )
            return [self.seed or 0]
        if self.seed is not None:
            raise ValueError(f"seed: not allowed with --seeds, got {self.seed}; leave one of the two out")
        if parallel is not None:
            raise ValueError(f"parallel: not allowed with --seeds, got {parallel!r}; train one run, with --seed")
        return parse_seeds(self.seeds)


ONE_SEED = Seeds()


def train(
    task: Annotated[str, Parameter(help="Name of the task; see `lengthwise list tasks`.")],
    model: Annotated[str, Parameter(help="Name of the model; see `lengthwise list models`.")],
    /,
    *,
    preset: Annotated[
        str | None, Parameter(help="Preset to start from; by default the model's own preset, which `show` prints.")
    ] = None,
    given: Given = NOTHING_GIVEN,
    numbers: Seeds = ONE_SEED,
    runs: Root = Path("runs"),
    longest: Longest = 100_000,
    until: Until = NO_GOAL,
    track: Annotated[
        str | None, Parameter(help="Send curves during training: tensorboard, wandb, trackio or mlflow; see `track`.")
    ] = None,
    processes: Processes = ONE_PROCESS,
    as_json: AsJSON = False,
) -> int:
    """Train and measure a run, or one run for each of several seeds.

    An interrupted run continues from its checkpoint. The results of a finished run are shown. If you request other
    measurements, the run is measured again. With --until, a run makes attempts with other seeds and sizes until an
    attempt succeeds. The file of --config overrides the preset's settings, and --set overrides both.
    """
    from lengthwise.evaluation.plan import EvaluationPlan
    from lengthwise.models.base import MODELS
    from lengthwise.runs.spec import make_spec
    from lengthwise.tasks.base import TASKS

    if task in MODELS and model in TASKS:
        raise ValueError(f"task: {task} is a model and {model} a task; write `lengthwise train {model} {task}`")
    budget = until.budget_seconds()
    parsed, settings = numbers.parse(processes.parallel), given.read()
    specs = [
        make_spec(task, model, settings, preset=preset, seed=number, goal=until.until, budget=budget)
        for number in parsed
    ]
    plan = EvaluationPlan().limit_lengths(longest, specs[0].task)
    with tracked(track, runs) as listener:
        if numbers.seeds is None:
            return _train(specs[0], runs, plan, processes, listener, as_json=as_json)
        # Processes of torchrun share one run; each would start all seeds.
        check_alone("seeds", "train one run with --seed")
        with workers_on(processes.device):
            return _train_all(specs, runs, plan, numbers.workers, listener, as_json=as_json)


MAX_SEEDS = 1_000


def parse_seeds(text: str) -> list[int]:
    """Parse seeds from words like ``0,1,2`` or ``0-4``, each once; any other text raises a ValueError.

    Example:
        >>> parse_seeds("0-2,7")
        [0, 1, 2, 7]
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(first + last) > 30:
            raise ValueError(
                f"seeds: expected seeds and ranges such as 0,1,2 or 0-4, got {part.strip()[:40]!r}; write such a list"
            )
        begin, end = int(first), int(last or first)
        if begin > end or len(seeds) + end - begin >= MAX_SEEDS:
            expected = "ranges from the lower to the higher seed" if begin > end else f"at most {MAX_SEEDS:,} seeds"
            way_out = f"write {end}-{begin}" if begin > end else "give fewer seeds"
            raise ValueError(f"seeds: expected {expected}, got {text[:40]!r}; {way_out}")
        seeds += range(begin, end + 1)
    return list(dict.fromkeys(seeds))


def resume(
    run: Annotated[Path, Parameter(help="Folder of a run.")],
    /,
    *,
    longest: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            help="Measure at the lengths of `train` up to this length; by default at the same lengths as before.",
        ),
    ] = None,
    processes: Processes = ONE_PROCESS,
    as_json: AsJSON = False,
) -> int:
    """Continue an interrupted run, with the settings and the plan of measurements in its folder."""
    from lengthwise.evaluation.plan import EvaluationPlan
    from lengthwise.runs.folder import RunFolder, load_run

    folder = RunFolder(run)
    spec = folder.read_spec()
    if (folder.path / "result.json").exists() and folder.checkpoint.exists():
        load_run(run)  # a finished run is not trained again, so damaged weights would go unnoticed
    # Otherwise training would begin in a new folder named after the id, and ignore this folder.
    if run.resolve().name != spec.id:
        raise ValueError(f"{run}: expected a folder named {spec.id}, as in its run.json; rename the folder")
    plan = folder.read_plan()
    if longest is not None:
        lengths = EvaluationPlan().limit_lengths(longest, spec.task)
        names = ("dense", "long", "structured", "chunk_lengths")
        plan = plan.model_copy(update={name: getattr(lengths, name) for name in names})
    return _train(spec, run.resolve().parent, plan, processes, None, as_json=as_json)


def _train(
    spec: "RunSpec", root: Path, plan: "EvaluationPlan", processes: Processes, also: "Listener | None", *, as_json: bool
) -> int:
    """Execute one run, alone or with other processes. The first process shows the result."""
    from lengthwise.cli.progress import watched
    from lengthwise.report.pages.terminal import print_results
    from lengthwise.runs.execute import execute
    from lengthwise.runs.goal import attempts_text
    from lengthwise.runs.other_ranks import train_along
    from lengthwise.runs.signals import stop_on_interrupt
    from lengthwise.training.parallel import joined, own_device, parse_parallel

    console, own = Output(is_error=as_json), own_device(processes.device)
    with joined(parse_parallel(processes.parallel), own) as ranks:
        # Only the first process measures and prints, otherwise each line would appear several times.
        if ranks.rank:
            with stop_on_interrupt() as stop_requested:
                train_along(spec, root, stop_requested, device=own, ranks=ranks)
            return 0
        with watched([spec], also) as (listener, stop_requested):
            result = execute(spec, root, plan, listener, stop_requested, device=own, ranks=ranks)
    print_results(console, [result], f"{spec.task.name}, {spec.model_name}, seed {spec.seed}")
    console.print_lines(attempts_text(result.training.attempts))
    console.print_line(f"run folder: {root / spec.id}")
    if as_json:
        _write_runs([result], [], root)
    return 0


def _write_runs(results: "Sequence[RunResult]", failed: "Sequence[str]", root: Path) -> None:
    from lengthwise.report.tables.runs import run_facts

    runs = [{**run_facts(result), "folder": str(root / result.run_id)} for result in results]
    write_object({"runs": runs, "failed": failed})


def _train_all(
    specs: "Sequence[RunSpec]",
    root: Path,
    plan: "EvaluationPlan",
    workers: int,
    also: "Listener | None" = None,
    *,
    as_json: bool,
) -> int:
    """Execute several runs, and show their results with mean and range."""
    from lengthwise.cli.progress import run_all
    from lengthwise.report.pages.terminal import print_failures, print_results
    from lengthwise.runs.pools.base import PoolOptions

    console = Output(is_error=as_json)
    outcomes = run_all(specs, [plan] * len(specs), root, PoolOptions(workers), also=also)
    results = [outcome.result for outcome in outcomes if outcome.result is not None]
    print_results(console, results, f"{specs[0].task.name}, {specs[0].model_name}, {counted(len(results), 'seed')}")
    console.print_lines(comparison(results))
    failed = print_failures(console, outcomes)
    console.print_line(f"run folders: {', '.join(outcome.spec.id for outcome in outcomes)} in {root}")
    if as_json:
        _write_runs(results, [outcome.spec.id for outcome in outcomes if outcome.result is None], root)
    return 1 if failed else 0


def comparison(results: "Sequence[RunResult]") -> list[str]:
    """Return sentences with the mean and the range of the runs' scores: accuracies, or errors of the last answer."""
    from lengthwise.report.tables.numbers import percent
    from lengthwise.report.tables.perplexities import seeds_sentence

    accuracies = [mean for result in results if not math.isnan(mean := result.dense.balanced().mean())]
    errors = [result.errors.last.error for result in results if result.errors is not None]
    scores: dict[str, tuple[list[float], Callable[[float], str]]] = {
        "accuracy, mean over lengths": (accuracies, percent),
        "squared error of the last answer": (errors, "{:.4g}".format),
    }
    return seeds_sentence(results) + [
        f"over {counted(len(values), 'seed')}: {name}: mean {text(fmean(values))}, "
        f"range {text(min(values))} to {text(max(values))}"
        for name, (values, text) in scores.items()
        if values
    ]


COMMANDS = {"train": train, "resume": resume}
