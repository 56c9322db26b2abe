"""A run on disk.

Its files are ``run.json``, ``metrics.jsonl``, ``probes.jsonl``, ``checkpoint.safetensors``, ``state.json``,
``result.json`` and, if the model was certified, ``certificate.json``.
"""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from lengthwise.certification.certificate import certificate_file
from lengthwise.display import card
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.evaluation.probe import PROBE_EVERY
from lengthwise.files import read_json, unless_damaged, write_json
from lengthwise.models.base import MODELS, SequenceModel
from lengthwise.registry import UnknownName
from lengthwise.runs.goal import Attempts
from lengthwise.runs.journal import TRAIN_AGAIN, Journal, Probe
from lengthwise.runs.lock import held_run, read_beginnings
from lengthwise.runs.provenance import changed_extensions, file_digests, files_of_others, versions
from lengthwise.runs.result import ENDINGS, RunResult, RunStatus, result_card, takes_probes
from lengthwise.runs.spec import RunSpec, identity, spec_from_json
from lengthwise.training.checkpoint import load_final_weights, read_notes
from lengthwise.training.loop import StepRecord
from lengthwise.validation import path_of, validated


class _RunFile(BaseModel):
    """The content of ``run.json``; early releases of the package saved neither version numbers nor a plan."""

    id: Any = None
    spec: Any = None
    versions: dict[str, str] = Field(default_factory=dict)
    plan: dict[str, Any] = Field(default_factory=dict)


WRITE_AGAIN = "`lengthwise train` with the run's settings writes this file again"


