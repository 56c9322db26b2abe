"""Runs sent to trackers: replayed from their folders, and while they train."""

import struct
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from command import exit_code
from synthetic_runs import synthetic_run
from tensorboardX.proto.event_pb2 import Event

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.execute import Interrupted, execute
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.journal import Journal, Probe
from lengthwise.runs.progress import Progress
from lengthwise.runs.spec import make_spec
from lengthwise.runs.tracking.base import TRACKERS
from lengthwise.runs.tracking.replay import live_tracking, measured, track
from lengthwise.training.loop import StepRecord

NUM_STEPS = 500


@pytest.fixture
def finished(tmp_path: Path) -> RunFolder:
    """A run folder with steps, a probe and a result, as training would leave it."""
    run = synthetic_run(settings={"train": {"steps": NUM_STEPS}})
    assert run.result is not None
    folder = RunFolder(tmp_path / "runs" / run.result.run_id)
    folder.create(make_spec("parity", "regular-gpt", {"train": {"steps": NUM_STEPS}}))
    folder.metrics.path.write_text("".join(map(Journal.line, run.metrics)))
    folder.probes.path.write_text(Journal.line(Probe(500, 0.75, 1.5)))
    folder.write_result(run.result)
    return folder


Scalars = dict[str, list[tuple[int, float]]]


def events(folder: Path) -> tuple[Scalars, dict[str, str], list[int]]:
    """Scalars and texts of the newest event file of a folder, and the steps from which it replaces older files."""
    content = max(folder.glob("events.out.tfevents.*")).read_bytes()
    scalars: Scalars = defaultdict(list)
    texts, replaced, offset = {}, [], 0
    while offset < len(content):
        (length,) = struct.unpack("<Q", content[offset : offset + 8])
        event = Event.FromString(content[offset + 12 : offset + 12 + length])
        offset += length + 16  # its length, that's checksum, the event's checksum
        if event.HasField("session_log"):
            replaced.append(event.step)
        for value in event.summary.value:
            if value.HasField("simple_value"):
                scalars[value.tag].append((event.step, value.simple_value))
            else:
                texts[value.tag] = value.tensor.string_val[0].decode()
    return scalars, texts, replaced


def test_a_run_is_replayed_into_event_files(finished: RunFolder, tmp_path: Path, capsys) -> None:
    out = tmp_path / "events"
    assert exit_code("track", str(finished.path), "--to", "tensorboard", "--out", str(out)) == 0
    assert f"500 steps sent to tensorboard: event files below {out}" in capsys.readouterr().out
    scalars, texts, replaced = events(out / finished.path.name)
    records, result = finished.metrics.read(), finished.read_result()
    assert result is not None
    assert scalars["train/loss"] == [(record.step, pytest.approx(record.loss)) for record in records]
    assert scalars["probe/accuracy"] == [(500, 0.75)]
    assert "probe/fresh_accuracy" not in scalars, "the probe tested no fresh strings"
    assert scalars["result/accuracy_at_1000"] == [(NUM_STEPS, 1.0)]
    assert scalars["result/num_parameters"] == [(NUM_STEPS, 25_216.0)]
    points = [*result.dense.points, *result.long.points]
    assert scalars["by_length/accuracy"] == [(point.length, point.accuracy) for point in points]
    assert '"train.steps": 500' in texts["settings/text_summary"]
    assert replaced == [0], "what an earlier replay wrote is hidden"


class StandIn:
    """A run of a module with `init`, `log` and `finish`."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments, self.logged, self.axes, self.is_finished = arguments, [], {}, False

    def log(self, data: dict[str, Any], step: int | None = None) -> None:
        assert not self.is_finished
        self.logged.append((step, data))

    def define_metric(self, name: str, *, step_metric: str) -> None:
        self.axes[name] = step_metric

    def finish(self) -> None:
        self.is_finished = True


@pytest.fixture(params=["wandb", "trackio"])
def stand_ins(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[StandIn]]:
    """A module of a tracker's name, and the runs that were begun in it."""
    runs: list[StandIn] = []

    def init(**arguments: Any) -> StandIn:
        runs.append(StandIn(**arguments))
        return runs[-1]

    module = ModuleType(request.param)
    module.init = init
    monkeypatch.setitem(sys.modules, request.param, module)
    return request.param, runs


def test_a_run_is_replayed_into_a_module_with_init_log_and_finish(
    finished: RunFolder, tmp_path: Path, stand_ins
) -> None:
    tracker, runs = stand_ins
    track(finished.path, tracker, project="lengths", folder=tmp_path / "out")
    (run,) = runs
    assert (run.arguments["project"], run.arguments["name"]) == ("lengths", finished.path.name)
    assert run.arguments["config"]["model.name"] == "regular-gpt"
    assert "space_id" not in run.arguments
    assert tracker == "wandb" or run.arguments["private"], "a Space that the user's own variables name is not public"
    steps = [step for step, data in run.logged if "train/loss" in data]
    assert steps == list(range(1, NUM_STEPS + 1))
    (with_probe,) = [(step, "train/loss" in data) for step, data in run.logged if "probe/accuracy" in data]
    assert with_probe == (500, True), "steps never go back"
    (summary,) = [data for step, data in run.logged if step == NUM_STEPS and "result/weights" in data]
    assert summary["result/mean_accuracy"] == 1.0
    curve = [data for step, data in run.logged if step is None]
    assert curve[0] == {"by_length/length": 41, "by_length/accuracy": 1.0}
    assert curve[-1]["by_length/length"] == 100_000
    assert run.axes == ({"by_length/*": "by_length/length"} if tracker == "wandb" else {})
    assert run.is_finished


