"""Processes that die at any moment: the next one goes on and ends where an undisturbed one would have."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import Command
from safetensors.torch import load_file

from lengthwise.experiment import EXPERIMENTS
from lengthwise.runs.folder import RunFolder

RUN = [
    *("train", "parity", "regular-gpt", "--longest", "60", "--set", "train.steps=300", "--set", "train.batch_size=8"),
    *("--set", "train.max_length=8", "--set", "train.checkpoint_every=20"),
    *("--set", "model.d_model=8", "--set", "model.num_heads=2"),
]
GOAL = [
    *("train", "even-pairs", "block-linear-rnn", "--until", "extracted", "--longest", "60"),
    *("--set", "train.batch_size=8", "--set", "train.max_length=8", "--set", "train.checkpoint_every=20"),
    *("--set", "train.pace.patience=60", "--set", "model.d_model=5", "--set", "model.block_dim=5"),
    *("--set", "train.pace.contract_steps=40", "--set", "train.optimizer.warmup_steps=50"),
]
"""Nets of as many states as the task needs: one often fails, and another is tried."""
SWEEP = ["reproduce", "regular-gpt/chunk-sizes", "--scale", "smoke", "--workers", "2"]


def finish(arguments: list[str], folder: Path) -> None:
    code, output = Command(arguments, folder).wait()
    assert code == 0, output
    assert "Traceback" not in output


def kill_at_random(
    arguments: list[str], folder: Path, chance: random.Random, signs_of_life: str, *, group: bool
) -> bool:
    """Start, wait until something was written and a moment more, kill -9; whether it was still running."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob(signs_of_life)}
    command = Command(arguments, folder)
    deadline = time.monotonic() + 60
    while command.is_running and time.monotonic() < deadline:
        if {path: path.stat().st_mtime_ns for path in folder.rglob(signs_of_life)} != before:
            break
        time.sleep(0.02)
    time.sleep(chance.uniform(0, 0.4))
    is_hit = command.is_running
    if is_hit:
        command.send(signal.SIGKILL, group=group)
    command.wait()
    return is_hit


def contents(folder: Path) -> tuple[object, ...]:
    """All of a finished run that must not depend on how it came about."""
    run = RunFolder(folder)
    result = run.read_result()
    assert result is not None
    probes = [(probe.step, probe.accuracy) for probe in run.probes.read()]
    weights = {name: tensor.tolist() for name, tensor in load_file(run.checkpoint).items()}
    return weights, run.metrics.path.read_text(), probes, list(result.curves)


def killed_and_undisturbed(
    arguments: list[str], pattern: str, num_kills: int, chance: random.Random, folder: Path
) -> tuple[Path, Path]:
    """Folders of one run, killed at random times and then finished, and of the same run left alone."""
    folders = [folder / name for name in ("killed", "undisturbed")]
    for one in folders:
        one.mkdir()
    killed = [kill_at_random(arguments, folders[0], chance, "state.json", group=True) for _ in range(num_kills)]
    assert sum(killed) >= (num_kills + 1) // 2, "the run is too short to be killed in"
    for one in folders:
        finish(arguments, one)
    first, second = (next((one / "runs").glob(pattern)) for one in folders)
    return first, second


# By default a sweep is killed (below), and runs go on that die in this process (tests/runs/test_goal.py).
@pytest.mark.slow
@pytest.mark.parametrize("num_kills", [1, 10])
def test_a_run_killed_often_equals_an_undisturbed_one(num_kills: int, tmp_path: Path) -> None:
    one, other = killed_and_undisturbed(RUN, "parity-*", num_kills, random.Random(0), tmp_path)
    assert contents(one) == contents(other)
    assert {path.name for path in one.iterdir()} - {path.name for path in other.iterdir()} <= drafts(one)


@pytest.mark.slow
@pytest.mark.parametrize("num_kills", [10])
def test_a_run_with_a_goal_killed_often_makes_the_same_attempts(num_kills: int, tmp_path: Path) -> None:
    one, other = killed_and_undisturbed(GOAL, "even-pairs-*", num_kills, random.Random(2), tmp_path)
    assert contents(one) == contents(other)
    results = [RunFolder(folder).read_result() for folder in (one, other)]
    attempts = [result.training.attempts for result in results if result is not None]
    assert attempts[0] == attempts[1]
    assert attempts[0]


def drafts(folder: Path) -> set[str]:
    """Files that a killed process had begun to write; nobody reads them."""
    return {path.name for path in folder.iterdir() if path.name.startswith(".") and path.name != ".lock"}


@pytest.mark.parametrize("num_kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_a_sweep_killed_often_loses_no_finished_run(num_kills: int, tmp_path: Path) -> None:
    """Only the first process is killed; its workers must notice and let go of their runs."""
    chance = random.Random(1)
    finished: dict[Path, bytes] = {}
    for _ in range(num_kills):
        kill_at_random(SWEEP, tmp_path, chance, "run.json", group=False)
        for path, content in finished.items():
            assert path.read_bytes() == content, "a finished run was repeated"
        finished |= {path: path.read_bytes() for path in tmp_path.rglob("result.json")}
    let_go(tmp_path)
    finish(SWEEP, tmp_path)
    for path, content in finished.items():
        assert path.read_bytes() == content
    specs = EXPERIMENTS["regular-gpt/chunk-sizes"]("smoke").specs
    assert {path.parent.name for path in tmp_path.rglob("result.json")} == {spec.id for spec in specs}
    page = (tmp_path / "docs/results/regular-gpt-chunk-sizes-smoke.md").read_text()
    assert "## Without a result" not in page


def let_go(folder: Path) -> None:
    """Wait until no orphan holds a run; one that never ends fails the test."""
    deadline = time.monotonic() + 20
    for path in folder.rglob("run.json"):
        while True:
            try:
                with RunFolder(path.parent).locked():
                    break
            except ValueError:
                assert time.monotonic() < deadline, f"{path.parent} is still held after its sweep was killed"
                time.sleep(0.1)


@pytest.mark.parametrize(
    "arguments",
    [RUN, pytest.param(SWEEP, marks=pytest.mark.slow)],
    ids=["run", "sweep"],  # a sweep is killed above
)
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_to_stop_says_how_to_go_on(number: signal.Signals, arguments: list[str], tmp_path: Path) -> None:
    command = Command(arguments, tmp_path)
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("run.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    command.send(number)  # as a terminal and a scheduler do, to the whole group
    code, output = command.wait()
    assert code == 128 + number, output
    assert "Traceback" not in output
    assert "continues" in output or "measures it" in output
    finish(arguments, tmp_path)


def test_the_second_process_on_a_run_is_refused(tmp_path: Path) -> None:
    first = Command(RUN, tmp_path)
    while not list(tmp_path.rglob("state.json")):
        time.sleep(0.02)
    code, output = Command(RUN, tmp_path).wait()
    first.send(signal.SIGKILL)  # it has shown what it had to
    first.wait()
    assert "Traceback" not in output
    assert (code, "another process is working on this run" in output) in [(2, True), (0, False)]


def test_a_worker_killed_while_it_holds_what_is_shared_stops_no_parent(tmp_path: Path) -> None:
    """As the system kills for want of memory; a parent that waits for the dead worker's locks never ends."""
    script = Path(__file__).parent / "killed_worker.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.count("a worker process was killed") == 2, done.stderr
    assert "stopped; to continue with the finished work in" in done.stdout
