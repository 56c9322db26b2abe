"""The execution of a run: train or continue, measure, and save."""

import math
import time
from pathlib import Path
from typing import NamedTuple

import torch

from lengthwise.certification.certificate import Certificate
from lengthwise.conventions import Diverged
from lengthwise.devices import check_arithmetic, default_device, find_device, on_cpu, one_thread
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.evaluation.probe import PROBE_EVERY, TEST_EVERY, fresh_accuracy, probe_accuracy
from lengthwise.files import check_no_file, reason, remove_drafts
from lengthwise.peak_memory import peak_megabytes
from lengthwise.runs.certified import write_certificate
from lengthwise.runs.clock import Clock
from lengthwise.runs.earlier import earlier_status, finished_result, set_unreadable_result_aside
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.goal import Attempt, Attempts, Goal, loss_at_end, reached_length
from lengthwise.runs.journal import JournalWriter, Probe
from lengthwise.runs.measurements import measurements
from lengthwise.runs.placement import Placement, check_ranks_of
from lengthwise.runs.progress import Listener, Progress
from lengthwise.runs.provenance import versions
from lengthwise.runs.result import ENDINGS, RunResult, RunStatus, takes_probes
from lengthwise.runs.signals import Interrupted, StopRequested
from lengthwise.runs.spec import RunSpec
from lengthwise.tasks.base import SymbolTask
from lengthwise.training.checkpoint import load_checkpoint, read_notes, save_checkpoint
from lengthwise.training.final_loss import final_loss
from lengthwise.training.loop import StepRecord, TrainingState, training_steps
from lengthwise.training.ranks import ALONE, RankEnded, Ranks
from lengthwise.validation import check_function, check_kind, path_of, truncate


def execute(
    spec: RunSpec,
    root: str | Path,
    plan: EvaluationPlan | None = None,
    listener: Listener = lambda progress: None,
    stop_requested: StopRequested = lambda: False,
    *,
    device: torch.device | str | None = None,
    ranks: Ranks = ALONE,
) -> RunResult:
    """Train and measure `spec` in its folder below `root`, or continue from what the folder contains.

    The result of a finished run is returned as is if its plan covers `plan`. Otherwise the run is measured again, and
    the new result replaces the old result. A run that another process works on raises a `RunHeld`, a ValueError.
    A run with a goal (`RunSpec.goal`) makes attempts until one reaches the goal. A run that has spent its budget
    continues if it gets a larger budget.

    `stop_requested` is called between steps. If it returns True, a checkpoint is saved and `Interrupted` is raised (see
    `lengthwise.runs.signals`). A loss that is not finite raises `Diverged` and leaves the last good checkpoint.
    A run that was interrupted and continued has the same weights and metrics as an uninterrupted run.

    The net is trained and measured on `device`. The default is the device that the environment variable
    `LENGTHWISE_DEVICE` names, or the CPU. Certificates are made on the CPU. If several processes train (`ranks`), this
    process is the first process, and all other processes call `train_along`.
    """
    plan, root = EvaluationPlan() if plan is None else plan, path_of("root", root)
    _check_arguments(spec, plan, listener, stop_requested, device)
    # Another precision of matrix products or another default type would give another net under the same id.
    check_arithmetic()
    check_no_file("root", (folder := RunFolder(root / spec.id)).path)
    check_ranks_of(spec, ranks)
    placement = Placement(find_device(device) if isinstance(device, str) else device or default_device(), ranks)
    with one_thread(), placement.leading() as announce_training:
        folder.path.mkdir(parents=True, exist_ok=True)
        for change in folder.changes_of_extensions():
            listener(Progress(spec.id, "training", 0, spec.recipe.steps, change, is_decision=True))
        result, note = finished_result(folder, spec, plan), "already finished"
        if result is not None:
            # This repairs a damaged `run.json` and saves a changed budget. Otherwise nothing is written, because the
            # disk may be read-only.
            folder.create(spec, str(placement))
        else:
            with folder.locked() as begin:
                # The result is read again under the lock, because another process may have finished the run before.
                result = finished_result(folder, spec, plan)
                if result is None:
                    # The folder is changed only now, so a process without the lock changes nothing in the folder.
                    begin()
                    # Killed processes may have left drafts. The lock shows that no other process writes here now.
                    remove_drafts(folder.checkpoint)
                    folder.create(spec, str(placement), plan)
                    set_unreadable_result_aside(folder)
                    clock = Clock(earlier_status(folder), str(placement))
                    work = _Work(spec, folder, clock, listener, stop_requested, placement)
                    announce_training()
                    trained = _train_once(work) if spec.goal is None else _train_to_goal(work, spec.goal)
                    result, note = _measure(work, plan, trained), ""
                    folder.write_result(result)
    listener(Progress(spec.id, "done", result.training.step, result.training.step, note))
    return result


