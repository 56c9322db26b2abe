"""Names: given once, found, and suggested when mistyped."""

import pytest

from lengthwise.registry import Registry, UnknownName
from lengthwise.tasks import TASKS, make_task
from lengthwise.tasks.regular.parity import Parity


def test_a_name_of_the_package_cannot_be_taken() -> None:
    with pytest.raises(ValueError, match="task 'parity' is registered twice; choose another name"):

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


def test_an_unknown_name_is_an_error_that_suggests_and_lists() -> None:
    with pytest.raises(UnknownName, match=r"unknown task 'tomitta'; did you mean 'tomita'\? \(known: bounded-dyck, "):
        TASKS["tomitta"]
    assert "tomitta" not in TASKS
    assert len(TASKS) == len(list(TASKS))
