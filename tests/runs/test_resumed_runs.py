"""Runs that stop and continue, alone or in a pool, equal runs that were never interrupted."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_runs import PLAN, small_spec

from lengthwise.runs import execute as execute_module
from lengthwise.runs.execute import Interrupted, execute
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.pools.local import LocalPool
from lengthwise.runs.pools.sweep import execute_all
from lengthwise.runs.progress import Progress
from lengthwise.runs.spec import RunSpec


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, which tests only read."""
    root = tmp_path_factory.mktemp("undisturbed")
    execute(small_spec(), root, PLAN)
    return root


def contents(root: Path, spec: RunSpec) -> tuple[dict[str, torch.Tensor], str, list]:
    folder = RunFolder(root / spec.id)
    result = folder.read_result()
    assert result is not None
    return load_file(folder.checkpoint), folder.metrics.path.read_text(), list(result.curves)


def assert_equal_runs(one: Path, other: Path, spec: RunSpec) -> None:
    (weights, metrics, curves), (weights_, metrics_, curves_) = contents(one, spec), contents(other, spec)
    assert weights.keys() == weights_.keys()
    assert all(torch.equal(weights[name], weights_[name]) for name in weights)
    assert metrics == metrics_
    assert curves == curves_


class StopAt:
    """A listener that asks for a stop when training reports a step."""

    def __init__(self, step: int) -> None:
        self.step, self.requested = step, False

    def __call__(self, progress: Progress) -> None:
        self.requested |= progress.phase == "training" and progress.done >= self.step


@pytest.mark.parametrize("stops", [*(pytest.param([step], marks=pytest.mark.slow) for step in (10, 20)), [10, 20]])
def test_an_interrupted_and_resumed_run_equals_the_uninterrupted_one(
    tmp_path: Path, undisturbed: Path, stops: list[int]
) -> None:
    spec = small_spec()
    for stop in stops:
        listener = StopAt(stop)
        with pytest.raises(Interrupted, match=f"stopped at step {stop} of 25"):
            execute(spec, tmp_path / "parts", PLAN, listener, lambda: listener.requested)  # noqa: B023
        assert RunFolder(tmp_path / "parts" / spec.id).read_status().status == "interrupted"
    execute(spec, tmp_path / "parts", PLAN)
    assert_equal_runs(undisturbed, tmp_path / "parts", spec)


def test_a_run_that_dies_between_checkpoints_resumes_from_the_last(
    tmp_path: Path, undisturbed: Path, monkeypatch
) -> None:
    """Metrics written after the checkpoint are dropped and written again."""
    spec = small_spec()

    def die(progress: Progress) -> None:
        if progress.done >= 20:
            raise MemoryError

    monkeypatch.setattr(execute_module, "save_checkpoint", _saving_only_at(10))
    with pytest.raises(MemoryError):
        execute(spec, tmp_path / "parts", PLAN, die)
    monkeypatch.undo()
    folder = RunFolder(tmp_path / "parts" / spec.id)
    with folder.metrics.path.open("a") as file:
        file.write('{"step": 21, "lo')
    draft = folder.path / f".{folder.checkpoint.name}.another.7"  # as of a process that was killed while it wrote
    draft.write_bytes(b"half")
    execute(spec, tmp_path / "parts", PLAN)
    assert_equal_runs(undisturbed, tmp_path / "parts", spec)
    assert not draft.exists()


def _saving_only_at(step: int):
    save = execute_module.save_checkpoint

    def save_once(state, path, fingerprint, notes) -> None:
        if state.step == step:
            save(state, path, fingerprint, notes)

    return save_once


def test_a_damaged_state_file_stops_nothing(tmp_path: Path) -> None:
    spec = small_spec()
    listener = StopAt(10)
    with pytest.raises(Interrupted):
        execute(spec, tmp_path, PLAN, listener, lambda: listener.requested)
    (tmp_path / spec.id / "state.json").write_text("{")
    assert execute(spec, tmp_path, PLAN).training.step == 25


def test_the_pool_gives_the_same_bits_as_one_process(tmp_path: Path) -> None:
    specs, seen = [small_spec(0), small_spec(1)], []
    with LocalPool(2) as pool:
        outcomes = execute_all(specs, tmp_path / "pool", [PLAN] * len(specs), seen.append, pool=pool)
    assert all(outcome.result is not None for outcome in outcomes)
    assert {progress.run_id for progress in seen} == {spec.id for spec in specs}
    for spec in specs:
        execute(spec, tmp_path / "one", PLAN)
        assert_equal_runs(tmp_path / "pool", tmp_path / "one", spec)


def test_a_failed_run_stops_no_other_and_says_why(tmp_path: Path) -> None:
    specs = [small_spec(0), small_spec(1)]
    (tmp_path / specs[0].id).mkdir()
    (tmp_path / specs[0].id / "checkpoint.safetensors").write_text("rubbish")
    with LocalPool(1) as pool:
        failed, done = execute_all(specs, tmp_path, [PLAN] * len(specs), lambda progress: None, pool=pool)
    assert failed.result is None
    assert "damaged checkpoint" in failed.reason
    assert done.result is not None


def test_the_pool_stops_on_request_and_goes_on_later(tmp_path: Path) -> None:
    specs = [small_spec(seed, steps=3000) for seed in range(4)]
    seen: list[Progress] = []
    with LocalPool(2) as pool, pytest.raises(Interrupted, match="run the same command again"):
        execute_all(specs, tmp_path, [PLAN] * len(specs), seen.append, pool=pool, stop_requested=lambda: len(seen) > 3)
    assert not list(tmp_path.glob(".sweep-*"))
    statuses = [RunFolder(tmp_path / spec.id).read_status() for spec in specs]
    assert {status.status for status in statuses} <= {"new", "interrupted"}
    assert any(0 < status.step < 3000 for status in statuses)
