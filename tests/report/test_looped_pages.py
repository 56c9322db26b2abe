"""Pages of studies of looped transformers, from numbers that are known."""

import re
from pathlib import Path

import pytest

from lengthwise.evaluation.error_curve import ErrorCurve, ErrorPoint
from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.experiment import EXPERIMENTS
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.result import RunResult, RunStatus
from lengthwise.studies.xu2024.experiments.figure_5 import TrainTest, accuracies
from lengthwise.studies.xu2024.experiments.moduli import SIZES, Moduli
from lengthwise.studies.xu2024.experiments.moduli import Study as ModuliStudy
from lengthwise.studies.xu2024.experiments.moduli import study as moduli_study
from lengthwise.studies.xu2024.experiments.trees import TreeErrors
from lengthwise.studies.xu2024.pages.figure_5 import accuracy_chart, figure_5_page
from lengthwise.studies.xu2024.pages.moduli import moduli_page, moduli_panels
from lengthwise.studies.xu2024.pages.trees import error_chart, trees_page

POINTS = [
    TrainTest("4 problems", "timestep", 2, 0, 0.5, 0.25, 4),
    TrainTest("4 problems", "timestep", 2, 1, 0.75, 0.5, 4),
    TrainTest("4 problems", "timestep", 5, 0, 1.0, 0.75, 4),
    TrainTest("new problems", "timestep", 2, 0, None, 0.5, 0),
    TrainTest("4 problems", "plain loop", 2, 0, 0.5, 0.5, 4),
]


def test_accuracies_on_training_problems_stand_next_to_those_on_others() -> None:
    page = figure_5_page(POINTS, "figure")
    text = "\n".join(page.sections).replace("\N{NO-BREAK SPACE}", " ")
    assert "| 4 problems | timestep, R=2 | 62.50 % | 37.50 % | -25.00 | 2 |" in text
    assert "| new problems | timestep, R=2 | - | 50.00 % | - | 1 |" in text
    assert "timestep 1.000 (3 runs), plain loop - (1 runs)" in text, "three points on a line, and one point alone"
    assert list(page.pictures) == ["figure.svg"]


def test_the_headline_of_figure_5_has_correlations_and_the_gap() -> None:
    """Tests are a tenth behind; one of five pairs is off the line, so that an interval is known."""
    pairs = [(0.4, 0.3), (0.5, 0.4), (0.6, 0.5), (0.7, 0.6), (0.8, 0.5)]
    points = [TrainTest("4 problems", "timestep", 2 + seed, seed, *pair, 4) for seed, pair in enumerate(pairs)]
    stated = figure_5_page(points, "figure").headline
    assert re.search(
        r"have a correlation of 0\.832 in 5 runs of \*timestep\* \(95 % interval -0\.\d+ to 0\.9\d\)\.", stated
    )
    assert "accuracy is 10 to 30 points higher" in stated
    assert figure_5_page(POINTS, "figure").headline == "", "too few runs for an interval"


def test_the_chart_has_each_accuracy_as_a_line_of_its_own() -> None:
    timestep, plain = accuracy_chart(POINTS).hconcat
    values = {(value["line"], value["loops"]): value["accuracy"] for value in timestep.data.values}
    assert values == {
        ("training problems", 2): 0.625,
        ("test problems", 2): 0.375,
        ("training problems", 5): 1.0,
        ("test problems", 5): 0.75,
        ("test problems, none seen twice", 2): 0.5,
    }
    assert plain.title == "plain loop"


def test_the_study_needs_nothing_but_results(tmp_path: Path) -> None:
    """As when a page is made of records alone."""
    experiment = EXPERIMENTS["looped/figure-5"]("smoke")
    cell = experiment.cells[0]
    (spec,) = cell.specs

    def point(correct: int) -> LengthPoint:
        return LengthPoint(length=8, num_strings=16, num_correct=correct, baseline=0.1)

    result = RunResult(
        run_id=spec.id,
        spec=spec.to_json(),
        weights="final weights",
        num_parameters=1,
        plan=experiment.plan,
        dense=LengthCurve(protocol="independent", points=(point(4),)),
        examples=(point(12),),
        probes=(),
        training=RunStatus(status="trained"),
        evaluation_seconds=0.0,
        process_peak_memory_mb=0.0,
        versions={},
    )
    folder = RunFolder(tmp_path / spec.id)
    folder.create(spec)
    folder.write_result(result)
    (only,) = accuracies(tmp_path, experiment.cells)
    assert (only.row, only.kind, only.num_loops, only.seed) == (cell.row, "plain loop", 2, 0)
    assert (only.train, only.test, only.num_scored) == (pytest.approx(0.75), pytest.approx(0.25), 16)


def curve(*errors: float) -> ErrorCurve:
    points = tuple(
        ErrorPoint(num_examples=count, error=error, low=error, high=error) for count, error in enumerate(errors)
    )
    return ErrorCurve(length=len(errors), num_prompts=1, input_dim=20, baseline=1.0, points=points)