def _check_arguments(spec: object, plan: object, listener: object, stop_requested: object, device: object) -> None:
    """Raise a ValueError that names an argument of the wrong type."""
    check_function("listener", listener)
    check_function("stop_requested", stop_requested)
    check_kind("device", device, (torch.device, str, type(None)), "a device such as cuda, or its name")
    if not isinstance(spec, RunSpec):
        raise ValueError(f"spec: expected a RunSpec, got {truncate(repr(spec))}; make it with make_spec(task, model)")
    check_kind("plan", plan, EvaluationPlan, "an EvaluationPlan")


class _Work(NamedTuple):
    """A run in execution, with its folder, clock, listener, placement, and the function that tells whether to stop."""

    spec: RunSpec
    folder: RunFolder
    clock: Clock
    listener: Listener
    stop_requested: StopRequested
    placement: Placement

    def decide(self, step: int, sentence: str) -> None:
        """Report how the run continues, and why."""
        total = self.spec.recipe.steps
        self.listener(Progress(self.spec.id, "training", step, total, sentence, is_decision=True))

    @property
    def resume_hint(self) -> str:
        return f"`lengthwise resume {self.folder.path}` continues the run"

    @property
    def is_trained(self) -> bool:
        """True if the run's folder records that this or an earlier process has finished and saved all training."""
        return earlier_status(self.folder).status in ("trained", *ENDINGS)

    @property
    def has_outcome(self) -> bool:
        """True if the folder records the end of a run with a goal, after the last attempt and its certificate."""
        return earlier_status(self.folder).status in ENDINGS


class _Trained(NamedTuple):
    """The outcome of training, after all files are saved."""

    state: TrainingState
    status: RunStatus
    certificate: Certificate | None = None


def _train_once(work: _Work) -> _Trained:
    state = work.placement.state(work.spec)
    status = _train(state, work, Attempts())
    return _Trained(work.placement.measurable(state, work.spec, work.folder.checkpoint), status)


def _train_to_goal(work: _Work, goal: Goal) -> _Trained:
    """Make attempts until one reaches the goal, or until the budget is spent.

    An attempt is certified if its loss is low, and remains low after training has contracted the net's states
    (`PaceRecipe`). With goal `solved`, no certificate is made. An attempt and its success do not depend on time, so a
    continued run makes the same attempts. The CPU seconds decide only whether another attempt begins.
    """
    attempts, is_repeated = _earlier_attempts(work), work.has_outcome
    while True:
        number = len(attempts.finished)
        attempt, changes = work.spec.attempt(number), goal.models[number % len(goal.models)]
        work.decide(0, attempts.announce(changes, attempt.seed))
        state = work.placement.state(attempt)
        certificate = None
        problem = None
        is_solved = False
        try:
            _train(state, work, attempts)
            # The running loss was measured with noise on the states, so the loss of the final weights is measured here.
            loss, is_solved = loss_at_end(state, work.spec.task, attempt.recipe, seed=attempt.seed)
            if is_solved and goal.is_certified:
                work.decide(state.step, f"loss {loss:.2g} with contracted states; computing the certificate")
                state.load_final_weights()
                certificate = _certified(state, work)
        except Diverged as error:
            problem = error
        finished = Attempt(
            model=changes,
            seed=attempt.seed,
            steps=state.step,
            solved_at=state.solved_at,
            loss=None if problem else loss,
            is_solved=is_solved,
            level=certificate and certificate.level,
            longest=reached_length(state, work.spec.task, attempt.recipe),
        )
        # After an interruption, this process has only repeated a certificate whose time was already counted.
        if is_repeated:
            work.clock.rewind()
            is_repeated = False
        attempts = Attempts((*attempts.finished, finished))
        is_reached = goal.is_reached_by(finished)
        # CPU seconds of earlier processes count, so an interrupted run gets no second budget.
        is_last = is_reached or work.clock.status("", 0).cpu_seconds >= goal.budget
        # Divergence of the last attempt is the run's outcome; earlier divergence only costs an attempt.
        if problem is not None and is_last:
            raise problem
        status = _close_attempt(work, attempts, "reached" if is_reached else "out of budget" if is_last else "training")
        if is_last:
            work.decide(state.step, f"{status.status}: {finished.outcome}, after {status.cpu_seconds:.1f} CPU seconds")
            return _Trained(state, status, certificate)


