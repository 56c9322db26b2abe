"""The experiments on looped transformers: which cells there are, and that recorded runs are still theirs."""

from pathlib import Path

import pytest

from lengthwise.experiment import EXPERIMENTS, Cell
from lengthwise.runs.records import read_records
from lengthwise.studies.xu2024.experiments.trees import tree_errors
from lengthwise.training.batches import task_at

RECORDS = Path(__file__).parents[2] / "docs/results/records"


def cells(name: str, scale: str = "small") -> dict[tuple[str, str], Cell]:
    return {(cell.row, cell.column): cell for cell in EXPERIMENTS[name](scale).cells}


def layer_parameters(cell: Cell) -> int:
    named = cell.specs[0].make_model().named_parameters()
    return sum(parameter.numel() for name, parameter in named if not name.startswith("read"))


@pytest.mark.parametrize("name", ["looped/table-1", "looped/table-2"])
def test_recorded_runs_are_still_runs_of_the_experiment(name: str) -> None:
    known = {result.run_id for result in read_records(RECORDS / f"{name.replace('/', '-')}.jsonl.gz")}
    assert known <= {spec.id for spec in EXPERIMENTS[name]("small").specs}


def test_every_row_has_every_kind_of_loop_at_every_number_of_loops() -> None:
    loops: dict[str, dict[str, list[int]]] = {}
    for row, column in cells("looped/table-1"):
        kind, _, count = column.partition(", R=")
        if count:
            loops.setdefault(row, {}).setdefault(kind, []).append(int(count))
    for row, kinds in loops.items():
        assert kinds["plain loop"] == kinds["control"] == kinds["timestep"], row
        assert set(kinds["wide control"]) <= set(kinds["timestep"])
    assert "Knapsack (8)" in loops
    assert max(max(kinds["timestep"]) for kinds in loops.values()) == 100


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_the_wide_control_has_as_many_parameters_as_timestep(scale: str) -> None:
    table = cells("looped/table-1", scale)
    row = next(iter(table))[0]
    wide, timestep, control = (
        layer_parameters(table[row, f"{kind}, R=5"]) for kind in ("wide control", "timestep", "control")
    )
    assert wide == pytest.approx(timestep, rel=0.015)
    assert control < 0.7 * timestep


def test_nets_of_figure_5_differ_in_what_they_are_trained_on_alone() -> None:
    table = cells("looped/figure-5")
    for kind in ("plain loop", "timestep"):
        fixed, new = (table[row, f"{kind}, R=10"].specs for row in ("4,000 problems", "new problems"))
        for spec, fresh in zip(fixed, new, strict=True):
            assert spec.recipe.num_examples == 4_000
            assert spec.recipe.model_copy(update={"num_examples": None}) == fresh.recipe
            assert (spec.task, spec.model_config, spec.seed) == (fresh.task, fresh.model_config, fresh.seed)


def test_curricula_of_trees_end_at_the_papers_size_after_the_same_share_of_steps() -> None:
    for scale, steps in (("small", 3_000), ("paper", 75_000)):
        (row, _), *_ = trees = cells("looped/trees", scale)
        assert row == "depth 4, 20 dimensions, 101 points"
        for (_, column), cell in trees.items():
            recipe, task = cell.specs[0].recipe, cell.specs[0].task
            assert steps == 0.375 * recipe.steps
            reached = [
                (recipe.length_odds_at(step, range(1, 102)).index(1.0) + 1, task_at(task, recipe, step).active_dims)
                for step in (0, steps - 1, steps)
                if recipe.rise
            ]
            dims = (5, 19, 20) if recipe.task_rise else (None, None, None)
            if "no curriculum" in column:
                assert (recipe.min_length, recipe.rise, recipe.task_rise) == (101, None, None)
            else:
                assert reached == list(zip((26, 96, 101), dims, strict=True))
                assert bool(recipe.task_rise) == ("points alone" not in column)


def variants_of(name: str, scale: str) -> set[str]:
    """Return the variants of the looped nets of an experiment."""
    configs = [spec.model_config for cell in cells(name, scale).values() for spec in cell.specs]
    return {config.variant for config in configs if hasattr(config, "variant")}


def test_nets_in_context_have_the_published_layers() -> None:
    """Those of the large trees do so at the paper's scale alone, and their page says what it measured."""
    published = {"timestep-in-context", "code-in-context"}
    for scale in ("small", "paper"):
        assert variants_of("looped/table-2", scale) == published | {"control-in-context"}
    assert variants_of("looped/trees", "paper") == published
    assert variants_of("looped/trees", "small") == {"timestep", "code-in-context"}
    assert any("SiLU" in note for note in EXPERIMENTS["looped/trees"]("small").notes)
    for name in ("looped/table-2", "looped/trees"):
        recorded = {run.run_id for run in read_records(RECORDS / f"{name.replace('/', '-')}.jsonl.gz")}
        assert {spec.id for spec in EXPERIMENTS[name]("small").specs} <= recorded


def test_simple_learners_start_from_the_variance_of_a_leaf(tmp_path: Path) -> None:
    study = tree_errors(tmp_path, EXPERIMENTS["looped/trees"]("smoke").cells, 2_000)
    assert set(map(tuple, study.runs.values())) == {()}, "no run is there"
    for errors in study.learners.values():
        assert errors[0] == pytest.approx(1.0, abs=0.15)  # 2,000 leaves: a standard error of sqrt(2 / 2,000), 0.03
    assert study.learners["mean so far"][-1] < errors[0]


def test_no_net_on_trees_is_better_than_a_constant() -> None:
    """As the page says first."""
    curves = [run.errors for run in read_records(RECORDS / "looped-trees.jsonl.gz")]
    assert len(curves) == len(EXPERIMENTS["looped/trees"]("small").specs)
    assert all(curve.last.error > curve.baseline for curve in curves)
