"""Runs that train until a certificate reaches a level: attempts, budgets, interruptions, what is refused."""

from pathlib import Path

import pytest
from fewer_strings import draw_fewer_strings
from safetensors.torch import load_file

from lengthwise.certification import traces as drawn
from lengthwise.cli.messages import with_flag
from lengthwise.cli.training import train as train_command
from lengthwise.conventions import Diverged
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.report.pages import run as run_page
from lengthwise.runs import execute as execute_module
from lengthwise.runs.execute import Interrupted, execute
from lengthwise.runs.folder import RunFolder, load_run
from lengthwise.runs.goal import Goal
from lengthwise.runs.pools.folder_progress import progress_of
from lengthwise.runs.progress import Progress
from lengthwise.runs.result import RunStatus
from lengthwise.runs.spec import RunSpec, make_spec, spec_from_json
from lengthwise.training.loop import INITIAL_LOSS, StepRecord
from lengthwise.training.recipe import SHARE_OF_LATEST

PLAN = EvaluationPlan(dense=(9, 12), dense_strings=8, long=((30, 4),), structured=((20, 2),))
ONE_STATE, EIGHT_STATES = ({"d_model": size, "block_dim": size} for size in (1, 8))
"""No net of one state knows the parity of a string."""
CONTRACT_STEPS = 30
SOLVED_LOSS = 0.05


