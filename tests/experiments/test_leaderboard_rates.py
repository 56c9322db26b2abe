"""The learning rates of the leaderboard are those that its search chose."""

from pathlib import Path

from lengthwise.experiments.leaderboard import ENTRANTS, RATES, ROWS, leaderboard_rates
from lengthwise.experiments.leaderboard_published import PUBLISHED
from lengthwise.runs.records import read_records

RECORDS = Path(__file__).parents[2] / "docs/results/records/leaderboard-rates.jsonl.gz"


def test_each_model_has_the_rate_of_the_lowest_training_loss_on_record() -> None:
    losses = {result.run_id: result.final_loss for result in read_records(RECORDS)}
    for cell, entrant in zip(leaderboard_rates().cells, ENTRANTS, strict=True):
        trained = [(losses[s.id], rate) for s, rate in zip(cell.specs, RATES, strict=True) if s.id in losses]
        assert len(trained) >= 2, "few diverge"
        assert min(trained)[1] == entrant.rate, entrant.column


def test_published_numbers_are_of_cells_that_exist() -> None:
    columns = {entrant.column for entrant in ENTRANTS}
    rows = {language.row for language in ROWS}
    assert all(row in rows and column in columns for row, column in PUBLISHED)
    assert len(columns) == len(ENTRANTS)


def test_numbers_of_different_protocols_are_told_apart() -> None:
    """Chi et al. have a + in front of arithmetic, others an = at its end; several papers share a cell."""
    (chi,) = PUBLISHED["Arithmetic, leading +", "Transformer"]
    assert (chi.entry, chi.window) == ("21.9 / 20.3", None)
    for (row, _), several in PUBLISHED.items():
        for printed in several:
            tested = "41-500" if printed.window is None else f"{printed.window[0]}-{printed.window[1]}"
            assert tested.replace("41-256", "40-256") in printed.protocol
            assert (printed.window == (51, 100)) == row.startswith(("D_", "Tomita"))
            if "Arithmetic" in row:
                assert row in ("Arithmetic, leading +", "Arithmetic, = at the end")
                assert printed.protocol.startswith("Chi et al.") == (row == "Arithmetic, leading +")
    assert [p.window for p in PUBLISHED["Parity", "DeltaNet [-1, 1]"]] == [(41, 256)] * 2
