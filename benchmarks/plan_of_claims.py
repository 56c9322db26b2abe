"""A plan for open claims: the runs at the papers' sizes that would decide them, and the measured cost of these runs.

python benchmarks/plan_of_claims.py            prints the page
python benchmarks/plan_of_claims.py --save     also writes docs/plan-of-claims.md, after some minutes
python benchmarks/plan_of_claims.py --quick    times a single step of each kind of run: a test of this script
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from speed_page import ROOT, environment, parse_options, provenance, write_files

from lengthwise.cli.reporting import REPRODUCE
from lengthwise.devices import one_thread
from lengthwise.experiment import EXPERIMENTS, Experiment
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.runs.spec import RunSpec
from lengthwise.studies.claims.claim import CLAIMS, Claim, Contrast, Effect, Entry, Paper, Rows
from lengthwise.studies.claims.ledger import LedgerLine, ledger_lines
from lengthwise.training.loop import TrainingState, training_steps

NUM_STEPS = 8
"""The largest number of training steps that are timed for one kind of run, after a first step that is not timed."""

MAX_SECONDS = 2.0
"""The CPU seconds after which no further step is timed."""

BATCH_FRACTION = 8
"""Steps are timed with a batch that is smaller by this factor, and the time is multiplied by the factor."""

Cells = tuple[str, str, tuple[str, ...]]
"""An experiment, a row and columns of its table. An empty row or no columns stand for all of them."""


class Item(NamedTuple):
    """Claims that the same runs decide, these runs, and their cost in CPU hours on one core."""

    cells: Cells
    claims: tuple[str, ...]
    num_runs: int
    num_steps: int
    hours: float

    @property
    def rate(self) -> float:
        """The number of claims per CPU hour."""
        return len(self.claims) / self.hours


class Plan(NamedTuple):
    """Items with the cheapest claims first, the cost of all their runs, and the claims that no run decides.

    `undecided` are triples: a paper, a claim, and the reason or numbers that its line in the table of claims has.
    """

    items: list[Item]
    hours: float
    undecided: list[tuple[str, str, str]]


def plan_of(evaluations: Mapping[str, tuple[Paper, Sequence[LedgerLine]]], max_items: int | None = None) -> Plan:
    """Return the plan for all open claims, or for as many cells of runs as `max_items` allows."""
    claims_of: dict[Cells, list[str]] = {}
    undecided = []
    for paper, claim, line in _open_claims(evaluations):
        name = f"{line.section}: {claim.claim}"
        cells = _deciding_cells(claim)
        takes = paper.takes.get(cells[0], "") if cells else ""
        if cells is None or takes or not _specs(cells):
            authors = paper.title.partition(",")[0]
            undecided.append((authors, name, f"takes {takes}" if takes else line.ours))
        else:
            claims_of.setdefault(cells, []).append(name)
    claims_of = dict(islice(claims_of.items(), max_items))
    kinds = {_kind(spec): spec for cells in claims_of for spec in _specs(cells)}
    seconds = {}
    for number, (kind, spec) in enumerate(kinds.items(), 1):
        seconds[kind] = step_seconds(spec)
        print(f"{number} of {len(kinds)}: {spec.id}, {seconds[kind]:.3g} s a step", flush=True)
    hours_of = {
        spec.id: spec.recipe.steps * seconds[_kind(spec)] / 3600 for cells in claims_of for spec in _specs(cells)
    }
    items = []
    for cells, names in claims_of.items():
        # Columns for several test lengths may share their runs.
        specs = {spec.id: spec for spec in _specs(cells)}.values()
        num_steps = sum(spec.recipe.steps for spec in specs)
        items.append(Item(cells, tuple(names), len(specs), num_steps, sum(hours_of[spec.id] for spec in specs)))
    return Plan(sorted(items, key=lambda item: -item.rate), sum(hours_of.values()), undecided)


def step_seconds(spec: RunSpec) -> float:
    """Return the CPU seconds of a training step of a run, on one core.

    Differs from a step of the run: the batch is smaller by `BATCH_FRACTION`, and the time is multiplied by it. Lengths
    are drawn as in training, so the mean over a few steps is an estimate.
    """
    batch_size = max(1, spec.recipe.batch_size // BATCH_FRACTION)
    recipe = spec.recipe.model_copy(update={"batch_size": batch_size})
    with one_thread():
        state = TrainingState(spec.make_model(), recipe, spec.task)
        steps = training_steps(state, spec.task, recipe, seed=spec.seed)
        next(steps)
        start, count = time.process_time(), 0
        for _ in range(NUM_STEPS):
            next(steps)
            count += 1
            if time.process_time() - start > MAX_SECONDS:
                break
    return (time.process_time() - start) / count * spec.recipe.batch_size / batch_size


def plan_page(plan: Plan, where: Mapping[str, str]) -> str:
    """Return the plan as a page; `where` describes the environment of the measurements."""
    num_claims = sum(len(item.claims) for item in plan.items)
    parts = [
        "# What the open claims would cost",
        f"Runs at the papers' own sizes would decide {num_claims} of the [open claims](claims.md). All of them would "
        f"take {_hours(plan.hours)} CPU hours on one core.",
        "- Lines are in order of claims per CPU hour. A run that several lines share counts in each of these lines.\n"
        f"- The time of a step is the mean of at most {NUM_STEPS} steps with an eighth of the batch, times eight.\n"
        "- Hours are for all steps of the paper. A run that stops when its training loss is low takes less time.",
        markdown_table(
            ("claims", "experiment", "row", "columns", "runs", "steps", "CPU hours", "claims per hour"),
            [_cells_of(item) for item in plan.items],
        ),
        "To run the nets of a line, run one command for each of its columns. For the first line:",
        f"```console\n{_command(plan.items[0])}\n```",
        "This command writes the page:",
        "```console\npython benchmarks/plan_of_claims.py --save\n```",
        "## Open claims that no run at the paper's size decides",
        "Most of these claims are theorems, drawings, benchmarks on other devices, baselines for which the paper "
        "states no size or recipe, and tables that take a GPU. The others compare settings that the paper's tables "
        "do not contain, or need more seeds than the experiment behind them has. The column *our result so far* is "
        "as on [the page of claims](claims.md), which also explains the names of nets.",
        markdown_table(("paper", "claim", "our result so far"), plan.undecided),
        provenance(where),
    ]
    return "\n\n".join(parts) + "\n"


def _open_claims(
    evaluations: Mapping[str, tuple[Paper, Sequence[LedgerLine]]],
) -> Iterator[tuple[Paper, Claim, LedgerLine]]:
    for paper, lines in evaluations.values():
        for claim, line in zip(paper.claims, lines, strict=True):
            if line.verdict in ("not decided", "not run"):
                yield paper, claim, line


def _deciding_cells(claim: Claim) -> Cells | None:
    """Return the cells whose runs at the paper's size decide a claim, or None if the evidence names no experiment."""
    evidence = claim.evidence
    if isinstance(evidence, Entry):
        columns = (evidence.column, *(evidence.fits[:1] if evidence.fits else ()))
        return evidence.experiment, evidence.row, tuple(dict.fromkeys(columns))
    if isinstance(evidence, Effect | Contrast):
        return evidence.experiment, evidence.row, (evidence.first, evidence.second)
    if isinstance(evidence, Rows):
        return evidence.experiment, "", (evidence.first, evidence.second)
    return None  # claims without runs name the cost or a reason themselves


