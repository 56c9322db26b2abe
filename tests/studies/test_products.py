"""What the pages say first of trees whose merge is a product, and of moduli, is what was recorded."""

from pathlib import Path

from lengthwise.experiment import EXPERIMENTS
from lengthwise.runs.records import read_records

RESULTS = Path(__file__).parents[2] / "docs" / "results"
UNSOLVED = ("D_12", "Modular Arithmetic")


def test_nets_of_both_columns_are_counted_as_they_came_out() -> None:
    experiment = EXPERIMENTS["regular-gpt/ours"]("small")
    records = {result.run_id: result for result in read_records(RESULTS / "records" / "regular-gpt-ours.jsonl.gz")}
    cells = {(cell.row, cell.column): [records[spec.id] for spec in cell.specs] for cell in experiment.cells}
    rows = list(dict.fromkeys(row for row, _ in cells))

    def num_right(column: str, rows: list[str]) -> int:
        """Runs without an error anywhere."""
        runs = [run for row in rows for run in cells[row, column]]
        return sum(all(p.accuracy == 1.0 for curve in run.curves for p in curve.points) for run in runs)

    learned = [row for row in rows if row not in UNSOLVED]
    assert f"no error in {num_right('C=2', learned)} of the {5 * len(learned)} nets" in experiment.headline
    assert num_right("C=2", list(UNSOLVED)) == 0
    assert num_right("products", rows) == 5 * len(rows) == 85
    levels = [run.certificate.level for row in rows for run in cells[row, "products"] if run.certificate]
    assert levels == ["proved"] * 85
    assert "all 85 such nets are `proved`" in experiment.headline


def test_products_have_one_recipe_for_all_tasks() -> None:
    specs = EXPERIMENTS["regular-gpt/ours"]("small").select(column="products").specs
    assert len({(spec.recipe, spec.model_config, spec.goal) for spec in specs}) == 1


def test_the_headline_on_moduli_has_the_numbers_of_the_page() -> None:
    text = (RESULTS / "looped-moduli.md").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    headline = EXPERIMENTS["looped/moduli"]("small").headline
    header = next(line for line in text.splitlines() if line.startswith("| net |"))
    index = header.split(" | ").index("t = 0.5")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if "| contextual |" in line]
    at = {line[0]: line[index] for line in lines}
    assert f"{at['plain loop, trained']} (plain loop) and {at['timestep, trained']} (timestep)" in headline
    assert f"{at['plain loop, untrained']} and {at['timestep, untrained']} before training" in headline