def test_errors_of_trees_stand_next_to_those_of_simple_learners() -> None:
    errors = [1.0] * 5 + [0.5]
    study = TreeErrors({"timestep, R=5": [curve(*errors), curve(*errors[:5], 0.25)]}, {"mean so far": [0.75] * 6})
    page = trees_page(study, "trees")
    text = "\n".join(page.sections)
    assert "| answers by | after 0 | after 5 |\n" in text
    assert "| timestep, R=5 | 1.000 | 0.375 |" in text
    assert "| mean so far | 0.750 | 0.750 |" in text
    values = error_chart(study).data.values
    assert [v["error"] for v in values if v["answers by"] == "timestep, R=5"] == [*errors[:5], 0.375]


def test_moduli_of_a_net_stand_in_a_line_each() -> None:
    values = {"sequence": {0.5: 3.0, 1.0: 4.0}, "contextual": {0.5: 1.0, 1.0: 2.0}, "token": {0.5: 0.25, 1.0: 0.5}}
    study = ModuliStudy(SIZES["smoke"], [Moduli("timestep", True, 0.75, values)])
    text = "\n".join(moduli_page(study, "moduli").sections).replace("\N{NO-BREAK SPACE}", " ")
    assert "| net | accuracy | modulus | t = 0.5 | t = 1 |" in text
    assert "| timestep, trained | 75.00 % | contextual | 1.000 | 2.000 |" in text
    stated = moduli_page(study, "moduli").headline.replace("\N{NO-BREAK SPACE}", " ")
    assert "when the embeddings at all other positions moved by a distance of 1" in stated
    assert "2.000 (timestep)" in stated
    (panel,) = moduli_panels(study)
    assert [v["change"] for v in panel.data.values if v["modulus"] == "token"] == [0.25, 0.5]


def test_moduli_of_a_net_obey_what_moduli_obey() -> None:
    """Sequence continuity is the weakest demand of the three: its modulus is the largest."""
    for one in moduli_study(SIZES["smoke"]._replace(num_starts=8, num_steps=10)).moduli:
        for distance in (0.5, 1.0):
            assert one.values["token"][distance] >= 0
            assert one.values["token"][0.5] <= one.values["token"][1.0] <= 2 * one.values["token"][0.5] * (1 + 1e-5)
        assert set(one.values) == {"sequence", "contextual", "token"}
        assert 0 <= one.accuracy <= 1


def test_what_table_1_says_of_intervals_is_what_its_differences_say() -> None:
    """Of timestep against the control, the wide one and the plain loop, row by row."""
    text = (Path(__file__).parents[2] / "docs" / "results" / "looped-table-1.md").read_text(encoding="utf-8")
    lines = re.findall(r"\| ([^|]+) \| timestep, R=(\d+) \| ([a-z ]+), R=\2 \| [-+\d.]+ \| [^|]+ \| ([^|]+) \|", text)
    ahead = {(row, other, int(loops)) for row, loops, other, better in lines if better.startswith("timestep")}
    behind = {(row, other, int(loops)) for row, loops, other, better in lines if better.startswith(other)}
    of_control = {("LCS (12)", 2), ("LCS (12)", 5), ("LCS (12)", 10), ("LCS (6)", 2), ("LCS (6)", 50)}
    of_control |= {("Knapsack (8)", 5), ("ED (12)", 5), ("ED (6)", 5)}
    assert {(row, loops) for row, other, loops in ahead if other == "control"} == of_control
    assert {row for row, other, _ in ahead if other == "wide control"} == {"LCS (12)", "LCS (6)", "ED (12)"}
    assert {(row, loops) for row, other, loops in ahead if other == "plain loop"} == {("ED (6)", 100)}
    assert behind == {("ED (12)", "plain loop", 5), ("ED (6)", "plain loop", 5)}
    lines = re.findall(r"\| ([^|]+) \| ([a-z ]+), R=(\d+) \| \2, R=\d+ \| [-+\d.]+ \| [^|]+ \| ([^|]+) \|", text)
    helped = {(row, net, int(loops)) for row, net, loops, better in lines if better == f"{net}, R={loops}"}
    assert {row for row, _, loops in helped if loops == 5} == {
        "Knapsack (8)",
        "LCS (12)",
        "LCS (6)",
        "ED (12)",
        "ED (6)",
    }
    assert {(row, net) for row, net, loops in helped if loops == 10 and "Knapsack" not in row} == {
        ("LCS (12)", "timestep"),
        ("LCS (12)", "control"),
        ("ED (6)", "plain loop"),
    }
    assert max(loops for *_, loops in helped) == 10
    lines = re.findall(r"\| ED \(6\) \| plain loop, R=(\d+) \| 6 \| ([\d.]+)\s% \| ([\d.]+)\s% \|", text)
    best, worst = ({loops: float(line[i]) for loops, *line in lines} for i in (0, 1))
    assert best["100"] < worst["10"] < best["50"]