class RunFolder(NamedTuple):
    """The files of one run, with the functions that read and write them."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.safetensors"

    @property
    def metrics(self) -> Journal[StepRecord]:
        return Journal(self.path / "metrics.jsonl", StepRecord)

    @property
    def probes(self) -> Journal[Probe]:
        return Journal(self.path / "probes.jsonl", Probe)

    def create(self, spec: RunSpec, device: str | None = None, plan: EvaluationPlan | None = None) -> None:
        """Make the folder and save the specification, even if ``run.json`` is damaged or belongs to another run.

        A new budget or a new plan of measurements replaces the old one.

        Raises:
            ValueError: one of the user's own files has changed, so training would continue with different code.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._check_code(spec)
        earlier = unless_damaged(self.read_spec, None)
        # A copied file of another run is not evidence about this run, so nothing of its content is kept.
        is_own = earlier is not None and earlier.id == spec.id
        content, has_net = self._read_run() if is_own else {}, self._has_net()
        planned = content.get("plan") if plan is None else plan.model_dump(mode="json")
        is_as_before = earlier is not None and is_own and earlier.goal == spec.goal and content.get("plan") == planned
        if has_net and is_as_before:
            return
        # If there are weights, the software versions with which their training began are kept; otherwise, training
        # begins now.
        begun = (has_net and content.get("versions")) or versions(device)
        more = {"plan": planned} if planned else {}
        self._write("run.json", {"id": spec.id, "spec": spec.to_json(), "versions": begun, **more})

    def _check_code(self, spec: RunSpec) -> None:
        """Reject a half-trained net if the code of its model or task has changed since its training began."""
        # A finished run is only read, so changed code does not harm it.
        for name in [] if (self.path / "result.json").exists() else self.changed_files(spec):
            raise ValueError(
                f"{self.path}: {name} has changed since this run began, so the run would continue with another model "
                "or task; undo the change, or train again in another runs folder"
            )

    def changed_files(self, spec: RunSpec) -> list[str]:
        """Return the names of the user's files that define task or model and have changed since the run began."""
        known = file_digests(self._begun())
        return files_of_others(known, type(spec.task), MODELS[spec.model_name]) if known else []

    def _has_net(self) -> bool:
        return self.checkpoint.exists() or (self.path / "result.json").exists()

    def _begun(self) -> dict[str, str]:
        """Return the software versions with which training began; {} if there is no net yet."""
        content = unless_damaged(self._read_run, {}) if self._has_net() else {}
        return dict(content.get("versions", {}))

    def changes_of_extensions(self) -> list[str]:
        """Return a sentence for each of the user's own files that has changed since the run began."""
        return [
            f"{name} has changed since this run began; to train the run again, give another runs folder"
            for name in changed_extensions(self._begun())
        ]

    def locked(self) -> AbstractContextManager[Callable[[], None]]:
        """Hold the lock of the run (`held_run`)."""
        return held_run(self.path)

    def read_beginnings(self) -> list[str]:
        """Return the processes that have begun to work on the run (`lengthwise.runs.lock`)."""
        return read_beginnings(self.path)

    def read_spec(self) -> RunSpec:
        content = self._read_run()
        try:
            spec = spec_from_json(content["spec"])
        except (KeyError, TypeError, AttributeError) as error:
            if isinstance(error, UnknownName):
                raise
            raise ValueError(
                f"{self.path / 'run.json'}: expected a complete specification, got a damaged one; {WRITE_AGAIN}"
            ) from None
        # An edited file, or defaults that changed between versions, would train another run under this name.
        if content.get("id") != spec.id:
            raise ValueError(
                f"{self.path / 'run.json'}: its settings belong to {spec.id}, but its id is {content.get('id')}; the "
                "settings were changed, or another version of the package wrote them; train the run again"
            )
        return spec

    def read_plan(self) -> EvaluationPlan:
        """Return the run's last plan of measurements; runs of early versions lack one, and get the default plan."""
        path = self.path / "run.json"
        return validated(EvaluationPlan, self._read_run().get("plan", {}), path=str(path))

    def read_start_commit(self) -> str:
        """Return the commit at which the run was created; parts of its training may have used a later commit."""
        return str(self._read_run().get("versions", {}).get("commit", "unknown"))

    def read_status(self) -> RunStatus:
        # A process that was killed before its first checkpoint has left no status.
        if not (self.path / "state.json").exists():
            return RunStatus()
        return validated(RunStatus, self._read("state.json"), path=str(self.path / "state.json"))

    def write_status(self, status: RunStatus) -> None:
        self._write("state.json", status.model_dump(mode="json"))

    def read_result(self) -> RunResult | None:
        """Return the result, or None if the run is not finished.

        Raises:
            ValueError: the result is damaged, of another version, or of another run.
        """
        path = self.path / "result.json"
        if not path.exists():
            return None
        try:
            result = RunResult(**self._read(path.name))
        except ValidationError as error:
            raise ValueError(
                f"{path}: not a result of this version of the package ({error.error_count()} problems); {WRITE_AGAIN}"
            ) from None
        # A result that was copied from another folder parses well, so its identity is compared.
        spec = self.read_spec()
        if result.run_id != spec.id or identity(result.spec) != identity(spec.to_json()):
            raise ValueError(
                f"{path}: expected the result of {spec.id}, got the result of {result.run_id}; {WRITE_AGAIN}"
            )
        return result

    def check_journals(self, status: RunStatus, step: int) -> None:
        """Check that the journals `metrics` and `probes` are about the first `step` steps of this run.

        If `status` contains digests, the contents of the journals are compared with them.

        Raises:
            ValueError: entries are missing, or belong to another run.
        """
        self.metrics.check(step)
        if takes_probes(self.read_spec()):
            self.probes.check(step, PROBE_EVERY)
        for journal in (self.metrics, self.probes):
            # Entries of another run have the right steps, so the digests are compared.
            expected = status.journals.get(journal.path.name)
            if expected is not None and journal.digest(status.step) != expected:
                raise ValueError(f"{journal.path}: its contents have changed or belong to another run; {TRAIN_AGAIN}")

    def read_metrics(self) -> list[StepRecord]:
        """Return the records of all steps; [] without a journal. The journal of a finished run is checked first."""
        result = self.read_result()
        if result is not None and (self.checkpoint.exists() or self.metrics.path.exists()):
            self.check_journals(result.training, result.training.step)
        return self.metrics.read()

    def set_result_aside(self) -> None:
        """Rename an unreadable result instead of deleting it, because another version may be able to read it."""
        # A rename is atomic: after a crash, the whole result has one of the two names.
        (self.path / "result.json").replace(self.path / "result.unreadable.json")

    def write_result(self, result: RunResult) -> None:
        self._write("result.json", result.model_dump(mode="json"))

    @property
    def certificate(self) -> Path:
        return certificate_file(self.path)

    def _read_run(self) -> dict[str, Any]:
        content = self._read("run.json")
        validated(_RunFile, content, path=str(self.path / "run.json"))
        return content

    def _read(self, name: str) -> dict[str, Any]:
        try:
            return read_json(self.path / name, WRITE_AGAIN)
        except FileNotFoundError:
            if self.path.is_dir():
                problem = f"but there is no {name} in it"
            else:
                problem = "got a file" if self.path.exists() else "but there is no such folder"
            raise ValueError(f"{self.path}: expected a run folder, {problem}; {run_hint(self.path)}") from None

    def _write(self, name: str, content: dict[str, Any]) -> None:
        write_json(self.path / name, content)


