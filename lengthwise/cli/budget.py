"""A sweep of runs that ends when its training has taken a number of CPU seconds."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from lengthwise.cli.options import Device, Root, Workers, whole_number
from lengthwise.cli.streams import Output

if TYPE_CHECKING:
    from lengthwise.experiment import Experiment
    from lengthwise.runs.pools.outcome import Outcome
    from lengthwise.runs.progress import Listener, Progress


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """Options for executing the runs of a benchmark: folder, workers, pool, device and budget."""

    runs: Root = Path("runs")
    workers: Annotated[Workers | None, Parameter(help="Runs at a time, one core each; 2 if not given.")] = None
    pool: Annotated[str, Parameter(help="Pool of runs: local, shared (by several commands), dask or ray.")] = "local"
    device: Device = "cpu"
    budget: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            help="Stop when training has taken this many CPU seconds, counted at checkpoints and ends of runs. "
            "Measurements and their certificates do not count. The same command, run again, continues.",
        ),
    ] = None


class Budget:
    """The CPU seconds of all runs during this command, and the limit of these seconds.

    Diverged and failed runs also count.
    """

    def __init__(self, limit: int | None, runs: Path) -> None:
        self._limit, self._runs = limit, runs
        self._before: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self._begun: set[str] = set()

    def ignore(self, run_ids: Iterable[str]) -> None:
        """Exclude the CPU seconds that these runs have taken so far; call this method before the runs begin."""
        for run_id in run_ids:
            # A run that is in two sweeps keeps its first number, because this command may have trained it in the first
            # sweep.
            self._before.setdefault(run_id, self._recorded(run_id))

    def count(self, progress: "Progress") -> None:
        """Note that a run has begun or is done, as `progress` reports; the budget counts this run's CPU seconds."""
        self._begun.add(progress.run_id)
        if progress.phase == "done":
            self._ended[progress.run_id] = self._recorded(progress.run_id)

    def is_spent(self) -> bool:
        """Return whether the runs have used all CPU seconds of the budget; no further run may then begin."""
        if self._limit is None:
            return False
        # Another thread may add runs at the same time, so the set is copied. Diverged and failed runs never report that
        # they are done.
        now = {run_id: self._ended.get(run_id) or self._recorded(run_id) for run_id in list(self._begun)}
        taken = sum(max(0.0, seconds - self._before.get(run_id, 0.0)) for run_id, seconds in now.items())
        return taken >= self._limit

    def _recorded(self, run_id: str) -> float:
        from lengthwise.runs.folder import RunFolder

        try:
            return RunFolder(self._runs / run_id).read_status().cpu_seconds
        except ValueError:  # a damaged file, which executing the run replaces
            return 0.0


class BudgetedSweep(NamedTuple):
    """Options and a budget, with which experiments are run one after another."""

    options: RunOptions
    budget: Budget

    def run(self, experiment: "Experiment", console: Output, also: "Listener | None" = None) -> "list[Outcome]":
        """Run an experiment until it ends or the budget is spent, and return the outcomes of all its runs."""
        from lengthwise.cli.progress import run_all
        from lengthwise.runs.pools.base import PoolOptions
        from lengthwise.runs.pools.outcome import finished
        from lengthwise.runs.signals import Interrupted

        specs, plans = experiment.specs, experiment.plans
        pool_options = PoolOptions(self.options.workers)
        self.budget.ignore(spec.id for spec in specs)

        def listener(progress: "Progress") -> None:
            self.budget.count(progress)
            if also is not None:
                also(progress)

        try:
            options, is_enough = self.options, self.budget.is_spent
            return run_all(specs, plans, options.runs, pool_options, options.pool, listener, is_enough)
        except Interrupted as error:
            if error.signal_number is not None or not self.budget.is_spent():
                raise
            console.print_line("the budget is spent; the same command continues")
            return finished(specs, self.options.runs, plans)
