"""What every registered benchmark promises, whatever its name; the experiments' contract runs its runs."""

import re
from functools import cache

import pytest

from lengthwise.experiment import EXPERIMENTS, Printed
from lengthwise.models.base import MODELS
from lengthwise.studies.benchmarks.benchmark import BENCHMARKS, Benchmark
from lengthwise.studies.leaderboard.experiments.leaderboard import Entrant

MINE = Entrant("mine", "gru", {}, 1e-3)


@pytest.fixture(params=list(BENCHMARKS))
def name(request) -> str:
    return request.param


@cache
def benchmark_of(name: str) -> Benchmark:
    return BENCHMARKS[name]()


def published_entries(benchmark: Benchmark) -> list[Printed]:
    return [printed for part in benchmark.published.values() for cell in part.values() for printed in cell]


def test_it_is_described_and_cites_its_source(name: str) -> None:
    benchmark = benchmark_of(name)
    assert benchmark.title
    assert benchmark.source
    assert benchmark.protocol
    assert all(sentence.endswith(".") for sentence in benchmark.protocol)
    entries = benchmark.bibtex.strip().split("\n\n")
    for entry in entries:
        assert re.fullmatch(r"@\w+\{[\w:-]+,\n(  \w+ = \{.+\},?\n)+\}", entry), entry
        assert {"title", "author", "year"} <= set(re.findall(r"^  (\w+) =", entry, re.MULTILINE))


def test_the_papers_that_its_published_entries_cite_are_in_its_bibtex(name: str) -> None:
    benchmark = benchmark_of(name)
    keys = set(re.findall(r"^@\w+\{(.+),$", benchmark.bibtex, re.MULTILINE))
    assert {printed.citation for printed in published_entries(benchmark)} <= {*keys, ""}


def test_its_own_models_are_reproduced_under_the_name_of_its_experiment(name: str) -> None:
    """Recorded results belong to the runs that the command would run."""
    benchmark = benchmark_of(name)
    assert benchmark.entrants
    assert {entrant.model for entrant in benchmark.entrants} <= set(MODELS)
    for scale in ("smoke", "small"):
        recorded = EXPERIMENTS[benchmark.experiment](scale)
        assert [spec.id for spec in recorded.specs] == [
            spec.id for spec in benchmark.make(benchmark.entrants, scale).specs
        ]


def test_a_further_model_gets_a_column_of_its_own_and_changes_no_other(name: str) -> None:
    benchmark = benchmark_of(name)
    ours = benchmark.make(benchmark.entrants, "smoke")
    both = benchmark.make([*benchmark.entrants, MINE], "smoke")
    assert both.select(columns=MINE.column).specs == benchmark.make([MINE], "smoke").specs
    assert {cell.row for cell in both.select(columns=MINE.column).cells} == {cell.row for cell in ours.cells}
    assert [cell for cell in both.cells if cell.column != MINE.column] == list(ours.cells)
    assert both.plan == ours.plan
    assert {cell.column for cell in ours.cells} == {entrant.column for entrant in benchmark.entrants}


def test_published_entries_are_of_its_tasks_and_have_a_protocol(name: str) -> None:
    benchmark = benchmark_of(name)
    experiment = benchmark.make(benchmark.entrants, "small")
    tasks = {(cell.part, cell.row) for cell in experiment.cells}
    assert {(part, row) for part, entries in benchmark.published.items() for row, _ in entries} <= tasks
    for printed in published_entries(benchmark):
        assert re.search(r"\d", printed.entry)
        assert printed.protocol.endswith(".")
    for cell in experiment.cells:
        assert cell.printed == benchmark.published.get(cell.part, {}).get((cell.row, cell.column), ())


def test_rows_are_selected_as_they_are_typed(name: str) -> None:
    experiment = benchmark_of(name).make([MINE], "smoke")
    rows = list(dict.fromkeys(cell.row for cell in experiment.cells))
    for row in rows:
        for typed in (row, row.lower(), re.sub(r"[^a-z0-9]+", "-", row.lower()).strip("-")):
            assert {cell.row for cell in experiment.select(typed).cells} == {row}
    assert {cell.row for cell in experiment.select(",".join(rows)).cells} == {*rows}
    with pytest.raises(ValueError, match=r"^rows: expected names of rows, got 'none of these'"):
        experiment.select("none of these")


def test_a_search_for_rates_trains_only_the_given_models(name: str) -> None:
    benchmark = benchmark_of(name)
    if benchmark.rates is not None:
        search = benchmark.rates([MINE], "smoke")
        rates = [spec.recipe.optimizer.learning_rate for spec in search.specs]
        assert {spec.model_name for spec in search.specs} == {MINE.model}
        assert len(set(rates)) == len(rates) > 1
