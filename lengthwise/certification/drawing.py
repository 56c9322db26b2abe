"""The parts of a certificate that are drawn for people: a machine, and names of its classes."""

from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.equivalence import machine_from_json
from lengthwise.display import spelled
from lengthwise.validation import check_kind

MAX_STRINGS_PER_LENGTH = 4_096
"""The largest number of strings of one length that are enumerated to find names of classes."""


class Drawing(NamedTuple):
    """A machine with states, and a title that names its owner: the net or the task."""

    machine: Transducer
    title: str


def drawing_of(certificate: Certificate) -> Drawing | None:
    """Return the machine extracted from the model, or else the task's machine; None if neither is a transducer.

    A tree machine merges classes. It has no states along a string, so it cannot be drawn as states and arrows.

    Example:
        >>> from lengthwise import certify, make_model, make_task
        >>> task = make_task("parity")
        >>> refuted = certify(make_model("rnn", task), task)  # without training, and so without a machine
        >>> drawing = drawing_of(refuted)
        >>> drawing.title, drawing.machine.num_states
        ("the task's own machine", 2)
    """
    check_kind("certificate", certificate, Certificate, "a Certificate")
    extracted = None if certificate.machine is None else machine_from_json(certificate.machine)
    if isinstance(extracted, Transducer):
        return Drawing(extracted, "the machine read off the model")
    reference = machine_from_json(certificate.transducer)
    return Drawing(reference, "the task's own machine") if isinstance(reference, Transducer) else None


def class_names(certificate: Certificate) -> list[str]:
    """Return a name for each class of a certificate's machine: the first string that leads to the class.

    A grid machine has no names of classes.

    The class of a tree machine's pad is named by a dot, even if symbols lead to the same class. If no enumerated string
    leads to a class, the name is `(start)` for the start state, and otherwise `#` and the number of the class.

    Example:
        >>> from lengthwise import certify, make_model, make_task
        >>> task = make_task("parity")
        >>> refuted = certify(make_model("rnn", task), task)
        >>> machine = task.reference.to_json()
        >>> class_names(refuted.model_copy(update={"machine": machine}))  # an even, and an odd number of b
        ['a', 'b']
    """
    if certificate.machine is None:
        return []
    machine = machine_from_json(certificate.machine)
    if isinstance(machine, GridMachine):
        return []
    names: dict[int, str] = {}
    if isinstance(machine, TreeMachine):
        names[int(machine.leaves[0])] = "."
    length = 0
    num_symbols = len(machine.symbols)
    # Short strings lead to most classes, so the search usually ends early: as soon as all classes have names.
    while num_symbols ** (length + 1) <= MAX_STRINGS_PER_LENGTH and length < len(machine.outputs) > len(names):
        length += 1
        strings = np.array(list(product(range(num_symbols), repeat=length)))
        present, first = np.unique(_classes(machine, strings), return_index=True)
        for k, row in sorted(zip(present.tolist(), first.tolist(), strict=True), key=lambda pair: pair[1]):
            names.setdefault(k, spelled([machine.symbols[v] for v in strings[row]], machine.symbols))
    if isinstance(machine, Transducer):
        names.setdefault(machine.start, "(start)")
    return [names.get(k, f"#{k}") for k in range(len(machine.outputs))]


def _classes(machine: TreeMachine | Transducer, strings: Int64[np.ndarray, "B T"]) -> Int64[np.ndarray, " B"]:
    if isinstance(machine, TreeMachine):
        return machine.final_classes(strings)
    return machine.semiautomaton.final_states(strings, machine.start)
