"""Execute a run: train or continue, measure, write down."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from lengthwise.conventions import Diverged
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.evaluation.probe import PROBE_EVERY, TEST_EVERY, fresh_accuracy, probe_accuracy
from lengthwise.peak_memory import peak_megabytes
from lengthwise.runs.certified import write_certificate
from lengthwise.runs.folder import RunFolder, RunResult, RunStatus, versions
from lengthwise.runs.journal import JournalWriter, Probe
from lengthwise.runs.spec import RunSpec
from lengthwise.tasks.base import SymbolTask, VectorTask
from lengthwise.threads import one_thread
from lengthwise.training.checkpoint import load_checkpoint, save_checkpoint
from lengthwise.training.loop import StepRecord, TrainingState, training_steps


class Progress(NamedTuple):
    """How far a run is: its id, its phase, the number of steps done and to do, and a word on how it goes.

    Of a part of a phase, such as the long lengths of measuring, `note` is the name and `fraction` how much is done.
    """

    run_id: str
    phase: str
    done: int
    total: int
    note: str = ""
    fraction: float = 0.0


Listener = Callable[[Progress], None]
StopRequested = Callable[[], bool]


class Interrupted(RuntimeError):
    """A run stopped on request; its checkpoint is saved."""


def execute(
    spec: RunSpec,
    root: str | Path,
    plan: EvaluationPlan | None = None,
    listener: Listener = lambda progress: None,
    stop_requested: StopRequested = lambda: False,
) -> RunResult:
    """Train and measure `spec` below `root`, continuing what is there.

    A run that is finished under the same plan is only read; under another plan it is measured again, and the new result
    replaces the old.

    `stop_requested` is called between steps; where it is True, a checkpoint is saved and `Interrupted` raised (see
    `stop_on_interrupt`). A loss that is not finite raises `Diverged` and leaves the last good checkpoint. Weights and
    metrics of an interrupted and continued run equal the uninterrupted one's.
    """
    plan = plan or EvaluationPlan()
    folder = RunFolder(Path(root) / spec.id)
    with one_thread():
        folder.create(spec)
        result = _finished(folder, plan)
        if result is None:
            with folder.locked():
                _set_unreadable_result_aside(folder)
                state = TrainingState(spec.make_model(), spec.recipe)
                status = _train(state, spec, folder, listener, stop_requested)
                result = _measure(state, spec, folder, plan, status, listener, stop_requested)
                folder.write_result(result)
            note = ""
        else:
            note = "already finished"
    listener(Progress(spec.id, "done", spec.recipe.steps, spec.recipe.steps, note))
    return result


def _finished(folder: RunFolder, plan: EvaluationPlan) -> RunResult | None:
    """The run's own result under this plan, None where there is none; nothing is written, not even a lock."""
    try:
        result = folder.read_result()
    except ValueError:
        return None
    return result if result is not None and result.plan == plan else None


def _set_unreadable_result_aside(folder: RunFolder) -> None:
    """Make way for a new result where that of another version or run stands."""
    try:
        folder.read_result()
    except ValueError:
        folder.set_result_aside()


def _earlier_status(folder: RunFolder) -> RunStatus:
    """How far the run had come, or a new status where that cannot be read: it only adds up times."""
    try:
        return folder.read_status()
    except ValueError:
        return RunStatus()


def _train(
    state: TrainingState, spec: RunSpec, folder: RunFolder, listener: Listener, stop_requested: StopRequested
) -> RunStatus:
    """Train from the checkpoint, or from the start; the status of the trained run, all of which is saved."""
    clock = _Clock(_go_on(state, spec, folder))
    saved = state.step
    try:
        with folder.metrics.appending() as metrics, folder.probes.appending() as probes:
            record = _Record(state, spec, folder, metrics, probes, clock)
            for step in training_steps(state, spec.task, spec.recipe, seed=spec.seed):
                record.add(step)
                if step.step % spec.recipe.checkpoint_every == 0:
                    record.save("training")
                    saved = step.step
                try:
                    if step.step % 10 == 0 or step.step == spec.recipe.steps:
                        listener(Progress(spec.id, "training", step.step, spec.recipe.steps, f"loss {step.loss:.4f}"))
                    stop = "stopped" if stop_requested() else ""
                except OSError as error:  # whoever followed the progress is gone
                    stop = f"stopped, as progress cannot be reported ({error.strerror}),"
                if stop:
                    record.save("interrupted")
                    raise Interrupted(f"{stop} at step {step.step} of {spec.recipe.steps}; {_way_on(folder)}")
            return record.save("trained")
    except Diverged as error:
        folder.write_status(clock.status("diverged", state.step, str(error)))
        raise
    except OSError as error:
        raise OSError(f"{error.strerror or error}; step {saved} is kept in {folder.path}; {_way_on(folder)}") from None


