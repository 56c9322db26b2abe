"""Several processes train one model: what one process would, and what they refuse."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from two_ranks import RaggedParity, recipe_of, run_together, say_other_versions, train_together, trained

from lengthwise.models import make_model
from lengthwise.tasks import make_task
from lengthwise.training.loop import TrainingState
from lengthwise.training.parallel import own_device, parse_parallel
from lengthwise.training.ranks import RankEnded, Ranks, check_ranks, rank_errors
from lengthwise.training.recipe import Recipe, StatesRecipe

KINDS = ["ddp", "fsdp"]


def check_is_what_one_process_does(num_steps: int, folder: Path) -> None:
    recipes = {supervision: recipe_of(supervision, num_steps) for supervision in ("last", "prefix")}
    run_together(train_together, KINDS, recipes, folder)
    for name, recipe in recipes.items():
        alone = trained(recipe, folder)
        for kind in KINDS:
            together = load_file(folder / f"{kind}-{name}.safetensors")
            assert together.keys() == alone.keys()
            for tensor in alone:
                torch.testing.assert_close(
                    together[tensor], alone[tensor], rtol=1e-6, atol=1e-6, msg=f"{kind} {tensor}"
                )
    assert not list(folder.glob(".*")), "shards are left"


@pytest.mark.unchecked
def test_two_processes_do_what_one_does(tmp_path: Path) -> None:
    check_is_what_one_process_does(10, tmp_path)


@pytest.mark.slow
def test_two_processes_do_what_one_does_for_long(tmp_path: Path) -> None:
    check_is_what_one_process_does(50, tmp_path)


def test_ranks_have_different_numbers_of_targets() -> None:
    """Else the tests above would not see that a loss is divided by them."""
    batch = RaggedParity().sample(8, 8, torch.Generator().manual_seed(0))
    one, other = (int(Ranks(rank, 2).rows(batch.supervised).sum()) for rank in range(2))
    assert one != other


@pytest.mark.slow
def test_processes_of_other_versions_are_refused(tmp_path: Path) -> None:
    run_together(say_other_versions, tmp_path)
    for rank in "01":
        message = (tmp_path / rank).read_text(encoding="utf-8")
        expected = "versions: expected the same lengthwise and torch in all processes, got lengthwise 0.0, torch "
        assert message.startswith(expected)
        assert message.endswith("install one version on all machines")


@pytest.mark.parametrize(
    ("changes", "ranks", "sentence"),
    [
        (
            {"batch_size": 10},
            Ranks(0, 4),
            r"batch_size: expected a multiple of the number of processes \(4\), got 10; ",
        ),
        ({"states": StatesRecipe()}, Ranks(0, 2), r"train.states: expected no value with 2 processes"),
        (
            {"batch_size": 4},
            Ranks(1, 4),
            r"train.late_consistency: .* 0 for batches with fewer than 8 strings in 4",
        ),
        ({}, Ranks(0, 2, "fsdp"), r"train.optimizer.name: expected 'adamw' or 'adam' with fsdp, because other"),
    ],
)
def test_what_several_processes_cannot_do_is_refused(changes: dict[str, object], ranks: Ranks, sentence: str) -> None:
    recipe = Recipe(**changes)
    with pytest.raises(ValueError, match=sentence):
        check_ranks(recipe, ranks)
    model = make_model("regular-gpt", make_task("parity"))
    with pytest.raises(ValueError, match=sentence):
        TrainingState(model, recipe, make_task("parity"), ranks)
    check_ranks(recipe, Ranks())


def test_how_processes_share_a_run_is_for_several_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_parallel(None) == "ddp"
    with pytest.raises(ValueError, match="parallel: expected no value with one process, got 'fsdp'; start several p"):
        parse_parallel("fsdp")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert parse_parallel("fsdp") == "fsdp"
    with pytest.raises(ValueError, match="parallel: expected one of ddp, fsdp, got 'fsdb'; did you mean 'fsdp'"):
        parse_parallel("fsdb")


def test_each_process_has_a_gpu_of_its_own_or_says_that_there_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setenv("LOCAL_RANK", "2")
    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    with pytest.raises(
        ValueError, match=r"device: expected a GPU for each process .*, got 2 GPUs for 3 processes or more"
    ):
        own_device("cuda")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert own_device("cuda") == torch.device("cuda", 1)
    assert chosen == [1]


def test_a_process_that_is_gone_is_one_sentence() -> None:
    with (
        pytest.raises(RankEnded, match="another process of this run has ended, or does not answer"),
        rank_errors(Ranks(0, 2)),
    ):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4242")
    with pytest.raises(RuntimeError, match="shapes"), rank_errors(Ranks(0, 2)):
        raise RuntimeError("shapes do not fit")
