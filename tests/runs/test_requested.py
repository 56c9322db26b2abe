"""Requests of runs and of their answers: which are accepted, what they name, and what the user is told."""

import math
from pathlib import Path

import pytest
import torch
from synthetic_runs import synthetic_run

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.parts import Level
from lengthwise.constructions import construct
from lengthwise.conventions import IGNORE
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.formats.files import write_machine
from lengthwise.runs.execute import execute
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.machine_sources import given_machines
from lengthwise.runs.pools.shard import Shard, parse_shard
from lengthwise.runs.predict import _text, _verdict, predict_text, sample_text
from lengthwise.runs.progress import Progress
from lengthwise.runs.requested import requested_machine
from lengthwise.runs.result import RunStatus, takes_probes
from lengthwise.runs.spec import make_spec, merge
from lengthwise.tasks import make_task
from lengthwise.tasks.algorithmic.string_answer import NUM_CONTROLS, QUERY

PARITY = make_task("parity")


def parity_certificate(level: Level) -> Certificate:
    return Certificate(
        level=level,
        reason="of a test",
        task={"name": "parity"},
        model={"name": "rnn"},
        weights="0",
        classes=PARITY.classes,
        transducer=PARITY.transducer.to_json(),
    )


@pytest.mark.parametrize(("text", "shard"), [("1/1", (1, 1)), ("2/3", (2, 3)), ("3/3", (3, 3))])
def test_a_share_is_one_of_its_total(text: str, shard: tuple[int, int]) -> None:
    assert parse_shard(text) == shard
    shares = [Shard(number, shard[1]).select(range(10)) for number in range(1, shard[1] + 1)]
    assert sorted(item for share in shares for item in share) == list(range(10))


@pytest.mark.parametrize("text", ["", "2", "0/3", "4/3", "1/0", "1/", "/3", "a/3", "1/3/3", "-1/3", "1/9999999999"])
def test_other_shares_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="shard: expected I/N with I from 1 to N"):
        parse_shard(text)


