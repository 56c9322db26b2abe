"""The page of an experiment that is a matrix: one line for each column, and a heat map."""

import json
from collections.abc import Sequence

import pytest
from synthetic_runs import PLAN, synthetic_run

from lengthwise.certification.certificate import Certificate
from lengthwise.certification.parts import Counterexample, Level
from lengthwise.experiment import Cell, Experiment, Printed
from lengthwise.report.charts.heat_map import heat_map
from lengthwise.report.pages.matrix import matrix_page
from lengthwise.report.tables.matrix import column_tables, cost_table, entries_of, matrix_csv, missing, printed_tables
from lengthwise.report.tables.numbers import percent
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.spec import make_spec
from lengthwise.training.recipe import OptimizerRecipe


def outcome(seed: int, level: Level, error: str = "") -> Outcome:
    """Of seeds 0 and 3 the final loss is low, of 1 it is high, of others unknown."""
    named = Counterexample.model_construct(string=tuple(error)) if error else None
    certificate = Certificate.model_construct(level=level, counterexample=named)
    result = synthetic_run(seed=seed).result.model_copy(
        update={"certificate": certificate, "final_loss": {0: 1e-4, 1: 0.5, 3: 0.009}.get(seed)}
    )
    return Outcome(make_spec("parity", "regular-gpt", {}, seed=seed), result)


def matrix(outcomes: Sequence[Outcome], *parts: str) -> Experiment:
    specs = tuple(one.spec for one in outcomes)
    return Experiment("T", "A.", [Cell("Parity", "C=2", specs, part=part) for part in parts], PLAN, is_matrix=True)


REFUTED = [
    outcome(0, "refuted", "ab"),
    outcome(1, "refuted", "a" * 10),
    outcome(2, "refuted", "b" * 3),
    outcome(3, "tested"),
]


def test_a_line_has_the_strings_that_refute_the_nets_of_its_column() -> None:
    header, (line,), _ = column_tables(experiment := matrix(REFUTED, ""), entries_of(experiment, REFUTED))[""]
    cells = dict(zip(header, line, strict=True))
    assert (cells["solved"], cells["refuted"], cells["error"]) == ("4", "3", "3 (2-10)")
    assert cells["fits"] == "2"
    assert (cells["cells"], cells["runs"]) == ("1 of 1", "4")
    assert cells["overflow"] == "-"
    assert (cells["tested"], "proved" in cells) == ("1", False), "every run with a certificate is in a column"


def test_lengths_of_a_paper_that_were_not_measured_have_no_mean() -> None:
    """As at scale smoke, which is short of them."""
    experiment = matrix(REFUTED, "")
    printed = (
        Printed("99.0", "Mean.", (10**6, 10**6)),
        Printed("0.9", "Scaled.", (10**6, 10**6), is_above_chance=True),
    )
    cells = [cell._replace(printed=printed) for cell in experiment.cells]
    (entry,) = entries_of(experiment._replace(cells=cells), REFUTED)
    assert entry.at_printed == ("-", "-")


def test_a_cell_without_a_number_has_no_color() -> None:
    experiment = matrix(REFUTED, "")
    beyond = experiment._replace(cells=[cell._replace(window=(10**6, 10**6)) for cell in experiment.cells])
    chart = json.dumps(heat_map(beyond, entries_of(beyond, REFUTED)).to_dict())
    assert '"above": 0.0, "percent": "-"' in chart


def test_of_an_even_number_of_strings_the_middle_one_is_one_of_them() -> None:
    header, (line,), _ = column_tables(experiment := matrix(REFUTED[1:], ""), entries_of(experiment, REFUTED))[""]
    assert dict(zip(header, line, strict=True))["error"] == "3 (3-10)"


