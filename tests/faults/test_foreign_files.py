"""Files of a run that are another run's, cut back, missing, or no files: none is taken for the run's own."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.report.pages.run import read_measured
from lengthwise.runs.execute import Interrupted, execute
from lengthwise.runs.folder import RunFolder, load_run
from lengthwise.runs.progress import Progress
from lengthwise.runs.spec import RunSpec, make_spec, parse_assignments, read_settings

pytestmark = pytest.mark.unchecked

PLAN = EvaluationPlan(dense=(9, 10), dense_strings=4, long=(), structured=())
NESTED = 200_000 * "["


def spec_of(seed: int) -> RunSpec:
    settings = {
        "model": {"d_model": 8, "num_heads": 2},
        "train": {"steps": 12, "batch_size": 4, "max_length": 6, "checkpoint_every": 5},
    }
    return make_spec("parity", "regular-gpt", settings, seed=seed)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A folder with two finished runs, of seeds 0 and 1."""
    root = tmp_path_factory.mktemp("finished")
    for seed in (0, 1):
        execute(spec_of(seed), root, PLAN)
    return root


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory) -> Path:
    """The same two runs, stopped after seven steps; one of the last two is not in the checkpoint of step five."""
    root = tmp_path_factory.mktemp("interrupted")
    for seed in (0, 1):
        requests = iter(6 * [False] + [True])
        with pytest.raises(Interrupted, match="stopped at step 7 of 12"):
            execute(spec_of(seed), root, PLAN, stop_requested=lambda: next(requests))  # noqa: B023
    return root


def copy(root: Path, to: Path) -> tuple[Path, Path]:
    """Copies of two runs: the first one's folder and the second one's."""
    shutil.copytree(root, to / "runs")
    return to / "runs" / spec_of(0).id, to / "runs" / spec_of(1).id


@pytest.mark.parametrize("name", ["result.json", "run.json"])
def test_a_file_of_another_run_is_refused_and_made_again(name: str, runs: Path, tmp_path: Path) -> None:
    own, other = copy(runs, tmp_path)
    before = RunFolder(own).read_result()
    shutil.copy(other / name, own / name)
    with pytest.raises(ValueError, match=r"result\.json: expected the result of parity-.*, got the result of parity-"):
        read_measured(own)
    after = execute(spec_of(0), own.parent, PLAN)
    assert before is not None
    assert (after.run_id, after.curves) == (before.run_id, before.curves)
    assert read_measured(own).result == after


CHANGES: dict[str, Callable[[str, str], str]] = {
    "of another run": lambda own, other: other,
    "empty": lambda own, other: "",
    "halved": lambda own, other: own[: len(own) // 2],
    "without its first line": lambda own, other: own.partition("\n")[2],
    "with two lines exchanged": lambda own, other: "\n".join([*reversed(own.split("\n")[:2]), *own.split("\n")[2:]]),
    "with another number": lambda own, other: own.replace('"loss": 0', '"loss": 1', 1),
    "nested": lambda own, other: NESTED,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_journal_that_is_not_that_of_the_run_is_refused(
    change: str, runs: Path, interrupted: Path, tmp_path: Path
) -> None:
    for root in (runs, interrupted):
        own, other = copy(root, tmp_path / root.name)
        texts = [(folder / "metrics.jsonl").read_text() for folder in (own, other)]
        (own / "metrics.jsonl").write_text(CHANGES[change](*texts))
        with pytest.raises(
            ValueError, match=r"metrics\.jsonl: (expected|its contents)[^;]*; move the run's folder away"
        ):
            read_measured(own) if root is runs else execute(spec_of(0), own.parent, PLAN)


@pytest.mark.parametrize("damage", ["missing", "damaged", "of another run"])
def test_the_advice_for_a_checkpoint_helps(damage: str, runs: Path, tmp_path: Path) -> None:
    """Also of a finished run, whose result alone is no reason to train it again."""
    own, other = copy(runs, tmp_path)
    checkpoint = own / "checkpoint.safetensors"
    content = (other / checkpoint.name).read_bytes() if damage == "of another run" else checkpoint.read_bytes()[:99]
    checkpoint.unlink()
    if damage != "missing":
        checkpoint.write_bytes(content)
    with pytest.raises(ValueError, match=r"move .* away to train (the run )?again"):
        load_run(own)
    own.rename(tmp_path / "away")
    execute(spec_of(0), own.parent, PLAN)
    assert load_run(own).is_trained


def test_partial_weights_are_told_from_those_of_a_trained_run(runs: Path, interrupted: Path) -> None:
    assert load_run(runs / spec_of(0).id).is_trained
    assert not load_run(interrupted / spec_of(0).id).is_trained


@pytest.mark.parametrize("name", ["run.json", "result.json", "metrics.jsonl", "probes.jsonl"])
def test_a_folder_instead_of_a_file_is_named(name: str, runs: Path, tmp_path: Path) -> None:
    own, _ = copy(runs, tmp_path)
    (own / name).unlink()
    (own / name).mkdir()
    with pytest.raises(ValueError, match=rf"{name}: .*Is a directory"):
        read_measured(own)


def test_what_is_nested_too_deeply_is_named(runs: Path, tmp_path: Path) -> None:
    own, _ = copy(runs, tmp_path)
    (own / "run.json").write_text(NESTED)
    with pytest.raises(ValueError, match=r"run\.json: damaged file .*fewer nested levels"):
        load_run(own)
    (tmp_path / "run.toml").write_text(f"a = {NESTED}")
    with pytest.raises(ValueError, match=r"run\.toml: cannot be read as TOML: it is nested too deeply"):
        read_settings(tmp_path / "run.toml")
    with pytest.raises(ValueError, match=r"assignments: task\.transitions is nested too deeply"):
        parse_assignments([f"task.transitions={NESTED}"])


def test_a_finished_run_is_returned_without_writing(runs: Path, tmp_path: Path, monkeypatch) -> None:
    """As from a disk that is mounted for reading only."""
    own, _ = copy(runs, tmp_path)

    def write(*_: object) -> None:
        raise OSError("read-only")

    for name in ("locked", "_write"):
        monkeypatch.setattr(RunFolder, name, write)
    assert execute(spec_of(0), own.parent, PLAN) == RunFolder(own).read_result()


def test_a_listener_that_is_gone_ends_training_with_a_checkpoint(tmp_path: Path) -> None:
    """As in `lengthwise train ... | head -1`."""

    def closed(progress: Progress) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(Interrupted, match=r"cannot be reported .Broken pipe., at step 10 of 12; `lengthwise resume"):
        execute(spec_of(0), tmp_path, PLAN, closed)
    folder = RunFolder(tmp_path / spec_of(0).id)
    assert (folder.read_status().status, folder.read_status().step) == ("interrupted", 10)
    assert load_run(folder.path).steps_done == 10
