"""Speed of drawing and solving algorithmic and in-context data on one core, and scores of shallow baselines.

    python benchmarks/task_data.py            prints rates, base rates and errors
    python benchmarks/task_data.py --save     also writes the dated numbers
    python benchmarks/task_data.py --quick    takes seconds: a test that it runs, without meaningful numbers

Times are CPU times on one thread, all in one process, at the sizes of Xu and Sato (arXiv 2410.01405). Before anything
is timed, every solver is compared with its definition. Greedy trees are measured if scikit-learn is installed.
"""

import json
import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from speed_page import ROOT, environment, parse_options, write_files

from lengthwise import make_task
from lengthwise.randomness import generator_for
from lengthwise.tasks import Task
from lengthwise.tasks.algorithmic.edit_distance import edit_distance, edit_distance_by_definition
from lengthwise.tasks.algorithmic.knapsack import best_value, best_value_by_definition
from lengthwise.tasks.algorithmic.longest_common_subsequence import common_length, common_length_by_definition
from lengthwise.tasks.algorithmic.single_answer import SingleAnswerTask
from lengthwise.tasks.algorithmic.string_pairs import draw_pairs
from lengthwise.tasks.algorithmic.subset_sum import reachable_sums, reachable_sums_by_definition
from lengthwise.tasks.in_context.decision_tree import (
    Trees,
    mean_so_far,
    nearest_neighbor,
    nearest_neighbor_by_definition,
    tree_values,
    tree_values_by_definition,
)

AIM = 10_000
"""The number of samples per second that should be drawn and solved, for every task."""

TASKS_MEASURED: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("subset-sum", 10, {}),
    ("subset-sum", 10, {"sampling": "hard"}),
    ("knapsack", 20, {}),
    ("longest-common-subsequence", 60, {}),
    ("longest-common-subsequence", 100, {"max_length": 100}),
    ("edit-distance", 60, {}),
    ("edit-distance", 60, {"border": "published"}),
    ("decision-tree", 101, {}),
)


class Rate(NamedTuple):
    """The number of samples that are drawn and solved per CPU second, in batches of one size."""

    task: str
    length: int
    batch: int
    samples_per_second: float


def check_solvers() -> None:
    """Check that every solver agrees with its definition, at the measured sizes if the definition is feasible there."""
    generator = generator_for(0, "check")
    items = torch.randint(1, 100, (50, 10), generator=generator)
    torch.testing.assert_close(reachable_sums(items), reachable_sums_by_definition(items))
    weights, values = (torch.randint(1, maximum, (50, 12), generator=generator) for maximum in (21, 11))
    given = weights, values, torch.randint(1, 51, (50,), generator=generator)
    torch.testing.assert_close(best_value(*given), best_value_by_definition(*given))
    for length in (60, 100):
        first, second = torch.randint(13, (2, 10, length), generator=generator)
        torch.testing.assert_close(common_length(first, second), common_length_by_definition(first, second))
    first, second = draw_pairs(20, 60, 26, generator)
    for border in ("true", "published"):
        given = first, second, border
        torch.testing.assert_close(edit_distance(*given), edit_distance_by_definition(*given))
    inputs = make_task("decision-tree").sample(5, 101, generator).inputs
    trees = Trees(torch.randint(20, (5, 15), generator=generator), torch.randn(5, 16, generator=generator))
    torch.testing.assert_close(tree_values(trees, inputs[:, ::2]), tree_values_by_definition(trees, inputs[:, ::2]))
    fast, expected = nearest_neighbor(inputs), nearest_neighbor_by_definition(inputs)
    torch.testing.assert_close(fast, expected, equal_nan=True)


def label(name: str, fields: Mapping[str, object]) -> str:
    """Return a task's name and its settings that are not at their default, without its capacity."""
    return " ".join([name, *(f"{key}={value}" for key, value in fields.items() if key != "max_length")])


