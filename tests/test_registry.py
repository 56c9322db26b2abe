"""Names: given once, found, and suggested when mistyped."""

from collections.abc import Iterable

import pytest

from lengthwise.cli.app import app
from lengthwise.models import MODELS
from lengthwise.presets.base import PRESETS
from lengthwise.registry import Registry, UnknownName, nearest
from lengthwise.tasks import TASKS, make_task
from lengthwise.tasks.base import RegularTask
from lengthwise.tasks.regular.parity import Parity
from lengthwise.training.recipe import Recipe

COMMANDS = [name for name in app if not name.startswith("-")]


def test_a_name_of_the_package_cannot_be_taken() -> None:
    with pytest.raises(ValueError, match=r"registered twice, first in \S+parity.py; choose another name"):

        @TASKS.register("parity")
        class Mine(Parity):
            """Not the package's."""

    assert isinstance(make_task("parity"), Parity)


def test_the_same_definition_may_be_run_again() -> None:
    registry: Registry[type] = Registry("thing", "lengthwise.automata")
    for _ in range(2):

        @registry.register("mine")
        class Mine:
            """Defined in a cell that is run twice."""

    assert registry["mine"] is Mine
    assert Mine.name == "mine"


def test_a_package_that_cannot_be_imported_is_tried_again(tmp_path, monkeypatch) -> None:
    (tmp_path / "broken_family").mkdir()
    (tmp_path / "broken_family" / "__init__.py").touch()
    (tmp_path / "broken_family" / "member.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry: Registry[type] = Registry("thing", "broken_family")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_module"):
            "member" in registry  # noqa: B015


def test_a_class_is_compared_with_members_without_importing_others(tmp_path, monkeypatch) -> None:
    (tmp_path / "unread_family").mkdir()
    (tmp_path / "unread_family" / "__init__.py").touch()
    (tmp_path / "unread_family" / "member.py").write_text("raise AssertionError\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry: Registry[type] = Registry("thing", "unread_family")

    class Mine:
        """A class of that family."""

    Mine.__module__ = "unread_family"
    assert not registry.has_member(Mine)
    registry.register("mine")(Mine)
    assert registry.has_member(Mine)
    assert not registry.has_member(type("Mine", (Mine,), {}))


def test_an_unknown_name_is_an_error_that_suggests_or_lists() -> None:
    with pytest.raises(UnknownName, match=r"unknown task 'tomitta'; did you mean 'tomita'\?$"):
        TASKS["tomitta"]
    with pytest.raises(UnknownName, match=r"unknown task 'mine.py'; to use the task that this file registers, add the"):
        TASKS["mine.py"]
    with pytest.raises(UnknownName, match=r"unknown task 'zzz' \(known: binary-addition, binary-multiplication, "):
        TASKS["zzz"]
    assert "tomitta" not in TASKS
    assert len(TASKS) == len(list(TASKS))


@pytest.mark.parametrize("name", ["me/runs", "../up", ".", "-dash"])
def test_names_that_runs_are_called_by_are_names_of_folders(name: str) -> None:
    for registry in (TASKS, MODELS):
        with pytest.raises(ValueError, match=f"expected a name of letters, digits, - _ and ., got '{name}'; rename it"):
            registry.register(name)
    TASKS.register("gr\u00f6\u00dfe-2.b")  # a decorator, of nothing yet


@pytest.mark.unchecked
def test_what_is_registered_wrongly_is_said_at_once() -> None:
    with pytest.raises(ValueError, match=r"task: expected a name, got <class .*Mine'>; add a name"):

        @TASKS.register
        class Mine(Parity):
            """Without parentheses."""

    with pytest.raises(ValueError, match=r"task: expected a name of letters, digits, .* and \., got 'my task'"):
        TASKS.register("my task")
    with pytest.raises(ValueError, match=r"task 'no-task': expected a class that inherits Task, got <class "):

        @TASKS.register("no-task")
        class NoTask:
            """Nothing that a task has."""

    assert "no-task" not in TASKS
    with pytest.raises(
        ValueError, match=r"^Lacking: expected the methods baseline, .*, got a class without them; define"
    ):

        @TASKS.register("no-task")
        class Lacking(RegularTask):
            """A task with nothing of what a task has to have."""

    assert "no-task" not in TASKS
    with pytest.raises(KeyError, match=r"task: expected a name, got Parity; known: .*parity"):
        TASKS[Parity()]  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "known", "suggested"),
    [
        ("partiy", TASKS, "parity"),
        ("dyck", TASKS, "bounded-dyck"),
        ("majority", TASKS, None),
        ("copy", TASKS, None),
        ("LSTM", MODELS, "lstm"),
        ("mamba2", MODELS, "mamba"),
        ("gur", MODELS, "gru"),
        ("cnn", MODELS, None),
        ("retnet", MODELS, None),
        ("likelyhood", PRESETS, "likelihood"),
        ("default", PRESETS, None),
        ("chi", PRESETS, "chi2023"),
        ("evalute", COMMANDS, "evaluate"),
        ("verify", COMMANDS, "certify"),
        ("test", COMMANDS, None),
        ("run", COMMANDS, None),
        ("step", Recipe.model_fields, "steps"),
        ("batch", Recipe.model_fields, "batch_size"),
        ("epochs", Recipe.model_fields, None),
        ("lr", Recipe.model_fields, None),
        (3, TASKS, None),
    ],
)
def test_only_similar_names_are_suggested(name: object, known: Iterable[str], suggested: str | None) -> None:
    assert nearest(name, known) == ("" if suggested is None else f"; did you mean {suggested!r}?")