def _certified(state: TrainingState, work: _Work) -> Certificate:
    """Certify the weights of a training state on the CPU, because a certificate is about a CPU's arithmetic."""
    with on_cpu(state.model):
        return write_certificate(state.model, work.spec.task, work.folder.certificate, run=work.spec.id)


def _earlier_attempts(work: _Work) -> Attempts:
    """Return the finished attempts that the checkpoint records."""
    checkpoint = work.folder.checkpoint
    return Attempts.from_notes(read_notes(checkpoint, work.spec.id)) if checkpoint.exists() else Attempts()


def _close_attempt(work: _Work, attempts: Attempts, status: str) -> RunStatus:
    """Save that an attempt is over, with the outcomes of all attempts and the digests of the run's journals."""
    journals = {
        journal.path.name: journal.digest(attempts.steps) for journal in (work.folder.metrics, work.folder.probes)
    }
    now = work.clock.status(status, attempts.steps).model_copy(
        update={"journals": journals, "attempts": attempts.finished}
    )
    work.folder.write_status(now)
    return now


def _train(state: TrainingState, work: _Work, attempts: Attempts) -> RunStatus:
    """Train from the checkpoint, or from the start; save everything, and return the status of the trained run."""
    spec, folder = work.spec.attempt(len(attempts.finished)), work.folder
    _restore(state, work, attempts)
    # A failure message states that step `saved` is saved, so `saved` advances only with a checkpoint.
    saved, is_repeated = state.step, work.is_trained
    try:
        with folder.metrics.appending() as metrics, folder.probes.appending() as probes:
            record = _Record(state, work, attempts, metrics, probes)
            for step in training_steps(state, spec.task, spec.recipe, seed=spec.seed):
                record.add(step)
                if step.step % spec.recipe.checkpoint_every == 0:
                    record.save("training")
                    saved = step.step
                try:
                    _report(state, step, work, is_last=state.is_over(spec.recipe))
                    stop = "stopped" if work.stop_requested() else ""
                except OSError as error:  # the reader of the progress is gone, as after a closed pipe
                    stop = f"stopped, because progress cannot be reported ({error.strerror}),"
                # If one process stopped alone, the others would wait, so all processes stop together.
                if work.placement.ranks.any(bool(stop)):
                    record.save("interrupted")
                    raise Interrupted(
                        f"{stop or 'stopped'} at step {step.step} of {spec.recipe.steps}; {work.resume_hint}"
                    )
            # If nothing was trained, the seconds since the start only repeated work that the status already counts.
            if is_repeated and state.step == saved:
                work.clock.rewind()
            return record.save("trained")
    except Diverged as error:
        # The checkpoint stays, because it is the last good one. The status tells pages why the result is missing.
        folder.write_status(work.clock.status("diverged", attempts.steps + state.step, str(error)))
        raise
    except RankEnded as error:
        raise RankEnded(f"{error}; {_describe_saved(work, saved)}") from None
    except OSError as error:
        # The disk may be full, or the folder deleted. The message names the file, and the step from which the run can
        # continue.
        raise OSError(f"{reason(error)}; {_describe_saved(work, saved)}") from None


def _describe_saved(work: _Work, step: int) -> str:
    """Return a sentence about how a failed run can continue; its folder may have been deleted in the meantime."""
    path = work.folder.path
    if work.folder.checkpoint.exists():
        return f"step {step} is saved in {path}; {work.resume_hint}"
    if path.exists():
        return f"{path} has no checkpoint yet; the same command begins again"
    return f"{path} and its checkpoint were deleted; the same command begins again"


def _report(state: TrainingState, step: StepRecord, work: _Work, *, is_last: bool) -> None:
    """Report the running loss at every tenth step, at the last step, and at the step that solved the task."""
    total, pace = work.spec.recipe.steps, work.spec.recipe.pace
    if step.step % 10 == 0 or is_last:
        work.listener(Progress(work.spec.id, "training", step.step, total, f"loss {state.loss:.2g}"))
    if pace is not None and state.solved_at == step.step:
        sentence = f"loss {state.loss:.2g}, solved after {step.step:,} steps; the rest of the schedule"
        work.decide(step.step, f"{sentence} takes {pace.contract_steps:,} more steps")


def _restore(state: TrainingState, work: _Work, attempts: Attempts) -> None:
    """Load the checkpoint if it belongs to this attempt, and drop the journals' entries about later steps."""
    folder = work.folder
    if folder.checkpoint.exists():
        # A checkpoint of an earlier attempt has other weights, so this attempt begins again from its seed.
        if work.spec.goal is None or _earlier_attempts(work) == attempts:
            load_checkpoint(state, folder.checkpoint, work.spec.id)
        # A journal of another run, or a truncated journal, would put wrong numbers on pages without any error.
        folder.check_journals(earlier_status(folder), attempts.steps + state.step)
    work.placement.check_is_shared(state, folder.path)
    # Steps after the checkpoint will be run again, so their old records would appear twice.
    folder.metrics.keep(attempts.steps + state.step)
    folder.probes.keep(attempts.steps + state.step)