@pytest.fixture(autouse=True)
def few_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates from fewer and shorter strings."""
    draw_few_strings(monkeypatch)


def draw_few_strings(patch: pytest.MonkeyPatch) -> None:
    draw_fewer_strings(patch.setattr)
    patch.setattr(drawn, "TESTED_LENGTHS", (10, 20, 40))


def with_goal(*models: dict, budget: float = 600.0, level: str = "proved", **train) -> RunSpec:
    """Parity by these models in turn."""
    settings = {
        "train": {
            "steps": 300,
            "batch_size": 16,
            "min_length": 1,
            "max_length": 6,
            "checkpoint_every": 50,
            "pace": {"solved_loss": SOLVED_LOSS, "contract_steps": CONTRACT_STEPS, "patience": 60},
            "optimizer": {"warmup_steps": 20},
            **train,
        }
    }
    spec = make_spec("parity", "block-linear-rnn", settings, preset="machine", goal=level, budget=budget)
    return spec._replace(goal=Goal(level=level, budget=budget, models=models))


BOTH = with_goal(ONE_STATE, EIGHT_STATES)


def test_without_a_pace_nothing_says_when_an_attempt_has_learned() -> None:
    with pytest.raises(ValueError, match=r"train\.pace: expected a section that sets when training with goal='proved'"):
        make_spec("parity", "block-linear-rnn", {"train": {"pace": None}}, goal="proved")


def test_between_attempts_a_run_is_not_measured_yet(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / BOTH.id)
    folder.create(BOTH)
    with folder.metrics.appending() as journal:
        journal.write(StepRecord(step=7, length=3, loss=0.5, gradient_norm=1.0, learning_rate=0.1))
    for status, phase in (("training", "training"), ("trained", "training"), ("reached", "measuring")):
        folder.write_status(RunStatus(status=status))
        progress = progress_of(BOTH, tmp_path)
        assert progress is not None
        assert progress.phase == phase


def test_progress_shows_the_running_loss_that_decides_whether_the_task_is_solved(tmp_path: Path) -> None:
    seen = list[Progress]()
    spec = with_goal(
        EIGHT_STATES, budget=0.0, level="solved", pace={"solved_loss": 1e-9, "contract_steps": 5}, steps=30
    )
    execute(spec, tmp_path, PLAN, seen.append)
    running, expected = INITIAL_LOSS, []
    for step in RunFolder(tmp_path / spec.id).read_metrics():
        running += SHARE_OF_LATEST * (step.loss - running)
        expected += [f"loss {running:.2g}"] * (step.step % 10 == 0)
    notes = [report.note for report in seen if report.phase == "training" and not report.is_decision]
    assert notes[: len(expected)] == expected
    assert len(expected) >= 2


def test_an_attempt_that_ended_before_lengths_had_grown_says_so(tmp_path: Path) -> None:
    easy = {"lengths": "legal", "length_sampling": "growing", "pace": {"solved_loss": 1e3, "contract_steps": 5}}
    spec = with_goal(EIGHT_STATES, budget=0.0, level="solved", **easy, steps=20)
    result = execute(spec, tmp_path, PLAN)
    (attempt,) = result.training.attempts
    assert (attempt.solved_at, attempt.longest) == (None, 1)  # 18 steps at least are needed for each length
    assert attempt.outcome.startswith("it reached lengths up to 1 only, with a loss of ")


def contents(root: Path, spec: RunSpec) -> tuple[object, ...]:
    """All of a finished run that must not depend on how it came about."""
    folder = RunFolder(root / spec.id)
    result = folder.read_result()
    assert result is not None
    assert result.certificate is not None
    weights = {name: tensor.tolist() for name, tensor in load_file(folder.checkpoint).items()}
    certificate = result.certificate.model_copy(update={"seconds": 0.0})
    return weights, folder.metrics.path.read_text(), result.training.attempts, list(result.curves), certificate


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        draw_few_strings(patch)
        execute(BOTH, root, PLAN)
    return root


def test_attempts_go_on_until_the_level_is_reached(undisturbed: Path) -> None:
    run = load_run(undisturbed / BOTH.id)
    assert run.result is not None
    training = run.result.training
    first, second = training.attempts
    assert (first.model, first.solved_at, first.level) == (ONE_STATE, None, None)
    assert first.loss is not None
    assert first.loss > 0.6
    assert (second.model, second.level, training.status) == (EIGHT_STATES, "proved", "reached")
    assert second.solved_at is not None
    assert second.steps == second.solved_at + CONTRACT_STEPS
    assert training.step == first.steps + second.steps == len(run.metrics)
    assert [record.step for record in run.metrics] == list(range(1, training.step + 1))
    assert first.seed != second.seed
    assert run.model.config.d_model == 8
    assert run.is_trained
    assert not run.folder.probes.read(), "strings were answered while what was reached decided how to go on"
    assert run.result.certificate is not None
    assert run.result.certificate.model["d_model"] == 8


def test_a_report_takes_the_certificate_of_the_last_attempt(undisturbed: Path, monkeypatch) -> None:
    monkeypatch.setattr(run_page, "check", lambda certificate: None)  # which requires more and longer strings
    measured = run_page.read_measured(undisturbed / BOTH.id)
    assert measured.result is not None
    assert measured.result.certificate is not None
    assert measured.result.certificate.model["d_model"] == 8 != BOTH.model_config.d_model
    assert len(measured.metrics) == measured.result.training.step


class StopAt:
    """A listener that asks for a stop at a step of an attempt."""

    def __init__(self, attempt: int, step: int) -> None:
        self.attempt, self.step, self.begun, self.requested = attempt, step, 0, False

    def __call__(self, progress: Progress) -> None:
        self.begun += progress.note.startswith("attempt")
        self.requested |= self.begun == self.attempt and progress.done >= self.step and not progress.is_decision


# Each case trains again what is left. By default the run that dies below goes on, and tests/runs/test_resumed_runs.py
# interrupts runs of one attempt.
@pytest.mark.slow
@pytest.mark.parametrize(("attempt", "step"), [(2, 100), (1, 10), (1, 100), (2, 10)])
def test_an_interrupted_run_goes_on_to_the_same_bits(
    attempt: int, step: int, tmp_path: Path, undisturbed: Path
) -> None:
    listener = StopAt(attempt, step)
    with pytest.raises(Interrupted):
        execute(BOTH, tmp_path, PLAN, listener, lambda: listener.requested)
    assert not load_run(tmp_path / BOTH.id).is_trained
    execute(BOTH, tmp_path, PLAN)
    assert contents(tmp_path, BOTH) == contents(undisturbed, BOTH)


@pytest.mark.sampled(6)  # each case trains again what is left
@pytest.mark.parametrize("call", [7, *range(1, 7, 2), 9, 11])
def test_a_run_that_dies_wherever_it_writes_goes_on_to_the_same_bits(
    call: int, tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies before the n-th checkpoint, status or certificate is written."""
    num_calls = 0

    def dying(write):
        def or_die(*arguments, **named):
            nonlocal num_calls
            num_calls += 1
            if num_calls == call:
                raise MemoryError
            return write(*arguments, **named)

        return or_die

    for owner, name in (
        (execute_module, "save_checkpoint"),
        (execute_module, "write_certificate"),
        (RunFolder, "write_status"),
    ):
        monkeypatch.setattr(owner, name, dying(getattr(owner, name)))
    with pytest.raises(MemoryError):
        execute(BOTH, tmp_path, PLAN)
    execute(BOTH, tmp_path, PLAN)
    assert contents(tmp_path, BOTH) == contents(undisturbed, BOTH)