def samples_per_second(task: Task, length: int, batch: int, windows: int) -> float:
    """Return the highest rate in several windows of at least 0.3 CPU seconds; other work can only lower a rate."""
    generator = generator_for(0, "rate")
    results = []
    for _ in range(windows):
        done, start = 0, time.process_time()
        while (spent := time.process_time() - start) < 0.3:
            task.sample(batch, length, generator)
            done += batch
        results.append(done / spent)
    return max(results)


def rates(quick: bool) -> list[Rate]:
    """Measure the rate of every task, in batches of training size and in large batches."""
    results = []
    for name, length, fields in TASKS_MEASURED:
        for batch in (128, 1_024):
            value = samples_per_second(make_task(name, **fields), length, batch, 1 if quick else 7)
            results.append(Rate(label(name, fields), length, batch, round(value)))
            print(f"{results[-1].task:36s} {length:4d} batch {batch:5,d} {value:12,.0f} samples/s", flush=True)
    slowest = min(results, key=lambda rate: rate.samples_per_second)
    met = "met" if slowest.samples_per_second >= AIM else "missed"
    print(f"aim of {AIM:,} samples/s {met}: the slowest is {slowest.task}, batch {slowest.batch}\n")
    return results


def base_rates(quick: bool) -> dict[str, dict[str, float]]:
    """Return the scores of shallow baselines."""
    results = {}
    for name, length, fields in TASKS_MEASURED[: 2 if quick else None]:
        task = make_task(name, **fields)
        if isinstance(task, SingleAnswerTask):
            results[f"{label(name, fields)}, length {length}"] = dict(task.base_rates(length))
    for what, scores in results.items():
        print(what, *(f"{accuracy:8.1%}  {predictor}" for predictor, accuracy in scores.items()), sep="\n")
    return results


def learner_errors(quick: bool) -> dict[str, float]:
    """Return squared errors of shallow baselines after 100 values of a tree, also divided by its 20 dimensions."""
    task = make_task("decision-tree")
    inputs, targets = task.sample(20 if quick else 1_280, 101, generator_for(0, "learners"))
    last = targets[:, -1]
    answers = {
        "zero": torch.zeros_like(last),
        "mean so far": mean_so_far(inputs)[:, -1],
        "nearest neighbor": nearest_neighbor(inputs)[:, -1],
    }
    signs = inputs.clone()
    signs[:, ::2] = signs[:, ::2].sign()
    for name, given in (("greedy tree", inputs), ("greedy tree on signs", signs)):
        greedy = _greedy_trees(given)
        if greedy is not None:
            answers[f"{name} (scikit-learn)"] = greedy
    results = {name: (answer - last).square().double() for name, answer in answers.items()}
    print("\ndecision-tree, squared error at point 101 (and divided by 20), with its standard error")
    for name, errors in results.items():
        mean, deviation = errors.mean().item(), errors.std().item() / math.sqrt(len(errors))
        print(f"{mean:8.4f} ({mean / 20:.5f}) +- {deviation:.4f}  {name}")
    return {name: round(errors.mean().item(), 5) for name, errors in results.items()}


def _greedy_trees(inputs: torch.Tensor) -> torch.Tensor | None:
    """Return the answers of trees fitted to all points but the last; None if scikit-learn is not installed."""
    try:
        from sklearn.tree import DecisionTreeRegressor
    except ImportError:
        return None
    answers = []
    for sequence in inputs.double().numpy():
        tree = DecisionTreeRegressor(random_state=0).fit(sequence[:-1:2], sequence[1::2, 0])
        answers.append(float(tree.predict(sequence[-1:])[0]))
    return torch.tensor(answers)


def main() -> None:
    options = parse_options(__doc__)
    torch.set_num_threads(1)
    check_solvers()
    record = {
        "environment": environment(),
        "samples_per_cpu_second": [rate._asdict() for rate in rates(options.quick)],
        "base_rates": base_rates(options.quick),
        "squared_error_of_learners": learner_errors(options.quick),
    }
    if options.save:
        path = ROOT / "benchmarks" / "results" / f"task_data-{record['environment']['date']}.json"
        for file in write_files({path: json.dumps(record, indent=1) + "\n"}):
            print(f"wrote {file}")


if __name__ == "__main__":
    main()
