"""Commands of several processes that share a run: they stop together, and the run goes on in any number of them."""

import signal
import time
from pathlib import Path

import pytest
import torch
from command import Command, environment_of, exit_code, free_port
from safetensors.torch import load_file

from lengthwise.runs.folder import RunFolder

TRAIN = [
    *("train", "parity", "transformer", "--longest", "60", "--set", "train.steps=60", "--set", "train.batch_size=8"),
    *("--set", "train.max_length=8", "--set", "train.checkpoint_every=10", "--set", "train.supervision=prefix"),
    *("--set", "model.d_model=8", "--set", "model.num_heads=2", "--set", "model.num_layers=1"),
    *("--set", "train.optimizer.name=adamw", "--set", "train.optimizer.learning_rate=1e-4"),
]


def start(arguments: list[str], folder: Path, size: int = 2) -> list[Command]:
    """As torchrun starts them; of one process, without it."""
    if size == 1:
        return [Command(arguments, folder)]
    port = free_port()
    return [Command(arguments, folder, environment=environment_of(rank, size, port)) for rank in range(size)]


def finish(arguments: list[str], folder: Path, size: int) -> None:
    for command in start(arguments, folder, size):
        code, output = command.wait()
        assert code == 0, output
        assert "Traceback" not in output


def wait_for_a_checkpoint(folder: Path) -> Path:
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        for path in folder.glob("runs/*/checkpoint.safetensors"):
            return path.parent
        time.sleep(0.05)
    raise AssertionError("no checkpoint was saved")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    finish(TRAIN, folder, 1)
    return next(folder.glob("runs/*"))


def check_is_as(undisturbed: Path, folder: Path, where: list[str]) -> None:
    """Weights close to those of one process, one step after another, and no more than the run's files."""
    ours, expected = (load_file(one / "checkpoint.safetensors") for one in (folder, undisturbed))
    assert ours.keys() == expected.keys()
    for name in ours:
        torch.testing.assert_close(ours[name], expected[name], rtol=1e-3, atol=1e-5, msg=name)
    records = [RunFolder(one).metrics.read() for one in (folder, undisturbed)]
    assert [record.step for record in records[0]] == list(range(1, 61))
    assert [record.loss for record in records[0]] == pytest.approx([record.loss for record in records[1]], rel=1e-3)
    names = [{path.name for path in one.iterdir() if path.name != ".lock"} for one in (folder, undisturbed)]
    assert names[0] == names[1]
    device = RunFolder(folder).read_status().device
    assert [name.partition(",")[0].partition(" (x")[0] for name in device.split(", then ")] == where


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
@pytest.mark.parametrize("size", [1, 2])
def test_a_killed_rank_ends_the_other_and_the_run_goes_on(
    size: int, kind: str, undisturbed: Path, tmp_path: Path
) -> None:
    first, second = start([*TRAIN, "--parallel", kind], tmp_path)
    run = wait_for_a_checkpoint(tmp_path)
    second.send(signal.SIGKILL)
    second.wait()
    code, output = first.wait()
    assert code == 1, output
    assert "Traceback" not in output
    assert "another process of this run has ended, or does not answer; step" in output
    assert f"`lengthwise resume {run.relative_to(tmp_path)}` continues the run" in output
    finish(["resume", str(run), "--longest", "60"], tmp_path, size)
    ended = ["2 processes (ddp)"] if size == 2 else ["cpu"]
    check_is_as(undisturbed, run, [f"2 processes ({kind})", *(ended if ended != [f"2 processes ({kind})"] else [])])


@pytest.mark.slow
def test_a_run_goes_from_one_process_to_two_and_back(undisturbed: Path, tmp_path: Path) -> None:
    for size in (1, 2):
        arguments = TRAIN if size == 1 else ["resume", str(next(tmp_path.glob("runs/*"))), "--longest", "60"]
        commands = start(arguments, tmp_path, size)
        run = wait_for_a_checkpoint(tmp_path)
        before = RunFolder(run).read_status().step
        deadline = time.monotonic() + 200
        while RunFolder(run).read_status().step <= before and time.monotonic() < deadline:
            time.sleep(0.02)
        commands[-1].send(signal.SIGTERM)
        outputs = [command.wait() for command in commands]
        assert outputs[0][0] == (1 if size == 2 else 128 + signal.SIGTERM), outputs  # the other process got it
        assert "stopped at step" in outputs[0][1]
        assert [code for code, _ in outputs[1:]] == [0] * (size - 1), outputs
    finish(["resume", str(run), "--longest", "60"], tmp_path, 1)
    check_is_as(undisturbed, run, ["cpu", "2 processes (ddp)", "cpu"])


def test_what_needs_several_processes_or_a_gpu_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, sentence in (
        ([*TRAIN, "--device", "cuda"], "--device: expected a device of this machine, got 'cuda'"),
        (["reproduce", "regular-gpt/chunk-sizes", "--device", "cuda"], "--device: expected a device of this machine"),
        ([*TRAIN, "--parallel", "fsdp"], "--parallel: expected no value with one process, got 'fsdp'; start several"),
    ):
        assert exit_code(*words) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"lengthwise: {sentence}")
        assert len(error.splitlines()) == 1
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert exit_code(*TRAIN, "--seeds", "0-1") == 2
    assert capsys.readouterr().err.startswith("lengthwise: --seeds: not allowed with torchrun, whose")
    assert not list(tmp_path.iterdir())