def run_hint(path: Path) -> str:
    """Return a hint on where a run is, for a path that is not the folder of a run."""
    # A frequent mistake is to name the folder of all runs instead of one of them.
    inside = sorted(child.parent for child in path.glob("*/run.json"))
    return (
        f"name a run in it, for example {inside[0]}" if inside else "`lengthwise train` makes run folders below runs/"
    )


class Run(NamedTuple):
    """A run read from its folder: its specification and its model with the saved weights.

    The metrics and the result are read on demand.
    """

    folder: RunFolder
    spec: RunSpec
    model: SequenceModel
    steps_done: int

    @property
    def is_trained(self) -> bool:
        """True if training is done and the weights are final; an unfinished run has the weights of an earlier step."""
        if self.spec.goal is not None:
            return self.folder.read_status().status in ENDINGS
        if self.steps_done == self.spec.recipe.steps:
            return True
        return self.spec.recipe.pace is not None and self.folder.read_status().status == "trained"

    @property
    def steps_text(self) -> str:
        """The number of steps after which the weights were saved, as text."""
        if self.spec.goal is not None:
            return f"after {self.steps_done:,} steps of an attempt"
        return f"after step {self.steps_done:,} of {self.spec.recipe.steps:,}"

    @property
    def metrics(self) -> list[StepRecord]:
        """The records of all training steps."""
        return self.folder.read_metrics()

    @property
    def result(self) -> RunResult | None:
        """The result of the run; None if the run is not finished."""
        return self.folder.read_result()

    def _repr_html_(self) -> str:
        """Return the card of the result, for notebooks; without a result, a card with the number of steps done."""
        if (result := self.result) is not None:
            return result_card(result)
        return card(self.spec.id, [("not finished", self.steps_text), ("folder", str(self.folder.path))])


def load_run(path: str | Path) -> Run:
    """Read a run from its folder; a folder that is missing, damaged or has no checkpoint raises a ValueError.

    If a user's own file that defines the task or the model has changed since training, a warning is given.
    """
    folder = RunFolder(path_of("path", path))
    spec = folder.read_spec()
    for name in folder.changed_files(spec):
        change = "has changed since this net began to train; its answers may differ from the measured answers"
        warnings.warn(f"{folder.path}: {name} {change}", stacklevel=2)
    # Runs that were restored from records have a result but never had weights here.
    if not folder.checkpoint.exists() and folder.read_result() is not None:
        raise ValueError(f"{folder.path}: expected a run with its weights, got only its result; {TRAIN_AGAIN}")
    notes = {} if spec.goal is None else read_notes(folder.checkpoint, spec.id)
    # The checkpoint itself records its attempt. `state.json` is written separately, so after a crash it may belong to
    # another attempt, whose model can have another size.
    model = spec.attempt(len(Attempts.from_notes(notes).finished)).make_model()
    steps_done = load_final_weights(model, folder.checkpoint, spec.id)
    model.eval()
    return Run(folder, spec, model, steps_done)
