"""The machine that a certificate proves right, as a model in the net's place."""

from lengthwise.certification.certificate import Certificate, machine_from_json
from lengthwise.models.machine import MachineModel


def machine_model(certificate: Certificate, *, streamed: bool = False) -> MachineModel:
    """The machine that was read off a model, in the model's place.

    `streamed`: to be read symbol by symbol. A tree machine cannot be, but it is proved to answer every string as the
    task's transducer does, wherever that is supervised, so the transducer takes its place.

    Raises:
        ValueError: the certificate's level is below ``extracted``: its machine, if it has one, is not proved right.
    """
    if not certificate.reaches("extracted"):
        raise ValueError(
            f"certificate: expected level extracted or proved, got {certificate.level}; no machine is proved right "
            "there"
        )
    assert certificate.machine is not None
    taken = certificate.transducer if streamed and certificate.is_of_tree else certificate.machine
    return MachineModel(machine_from_json(taken), certificate.classes)