class StandInClient:
    """What is used of MLflow's client."""

    made: "list[StandInClient]"

    def __init__(self, tracking_uri: str) -> None:
        self.uri, self.metrics, self.params, self.tags, self.is_over = tracking_uri, [], [], {}, False
        StandInClient.made.append(self)

    def get_experiment_by_name(self, name: str) -> None:
        return None

    def create_experiment(self, name: str) -> str:
        return "1"

    def create_run(self, experiment_id: str, *, run_name: str) -> SimpleNamespace:
        return SimpleNamespace(info=SimpleNamespace(run_id=f"{experiment_id}-{run_name}"))

    def log_batch(self, run_id: str, metrics: Any = (), params: Any = ()) -> None:
        assert len(metrics) <= 1_000
        assert len(params) <= 100
        self.metrics += metrics
        self.params += params

    def set_tag(self, run_id: str, key: str, value: str) -> None:
        self.tags[key] = value

    def set_terminated(self, run_id: str) -> None:
        self.is_over = True


def test_a_run_is_replayed_into_mlflow(finished: RunFolder, tmp_path: Path, monkeypatch) -> None:
    entities = SimpleNamespace(Metric=lambda *values: values, Param=lambda *values: values)
    monkeypatch.setitem(sys.modules, "sqlalchemy", ModuleType("sqlalchemy"))
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(entities=entities, MlflowClient=StandInClient))
    monkeypatch.setattr(StandInClient, "made", [], raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    track(finished.path, "mlflow", folder=tmp_path)
    (client,) = StandInClient.made
    assert client.uri == f"sqlite:///{tmp_path}/mlflow.db"
    losses = {step: number for name, number, _, step in client.metrics if name == "train/loss"}
    assert losses == {record.step: record.loss for record in finished.metrics.read()}
    assert ("train.steps", "500") in client.params
    assert client.tags == {"result/weights": "final weights, averaged over steps"}
    assert client.is_over
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    track(finished.path, "mlflow", folder=tmp_path)
    assert StandInClient.made[-1].uri == "http://127.0.0.1:5000"


def test_a_length_that_two_parts_measured_is_sent_once_in_order_of_length() -> None:
    """What more strings say: at 43 the 64 long ones, of which half are right, at 44 the 8 of the dense range."""

    def num_correct(length: int, num_strings: int) -> int:
        return num_strings // (1 if num_strings == 8 else 2)

    plan = EvaluationPlan(dense=(41, 44), dense_strings=8, long=((43, 64), (44, 4), (1_000, 8)), structured=())
    result = synthetic_run(plan=plan, num_correct=num_correct).result
    assert result is not None
    curve = measured(result).by_length["by_length/accuracy"]
    assert curve == [(41, 1.0), (42, 1.0), (43, 0.5), (44, 1.0), (1_000, 1.0)]


SPEC = make_spec(
    "parity",
    "regular-gpt",
    {
        "model": {"d_model": 8, "num_heads": 2},
        "train": {"steps": 40, "batch_size": 4, "max_length": 8, "checkpoint_every": 10},
    },
)
PLAN = EvaluationPlan(dense=(9, 12), dense_strings=8, long=(), structured=())


def test_a_tracker_without_an_account_fails_in_a_sentence(finished: RunFolder, monkeypatch, capsys) -> None:
    def init(**_: Any) -> None:
        raise type("UsageError", (Exception,), {})("No API key.\nLog in.")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    assert exit_code("track", str(finished.path), "--to", "wandb", "--out", str(finished.path.parent)) == 1
    expected = f"{finished.path}: wandb did not accept the run (UsageError: No API key. Log in.); set up wandb"
    assert capsys.readouterr().err == f"lengthwise: {expected}\n"


def test_a_run_is_tracked_while_it_trains(tmp_path: Path, monkeypatch) -> None:
    """What it left when it was stopped is a run of the tracker; what it did afterwards, with all steps, another."""
    monkeypatch.setattr("lengthwise.runs.tracking.replay.UPDATE_SECONDS", 0.0)
    sent_before_the_end = []
    with live_tracking("tensorboard", tmp_path, folder=tmp_path / "events") as tracking:

        def listen(progress: Progress) -> None:
            tracking(progress)
            if progress.done == 30:
                sent_before_the_end.append(tracking._replays[SPEC.id].num_steps)

        with pytest.raises(Interrupted):
            execute(SPEC, tmp_path, PLAN, listen, lambda: bool(sent_before_the_end))
    assert sent_before_the_end[0] >= 20, "checkpoints bring the journal to the disk"
    scalars, _, _ = events(tmp_path / "events" / SPEC.id)
    assert [step for step, _ in scalars["train/loss"]] == list(range(1, 31))
    with live_tracking("tensorboard", tmp_path, folder=tmp_path / "again") as tracking:
        execute(SPEC, tmp_path, PLAN, tracking)
    scalars, _, _ = events(tmp_path / "again" / SPEC.id)
    assert [step for step, _ in scalars["train/loss"]] == list(range(1, 41))
    assert len(scalars["by_length/accuracy"]) == 4


def test_a_tracker_that_fails_stops_no_run(tmp_path: Path, monkeypatch) -> None:
    class Failing(StandIn):
        def log(self, data: dict[str, Any], step: int | None = None) -> None:
            raise ConnectionError("no route")

    module = ModuleType("trackio")
    module.init = Failing
    monkeypatch.setitem(sys.modules, "trackio", module)
    monkeypatch.setattr("lengthwise.runs.tracking.replay.UPDATE_SECONDS", 0.0)
    with (
        pytest.warns(UserWarning, match="no longer tracked .ConnectionError: no route") as warned,
        live_tracking("trackio", tmp_path) as tracking,
    ):
        result = execute(SPEC, tmp_path, PLAN, tracking)
    assert result.training.step == 40
    assert len(warned) == 1


def test_a_journal_is_read_while_it_is_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "metrics.jsonl", StepRecord)
    assert journal.read_after(0) == ([], 0)
    first, second = (StepRecord(step, 0.5, 9, 1.0, 1e-3) for step in (1, 2))
    line = Journal.line(second)
    journal.path.write_text(Journal.line(first) + line[:20])
    entries, offset = journal.read_after(0)
    assert (entries, offset) == ([first], len(Journal.line(first)))
    journal.path.write_text(Journal.line(first) + line)
    assert journal.read_after(offset) == ([second], offset + len(line))
    with pytest.raises(ValueError, match="the file was cut back meanwhile"):
        journal.read_after(1_000)
    journal.path.write_text("nonsense\n")
    with pytest.raises(ValueError, match="damaged after byte 0"):
        journal.read_after(0)


