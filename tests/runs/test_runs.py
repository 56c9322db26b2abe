"""Runs: their folders, results and measurements, and damage to their files."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_runs import PLAN, small_spec

from lengthwise.randomness import generator_for
from lengthwise.runs import execute as execute_module
from lengthwise.runs.execute import execute
from lengthwise.runs.folder import RunFolder, load_run
from lengthwise.runs.pools.outcome import finished
from lengthwise.runs.predict import predict_text
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import make_spec, spec_from_json
from lengthwise.training.checkpoint import load_checkpoint, load_final_weights
from lengthwise.training.loop import Diverged, TrainingState


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, which tests only read."""
    root = tmp_path_factory.mktemp("undisturbed")
    execute(small_spec(), root, PLAN)
    return root


@pytest.fixture
def finished_run(undisturbed: Path, tmp_path: Path) -> RunResult:
    """The result of a finished run, whose folder is copied so that a test may change it."""
    folder = shutil.copytree(undisturbed / small_spec().id, tmp_path / small_spec().id)
    result = RunFolder(folder).read_result()
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("setting", "usual", "other", "sentence"),
    [
        (
            torch.set_default_dtype,
            torch.float32,
            torch.float64,
            "expected float32 as torch's default, got float64; call",
        ),
        (torch.set_default_device, None, "meta", "device: expected the CPU as torch's default, got meta; call torch"),
        (torch.set_float32_matmul_precision, "highest", "medium", "precision: expected 'highest', got 'medium'; call"),
    ],
)
def test_a_run_is_of_its_settings_and_of_none_of_torch_s(
    tmp_path: Path, setting: Callable[[object], None], usual: object, other: object, sentence: str
) -> None:
    spec = small_spec()
    setting(other)
    try:
        with pytest.raises(ValueError, match=sentence):
            execute(spec, tmp_path, PLAN)
    finally:
        setting(usual)
    with torch.autocast("cpu"), pytest.raises(ValueError, match="expected no autocast, got autocast on the CPU"):
        execute(spec, tmp_path, PLAN)
    assert not list(tmp_path.iterdir())


def test_a_run_leaves_torch_s_own_generator_alone(tmp_path: Path) -> None:
    before = torch.random.get_rng_state()
    execute(small_spec(), tmp_path, PLAN)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    spec, seen = small_spec(), []
    first = execute(spec, tmp_path, PLAN)
    assert execute(spec, tmp_path, PLAN, seen.append) == first
    assert [progress.phase for progress in seen] == ["done"]


def test_a_result_with_more_lengths_than_the_plan_serves(tmp_path: Path) -> None:
    spec = small_spec()
    low, high = PLAN.dense
    narrow = PLAN.restrict_dense(low + 1, high - 1)
    measured = execute(spec, tmp_path, narrow)
    assert measured.plan.dense == (low + 1, high - 1)
    wide = execute(spec, tmp_path, PLAN)
    assert wide.plan == PLAN, "a narrower result has not all of it"
    assert execute(spec, tmp_path, narrow) == wide
    (outcome,) = finished([spec], tmp_path, [narrow])
    assert outcome.result == wide
    assert not PLAN.model_copy(update={"dense_strings": PLAN.dense_strings - 1}).covers(PLAN)


def test_a_shorter_plan_leaves_a_longer_result_as_it_is(tmp_path: Path) -> None:
    spec = small_spec()
    shorter = PLAN.limit_lengths(PLAN.dense[1])
    assert shorter.long != PLAN.long
    longer = execute(spec, tmp_path, PLAN)
    assert execute(spec, tmp_path, shorter) == longer == RunFolder(tmp_path / spec.id).read_result()


def test_a_result_that_cannot_be_read_is_none_and_says_why(tmp_path: Path) -> None:
    specs = [small_spec(seed=seed) for seed in (0, 1)]
    for spec in specs:
        execute(spec, tmp_path, PLAN)
    (tmp_path / specs[0].id / "result.json").write_text("{}")
    broken, whole = finished(specs, tmp_path, [PLAN] * 2)
    assert broken.result is None
    assert "result.json: damaged file" in broken.reason
    assert whole.result is not None


def test_a_result_with_a_certificate_serves_a_plan_without() -> None:
    certified = PLAN.model_copy(update={"certificate": True})
    assert certified.covers(PLAN)
    assert not PLAN.covers(certified)


