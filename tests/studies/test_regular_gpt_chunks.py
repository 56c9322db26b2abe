"""Chunk sizes chosen by pilots: what counts, and that records are enough."""

from pathlib import Path

import pytest
from command import exit_code

from lengthwise.experiment import EXPERIMENTS
from lengthwise.studies.chi2023.experiments.chunks import Choice, Chunks, chosen_size
from lengthwise.studies.chi2023.pages.chunks import chunks_page


def reproduce(folder: Path, *more: str) -> int:
    return exit_code("reproduce", "regular-gpt/chunks", "--scale", "smoke", "--pages", str(folder), *more)


def test_the_page_and_its_choices_are_made_of_records_alone(tmp_path: Path) -> None:
    assert reproduce(tmp_path, "--runs", str(tmp_path / "runs"), "--workers", "1") == 0
    page = tmp_path / "regular-gpt-chunks-smoke.md"
    whole = page.read_text()
    assert "| C=4, then 2 | 5 | 8 | 13 |" in whole
    assert "| Even Pairs | 0 | 0." in whole
    page.unlink()
    assert reproduce(tmp_path, "--runs", str(tmp_path / "other"), "--recorded", "--page-only") == 0
    assert page.read_text() == whole


def test_the_lowest_training_loss_chooses_and_the_accuracy_does_not() -> None:
    choice = Choice("Parity", 3, {2: 0.5, 3: 0.01, 4: 0.02}, 6.0, {2: 1.0, 3: 0.5, 4: 0.75}, {2: 9.0, 3: 8.0, 4: 7.0})
    assert choice.size == 3
    assert chosen_size({4: 0.5, 2: 0.5}) == 2
    page = chunks_page(Chunks({"C=2": {40: 6, 500: 9, 10_000: 14}}, (choice,)), "page")
    text = "\n".join(page.sections).replace("\N{NO-BREAK SPACE}", " ")
    assert "| Parity | 3 | 0.5 | 0.01 | 0.02 | C=3 | 50.00 % | 100 % | 8 | 6 |" in text
    headline = page.headline.replace("\N{NO-BREAK SPACE}", " ")
    assert "the mean accuracy over 1 nets on 1 task is 50.00 %." in headline
    assert (
        "With a fixed chunk size, the mean accuracy is 100 % with C=2, 50.00 % with C=3 and 75.00 % with C=4."
        in headline
    )
    recorded = Path(__file__).parents[2] / "docs" / "results" / "regular-gpt-chunks.md"
    _, first, *_ = recorded.read_text(encoding="utf-8").split("\n\n")
    assert headline.partition(" over ")[0] == first.partition(" over ")[0]


def test_a_choice_without_its_net_shows_the_losses_only() -> None:
    choice = Choice("Parity", 0, {3: 0.1}, 2.0, {}, {})
    text = "\n".join(chunks_page(Chunks({}, (choice,)), "page").sections)
    assert "| Parity | 0 | - | 0.1 | - | C=3 | - | - | - | 2 |" in text


@pytest.mark.parametrize("scale", ["smoke", "small"])
def test_pilots_differ_from_nets_in_their_steps_alone(scale: str) -> None:
    cells = {(cell.row, cell.column): cell for cell in EXPERIMENTS["regular-gpt/chunks"](scale).cells}
    pilots = [(row, column) for row, column in cells if column.startswith("pilot, ")]
    assert len(pilots) == (3 if scale == "smoke" else 12)
    for row, column in pilots:
        nets = cells[row, column.removeprefix("pilot, ")].specs
        for pilot, net in zip(cells[row, column].specs, nets, strict=True):
            steps = {"steps": net.recipe.steps, "checkpoint_every": net.recipe.checkpoint_every}
            assert pilot._replace(recipe=pilot.recipe.model_copy(update=steps)).id == net.id
            assert scale == "smoke" or pilot.recipe.steps < net.recipe.steps / 5