def test_an_extra_that_is_missing_is_one_sentence(finished: RunFolder, monkeypatch, capsys) -> None:
    """Also where the run would have been trained first."""
    monkeypatch.setitem(sys.modules, "wandb", None)
    sentence = (
        "lengthwise: tracker: expected the package wandb for tracker wandb, got none; pip install 'lengthwise[wandb]'\n"
    )
    assert exit_code("track", str(finished.path), "--to", "wandb") == 2
    assert capsys.readouterr() == ("", sentence)
    runs = finished.path.parent
    assert exit_code("train", "parity", "rnn", "--track", "wandb", "--runs", str(runs)) == 2
    assert capsys.readouterr() == ("", sentence)
    assert list(runs.iterdir()) == [finished.path]


def test_what_cannot_be_tracked_is_one_sentence(finished: RunFolder, tmp_path: Path, capsys) -> None:
    folder = str(finished.path)
    assert exit_code("track", folder, "--to", "tensorbord") == 2
    assert "unknown tracker 'tensorbord'; did you mean 'tensorboard'?" in capsys.readouterr().err
    assert exit_code("track", str(tmp_path / "none"), "--to", "tensorboard") == 2
    assert "expected a run folder, but there is no such folder" in capsys.readouterr().err
    finished.metrics.path.unlink()
    assert exit_code("track", folder, "--to", "tensorboard") == 2
    error = capsys.readouterr().err
    assert error == (
        f"lengthwise: {folder}: expected a run with metrics, got a run without training steps; train this run, or "
        "track another\n"
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("tracker", sorted(TRACKERS))
def test_real_packages_take_a_run(tracker: str, finished: RunFolder, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))  # read when trackio is imported first
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for module in TRACKERS[tracker].modules:
        pytest.importorskip(module)
    out = tmp_path / "out"
    steps, _ = track(finished.path, tracker, folder=out)
    assert steps == NUM_STEPS
    if tracker == "mlflow":
        import mlflow

        client = mlflow.MlflowClient(f"sqlite:///{out}/mlflow.db")
        (run,) = client.search_runs([client.get_experiment_by_name("lengthwise").experiment_id])
        history = client.get_metric_history(run.info.run_id, "train/loss")
        assert [(metric.step, metric.value) for metric in history] == [
            (record.step, record.loss) for record in finished.metrics.read()
        ]
        assert run.data.params["train.steps"] == "500"
    elif tracker == "trackio":
        import trackio

        (run,) = trackio.Api().runs("lengthwise")
        assert run.name == finished.path.name
    elif tracker == "wandb":
        assert list(out.glob("wandb/offline-run-*/*.wandb"))
