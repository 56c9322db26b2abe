"""Settings of runs from presets, files and assignments, and one sentence for each mistake in them."""

from pathlib import Path

import pytest

from lengthwise.runs.spec import make_spec, merge, parse_assignments, read_settings


def test_settings_merge_preset_file_and_assignments(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[train]\nsteps = 7\nbatch_size = 3\n[model]\nd_model = 8\nnum_heads = 2\n")
    settings = merge(read_settings(tmp_path / "run.toml"), parse_assignments(["train.steps=9", "task.p=0.25"]))
    spec = make_spec("parity", "regular-gpt", settings, preset="chi2023")
    assert (spec.recipe.steps, spec.recipe.batch_size, spec.recipe.optimizer.name) == (9, 3, "adam")
    assert spec.model_config.d_model == 8
    assert spec.model_config.variant == "code"
    assert spec.task.p == 0.25


@pytest.mark.parametrize(
    ("task", "model", "settings", "preset", "sentence"),
    [
        ("partiy", "regular-gpt", {}, "fast", "unknown task 'partiy'; did you mean 'parity'?"),
        ("parity", "regulargpt", {}, "fast", "unknown model 'regulargpt'; did you mean 'regular-gpt'?"),
        ("parity", "regular-gpt", {}, "fats", "unknown preset 'fats'; did you mean 'fast'?"),
        ("parity", "regular-gpt", {"trian": {}}, "fast", "trian: no such section; did you mean 'train'?"),
        (
            "parity",
            "regular-gpt",
            {"seed": 3},
            "fast",
            "seed: not a section; give it as a separate argument, not in the settings",
        ),
        (
            "parity",
            "regular-gpt",
            {"train": {"optimizer": {"betas": [0.9, 2]}}},
            "fast",
            "train.optimizer.betas.1: expected",
        ),
        ("parity", "regular-gpt", {"train": 3}, "fast", "train: expected a section of settings, got 3"),
        ("parity", "regular-gpt", {"task": {"q": 1}}, "fast", "task.q: no such setting"),
        (
            "parity",
            "regular-gpt",
            {"model": {"chunk_size": 1}},
            "fast",
            "model.chunk_size: expected a number greater than or equal",
        ),
        ("bounded-dyck", "regular-gpt", {"train": {"max_length": 1}}, "fast", "length between 1 and 1 at which every"),
    ],
)
def test_bad_requests_are_one_sentence(task, model, settings, preset, sentence) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the sentence is compared below
        make_spec(task, model, settings, preset=preset)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ValueError, match=r"task.q") as caught:
        make_spec("parity", "regular-gpt", {"task": {"q": 1}, "train": {"steps": 0, "batch_sz": 4}}, seed=-1)
    assert len(str(caught.value).splitlines()) == 4


@pytest.mark.parametrize("word", ["steps=5", "train.steps", "=3", "train.=3", ".steps=3"])
def test_bad_assignments_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"assignments: expected section.key=value"):
        parse_assignments([word])


@pytest.mark.parametrize("content", [b"[train\n", b"\xff\xfe", b"steps == 3"])
def test_bad_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.toml").write_bytes(content)
    with pytest.raises(ValueError, match=r"run.toml: cannot be read as TOML"):
        read_settings(tmp_path / "run.toml")
    (tmp_path / "blank.toml").write_text("\n")
    for name, got in (("none.toml", "found no such file"), ("blank.toml", "got a blank file"), ("", "got a folder")):
        with pytest.raises(ValueError, match=rf"{name}: expected a TOML file with settings, {got}"):
            read_settings(tmp_path / name)