class _Record(NamedTuple):
    """A writer of all files that training leaves: journals, checkpoint and status."""

    state: TrainingState
    work: _Work
    attempts: Attempts
    metrics: JournalWriter[StepRecord]
    probes: JournalWriter[Probe]

    def add(self, step: StepRecord) -> None:
        """Save the record of a step; after every `PROBE_EVERY` steps, also save a `Probe`.

        The number of the recorded step counts the steps of all attempts.
        """
        self.metrics.write(step._replace(step=self.attempts.steps + step.step))
        task = self.work.spec.task
        if step.step % PROBE_EVERY == 0 and takes_probes(self.work.spec) and isinstance(task, SymbolTask):
            self.probes.write(_probe(self.state, task, self.work))

    def save(self, status: str) -> RunStatus:
        """Save a checkpoint and the status of the run."""
        # The journals reach the disk first: after a power cut they may be ahead of the checkpoint, but never behind.
        folder = self.work.folder
        journals = {folder.metrics.path.name: self.metrics.sync(), folder.probes.path.name: self.probes.sync()}
        notes = {**self.attempts.to_notes(), "device": str(self.work.placement)}
        save_checkpoint(self.state, folder.checkpoint, self.work.spec.id, notes)
        now = self.work.clock.status(status, self.attempts.steps + self.state.step)
        now = now.model_copy(update={"journals": journals, "attempts": self.attempts.finished})
        folder.write_status(now)
        return now


def _probe(state: TrainingState, task: SymbolTask, work: _Work) -> Probe:
    """Measure the final weights as if training ended here; the clock is stopped meanwhile."""
    # Probing is not training: its time must not count as cost or towards a budget.
    cost = work.clock.status("training", state.step).cpu_seconds
    with work.clock.stopped(), work.placement.final_model(state, work.spec) as model:
        fresh = None if state.step % TEST_EVERY else fresh_accuracy(model, task, state.step)
        return Probe(state.step, probe_accuracy(model, task), cost, fresh)


class _Announcer:
    """A reporter of the measurement in progress. A run can be stopped between two parts of the evaluation plan."""

    def __init__(self, work: _Work, step: int) -> None:
        self._work = work
        self._step = step
        self._what = ""

    def begin(self, what: str) -> None:
        """Report the name of the next part of the measurements.

        Raises:
            Interrupted: a stop was requested.
        """
        self._what = what
        self.set_progress(0.0)
        if self._work.stop_requested():
            run = self._work.spec.id
            raise Interrupted(f"stopped while measuring; {run} is trained and saved; repeat the command to measure it")

    def set_progress(self, fraction: float) -> None:
        """Report which fraction of the current part of the measurements is done."""
        self._work.listener(Progress(self._work.spec.id, "measuring", self._step, self._step, self._what, fraction))


def _measure(work: _Work, plan: EvaluationPlan, trained: _Trained) -> RunResult:
    (spec, folder), (state, status, certificate) = work[:2], trained
    started = time.perf_counter()
    # Runs with a goal have measured the loss of the final weights at the end of each attempt.
    loss = math.nan if spec.goal is not None else final_loss(state, spec.task, spec.recipe, seed=spec.seed)
    state.load_final_weights()
    announcer = _Announcer(work, status.step)
    measured = measurements(spec, plan, state.model, announcer.begin, announcer.set_progress)
    is_certified = plan.certificate or (spec.goal is not None and spec.goal.is_certified)
    # The last attempt at a goal may have ended with a high loss, and was not certified for that reason.
    if certificate is None and is_certified and "dense" in measured:
        announcer.begin("certificate")
        certificate = _certified(state, work)
    return RunResult(
        run_id=spec.id,
        spec=spec.to_json(),
        weights="final weights, averaged over steps" if state.average else "final weights",
        num_parameters=sum(p.numel() for p in state.model.parameters()),
        plan=plan,
        certificate=certificate,
        final_loss=loss if math.isfinite(loss) else None,
        **measured,
        probes=tuple(folder.probes.read()),
        training=status,
        evaluation_seconds=time.perf_counter() - started,
        process_peak_memory_mb=peak_megabytes(),
        versions=versions(str(work.placement)) | {"begun at commit": folder.read_start_commit()},
    )
