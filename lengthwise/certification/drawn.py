"""Which machine of a certificate can be drawn: the one read off the model, or else the task's."""

from typing import NamedTuple

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.machines import machine_from_json


class Drawn(NamedTuple):
    """A machine with states, and what it is."""

    machine: Transducer
    title: str


def drawn_machine(certificate: Certificate) -> Drawn | None:
    """The machine read off the model, where it has states; else the task's, and None where that has none, either.

    A tree machine merges classes and has no states that a string leads through.
    """
    of_model = None if certificate.machine is None else machine_from_json(certificate.machine)
    if isinstance(of_model, Transducer):
        return Drawn(of_model, "the machine read off the model")
    of_task = machine_from_json(certificate.transducer)
    return Drawn(of_task, "the task's own machine") if isinstance(of_task, Transducer) else None
