"""Tasks `dfa` and `machine` of a file: their titles, the answer that accepts, and fields that are misspelled."""

import json
from pathlib import Path

import pytest

from lengthwise.report.tables.settings import task_in, task_title
from lengthwise.runs.spec import make_spec, spec_from_json
from lengthwise.tasks import make_task
from lengthwise.tasks.base import TASKS
from lengthwise.training.recipe import Recipe

FIELDS = {"alphabet": ["a", "b"], "transitions": [[0, 1], [1, 1]], "accepting": [0]}
"""The automaton of the strings without b."""

LOGS = """digraph { __start0 [shape=none]; __start0 -> q0;
q0 [shape=record, label="{q0|%s}"]; q1 [shape=record, label="{q1|%s}"];
q0 -> q0 [label=a]; q0 -> q1 [label=b]; q1 -> q1 [label=a]; q1 -> q1 [label=b]; }"""


@pytest.fixture
def logins(tmp_path: Path) -> str:
    path = tmp_path / "logins.dot"
    path.write_text(LOGS % ("accept", "reject"))
    return str(path)


def test_a_task_of_a_file_has_its_stem_as_title_in_tables(logins: str) -> None:
    for name in ("dfa", "machine"):
        spec = make_spec(name, "lstm", {"task": {"file": logins}})
        assert (task_in(spec.to_json()), task_title(spec.to_json())) == (f"logins ({name})", "logins")
        own = make_spec(name, "lstm", {"task": {"file": logins, "title": "Log-ins"}})
        assert task_in(own.to_json()) == f"Log-ins ({name})"
        again = spec_from_json(json.loads(json.dumps(own.to_json())))
        assert again == own, "the title is kept with the run"


def test_a_title_changes_no_id(logins: str) -> None:
    plain = make_spec("dfa", "lstm", {"task": FIELDS})
    assert plain.id == "dfa-lstm-seed0-c3f7ae01c8", "as before there were titles"
    assert make_spec("dfa", "lstm", {"task": {"file": logins}}).id == plain.id
    assert make_spec("dfa", "lstm", {"task": {**FIELDS, "title": "no b"}}).id == plain.id
    assert "title" not in plain.to_json()["task"]


def test_other_settings_of_a_titled_task_are_named() -> None:
    spec = {"task": {"name": "dfa", "title": "logins", "alphabet": ["a"], "sampling": "x"}}
    assert task_in(spec) == "logins (dfa) sampling=x"
    assert task_in({"task": {"name": "parity", "title": "x"}}) == "parity title=x", "a field of a user's own"


@pytest.mark.parametrize("title", ["a\nb", "x" * 61])
@pytest.mark.parametrize("name", ["dfa", "machine"])
def test_a_title_fits_a_table(name: str, title: str) -> None:
    with pytest.raises(ValueError, match=r"^task.title: expected at most 60 characters that can be printed, got '"):
        make_task(name, title=title)


def test_labels_of_logs_say_which_strings_are_in_the_language(tmp_path: Path) -> None:
    path = tmp_path / "logs.dot"
    path.write_text(LOGS % ("OK", "FAIL"))
    with pytest.warns(UserWarning, match=r"task.file: answer OK is taken for accept, FAIL for reject"):
        assert make_task("dfa", file=str(path)).accepting == (0,)
    assert make_task("dfa", file=str(path), accept="FAIL").accepting == (1,)
    with pytest.raises(ValueError, match=r"answer: expected one of OK, FAIL|answer: expected one of FAIL, OK"):
        make_task("dfa", file=str(path), accept="ok")
    with pytest.raises(ValueError, match=r"task.accept: expected no value without a file, got 'OK'"):
        make_task("dfa", accept="OK")


@pytest.mark.parametrize("name", TASKS)
def test_a_misspelled_field_of_any_task_is_named(name: str) -> None:
    fields = TASKS[name].model_fields
    for field in fields:
        with pytest.raises(ValueError, match=rf"task.{field}x: no such setting; did you mean '{field}'\?"):
            make_task(name, **{f"{field}x": "value"})


def test_a_misspelled_field_is_named_next_to_others_and_to_a_file(logins: str) -> None:
    misspelled = {"alphabt" if name == "alphabet" else name: value for name, value in FIELDS.items()}
    with pytest.raises(ValueError, match=r"^task.alphabt: no such setting; did you mean 'alphabet'\?"):
        make_task("dfa", **misspelled)
    for name in ("dfa", "machine"):
        with pytest.raises(ValueError, match=r"^task.titel: no such setting; did you mean 'title'\?"):
            make_task(name, file=logins, titel="x")


def test_a_misspelled_setting_of_an_optional_section_is_named() -> None:
    with pytest.raises(ValueError, match=r"pace.patiens: no such setting; did you mean 'patience'\?"):
        Recipe(pace={"patiens": 1})


def test_a_machine_with_several_answers_takes_no_answer_as_accept(tmp_path: Path) -> None:
    """A field that has no effect is named, not dropped."""
    (tmp_path / "last.json").write_text('{"symbols": ["a"], "start": 0, "table": [[1], [0]], "outputs": [0, 1]}')
    with pytest.raises(ValueError, match=r"no fields but title with a file, got accept; leave out"):
        make_task("machine", file=str(tmp_path / "last.json"), accept="1")
    assert make_task("machine", file=str(tmp_path / "last.json"), title="last").title == "last"
