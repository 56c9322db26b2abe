"""Published tables in files, and what the benchmarks' protocols demand of the runs."""

from pathlib import Path

import pytest

from lengthwise.experiment import Printed
from lengthwise.studies.benchmarks.benchmark import read_published, with_published
from lengthwise.studies.benchmarks.experiments.flare import flare_benchmark
from lengthwise.studies.benchmarks.experiments.mlregtest_nets import TESTS, mlregtest
from lengthwise.studies.benchmarks.experiments.pd_ssm import PUBLISHED, ROWS, pd_ssm

TABLE = """
source = "Me (2026), Table 1"
protocol = "percent. Trained at 1-40 symbols."
window = [41, 500]
rows = ["Parity", "Even Pairs"]
[models]
LSTM = ["100", ""]
"""


def read(tmp_path: Path, text: str):
    path = tmp_path / "table.toml"
    path.write_text(text)
    return read_published(path)


def test_a_published_table_has_an_entry_for_each_number(tmp_path: Path) -> None:
    protocol = "Me (2026), Table 1: percent. Trained at 1-40 symbols."
    assert read(tmp_path, TABLE) == ("", {("Parity", "LSTM"): (Printed("100", protocol, (41, 500)),)})


def test_a_table_of_ones_own_joins_the_published_one(tmp_path: Path) -> None:
    """Its entries come after those of the package, and the benchmark of the package stays as it was."""
    path = tmp_path / "table.toml"
    path.write_text(TABLE.replace('"Even Pairs"', '"mean"').replace('""', '"99"'))
    before = pd_ssm()
    both = with_published(before, path, "small").published[""]
    first, second = both["Parity", "LSTM"]
    assert (first, second.entry) == (PUBLISHED["Parity", "LSTM"][0], "100")
    assert both["mean", "LSTM"][0].entry == "99"
    assert len(both) == len(PUBLISHED) + 1
    assert before.published == {"": PUBLISHED}


def test_a_table_names_one_of_several_parts(tmp_path: Path) -> None:
    path = tmp_path / "table.toml"
    path.write_text(TABLE.replace('["Parity", "Even Pairs"]', '["mean"]').replace('["100", ""]', '["77.5"]'))
    with pytest.raises(ValueError, match=r"table.toml: part: expected one of short random strings .*, got ''"):
        with_published(mlregtest(), path, "smoke")
    part = [*TESTS][-1]
    path.write_text(f'part = "{part}"\n{path.read_text()}')
    assert [*with_published(mlregtest(), path, "smoke").published] == [part]


def test_a_table_with_a_row_that_is_no_task_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "table.toml"
    path.write_text(TABLE.replace('"Parity"', '"Paritty"'))
    with pytest.raises(ValueError, match=r"table.toml: rows: expected one of mean, .*; did you mean 'Parity'\?"):
        with_published(pd_ssm(), path, "small")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["100", ""]', '["100"]', "models.LSTM: expected 2 entries, one for each of `rows`, got 1; write an empty"),
        ("window =", "windows =", r"window: expected a value, got none; give one\nwindows: no such setting"),
        ('["100", ""]', "[100, 90]", r"models.LSTM.0: expected a valid string, got 100"),
        ("[41, 500]", "[41]", r"window\.1: expected a value"),
    ],
)
def test_a_faulty_table_is_rejected(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"table.toml: {message}"):
        read(tmp_path, TABLE.replace(old, new))


def test_the_protocol_of_pd_ssm_is_the_published_one() -> None:
    """Every model by gradients, at both scales: lengths 3 to 40 with equal frequency, final answers, five seeds."""
    benchmark = pd_ssm()
    for scale, steps in (("small", 4_000), ("paper", 100_001)):
        for cell in benchmark.make(benchmark.entrants[1:], scale).cells:
            assert [spec.seed for spec in cell.specs] == [0, 1, 2, 3, 4]
            recipe = cell.specs[0].recipe
            assert (recipe.min_length, recipe.max_length, recipe.length_sampling) == (3, 40, "uniform")
            assert (recipe.supervision, recipe.steps) == ("last", steps)


def test_the_published_table_of_pd_ssm_has_its_printed_mean() -> None:
    """The paper prints 98.8 for the mean of the four tasks, which checks the typed row."""
    entries = [float(PUBLISHED[language.row, "PD-SSM"][0].entry) for language in ROWS]
    assert sum(entries) / 4 == pytest.approx(98.8, abs=0.05)
    assert len(PUBLISHED) == 17 * 4


def test_nets_of_flare_are_trained_on_lengths_of_the_published_training_set() -> None:
    """Lengths 1 to 40, equally frequent; the published set also has the empty string, which nets do not read."""
    benchmark = flare_benchmark()
    for cell in benchmark.make(benchmark.entrants[1:], "small").cells:
        recipe = cell.specs[0].recipe
        assert (recipe.min_length, recipe.max_length, recipe.length_sampling) == (1, 40, "uniform")
