"""The machine of a certificate as a model that replaces the net."""

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.equivalence import machine_from_json
from lengthwise.models.machine import MachineModel, TransducerModel, as_model
from lengthwise.validation import check_kind


def machine_model(certificate: Certificate) -> MachineModel:
    """Return the machine that was extracted from a net, as a model that can replace the net.

    Raises:
        ValueError: the certificate's level is below ``extracted``. Or the certificate has no extracted machine, or its
            machine reads two strings.
    """
    _check_level(certificate)
    assert certificate.machine is not None
    machine = machine_from_json(certificate.machine)
    if isinstance(machine, GridMachine):
        raise ValueError(
            "certificate: expected a machine that reads one string, got a machine that reads two strings; use the "
            "model itself"
        )
    return as_model(machine, certificate.classes)


def streamed_machine_model(certificate: Certificate) -> TransducerModel:
    """Return a model that replaces the net and reads symbol by symbol.

    A tree machine does not read symbol by symbol. For every string that has an answer, the tree machine is proved to
    give the answer of the task's transducer. So the result is a model of this transducer.

    Raises:
        ValueError: the certificate's level is below ``extracted``, or the certificate has no extracted machine.
    """
    _check_level(certificate)
    assert certificate.machine is not None
    machine = machine_from_json(certificate.transducer if certificate.machine_kind == "tree" else certificate.machine)
    assert isinstance(machine, Transducer)
    return TransducerModel(machine, certificate.classes)


def _check_level(certificate: Certificate) -> None:
    check_kind("certificate", certificate, Certificate, "a certificate, as `certify` returns it")
    if not certificate.reaches("extracted"):
        raise ValueError(
            f"certificate: expected level 'extracted' or higher, got level {certificate.level!r}, which proves no "
            "machine right; use the model itself"
        )
    if certificate.machine is None:
        raise ValueError(
            "certificate: expected a machine that was extracted from the model, got none at level "
            f"{certificate.level!r}; this proof is about the task's own machine, so use "
            "`TransducerModel(task.transducer, task.classes)`"
        )