def test_a_result_has_the_loss_of_its_final_weights(tmp_path: Path) -> None:
    spec = small_spec(min_length=8)
    result = execute(spec, tmp_path, PLAN)
    batch = spec.task.sample(spec.recipe.batch_size, 8, generator_for(spec.seed, "final loss", 8))
    with torch.no_grad():
        logits = load_run(tmp_path / spec.id).model.last(batch.inputs)
    expected = torch.nn.functional.cross_entropy(logits, batch.targets[:, -1])
    assert result.final_loss == pytest.approx(float(expected), rel=1e-4)
    assert RunResult.model_validate_json(result.model_dump_json()) == result
    assert "final_loss" not in result.model_copy(update={"final_loss": None}).model_dump()


def test_another_plan_measures_again_without_training(tmp_path: Path, finished_run: RunResult) -> None:
    spec, seen = small_spec(), []
    plan = PLAN.model_copy(update={"dense_strings": 4})
    second = execute(spec, tmp_path, plan, seen.append)
    assert "training" not in {progress.phase for progress in seen}
    assert second.plan == plan
    assert second.training.step == finished_run.training.step == 25


def test_divergence_is_reported_and_keeps_the_last_good_checkpoint(tmp_path: Path, monkeypatch) -> None:
    spec = small_spec()
    real = execute_module.training_steps

    def diverging(state, task, recipe, *, seed):
        for record in real(state, task, recipe, seed=seed):
            if record.step == 15:
                raise Diverged("training diverged at step 15: loss nan")
            yield record

    monkeypatch.setattr(execute_module, "training_steps", diverging)
    with pytest.raises(Diverged):
        execute(spec, tmp_path, PLAN)
    folder = RunFolder(tmp_path / spec.id)
    assert folder.read_status().status == "diverged"
    assert "step 15" in folder.read_status().message
    assert all(tensor.isfinite().all() for tensor in load_file(folder.checkpoint).values())
    assert load_run(folder.path).result is None


def test_ids_are_hashes_of_the_whole_specification() -> None:
    ids = {small_spec(seed).id for seed in range(3)} | {small_spec(steps=26).id, small_spec(task="even-pairs").id}
    assert len(ids) == 5
    assert small_spec().id == spec_from_json(json.loads(json.dumps(small_spec().to_json()))).id


@pytest.mark.usefixtures("finished_run")
def test_a_run_is_read_back(tmp_path: Path) -> None:
    spec = small_spec()
    run = load_run(tmp_path / spec.id)
    assert run.spec == spec
    assert [record.step for record in run.metrics] == list(range(1, 26))
    prediction = predict_text(run.model, run.spec.task, "abba")
    assert prediction.answer in ("0", "1")
    assert 0.5 <= prediction.probability <= 1
    assert prediction.verdict == ("right" if prediction.answer == "0" else "wrong, it is 0")
    with torch.no_grad():
        for parameter in run.model.parameters():
            parameter.fill_(torch.nan)
    overflowed = predict_text(run.model, run.spec.task, "abba")
    assert (overflowed.answer, overflowed.verdict) == ("none: a logit is not finite", "wrong")
    run = load_run(tmp_path / spec.id)
    average = load_file(run.folder.checkpoint)["average.embedding.weight"]
    assert torch.equal(run.model.state_dict()["embedding.weight"], average)


def test_result_says_how_it_came_about(finished_run: RunResult) -> None:
    assert finished_run.weights == "final weights, averaged over steps"
    assert {"lengthwise", "torch", "python", "commit", "begun at commit", "device"} <= finished_run.versions.keys()
    assert finished_run.training.cpu_seconds > 0
    assert finished_run.process_peak_memory_mb > 10


def test_seconds_of_training_stay_where_a_run_is_measured_again(tmp_path: Path) -> None:
    settings = {"model": {"d_model": 8, "num_heads": 2}, "train": {"steps": 9, "pace": {"contract_steps": 5}}}
    for spec in (small_spec(), make_spec("parity", "regular-gpt", settings, goal="solved", budget=0)):
        first = execute(spec, tmp_path, PLAN)
        again = execute(spec, tmp_path, PLAN.model_copy(update={"seed": 1}))
        assert again.dense != first.dense
        assert again.training.cpu_seconds == pytest.approx(first.training.cpu_seconds, abs=0.05)
        assert again.training.step == first.training.step


@pytest.mark.usefixtures("finished_run")
def test_damaged_files_are_named(tmp_path: Path) -> None:
    spec = small_spec()
    path = tmp_path / spec.id
    whole = (path / "checkpoint.safetensors").read_bytes()
    (path / "checkpoint.safetensors").write_bytes(whole[:200])
    with pytest.raises(ValueError, match=r"checkpoint.safetensors: damaged checkpoint .*move .* away"):
        load_run(path)
    (path / "checkpoint.safetensors").unlink()
    with pytest.raises(ValueError, match="expected a run with its weights, got only its result; move"):
        load_run(path)
    for content in ("{", "[]", "{}", '{"spec": 3}', '{"spec": {"task": 1, "model": {}, "train": {}}}'):
        (path / "run.json").write_text(content)
        with pytest.raises(ValueError, match=r"run.json: damaged file"):
            load_run(path)
    (path / "state.json").write_text('{"step": "many"}')
    with pytest.raises(ValueError, match=r"state.json: damaged file .its contents have changed"):
        RunFolder(path).read_status()


