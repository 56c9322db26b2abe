"""Cells that search a recipe, and nets that do not fit: from made-up results."""

from datetime import date
from pathlib import Path

import pytest
from synthetic_runs import PLAN, all_right, synthetic_run

from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scoring
from lengthwise.report.pages.results import markdown_page
from lengthwise.report.tables.cells import best_by_loss
from lengthwise.report.tables.experiment import cell_table, main_table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.records import read_records, write_records
from lengthwise.runs.spec import make_spec


def outcome(rate: float, loss: float | None, num_correct=all_right) -> Outcome:
    settings = {"train": {"optimizer": {"learning_rate": rate}}}
    result = synthetic_run(settings=settings, num_correct=num_correct).result
    return Outcome(make_spec("parity", "regular-gpt", settings), result.model_copy(update={"final_loss": loss}))


def searching(outcomes: list[Outcome], **changes) -> Experiment:
    cell = Cell("Parity", "C=2", tuple(outcome.spec for outcome in outcomes))
    scoring = Scoring(measure="search", fit=(1_000, 0.99))._replace(**changes)
    return Experiment("Title", "About.", [cell], PLAN, scoring=scoring)


def cells_of(experiment: Experiment, outcomes: list[Outcome]) -> dict[str, str]:
    header, (line,), _ = cell_table(experiment, outcomes)
    return dict(zip(header, line, strict=True))


def half_right(length: int, num_strings: int) -> int:
    return num_strings // 2


def few_wrong_at_1000(length: int, num_strings: int) -> int:
    return num_strings - 3 * (length == 1_000)


def test_the_search_chooses_by_training_loss_and_by_nothing_else() -> None:
    """The run that is right everywhere has the higher loss, and is not taken."""
    outcomes = [outcome(1e-3, 0.5), outcome(2e-3, 0.25, half_right), outcome(4e-3, None)]
    assert best_by_loss([o.result for o in outcomes]) is outcomes[1].result
    assert best_by_loss([outcomes[2].result]) is None
    cells = cells_of(searching(outcomes), outcomes)
    assert cells["recipes"] == "3"
    assert cells["chosen"] == "train.optimizer.learning_rate=0.002"
    assert (cells["final loss"], cells["losses"]) == ("0.2500", "0.500, 0.250, -")
    assert (cells["fits"], cells["mean"]) == ("does not fit (50.00 %)", "50.00 %")


def test_losses_stand_in_the_order_of_recipes_whether_or_not_these_have_a_result() -> None:
    """Else nobody could tell which recipe a loss belongs to; what is chosen is told from these recipes, too."""
    first, *others = outcome(1e-3, 0.5), outcome(2e-3, 0.25), outcome(4e-3, 0.125)
    failed = [o._replace(result=None, reason="the loss is not finite at step 12") for o in others]
    outcomes = [failed[0], first, failed[1]]
    cells = cells_of(searching(outcomes), outcomes)
    assert (cells["recipes"], cells["losses"]) == ("1 of 3", "-, 0.500, -")
    assert cells["chosen"] == "train.optimizer.learning_rate=0.001"


def test_the_page_of_a_search_needs_records_alone(tmp_path: Path) -> None:
    outcomes = [outcome(1e-3, 0.5, half_right), outcome(2e-3, 0.25)]
    write_records(tmp_path / "records.jsonl.gz", [o.result for o in outcomes])
    results = {result.run_id: result for result in read_records(tmp_path / "records.jsonl.gz")}
    read = [o._replace(result=results[o.spec.id]) for o in outcomes]
    page = markdown_page("n", "small", "lengthwise reproduce n", searching(read), read, date(2026, 1, 2))
    assert "| yes |" in page.replace("\N{NO-BREAK SPACE}", " ")
    failed = [o._replace(result=None, reason="failed") for o in outcomes]
    assert cells_of(searching(failed), failed)["chosen"] == "-"


@pytest.mark.parametrize(("num_correct", "fits"), [(all_right, "yes"), (few_wrong_at_1000, "does not fit (98.82 %)")])
def test_a_cell_with_a_net_that_does_not_fit_is_marked(num_correct, fits: str) -> None:
    """3 of 256 are wrong, which leaves less than 99 %."""
    outcomes = [outcome(1e-3, None), outcome(2e-3, None, num_correct)]
    experiment = searching(outcomes, measure="balanced", best_test=True)
    assert cells_of(experiment, outcomes)["fits"] == fits
    assert "fits" in main_table(experiment, outcomes).header
    failed = [o._replace(result=None, reason="failed") for o in outcomes]
    assert cells_of(experiment, failed)["fits"] == "-"
    assert "fits" not in cells_of(experiment._replace(scoring=experiment.scoring._replace(fit=None)), outcomes)


def test_table_2_at_the_papers_size_has_the_codes_rates_and_trials() -> None:
    cells = EXPERIMENTS["linear-rnn/table-2"]("paper").cells
    assert {cell.column for cell in cells} == {"Ours", "Ours, eq. (5)-(6)"}
    expected = {"Sum(5)": (1e-4, 0.0, 1, 5), "EvenPair(5)": (2e-4, 0.0, 1, 5), "ModArith(5)": (2e-4, 1e-4, 3, 1)}
    for cell in cells:
        spec = cell.specs[0]
        optimizer, layers = spec.recipe.optimizer, spec.to_json()["model"]["num_layers"]
        assert (optimizer.learning_rate, optimizer.weight_decay, layers, len(cell.specs)) == expected[cell.row]
        assert (spec.recipe.steps, optimizer.schedule, optimizer.warmup_steps) == (40_000, "constant", 0)
    literal = cells[1].specs[0].to_json()["model"]
    assert (literal["columns"], literal["input_map"], literal["first_state"]) == ("clamped", "linear", "zero")


def test_controls_change_rate_and_steps_one_at_a_time() -> None:
    """The first column has runs of Table 2, so that no net is trained twice."""
    cells = EXPERIMENTS["linear-rnn/controls"]("small").cells
    known = {spec.id for spec in EXPERIMENTS["linear-rnn/table-2"]("small").specs}
    for row in ("Sum(5)", "EvenPair(5)"):
        base, rate, steps, both, falling = (cell.specs[0] for cell in cells if cell.row == row)
        assert base.id in known
        assert (rate.recipe.steps, steps.recipe.optimizer) == (base.recipe.steps, base.recipe.optimizer)
        assert (both.recipe.steps, both.recipe.optimizer) == (steps.recipe.steps, rate.recipe.optimizer)
        assert steps.recipe.steps > base.recipe.steps
        assert rate.recipe.optimizer.learning_rate < base.recipe.optimizer.learning_rate
        changed = base.recipe.optimizer.model_copy(update={"schedule": "cosine"})
        assert falling.recipe == base.recipe.model_copy(update={"optimizer": changed})
