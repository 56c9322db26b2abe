"""Which runs the pages about layers have, and share."""

from pathlib import Path

from lengthwise.experiment import EXPERIMENTS, Cell
from lengthwise.runs.records import read_records
from lengthwise.studies.chi2023.experiments.inside import OURS

RECORDS = Path(__file__).parents[2] / "docs" / "results" / "records"


def cells_of(name: str, scale: str = "small") -> dict[tuple[str, str], Cell]:
    return {(cell.row, cell.column): cell for cell in EXPERIMENTS[name](scale).cells}


def test_thickness_one_with_the_layer_of_the_code_is_table_1() -> None:
    table, variants = cells_of("regular-gpt/table-1"), cells_of("regular-gpt/variants")
    for row in ("Even Pairs", "Parity", "Cycle Navigation"):
        assert variants[row, "the code's, K=1"].specs == table[row, "C=2"].specs
    assert EXPERIMENTS["regular-gpt/variants"]("small").plan == EXPERIMENTS["regular-gpt/table-1"]("small").plan


def test_cells_differ_in_layer_and_thickness_alone() -> None:
    variants = cells_of("regular-gpt/variants")
    assert len(variants) == 12
    for (row, _), cell in variants.items():
        first = variants[row, "the code's, K=1"]
        for spec, other in zip(cell.specs, first.specs, strict=True):
            changes = {"variant": "code", "thickness": 1}
            assert spec._replace(model_config=spec.model_config.model_copy(update=changes)) == other
    assert len({spec.id for cell in variants.values() for spec in cell.specs}) == 36


def test_two_layers_a_level_say_which_form_was_run() -> None:
    """What is recorded at scale small has pads before the string; at scale paper windows are cut, as in the code."""
    for scale, column, edge in (("small", "the code's, K=2, pads", "pads"), ("paper", "the code's, K=2", "cut")):
        table = cells_of("regular-gpt/variants", scale)
        for row in ("Even Pairs", "Parity", "Cycle Navigation"):
            configs = [spec.model_config for spec in table[row, column].specs]
            assert {(config.thickness, config.left_edge) for config in configs} == {(2, edge)}
    experiment = EXPERIMENTS["regular-gpt/variants"]("small")
    assert "treats the beginning of a string in another way than our nets. No net was run with the code's way." in (
        experiment.headline
    )
    recorded = {run.run_id for run in read_records(RECORDS / "regular-gpt-variants.jsonl.gz")}
    assert {spec.id for spec in experiment.specs} <= recorded


def test_nets_with_the_papers_layers_are_trained_without_what_encourages_clusters() -> None:
    variants = cells_of("regular-gpt/variants")
    inside = cells_of("regular-gpt/inside")
    assert len(inside) == 6
    for (row, column), cell in inside.items():
        (spec,) = cell.specs
        augmentation = spec.recipe.augmentation
        noise = (
            augmentation.state_noise,
            augmentation.late_state_noise,
            augmentation.padding,
            spec.recipe.late_consistency,
        )
        if column == OURS:
            assert all(noise)
        else:
            assert not any(noise)
            assert spec in variants[row, f"{column}, K=1"].specs
            assert spec.recipe.optimizer.learning_rate == 3e-4