@pytest.mark.sampled(2)  # each case measures the run again
@pytest.mark.parametrize("content", ['{"run_id": 5}', "{", "[]"])
def test_an_unreadable_result_is_set_aside_and_measured_again(
    tmp_path: Path, finished_run: RunResult, content: str
) -> None:
    spec, seen = small_spec(), []
    path = tmp_path / spec.id
    (path / "result.json").write_text(content)
    with pytest.raises(ValueError, match=r"result.json: (not a result|damaged)"):
        load_run(path).result
    again = execute(spec, tmp_path, PLAN, seen.append)
    assert again.curves == finished_run.curves
    assert "training" not in {progress.phase for progress in seen}
    assert (path / "result.unreadable.json").read_text() == content


@pytest.mark.usefixtures("finished_run")
def test_a_flipped_bit_in_a_checkpoint_is_found(tmp_path: Path) -> None:
    spec = small_spec()
    path = tmp_path / spec.id / "checkpoint.safetensors"
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged checkpoint .its contents have changed"):
        load_run(tmp_path / spec.id)


def test_a_checkpoint_put_into_another_run_is_not_read(tmp_path: Path) -> None:
    one, other = small_spec(0), small_spec(1)
    for spec in (one, other):
        execute(spec, tmp_path, PLAN)
    stray = tmp_path / one.id / "checkpoint.safetensors"
    stray.replace(tmp_path / other.id / "checkpoint.safetensors")
    with pytest.raises(ValueError, match="belongs to another specification, parity-regular-gpt-seed0"):
        load_run(tmp_path / other.id)


@pytest.mark.usefixtures("finished_run")
@pytest.mark.parametrize("line", [b'{"step": "x"}', b"\xff\xfe", b'{"step": 3}', b"[]", b"7"])
def test_damage_in_the_middle_of_the_metrics_is_named(tmp_path: Path, line: bytes) -> None:
    spec = small_spec()
    metrics = tmp_path / spec.id / "metrics.jsonl"
    lines = metrics.read_bytes().splitlines()
    lines[2] = line
    metrics.write_bytes(b"\n".join(lines))
    run = load_run(tmp_path / spec.id)  # answers strings without its metrics
    with pytest.raises(ValueError, match=r"metrics.jsonl: damaged at line 3"):
        run.metrics


def test_a_missing_run_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere: expected a run folder, but there is no such folder"):
        load_run(tmp_path / "nowhere")


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    one, other = small_spec(0), small_spec(1)
    execute(one, tmp_path, PLAN)
    (tmp_path / other.id).mkdir()
    (tmp_path / one.id / "checkpoint.safetensors").rename(tmp_path / other.id / "checkpoint.safetensors")
    with pytest.raises(ValueError, match="belongs to another specification"):
        execute(other, tmp_path, PLAN)


def test_two_processes_cannot_work_on_one_run(tmp_path: Path) -> None:
    spec = small_spec()
    folder = RunFolder(tmp_path / spec.id)
    folder.create(spec)
    with folder.locked(), pytest.raises(ValueError, match="another process is working on this run"):
        execute(spec, tmp_path, PLAN)


def test_no_draft_is_left_behind(tmp_path: Path) -> None:
    spec = small_spec()
    execute(spec, tmp_path, PLAN)
    names = {path.name for path in (tmp_path / spec.id).iterdir()}
    assert names == {
        ".lock",
        "run.json",
        "state.json",
        "metrics.jsonl",
        "probes.jsonl",
        "checkpoint.safetensors",
        "result.json",
    }


def test_a_checkpoint_of_another_version_of_the_model_is_refused(tmp_path: Path) -> None:
    spec = small_spec(0)
    execute(spec, tmp_path, PLAN)
    other = make_spec("parity", "regular-gpt", {"model": {"d_model": 16, "num_heads": 2}}).make_model()
    path = tmp_path / spec.id / "checkpoint.safetensors"
    with pytest.raises(ValueError, match="its weights belong to another version of regular-gpt; move"):
        load_final_weights(other, path, spec.id)
    with pytest.raises(ValueError, match="its weights belong to another version of regular-gpt; move"):
        load_checkpoint(TrainingState(other, spec.recipe), path, spec.id)
