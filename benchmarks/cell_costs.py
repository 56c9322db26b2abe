"""Estimate the CPU seconds that the cells of an experiment take to train, from the time of a few steps.

python benchmarks/cell_costs.py looped/table-1 [--scale small] [--steps 4] [--records FILE] [--quick]

If the records of an experiment are given, only runs that are not in the records count. The estimate for a cell is the
mean CPU time of a few steps, spread over training, times the number of steps and of runs. Measurements are not
included.
"""

import argparse
import time
from pathlib import Path
from statistics import fmean

from lengthwise.devices import one_thread
from lengthwise.experiment import EXPERIMENTS, Scale, parse_scale
from lengthwise.runs.records import read_records
from lengthwise.runs.spec import RunSpec
from lengthwise.training.loop import TrainingState, training_steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("experiment", nargs="?", default="looped/table-2")
    parser.add_argument("--scale", default="small")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--records", type=Path)
    parser.add_argument("--quick", action="store_true", help="two steps of each cell at scale smoke")
    options = parser.parse_args()
    scale, steps = ("smoke", 1) if options.quick else (parse_scale(options.scale), options.steps)
    known = {result.run_id for result in read_records(options.records)} if options.records else set()
    total = sum(cost(options.experiment, scale, steps, known))
    print(f"all: {total:,.0f} CPU s, {total / 3600:.2f} hours")


def cost(experiment: str, scale: Scale, steps: int, known: set[str]) -> list[float]:
    """Print and return the estimate of each cell."""
    seconds = []
    for cell in EXPERIMENTS[experiment](scale).cells:
        missing = [spec for spec in cell.specs if spec.id not in known]
        if missing:
            step = step_seconds(missing[0], steps)
            seconds.append(step * missing[0].recipe.steps * len(missing))
            runs = f"{missing[0].recipe.steps:,} steps, {len(missing)} runs"
            print(f"{cell.row}, {cell.column}: {1000 * step:.0f} CPU ms a step, {runs}: {seconds[-1]:,.0f} CPU s")
    return seconds


@one_thread()
def step_seconds(spec: RunSpec, steps: int) -> float:
    """Return the mean CPU time of steps spread over training, because batches may grow; a first step is not counted."""
    state = TrainingState(spec.make_model(), spec.recipe, spec.task)
    records = training_steps(state, spec.task, spec.recipe, seed=spec.seed)
    next(records)
    times = []
    for index in range(steps):
        state.step = (2 * index + 1) * spec.recipe.steps // (2 * steps)
        started = time.process_time()
        next(records)
        times.append(time.process_time() - started)
    return fmean(times)


if __name__ == "__main__":
    main()
