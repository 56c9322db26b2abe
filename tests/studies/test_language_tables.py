"""The tables on language: at the papers' sizes, what they take is said before anything is run."""

import re
from pathlib import Path

import pytest
from command import exit_code

from lengthwise.experiment import EXPERIMENTS, Experiment, Requirements, Scale
from lengthwise.models.base import outline
from lengthwise.studies.chi2023.experiments.language import PUBLISHED
from lengthwise.studies.text import GPT2_VOCAB_SIZE
from lengthwise.training.requirements import check_memory


@pytest.fixture(autouse=True)
def no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LENGTHWISE_TEXT", raising=False)


def test_nets_of_chi_et_al_have_the_papers_sizes() -> None:
    experiment = EXPERIMENTS["regular-gpt/table-3"]("paper")
    cells = {cell.column: cell for cell in experiment.cells}
    assert list(cells) == list(PUBLISHED)
    assert experiment.plan.chunk_lengths == (512, 1_024, 2_048, 4_096, 8_192)
    for name, cell in cells.items():
        assert (cell.row, cell.published, len(cell.specs)) == ("trained at 512", PUBLISHED[name], 3)
        model = cell.specs[0].to_json()["model"]
        assert (model["d_model"], model["num_heads"]) == (768, 12)
        if "/" in name:
            assert f"{model['chunk_size']}/{model['thickness']}" == name
    assert {name for pair in experiment.scoring.compared for name in pair} <= set(cells)


def test_nets_of_xu_and_sato_have_the_papers_sizes() -> None:
    cells = EXPERIMENTS["looped/table-3"]("paper").cells
    assert {cell.row for cell in cells} == {"trained at 1024"}
    models = [cell.specs[0].to_json()["model"] for cell in cells[1:]]
    assert {(model["d_model"], model["num_heads"]) for model in models} == {(2_048, 16)}
    variants = {(model["variant"], model["num_loops"]) for model in models}
    assert variants == {(f"{kind}-language", loops) for kind in ("timestep", "code") for loops in (1, 3, 6)}


class GPT2Vocabulary:
    symbols = classes = tuple(map(str, range(GPT2_VOCAB_SIZE)))


@pytest.mark.parametrize(
    ("name", "millions"), [("regular-gpt/table-3", {81, 123}), ("looped/table-3", {124, 155, 176})]
)
def test_nets_of_that_size_are_accepted_with_the_vocabulary_of_gpt_2(name: str, millions: set[int]) -> None:
    """A text that gives as many tokens is too large for a test; the tokens of the specifications are bytes."""
    sizes = set()
    for spec in EXPERIMENTS[name]("paper").specs:
        model = outline(spec.model_name, spec.model_config, GPT2Vocabulary())
        check_memory(model, spec.recipe)
        sizes.add(sum(parameter.numel() for parameter in model.parameters()) // 10**6)
    assert sizes == millions


@pytest.mark.parametrize("name", ["regular-gpt/table-3", "looped/table-3", "regular-gpt/receptive-field"])
def test_without_a_text_both_what_is_missing_and_what_runs_take_is_said(name: str, tmp_path: Path, capsys) -> None:
    folders = ["--runs", str(tmp_path / "runs"), "--pages", str(tmp_path / "pages")]
    assert exit_code("reproduce", name, "--scale", "paper", *folders) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert re.search(r"LENGTHWISE_TEXT: expected .* use scale smoke\. This trains \d+ nets.* GPU .* --device", message)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_no_text_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LENGTHWISE_TEXT", str(tmp_path))
    with pytest.raises(ValueError, match=rf"^LENGTHWISE_TEXT: .* got {tmp_path} without train\.txt; give another"):
        EXPERIMENTS["regular-gpt/table-3"]("small")


@pytest.mark.usefixtures("runs_in_this_process")
def test_what_runs_take_is_said_before_they_start(tmp_path: Path, monkeypatch, capsys) -> None:
    def made(scale: Scale) -> Experiment:
        experiment = EXPERIMENTS["regular-gpt/ours"](scale)
        return experiment._replace(cells=experiment.cells[:1], requires=Requirements(needs="This takes a moment."))

    monkeypatch.setitem(EXPERIMENTS._members, "ours", made)
    folders = ["--runs", str(tmp_path / "runs"), "--pages", str(tmp_path / "pages"), "--workers", "1"]
    assert exit_code("reproduce", "ours", "--scale", "smoke", "--rows", "Even Pairs", *folders) == 0
    assert capsys.readouterr().out.startswith("This takes a moment.")