def test_next_to_a_published_number_is_ours_at_its_lengths() -> None:
    result = REFUTED[0].result
    assert result is not None
    first, *others = result.dense.points
    half = first.model_copy(update={"num_correct": first.num_strings // 2})
    dense = result.dense.model_copy(update={"points": (half, *others)})
    outcomes = [REFUTED[0]._replace(result=result.model_copy(update={"dense": dense}))]
    window, above = (first.length, first.length), (others[0].length, others[-1].length)
    experiment = matrix(outcomes, "")
    printed = (
        Printed("99.9", "P.", window),
        Printed("0.8", "Q.", above),
        Printed("0.9", "Q."),
        Printed("0.7", "R.", above, is_above_chance=True),
        Printed("0.6", "R.", window, is_above_chance=True),
    )
    experiment = experiment._replace(cells=[experiment.cells[0]._replace(printed=printed)])
    entries = entries_of(experiment, outcomes)
    first_paper, second_paper, third_paper = printed_tables(entries).values()
    assert [line[3:] for line in third_paper.lines] == [("1.000", "0.7"), ("0.000", "0.6")]
    assert first_paper.lines == (("Parity", "C=2", "1", "50.00 %", "99.9"),)
    assert [line[3:] for line in second_paper.lines] == [("100 %", "0.8"), (percent(entries[0].mean), "0.9")]
    sections = matrix_page(experiment, outcomes, "stem").sections
    assert sections.index("P.") < sections.index("Q.")


def test_what_is_beyond_the_dense_range_is_on_the_page() -> None:
    result = REFUTED[0].result
    assert result is not None
    long, structured = (
        curve.model_copy(
            update={"points": tuple(p.model_copy(update={"num_correct": p.num_strings // 2}) for p in curve.points)}
        )
        for curve in (result.long, result.structured)
    )
    half = result.model_copy(update={"long": long, "structured": structured})
    outcomes = [REFUTED[0]._replace(result=half), REFUTED[3]]
    (entry,) = entries_of(experiment := matrix(outcomes, ""), outcomes)
    other = REFUTED[3].result
    assert other is not None
    assert other.structured.points
    assert entry.structured == pytest.approx((structured.min() + other.structured.min()) / 2)
    longest = max(length for length, _ in PLAN.long)
    at_longest = [curve.balanced().points[-1].accuracy for curve in (long, other.long)]
    assert long.points[-1].length == longest
    assert entry.at_longest == pytest.approx(sum(at_longest) / 2)
    assert entry.lowest_at_longest == pytest.approx(min(at_longest)) != entry.at_longest
    header, (line,), _ = column_tables(experiment, [entry])[""]
    cells = dict(zip(header, line, strict=True))
    assert cells[f"at {longest:,}"] == percent(entry.at_longest)
    assert cells["structured"] == percent(entry.structured)
    page = "".join(matrix_page(experiment, outcomes, "stem").sections)
    assert all(f"- *{name}*: " in page for name in matrix_csv([entry]).splitlines()[0].split(","))


def test_one_published_entry_is_shown_like_several() -> None:
    experiment = matrix(REFUTED, "")
    experiment = experiment._replace(cells=[experiment.cells[0]._replace(published="99.9")])
    (entry,) = entries_of(experiment, REFUTED)
    (table,) = printed_tables([entry]).values()
    assert table.lines == (("Parity", "C=2", "4", percent(entry.mean), "99.9"),)
    assert "99.9" in matrix_csv([entry])


def test_runs_that_diverged_are_one_line_with_its_way_out() -> None:
    outcomes = [
        outcome(seed, "proved")._replace(result=None, reason=f"Diverged: training diverged at step {step}: lower it")
        for seed, step in enumerate((7, 331))
    ]
    assert missing(matrix(outcomes, ""), outcomes) == [("Diverged: training diverged: lower it", "C=2 (2)")]


def test_the_share_of_strings_that_overflow_is_said() -> None:
    result = REFUTED[0].result
    assert result is not None
    first, *others = result.dense.points
    half = first.model_copy(update={"num_correct": 0, "num_overflowed": first.num_strings // 2})
    dense = result.dense.model_copy(update={"points": (half, *others)})
    outcomes = [REFUTED[0]._replace(result=result.model_copy(update={"dense": dense}))]
    (entry,) = entries_of(experiment := matrix(outcomes, ""), outcomes)
    assert entry.overflowed == half.num_overflowed / sum(point.num_strings for point in dense.points) > 0
    header, (line,), _ = column_tables(experiment, [entry])[""]
    assert dict(zip(header, line, strict=True))["overflow"].endswith(" %")


def test_where_there_are_parts_each_has_a_table() -> None:
    entries = entries_of(experiment := matrix(REFUTED, "one", "other"), REFUTED)
    tables = column_tables(experiment, entries)
    assert list(tables) == ["one", "other"]
    assert tables["one"] == tables["other"]
    ((column, _, rate, _),) = cost_table(experiment, entries).lines
    assert (column, rate) == ("C=2", f"{REFUTED[0].spec.recipe.optimizer.learning_rate:g}")
    spec = REFUTED[0].spec
    without_rate = spec._replace(
        recipe=spec.recipe.model_copy(update={"optimizer": OptimizerRecipe(name="baum-welch")})
    )
    cells = [cell._replace(specs=(without_rate,)) for cell in experiment.cells]
    others = [entry._replace(cell=cells[0]) for entry in entries]
    assert cost_table(experiment, others).lines[0][2] == "-"
    assert "### Other" in matrix_page(experiment, REFUTED, "stem").sections
    assert list(column_tables(experiment, [entry for entry in entries if entry.cell.part == "one"])) == ["one"]


@pytest.mark.parametrize("levels", [("proved", "extracted"), ("proved", "refuted")])
def test_dots_are_explained_where_there_are_some(levels: tuple[Level, Level]) -> None:
    outcomes = [outcome(seed, level) for seed, level in enumerate(levels)]
    page = matrix_page(matrix(outcomes, ""), outcomes, "stem")
    has_dots = "refuted" not in levels
    assert ("A dot shows " in "".join(page.sections)) == has_dots
    (chart,) = page.pictures.values()
    assert ("finished seeds" in str(chart)) == has_dots


def test_a_cell_whose_other_seeds_are_not_run_yet_counts_as_one_of_the_cells() -> None:
    outcomes = [outcome(0, "proved"), outcome(1, "proved")._replace(result=None, reason="not run yet")]
    experiment = matrix(outcomes, "")
    (entry,) = entries_of(experiment, outcomes)
    assert (entry.num_runs, entry.level) == (1, "proved")
    page = "".join(matrix_page(experiment, outcomes, "stem").sections)
    assert "1 of 2 runs are finished. All seeds are finished in 0 of 1 cells" in page
