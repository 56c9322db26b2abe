"""What the page on rate and steps says first is what was recorded."""

from pathlib import Path
from statistics import fmean

from lengthwise.experiment import EXPERIMENTS
from lengthwise.runs.records import read_records
from lengthwise.runs.result import RunResult

RECORDS = Path(__file__).parents[2] / "docs" / "results" / "records" / "linear-rnn-controls.jsonl.gz"


LONG, SHORT = ("Sum(5)", "the code's, 8,000 steps"), ("Sum(5)", "the code's, 2,000 steps")


def test_the_headline_has_the_scores_of_the_runs() -> None:
    experiment = EXPERIMENTS["linear-rnn/controls"]("small")
    records = {result.run_id: result for result in read_records(RECORDS)}
    runs = {(cell.row, cell.column): [records[spec.id] for spec in cell.specs] for cell in experiment.cells}
    stated = " ".join(experiment.headline.split())

    def best_test(row: str, column: str) -> str:
        """Cut, as all shares are."""
        mean = fmean(max(run.fresh_tests) for run in runs[row, column])
        return f"{int(1e4 * mean + 1e-9) / 100:.2f} %"

    def num_right(column: str) -> int:
        def is_right(run: RunResult) -> bool:
            return all(point.accuracy == 1.0 for point in run.dense.points)

        return sum(map(is_right, runs["Sum(5)", column]))

    assert (num_right("the code's, 8,000 steps"), num_right("the code's, 2,000 steps")) == (2, 1)
    last = [run.fresh_tests[-1] for run in runs[LONG]]
    assert f"(best test: {best_test(*LONG)}; the paper: 1.00; with these weights one net errs on 1 of 128" in stated
    assert sorted(last) == [127 / 128, 1.0]
    lowest = min(point.accuracy for run in runs[LONG] for point in run.structured.points)
    assert f"structured strings refute it ({int(1e4 * lowest + 1e-9) / 100:.2f} % at the lowest)" in stated
    assert f"in one of two after 2,000 ({best_test(*SHORT)})" in stated
    assert f"8,000 steps do not help at 500 symbols ({best_test('Sum(5)', '0.001, 8,000 steps')})" in stated
    assert f"falls from there ({best_test('Sum(5)', '0.001 falling, 2,000 steps')})" in stated
    of_pairs = [
        best_test("EvenPair(5)", column)
        for column in ("the code's, 8,000 steps", "0.001, 8,000 steps", "0.001 falling, 2,000 steps")
    ]
    assert (
        "best test is {} at the code's rate (the paper: 0.99), {} at 0.001 and {} where that falls".format(*of_pairs)
        in stated
    )


def test_the_headline_on_baselines_counts_those_that_fit() -> None:
    experiment = EXPERIMENTS["linear-rnn/baselines-search"]("small")
    records = read_records(RECORDS.with_name("linear-rnn-baselines-search.jsonl.gz"))
    by_id = {result.run_id: result for result in records}
    fits: dict[str, list[float]] = {"Sum(5)": [], "EvenPair(5)": []}
    for cell in experiment.cells:
        runs = [by_id[spec.id] for spec in cell.specs if spec.id in by_id]
        chosen = min(runs, key=lambda run: run.final_loss if run.final_loss is not None else float("inf"))
        if chosen.long.points[0].accuracy >= 0.99:
            fits[cell.row].append(chosen.dense.mean())
    assert (len(fits["Sum(5)"]), len(fits["EvenPair(5)"])) == (0, 7)
    assert f"({int(1e4 * max(fits['EvenPair(5)']) + 1e-9) / 100:.2f} % at most)" in experiment.headline
    assert (len(experiment.specs) - len(records), len(experiment.specs)) == (5, 80)
    assert "Five of the 80 nets diverged" in experiment.headline