def test_requested_machines_are_tasks() -> None:
    assert requested_machine("(ab)*", None, None).symbols == ("a", "b")
    assert requested_machine("a*", ("a", "c"), None).symbols == ("a", "c")
    assert requested_machine(None, None, "cycle-navigation").name == "cycle-navigation"
    assert requested_machine(None, None, "parity", ["task.p=0.25"]).p == 0.25


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("", None, None), "pattern: expected a regular expression or a machine's file, got an empty text"),
        ((None, None, None), "expected either a regular expression or a task, got neither"),
        (("a*", None, "parity"), "expected either a regular expression or a task, got both"),
        ((None, ("a",), "parity"), "alphabet: expected no alphabet together with a task"),
        ((None, None, "parity", ["train.steps=3"]), "as task.key=value, got a setting of 'train'; leave out all"),
        (("a*", None, None, ["task.p=1"]), "expected no settings together with an expression, got task.p=1"),
    ],
)
def test_other_requests_of_machines_are_rejected(arguments: tuple, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        requested_machine(*arguments)


def test_an_expression_has_symbols_of_one_character(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = LabeledMachine(
        Transducer.from_json({"symbols": ["up"], "start": 0, "table": [[0]], "outputs": [1]}), ("no", "yes")
    )
    write_machine(words, "words.json")
    with pytest.raises(
        ValueError, match=r"^a\*: expected an expression over words, because another machine has the symbol"
    ):
        given_machines(["words.json", "a*"])
    assert given_machines(["words.json"])[0].labeled.symbols == ("up",)


@pytest.mark.parametrize(("pace", "steps"), [(None, [10, 20, 23]), ({"contract_steps": 10}, [10, 13])])
def test_progress_is_told_every_tenth_step_and_at_the_end(pace: dict | None, steps: list[int], tmp_path: Path) -> None:
    """With a pace, a run that has not learned leaves out the last ten steps, which are for contraction."""
    train = {"steps": 23, "batch_size": 2, "min_length": 2, "max_length": 4, "pace": pace}
    settings = {"model": {"d_model": 4}, "train": train}
    seen: list[Progress] = []
    plan = EvaluationPlan(dense=(5, 5), dense_strings=2, long=(), structured=())
    execute(make_spec("parity", "rnn", settings), tmp_path, plan, seen.append)
    training = [report for report in seen if report.phase == "training" and report.note.startswith("loss")]
    assert [report.done for report in training] == steps
    assert {report.total for report in training} == {23}
    measuring = [report.fraction for report in seen if report.phase == "measuring"]
    assert min(measuring) == 0.0
    assert max(measuring) == 1.0
    assert not any(report.is_decision for report in seen), "nothing was learned in so few steps"


@pytest.mark.parametrize("is_planned", [True, False])
def test_a_run_is_certified_if_its_plan_requires_it(
    is_planned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = parity_certificate("tested")
    monkeypatch.setattr("lengthwise.runs.execute._certified", lambda state, work: certificate)
    train = {"steps": 2, "batch_size": 2, "min_length": 2, "max_length": 4}
    plan = EvaluationPlan(dense=(5, 5), dense_strings=2, long=(), structured=(), certificate=is_planned)
    result = execute(make_spec("parity", "rnn", {"model": {"d_model": 2}, "train": train}), tmp_path, plan)
    assert result.certificate == (certificate if is_planned else None)


def test_probes_are_for_answers_of_runs_without_a_goal() -> None:
    assert takes_probes(make_spec("parity", "rnn", {}))
    assert not takes_probes(make_spec("text", "gru", {}))
    assert not takes_probes(make_spec("decision-tree", "transformer", {}))
    assert not takes_probes(make_spec("parity", "block-linear-rnn", {}, goal="proved"))


def test_missing_probes_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("execute", "folder"):
        monkeypatch.setattr(f"lengthwise.runs.{module}.PROBE_EVERY", 2)
    train = {"steps": 4, "batch_size": 2, "min_length": 2, "max_length": 4}
    spec = make_spec("parity", "rnn", {"model": {"d_model": 2}, "train": train})
    execute(spec, tmp_path, EvaluationPlan(dense=(5, 5), dense_strings=2, long=(), structured=()))
    folder = RunFolder(tmp_path / spec.id)
    folder.check_journals(RunStatus(), 4)
    first, _ = folder.probes.path.read_text().splitlines(keepends=True)
    folder.probes.path.write_text(first)
    with pytest.raises(ValueError, match=r"probes\.jsonl: expected 2 entries up to step 4"):
        folder.check_journals(RunStatus(), 4)


def test_sections_are_merged_and_other_values_replaced() -> None:
    assert merge({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}) == {"a": {"b": 1, "c": 3}}
    assert merge({"a": {"b": 1}}, {"a": None}) == {"a": None}
    assert merge({"a": 1}, {"a": {"b": 2}}) == {"a": {"b": 2}}
    assert merge({"a": 1}, {"b": {"c": 2}}) == {"a": 1, "b": {"c": 2}}


def test_other_tasks_of_a_run_have_its_symbols_and_classes() -> None:
    spec = make_spec("parity", "rnn", {})
    assert spec.other_tasks == ()
    with pytest.raises(ValueError, match=r"train\.precision: expected 'float32' with goal='proved'"):
        make_spec("parity", "block-linear-rnn", {"train": {"precision": "bfloat16"}}, goal="proved")
    make_spec("parity", "rnn", {"train": {"precision": "bfloat16"}})


def test_verdicts_count_only_answers_that_exist() -> None:
    got, right, none = (torch.tensor(answers) for answers in ([1, 0, 1], [1, IGNORE, 1], [IGNORE] * 3))
    assert _verdict(PARITY, got, got, False) == "right"
    assert _verdict(PARITY, got, got, True) == "its machine agrees"
    assert _verdict(PARITY, got, none, False) == "the task has no answer here"
    assert _verdict(PARITY, got, right, False) == "right; the task has no answer to 1 of these queries"
    assert _verdict(PARITY, 1 - got, got, False) == "wrong, it is 1 0 1"
    assert _verdict(PARITY, 1 - got, right, True) == (
        "its machine answers 1 - 1; the task has no answer to 1 of these queries"
    )
    assert _text(PARITY, torch.tensor([1, IGNORE, 0])) == "1 - 0"


def test_only_queries_of_strings_are_answered_one_by_one() -> None:
    """Other tasks have a symbol with the id of a query, and strings without queries have one answer."""
    task = make_task("cycle-navigation")
    net = construct("rnn", task).model
    string = task.decode(torch.tensor([QUERY, QUERY, 2]))
    answer = task.classes[int(task.solve(torch.tensor([[QUERY, QUERY, 2]]))[0, -1])]
    assert predict_text(net, task, string).answer == answer
    reverse = make_task("reverse-string")
    model = make_spec("reverse-string", "rnn", {"model": {"d_model": 2}}).make_model()
    letters = [NUM_CONTROLS, NUM_CONTROLS + 1]
    for queries in ([], [QUERY], [QUERY] * 3):
        text = reverse.decode(torch.tensor(letters + queries))
        assert len(predict_text(model, reverse, text).answer.split()) == max(1, len(queries))


def test_a_folder_may_have_a_certificate_alone(tmp_path: Path) -> None:
    """Without weights there is nothing that the certificate could be compared with."""
    machine = construct("rnn", PARITY).target.machine
    certificate = parity_certificate("extracted").model_copy(update={"machine": machine.to_json()})
    (tmp_path / "certificate.json").write_text(certificate.to_text())
    assert given_machines([str(tmp_path)])[0].labeled.symbols == PARITY.symbols


def test_texts_are_for_language_models_and_symbols_for_others() -> None:
    model, draws = make_spec("parity", "rnn", {"model": {"d_model": 4}}).make_model(), torch.Generator()
    with pytest.raises(ValueError, match="task: expected a language task, got parity, which has answers and no text"):
        sample_text(model, PARITY, "a", num_tokens=1, generator=draws)
    with pytest.raises(ValueError, match="expected a task that reads text, got decision-tree, which reads vectors"):
        predict_text(model, make_task("decision-tree"), "a")
    text = make_task("text")
    writer = make_spec("text", "gru", {"model": {"d_model": 4}}).make_model()
    for num_tokens in (0, 100_001):
        with pytest.raises(ValueError, match=f"num_tokens: expected 1 to 100,000, got {num_tokens:,}"):
            sample_text(writer, text, "a", num_tokens=num_tokens, generator=draws)
    for temperature in (-0.5, math.inf, math.nan):
        with pytest.raises(ValueError, match="temperature: expected a number of at least 0"):
            sample_text(writer, text, "a", num_tokens=1, temperature=temperature, generator=draws)


def test_a_card_names_the_first_and_the_last_length() -> None:
    html = synthetic_run().result._repr_html_()
    assert "lengths 41 to 60" in html
