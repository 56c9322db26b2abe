"""The work on one run of a sweep, on any machine: a job arrives as JSON, and all results stay on disk."""

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
from lengthwise.runs.execute import execute
from lengthwise.runs.lock import held
from lengthwise.runs.progress import Listener
from lengthwise.runs.signals import Interrupted
from lengthwise.runs.spec import RunSpec, spec_from_json
from lengthwise.version import __version__

NUM_HEX = 8
"""The number of hexadecimal digits in the name of a sweep's file. The digits distinguish the sweeps of a machine."""


class SweepFile(NamedTuple):
    """A file next to the runs that exists while a sweep goes on; when it is removed, workers save and stop.

    Each sweep has its own file, so that stopping one sweep never stops another, now or later.
    """

    path: Path

    def exists(self) -> bool:
        """Return whether the sweep's file still exists."""
        # Opening the file makes NFS ask the server, while a look-up could be answered from a cache. After an error
        # other than FileNotFoundError, the sweep continues, because the file may still exist.
        try:
            self.path.open("rb").close()
        except FileNotFoundError:
            return False
        except OSError:
            pass
        return True


@contextmanager
def sweep_file(root: Path) -> Iterator[SweepFile]:
    """Yield the file of a new sweep below `root`, and remove it at the end, however the sweep ends.

    This process holds the file's lock. If nobody holds the lock of an older file, the process of the older file was
    killed, and the older file is removed.
    """
    # Only this machine's files are tried, because locks of other machines may not be visible here.
    for left in root.glob(f".sweep-{escape(HOST)}-{'?' * NUM_HEX}"):
        with suppress(OSError), held(left):
            left.unlink()
    # After a restart, another process can have the same number, so the name is random.
    token = token_hex(NUM_HEX // 2)
    sweep = SweepFile(root / f".sweep-{HOST}-{token}")
    # The file gets its name only when its lock is held, because another sweep could remove an unlocked file.
    draft = root / f".begun-{HOST}-{token}"
    with held(draft):
        try:
            draft.replace(sweep.path)
            yield sweep
        finally:
            sweep.path.unlink(missing_ok=True)


class StopWatch:
    """A function that returns whether a sweep is over. It inspects the sweep's file at most once in `every` seconds."""

    def __init__(self, sweep: SweepFile, every: float) -> None:
        self._sweep, self._every = sweep, every
        self._next = 0.0
        self._is_over = False

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self._is_over and now >= self._next:
            self._next = now + self._every
            self._is_over = not self._sweep.exists()
        return self._is_over


def software() -> dict[str, str]:
    """Return the versions that must be equal in all processes of a sweep; Python's micro version may differ."""
    major, minor, _ = platform.python_version_tuple()
    return {"lengthwise": __version__, "Python": f"{major}.{minor}", "torch": torch.__version__.partition("+")[0]}


def check_software(expected: Mapping[str, str]) -> None:
    """Raise a ValueError if this process has other software versions than the process that sent the job."""
    actual = software()
    if actual != expected:
        names = [name for name in expected if actual.get(name) != expected[name]]
        there, here = (", ".join(f"{name} {versions.get(name)}" for name in names) for versions in (expected, actual))
        raise ValueError(
            f"worker on {HOST}: expected {there} as in the process that started the sweep, got {here}; install the "
            "same versions"
        )


def job(spec: RunSpec, plan: EvaluationPlan, sweep: SweepFile) -> str:
    """Return everything that a worker needs to know about a run, as JSON.

    The device and the user's own files are included, because environment variables of the sender do not reach a worker.
    """
    content = {
        "software": software(),
        "sweep": str(sweep.path),
        "spec": spec.to_json(),
        "plan": plan.model_dump(mode="json"),
        "device": default_device().type,
        "extensions": extensions(),
    }
    return json.dumps(content)


class WorkerSettings(NamedTuple):
    """The listener of the runs of this process, and the seconds between checks for a request to stop."""

    listener: Listener = lambda progress: None
    check_every: float = 1.0


_settings = WorkerSettings()
_one_at_a_time = threading.Lock()  # torch's thread count, CPU seconds and peak memory belong to the whole process


def configure_worker(settings: WorkerSettings) -> None:
    """Set the listener and the seconds between checks for a stop request, for all later jobs of this process."""
    global _settings
    _settings = settings


def execute_job(text: str) -> None:
    """Execute the run of a job; a process executes one job at a time. The outcome is in the run's folder.

    Raises:
        ValueError: the worker has other versions of the software, lacks the device, or does not see the folder or a
            file of the user.
        RunHeld: another process works on the run.
        Interrupted: the sweep is over, or was stopped; a run in progress is saved.
    """
    content = json.loads(text)
    # Other versions may compute other bits, or read the same JSON as another specification.
    check_software(content["software"])
    sweep = SweepFile(Path(content["sweep"]))
    root = sweep.path.parent
    if not root.is_dir():
        raise ValueError(
            f"worker on {HOST}: expected the sweep's folder {root}, got none; share this folder with all machines"
        )
    stop_requested = StopWatch(sweep, _settings.check_every)
    with _one_at_a_time:
        if stop_requested():
            raise Interrupted(
                f"worker on {HOST}: {sweep.path} does not exist: the sweep is over, or its folder is not shared; if "
                "the sweep is not over, share the folder with all machines"
            )
        # Extensions come before the specification, because the specification may name a user's task or model.
        load_extensions(content["extensions"])
        plan = EvaluationPlan(**content["plan"])
        device = find_device(content["device"])
        execute(spec_from_json(content["spec"]), root, plan, _settings.listener, stop_requested, device=device)
