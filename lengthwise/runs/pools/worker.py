"""What a worker does with a run of a sweep, wherever it is: a job goes out as JSON, and all results stay on disk."""

import json
import platform
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

import torch

from lengthwise.devices import default_device, find_device
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.files import HOST
from lengthwise.registry import extensions, load_extensions
from lengthwise.runs.execute import Listener, execute
from lengthwise.runs.lock import held
from lengthwise.runs.signals import Interrupted
from lengthwise.runs.spec import RunSpec, spec_from_json
from lengthwise.version import __version__

NUM_HEX = 8
"""Hexadecimal digits that tell the sweeps of a machine apart."""


class SweepFile(NamedTuple):
    """A file next to the runs that is there while a sweep goes on; its workers stop, with a checkpoint, without it.

    Each sweep has its own, so that what stops one stops no other, now or later.
    """

    path: Path

    def is_there(self) -> bool:
        """Opened, not only looked up: NFS then asks the server. A file system that fails for once removes nothing."""
        try:
            self.path.open("rb").close()
        except FileNotFoundError:
            return False
        except OSError:
            pass
        return True


@contextmanager
def sweep_file(root: Path) -> Iterator[SweepFile]:
    """The file of a new sweep below `root`, removed when it is over, however it ends.

    The process holds the file's lock. A file that nobody holds was left by a process that was killed, and is removed.
    """
    for left in root.glob(f".sweep-{escape(HOST)}-{'?' * NUM_HEX}"):
        with suppress(OSError), held(left):
            left.unlink()
    token = token_hex(NUM_HEX // 2)
    sweep = SweepFile(root / f".sweep-{HOST}-{token}")
    draft = root / f".begun-{HOST}-{token}"  # else another sweep could hold the new file before this one does
    with held(draft):
        try:
            draft.replace(sweep.path)
            yield sweep
        finally:
            sweep.path.unlink(missing_ok=True)


class StopWatch:
    """Whether the sweep is over, looked up once in `every` seconds."""

    def __init__(self, sweep: SweepFile, every: float) -> None:
        self._sweep, self._every = sweep, every
        self._next = 0.0
        self._is_over = False

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self._is_over and now >= self._next:
            self._next = now + self._every
            self._is_over = not self._sweep.is_there()
        return self._is_over


def software() -> dict[str, str]:
    """What must be the same in all processes of a sweep; of Python, the minor version."""
    major, minor, _ = platform.python_version_tuple()
    return {"lengthwise": __version__, "Python": f"{major}.{minor}", "torch": torch.__version__.partition("+")[0]}


def check_software(expected: Mapping[str, str]) -> None:
    """Check that this process has the versions of the one that sent the job; others are a ValueError."""
    actual = software()
    if actual != expected:
        names = [name for name in expected if actual.get(name) != expected[name]]
        there, here = (", ".join(f"{name} {versions.get(name)}" for name in names) for versions in (expected, actual))
        raise ValueError(
            f"worker on {HOST}: expected {there} as where the sweep was started, got {here}; install the same"
        )


def job(spec: RunSpec, plan: EvaluationPlan, sweep: SweepFile) -> str:
    """All that a worker needs to know of a run, as JSON; device and files of users, too: variables do not travel."""
    content = {
        "software": software(),
        "sweep": str(sweep.path),
        "spec": spec.to_json(),
        "plan": plan.model_dump(mode="json"),
        "device": default_device().type,
        "extensions": extensions(),
    }
    return json.dumps(content)


class Habits(NamedTuple):
    """What the runs of this process report to, and in how many seconds they look once whether to stop."""

    listener: Listener = lambda progress: None
    look_every: float = 1.0


_habits = Habits()
_one_at_a_time = threading.Lock()  # threads, CPU seconds and peak memory are the process's


def set_habits(habits: Habits) -> None:
    """Change what this process does with every job from now on: a pool's own workers can report and look more often."""
    global _habits
    _habits = habits


def execute_job(text: str) -> None:
    """Execute the run of a job, one at a time in a process; what comes of it is in the run's folder, below the root.

    Raises:
        ValueError: the worker has other versions, no such device, or does not share the folder or a file of the user.
        RunHeld: another process works on the run.
        Interrupted: the sweep is over, or was stopped; a run under way is saved.
    """
    content = json.loads(text)
    check_software(content["software"])
    sweep = SweepFile(Path(content["sweep"]))
    root = sweep.path.parent
    if not root.is_dir():
        raise ValueError(
            f"worker on {HOST}: expected the sweep's folder {root}, found none; share it with all machines"
        )
    stop_requested = StopWatch(sweep, _habits.look_every)
    with _one_at_a_time:
        if stop_requested():
            raise Interrupted(
                f"worker on {HOST}: found no {sweep.path}: the sweep is over, or its folder is not shared with it"
            )
        load_extensions(content["extensions"])
        plan = EvaluationPlan(**content["plan"])
        device = find_device(content["device"])
        execute(spec_from_json(content["spec"]), root, plan, _habits.listener, stop_requested, device=device)
