"""Processes that die at any moment: the next one goes on and ends where an undisturbed one would have."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from lengthwise.experiments import EXPERIMENTS
from lengthwise.runs.folder import RunFolder

often = pytest.mark.parametrize("num_kills", [3, pytest.param(10, marks=pytest.mark.slow)])
RUN = [
    *("train", "parity", "regular-gpt", "--longest", "60", "--set", "train.steps=600", "--set", "train.batch_size=8"),
    *("--set", "train.max_length=8", "--set", "train.checkpoint_every=40"),
    *("--set", "model.d_model=8", "--set", "model.num_heads=2"),
]
SWEEP = ["reproduce", "regular-gpt/chunk-sizes", "--scale", "smoke", "--workers", "2"]


def start(arguments: list[str], folder: Path) -> "subprocess.Popen[str]":
    """A command in a process group of its own, as a terminal or a scheduler would start it."""
    return subprocess.Popen(
        [sys.executable, "-m", "lengthwise", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def finish(arguments: list[str], folder: Path) -> None:
    process = start(arguments, folder)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert "Traceback" not in output


def kill_at_random(
    arguments: list[str], folder: Path, chance: random.Random, signs_of_life: str, *, group: bool
) -> bool:
    """Start, wait until something was written and then some, kill -9; whether it was still running."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob(signs_of_life)}
    process = start(arguments, folder)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if {path: path.stat().st_mtime_ns for path in folder.rglob(signs_of_life)} != before:
            break
        time.sleep(0.02)
    time.sleep(chance.uniform(0, 0.4))
    alive = process.poll() is None
    if group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()
    return alive


def contents(folder: Path) -> tuple[object, ...]:
    """All of a finished run that must not depend on how it came about."""
    run = RunFolder(folder)
    result = run.read_result()
    assert result is not None
    probes = [(probe.step, probe.accuracy) for probe in run.probes.read()]
    weights = {name: tensor.tolist() for name, tensor in load_file(run.checkpoint).items()}
    return weights, run.metrics.path.read_text(), probes, list(result.curves)


@often
def test_a_run_killed_often_equals_an_undisturbed_one(num_kills: int, tmp_path: Path) -> None:
    chance = random.Random(0)
    folders = [tmp_path / name for name in ("killed", "undisturbed")]
    for folder in folders:
        folder.mkdir()
    killed = [kill_at_random(RUN, folders[0], chance, "state.json", group=True) for _ in range(num_kills)]
    assert sum(killed) >= num_kills // 2, "the run is too short to be killed in"
    for folder in folders:
        finish(RUN, folder)
    one, other = (next((folder / "runs").glob("parity-*")) for folder in folders)
    assert contents(one) == contents(other)
    assert {path.name for path in one.iterdir()} - {path.name for path in other.iterdir()} <= drafts(one)


def drafts(folder: Path) -> set[str]:
    """Files that a killed process had begun to write; nobody reads them."""
    return {path.name for path in folder.iterdir() if path.name.startswith(".") and path.name != ".lock"}


@often
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
    assert "## Failed" not in (tmp_path / "docs/results/regular-gpt-chunk-sizes-smoke.md").read_text()


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


@pytest.mark.parametrize("arguments", [RUN, SWEEP], ids=["run", "sweep"])
def test_ctrl_c_says_how_to_go_on(arguments: list[str], tmp_path: Path) -> None:
    process = start(arguments, tmp_path)
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("run.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    assert "Traceback" not in output
    assert "goes on" in output or "measures it" in output
    finish(arguments, tmp_path)


def test_the_second_process_on_a_run_is_refused(tmp_path: Path) -> None:
    first = start(RUN, tmp_path)
    while not list(tmp_path.rglob("state.json")):
        time.sleep(0.02)
    second = start(RUN, tmp_path)
    output, _ = second.communicate(timeout=120)
    first.communicate(timeout=120)
    assert first.returncode == 0
    assert "Traceback" not in output
    assert (second.returncode, "another process is working on this run" in output) in [(2, True), (0, False)]


def test_a_worker_killed_while_it_holds_what_is_shared_stops_no_parent(tmp_path: Path) -> None:
    """As the system kills for want of memory; a parent that waits for the dead worker's locks never ends."""
    script = Path(__file__).parent / "killed_worker.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.count("a worker process was killed") == 2, done.stderr
    assert "stopped; finished work is kept" in done.stdout