@cache
def _specs(cells: Cells) -> list[RunSpec]:
    """Return the runs of cells at the paper's size; none if the experiment has no such size, or other cells there."""
    name, row, columns = cells
    try:
        experiment = _paper_experiment(name)
    except ValueError:  # the experiment is not from a paper
        return []
    chosen = [
        cell for cell in experiment.cells if (not row or cell.row == row) and (not columns or cell.column in columns)
    ]
    missing = {column for column in columns if column not in {cell.column for cell in chosen}}
    return [] if missing else [spec for cell in chosen for spec in cell.specs]


@cache
def _paper_experiment(name: str) -> Experiment:
    return EXPERIMENTS[name]("paper")


def _kind(spec: RunSpec) -> str:
    """Return a name that is equal for runs whose steps take equally long: seeds and rates do not matter."""
    settings = spec.to_json()
    settings["seed"] = 0
    train = dict(settings["train"])
    optimizer = {key: value for key, value in train["optimizer"].items() if "rate" not in key}
    return repr(sorted((settings | {"train": train | {"optimizer": optimizer}}).items()))


def _cells_of(item: Item) -> tuple[str, ...]:
    experiment, row, columns = item.cells
    return (
        str(len(item.claims)),
        f"`{experiment}`",
        row or "all",
        ", ".join(columns) or "all",
        f"{item.num_runs:,}",
        f"{item.num_steps:,}",
        _hours(item.hours),
        f"{item.rate:.2g}",
    )


def _command(item: Item) -> str:
    experiment, row, columns = item.cells
    rows = f' --rows "{row}"' if row else ""
    column = f' --columns "{columns[0]}"' if columns else ""
    return f"lengthwise reproduce {experiment} --scale paper{rows}{column}"


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def main() -> None:
    """Measure, print the page, and write it if asked to."""
    options = parse_options(__doc__)
    evaluations = ledger_lines(ROOT / "docs", REPRODUCE, CLAIMS)
    page = plan_page(plan_of(evaluations, max_items=1 if options.quick else None), environment())
    print(page)
    if options.save and not options.quick:
        write_files({ROOT / "docs" / "plan-of-claims.md": page})


if __name__ == "__main__":
    main()