def test_a_budget_of_0_is_one_attempt_and_more_of_it_goes_on(tmp_path: Path, undisturbed: Path) -> None:
    spec = with_goal(ONE_STATE, EIGHT_STATES, budget=0.0)
    assert spec.id == BOTH.id
    result = execute(spec, tmp_path, PLAN)
    assert (result.training.status, len(result.training.attempts)) == ("out of budget", 1)
    assert result.certificate is not None
    assert result.certificate.level == "refuted"
    assert load_run(tmp_path / spec.id).model.config.d_model == 1
    assert execute(spec, tmp_path, PLAN) == result, "a run without budget was worked on again"
    spent = result.training.cpu_seconds
    assert execute(BOTH, tmp_path, PLAN).training.cpu_seconds > spent
    assert contents(tmp_path, BOTH) == contents(undisturbed, BOTH)
    assert RunFolder(tmp_path / spec.id).read_spec() == BOTH


def test_cpu_seconds_of_earlier_processes_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, listener = with_goal(ONE_STATE, budget=1e6), StopAt(1, 50)
    with pytest.raises(Interrupted):
        execute(spec, tmp_path, PLAN, listener, lambda: listener.requested)
    folder = RunFolder(tmp_path / spec.id)
    folder.write_status(folder.read_status().model_copy(update={"cpu_seconds": 2e6}))
    result = execute(spec, tmp_path, PLAN)
    assert (result.training.status, len(result.training.attempts)) == ("out of budget", 1)


def test_a_certificate_below_the_level_begins_another_attempt(tmp_path: Path, monkeypatch) -> None:
    real = execute_module.write_certificate
    levels = iter(["extracted"])

    def lower(*arguments, **named):
        certificate = real(*arguments, **named)
        return certificate.model_copy(update={"level": next(levels, certificate.level)})

    monkeypatch.setattr(execute_module, "write_certificate", lower)
    sentences: list[str] = []
    result = execute(
        with_goal(EIGHT_STATES),
        tmp_path,
        PLAN,
        lambda progress: sentences.append(progress.note) if progress.is_decision else None,
    )
    assert [attempt.level for attempt in result.training.attempts] == ["extracted", "proved"]
    assert any("attempt 1: its certificate is extracted" in sentence for sentence in sentences)
    assert sentences[-1].startswith("reached: its certificate is proved, after ")


def test_another_attempt_comes_after_one_that_diverges(tmp_path: Path, monkeypatch) -> None:
    real, started = execute_module.training_steps, []

    def diverging(state, task, recipe, *, seed):
        started.append(seed)
        for step in real(state, task, recipe, seed=seed):
            if len(started) == 1 and step.step == 30:
                raise Diverged("training diverged at step 30")
            yield step

    monkeypatch.setattr(execute_module, "training_steps", diverging)
    result = execute(with_goal(EIGHT_STATES), tmp_path, PLAN)
    first = result.training.attempts[0]
    assert (first.loss, first.outcome) == (None, "training diverged")
    assert result.training.status == "reached"


