"""The learning rates of the leaderboard are those that its search chose."""

from pathlib import Path

import pytest
import torch

from lengthwise.experiment import EXPERIMENTS
from lengthwise.runs.records import read_records
from lengthwise.studies.leaderboard.experiments.leaderboard import (
    BATCH_SIZE,
    ENTRANTS,
    EVERY,
    LENGTHS_NOTE,
    MEAN_LENGTH,
    RATES,
    ROWS,
    SEEDS,
    STEPS,
    leaderboard_rates,
    specs_of,
)
from lengthwise.studies.leaderboard.experiments.published import NOTES, PUBLISHED
from lengthwise.tasks.base import SymbolTask

RECORDS = Path(__file__).parents[2] / "docs/results/records/leaderboard-rates.jsonl.gz"


def test_each_model_has_the_rate_of_the_lowest_training_loss_on_record() -> None:
    losses = {result.run_id: result.final_loss for result in read_records(RECORDS)}
    entrants = [entrant for entrant in ENTRANTS if entrant.rate is not None]
    for cell, entrant in zip(leaderboard_rates().cells, entrants, strict=True):
        trained = [(losses[s.id], rate) for s, rate in zip(cell.specs, RATES, strict=True) if s.id in losses]
        assert len(trained) == len(RATES)
        assert min(trained)[1] == entrant.rate, entrant.column


def test_published_numbers_are_of_cells_that_exist() -> None:
    columns = {entrant.column for entrant in ENTRANTS}
    rows = {language.row for language in ROWS}
    assert all(row in rows and column in columns for row, column in PUBLISHED)
    assert len(columns) == len(ENTRANTS)


TESTED = {None: "41-500 in the test", (51, 100): "51-100 in the test", (41, 256): "40-256 in the test"}
"""What a protocol says of its lengths, by those of ours that it has."""


def test_numbers_of_different_protocols_are_told_apart() -> None:
    """Chi et al. have a + in front of arithmetic, others an = at its end; several papers share a cell."""
    (chi,) = PUBLISHED["Arithmetic, leading +", "Transformer"]
    assert (chi.entry, chi.window) == ("21.9 / 20.3", None)
    for (row, _), several in PUBLISHED.items():
        for printed in several:
            assert TESTED[printed.window] in printed.protocol
            assert (printed.window == (51, 100)) == row.startswith(("D_", "Tomita"))
            if "Arithmetic" in row:
                assert row in ("Arithmetic, leading +", "Arithmetic, = at the end")
                assert printed.protocol.startswith("Chi et al.") == (row == "Arithmetic, leading +")
                others = ("Grazzi et al.", "Terzić et al.")
                assert printed.protocol.startswith(others) == (row == "Arithmetic, = at the end")
    of_parity = PUBLISHED["Parity", "DeltaNet [-1, 1]"]
    assert [printed.window for printed in of_parity] == [(41, 256)] * 2
    assert all("3-40 symbols in training, and 40-256 in the test" in printed.protocol for printed in of_parity)


@pytest.mark.parametrize("name", ["leaderboard", "transformers/positions"])
def test_lengths_so_far_apart_hide_what_the_page_says_they_hide(name: str) -> None:
    experiment = EXPERIMENTS[name]()
    assert LENGTHS_NOTE in experiment.notes
    (task,) = {cell.specs[0].task for cell in experiment.cells if cell.row == "Tomita 6"}
    assert isinstance(task, SymbolTask)
    low, high = experiment.plan.dense
    lengths = [low + EVERY * index for index in range((high - low) // EVERY + 1)]
    assert experiment.plan.dense_every == EVERY
    assert {length % 3 for length in lengths} == {2}
    random = torch.Generator().manual_seed(0)
    is_right = {}
    for length in (41, 50, 497, 42, 43):
        batch = task.sample(200, length, random)
        counted = (batch.inputs == 1).sum(1) % 3 == 1
        is_right[length] = bool((counted.long() == batch.targets[:, -1]).all())
    assert is_right == {41: True, 50: True, 497: True, 42: False, 43: False}


def test_the_leaderboard_says_which_form_of_low_rank_it_measured() -> None:
    (entrant,) = (entrant for entrant in ENTRANTS if entrant.column == "linear CDE, low rank")
    assert entrant.settings == {"structure": "low-rank"}
    (note,) = (note for note in NOTES if "DPLR-SLiCE" in note)
    assert "`low-rank-product`; it was not measured" in note
    assert note in RECORDS.parents[1].joinpath("leaderboard.md").read_text(encoding="utf-8")


def test_nets_without_a_rate_read_no_more_symbols_than_others() -> None:
    budget = STEPS * BATCH_SIZE * MEAN_LENGTH
    (entrant,) = (entrant for entrant in ENTRANTS if entrant.rate is None)
    # With last answers, lengths grow from 1 to 20, and the newest length is drawn three times as often as others.
    max_mean_length = (sum(range(1, 21)) + 2 * 20) / 22
    for supervision, mean_length in (("prefix", 39.5), ("last", max_mean_length)):
        (spec,) = specs_of(entrant, ROWS[0], supervision, "small", SEEDS[:1])
        assert spec.recipe.steps * spec.recipe.batch_size * mean_length <= budget
        assert spec.recipe.supervision == supervision