def _go_on(state: TrainingState, spec: RunSpec, folder: RunFolder) -> RunStatus:
    """Bring the state to the checkpoint, where there is one, and the journals with it; how far the run had come."""
    status = RunStatus()
    if folder.checkpoint.exists():
        load_checkpoint(state, folder.checkpoint, spec.id)
        status = _earlier_status(folder)
        folder.check_journals(status, state.step)
    folder.metrics.keep(state.step)
    folder.probes.keep(state.step)
    return status


def _way_on(folder: RunFolder) -> str:
    return f"`lengthwise resume {folder.path}` goes on"


class _Record(NamedTuple):
    """All that training leaves on disk."""

    state: TrainingState
    spec: RunSpec
    folder: RunFolder
    metrics: JournalWriter[StepRecord]
    probes: JournalWriter[Probe]
    clock: "_Clock"

    def add(self, step: StepRecord) -> None:
        """Write down a step, and every so often how the weights would do."""
        self.metrics.write(step)
        if step.step % PROBE_EVERY == 0 and isinstance(self.spec.task, SymbolTask):
            self.probes.write(_probe(self.state, self.spec.task, self.clock))

    def save(self, status: str) -> RunStatus:
        """Save a checkpoint. Journals are on disk before it, so that none is behind it after a power cut."""
        journals = {
            self.folder.metrics.path.name: self.metrics.sync(),
            self.folder.probes.path.name: self.probes.sync(),
        }
        save_checkpoint(self.state, self.folder.checkpoint, self.spec.id)
        now = self.clock.status(status, self.state.step).model_copy(update={"journals": journals})
        self.folder.write_status(now)
        return now


def _probe(state: TrainingState, task: SymbolTask, clock: "_Clock") -> Probe:
    """Measure what the final weights would be; the clock stands still meanwhile."""
    cost = clock.status("training", state.step).cpu_seconds
    with clock.stopped(), state.with_final_weights() as model:
        fresh = None if state.step % TEST_EVERY else fresh_accuracy(model, task, state.step)
        return Probe(state.step, probe_accuracy(model, task), cost, fresh)


def _measure(
    state: TrainingState,
    spec: RunSpec,
    folder: RunFolder,
    plan: EvaluationPlan,
    status: RunStatus,
    listener: Listener,
    stop_requested: StopRequested,
) -> RunResult:
    started = time.perf_counter()
    state.load_final_weights()

    announced = ""

    def announce(what: str, fraction: float = 0.0) -> None:
        nonlocal announced
        announced = what
        listener(Progress(spec.id, "measuring", spec.recipe.steps, spec.recipe.steps, what, fraction))

    measured: dict[str, Any] = {}
    if isinstance(spec.task, VectorTask):
        announce("errors")
        measured["errors"] = plan.measure_errors(state.model, spec.task)
    else:
        announce(f"lengths {plan.dense[0]}-{plan.dense[1]}")
        parts = plan.measure(state.model, spec.task, lambda fraction: announce(announced, fraction))
        last = "certificate" if plan.certificate else ""
        for (part, curve), next_part in zip(parts, ("long lengths", "structured strings", last), strict=True):
            measured[part] = curve
            if next_part:
                announce(next_part)
                if stop_requested():
                    raise Interrupted(
                        f"stopped while measuring; {spec.id} is trained and saved, and the same command measures it"
                    )
        if plan.certificate:
            measured["certificate"] = write_certificate(state.model, spec.task, folder.certificate, run=spec.id)
    return RunResult(
        run_id=spec.id,
        spec=spec.to_json(),
        weights="final weights, averaged over steps" if state.average else "final weights",
        num_parameters=sum(p.numel() for p in state.model.parameters()),
        plan=plan,
        **measured,
        probes=tuple(folder.probes.read()),
        training=status,
        evaluation_seconds=time.perf_counter() - started,
        process_peak_memory_mb=peak_megabytes(),
        versions=versions() | {"begun at commit": folder.read_begun_at()},
    )


class _Clock:
    """Wall and CPU seconds, going on from an earlier status."""

    def __init__(self, before: RunStatus) -> None:
        self._wall = time.perf_counter() - before.wall_seconds
        self._cpu = time.process_time() - before.cpu_seconds

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Leave out what is done meanwhile."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self._wall += time.perf_counter() - wall
        self._cpu += time.process_time() - cpu

    def status(self, status: str, step: int, message: str = "") -> RunStatus:
        return RunStatus(
            status=status,
            step=step,
            wall_seconds=round(time.perf_counter() - self._wall, 3),
            cpu_seconds=round(time.process_time() - self._cpu, 3),
            message=message,
        )


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a scheduler that takes its machine back, a connection that is lost."""


@contextmanager
def stop_on_interrupt() -> Iterator[StopRequested]:
    """Turn the first of `STOP_SIGNALS` into a request that is honored between steps; a second one interrupts at once.

    A signal that the process was started to ignore, as by `nohup`, stays ignored.
    """
    requested = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if requested.is_set():
            raise KeyboardInterrupt
        requested.set()

    handled = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, on_signal) for number in handled}
    try:
        yield requested.is_set
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