def test_solved_is_decided_by_the_loss_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt knows nothing; the second one succeeds, and no certificate is made of it."""
    monkeypatch.setattr(execute_module, "write_certificate", None)
    spec = with_goal(ONE_STATE, EIGHT_STATES, level="solved")
    training = execute(spec, tmp_path, PLAN).training
    assert [(attempt.is_solved, attempt.level) for attempt in training.attempts] == [(False, None), (True, None)]
    assert training.status == "reached"
    run = load_run(tmp_path / spec.id)
    assert run.is_trained
    assert run.result is not None
    assert run.result.certificate is None


def test_the_loss_at_the_end_may_have_to_be_lower(tmp_path: Path) -> None:
    pace = {"solved_loss": SOLVED_LOSS, "contract_steps": CONTRACT_STEPS, "patience": 60, "final_loss": 1e-30}
    training = execute(with_goal(EIGHT_STATES, budget=0.0, level="solved", pace=pace), tmp_path, PLAN).training
    (attempt,) = training.attempts
    assert (training.status, attempt.is_solved) == ("out of budget", False)
    assert attempt.solved_at is not None
    assert attempt.loss is not None
    assert 1e-30 < attempt.loss < SOLVED_LOSS


def test_a_task_without_a_transducer_can_be_solved_and_one_with_a_rule_proved() -> None:
    make_spec("edit-distance", "transformer", {}, goal="solved")
    rule = make_spec("levenshtein-distance", "grid-recurrence", {"task": {"alphabet": 3}}, goal="proved")
    assert rule.recipe.pace is not None
    assert rule.recipe.pace.final_loss == 1e-4


def test_a_run_with_a_pace_and_no_goal_is_trained_where_it_ends(tmp_path: Path) -> None:
    spec = with_goal(EIGHT_STATES)
    spec = spec.attempt(0)
    execute(spec, tmp_path, PLAN)
    run = load_run(tmp_path / spec.id)
    assert run.steps_done < spec.recipe.steps
    assert run.is_trained


def test_no_attempt_has_fewer_states_than_the_task_has_answers() -> None:
    for group, expected in (("S3", [64, 128, 256, 512]), ("S5", [120, 128, 256, 512]), ("A6", [360, 512])):
        spec = make_spec("word-problem", "block-linear-rnn", {"task": {"group": group}}, goal="proved")
        assert spec.goal is not None
        assert [changes["d_model"] for changes in spec.goal.models] == expected
        assert all(changes["d_model"] == changes["block_dim"] for changes in spec.goal.models)


def test_a_specification_is_read_back_and_its_budget_is_not_in_its_id() -> None:
    spec = make_spec("parity", "block-linear-rnn", {}, goal="proved", budget=5)
    assert spec_from_json(spec.to_json()) == spec
    assert spec.id == make_spec("parity", "block-linear-rnn", {}, goal="proved").id
    assert spec.id != make_spec("parity", "block-linear-rnn", {}, goal="extracted").id
    assert "until" not in make_spec("parity", "block-linear-rnn", {}).to_json()
    sizes = [spec.attempt(number).model_config.d_model for number in range(8)]
    assert sizes == [64, 128, 256, 512] * 2
    assert len({spec.attempt(number).seed for number in range(8)}) == 8
    fixed = make_spec("parity", "block-linear-rnn", {"model": {"d_model": 8, "block_dim": 8}}, goal="proved")
    assert [fixed.attempt(number).model_config.d_model for number in range(3)] == [8, 8, 8]


@pytest.mark.parametrize(
    ("task", "model", "changes", "sentence"),
    [
        (
            "parity",
            "block-linear-rnn",
            {"goal": "robust"},
            "goal: expected one of solved, extracted, bounded, proved, got",
        ),
        (
            "parity",
            "block-linear-rnn",
            {"goal": "tested"},
            "goal: expected one of solved, extracted, bounded, proved, got",
        ),
        (
            "parity",
            "transformer",
            {},
            "transformer can reach with these settings, at most 'bounded', got 'proved'; choose solved or extracted",
        ),
        ("parity", "s4d", {}, "at most 'extracted', got 'proved'; choose solved or extracted, or train another model"),
        ("edit-distance", "transformer", {}, "goal: expected a task with a reference machine, got edit-distance"),
        ("parity", "block-linear-rnn", {"budget": -1.0}, "goal.budget: .*greater than or equal to 0"),
        ("parity", "block-linear-rnn", {"budget": float("nan")}, "goal.budget: .*finite"),
    ],
)
def test_what_cannot_be_reached_is_refused_before_anything_is_trained(
    task: str, model: str, changes: dict, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence) as refusal:
        make_spec(task, model, {}, **{"goal": "proved", **changes})
    assert "\n" not in str(refusal.value)


def test_reflections_reach_a_bounded_certificate_and_no_other() -> None:
    make_spec("parity", "block-linear-rnn", {}, preset="reflecting", goal="bounded")
    with pytest.raises(ValueError, match="at most 'bounded', got 'proved'; choose solved or extracted or bounded"):
        make_spec("parity", "block-linear-rnn", {}, preset="reflecting", goal="proved")


@pytest.mark.parametrize(("argument", "flag"), [("goal", "--until"), ("goal.budget", "--budget")])
def test_messages_about_a_goal_name_the_flag_that_sets_it(argument: str, flag: str) -> None:
    assert with_flag(f"{argument}: expected another", train_command) == f"{flag}: expected another"
