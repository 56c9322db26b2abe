"""Machines of certificates as people see them: which are drawn, and the names of their classes."""

import pytest

from lengthwise.certification.certificate import MAX_STATES, Certificate, certificate_card
from lengthwise.certification.drawing import class_names, drawing_of

TASK = {"symbols": ["a", "b"], "start": 0, "table": [[0, 1], [1, 0]], "outputs": [0, 1]}


def chain(num_states: int) -> dict[str, object]:
    """A machine that counts symbols: state n has strings of n symbols, and the last state all longer ones."""
    successors = [min(state + 1, num_states - 1) for state in range(num_states)]
    return {"symbols": ["a", "b"], "start": 0, "table": [[n, n] for n in successors], "outputs": [0] * num_states}


def certificate(machine: dict[str, object] | None) -> Certificate:
    return Certificate.model_validate(
        {
            "level": "extracted",
            "reason": "",
            "task": {"name": "parity"},
            "model": {"name": "rnn"},
            "weights": "0",
            "classes": ("even", "odd"),
            "transducer": TASK,
            "machine": machine,
        }
    )


@pytest.mark.parametrize(
    ("machine", "is_drawn"),
    [
        (TASK, True),
        (chain(MAX_STATES), True),
        (chain(MAX_STATES + 1), False),
        (TASK | {"outputs": [0, -100]}, True),
        (TASK | {"outputs": [0, 2]}, False),
        (None, False),
    ],
)
def test_small_machines_with_known_answers_are_drawn(machine: dict[str, object] | None, is_drawn: bool) -> None:
    assert ("<svg" in certificate_card(certificate(machine))) == is_drawn


def test_the_machine_of_the_model_is_preferred() -> None:
    own = drawing_of(certificate(chain(3)))
    assert own is not None
    assert (own.title, own.machine.num_states) == ("the machine read off the model", 3)
    other = drawing_of(certificate(None))
    assert other is not None
    assert (other.title, other.machine.num_states) == ("the task's own machine", 2)
    assert class_names(certificate(None)) == []


def test_classes_without_a_string_of_twelve_symbols_have_numbers() -> None:
    """There are 4,096 strings of 12 symbols; strings of 13 symbols are too many to enumerate."""
    names = class_names(certificate(chain(15)))
    assert names == ["(start)", *("a" * length for length in range(1, 13)), "#13", "#14"]
