"""What of a certificate can be verified without the model; never imports torch."""

from typing import NamedTuple

import numpy as np

from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.certificate import (
    Certificate,
    Codes,
    first_error,
    machine_from_json,
)
from lengthwise.conventions import IGNORE

MIN_STRINGS = 1_000
MIN_LENGTHS = (40, 500, 10_000)
"""Level `extracted` requires a number of strings at each of these lengths (or one symbol off)."""


class Checked(NamedTuple):
    """What was verified from the file alone, and what only the model can show."""

    verified: tuple[str, ...]
    taken_on_trust: tuple[str, ...]


def check(certificate: Certificate) -> Checked:
    """Verify what a certificate says as far as that is possible without the model.

    The comparison of the machine with the task's transducer is done again, for every length. That the transducer is
    the task's, that the model follows the machine and what its boxes are is taken from the file.

    Raises:
        ValueError: a part of the evidence is missing, or does not show what the level claims.
    """
    task = machine_from_json(certificate.transducer)
    assert isinstance(task, Transducer)
    if not set(task.outputs.tolist()) <= {IGNORE, *range(len(certificate.classes))}:
        raise ValueError("certificate: its transducer gives answers that have no name in its classes; certify again")
    _check_supervises(task)
    trusted = [f"the transducer ({task.num_states} states) is that of task {certificate.task.get('name')}"]
    verified = []
    if certificate.level in ("extracted", "proved"):
        verified += _check_finite(certificate, task)
        nodes = sum(f.num_nodes for f in certificate.followed)
        trusted += [f"the model's states were in the machine's classes at all of {nodes:,} nodes"]
    if certificate.level == "proved":
        trusted += [_check_robust(certificate)]
    if certificate.level == "refuted":
        verified += _check_refuted(certificate, task)
        trusted += ["the model answers as the file says"]
    elif certificate.counterexample is not None:
        raise ValueError(f"certificate: level {certificate.level} wants no counterexample, got one; certify again")
    return Checked(tuple(verified), tuple(trusted))


def _check_finite(certificate: Certificate, task: Transducer) -> list[str]:
    if certificate.machine is None:
        raise ValueError(f"certificate: level {certificate.level} wants a machine, got none; certify again")
    if any(tested.num_correct != tested.num_graded for tested in certificate.tested):
        raise ValueError(f"certificate: level {certificate.level} wants no wrong answer, got some; certify again")
    machine = machine_from_json(certificate.machine)
    chunk_size = certificate.model.get("chunk_size")
    if isinstance(machine, TreeMachine) and chunk_size not in (None, machine.chunk_size):
        raise ValueError(
            f"certificate: expected a machine with chunks of {chunk_size}, as its model has, got {machine.chunk_size}; "
            "certify again"
        )
    string = first_error(machine, task)
    if string is not None:
        raise ValueError(
            f"certificate: its machine and its transducer answer {''.join(string)[:60]!r} ({len(string)} symbols) "
            "differently; certify again"
        )
    _check_observed(certificate, machine)
    size = machine.num_classes if isinstance(machine, TreeMachine) else machine.num_states
    return [
        f"the machine ({size} classes) answers every string of every length as the transducer does",
    ]


def _check_robust(certificate: Certificate) -> str:
    """What has to be trusted for the model to be right at every length."""
    enclosures, codes, closure = certificate.enclosures, certificate.codes, certificate.closure
    assert closure is not None  # as for level extracted
    if certificate.is_of_tree:
        same = enclosures is not None and enclosures.num_prototypes == closure.num_prototypes > 0
        if (
            enclosures is not None
            and same
            and _is_ahead(enclosures.margin, certificate)
            and enclosures.enclosure_radius >= 0
        ):
            return "the model maps the boxes into one another"
    if codes is not None and _is_ahead(codes.margin, certificate) and codes.num_merges > 0 and _has_room(codes):
        if certificate.is_of_tree:
            return "the model merges codes as the machine says"
        return "the model's states are those enumerated"
    raise ValueError(
        "certificate: level proved wants a tree machine and boxes with a positive margin, one for each representative, "
        "or merges of codes (steps, of a recurrent model) with one and with room, got neither; certify again"
    )


def _is_ahead(margin: float | None, certificate: Certificate) -> bool:
    """Whether the right answer is ahead of all others; of a single answer there is no other."""
    return len(certificate.classes) == 1 if margin is None else margin > 0


def _has_room(codes: Codes) -> bool:
    """Whether no rounding can make another code the nearest; of a single code there is no other."""
    return codes.num_codes == 1 if codes.slack is None else codes.slack > 0


def _check_supervises(task: Transducer) -> None:
    """Refuse a transducer that asks nothing: every machine would answer as it does."""
    reached = task.minimize()
    if not (reached.outputs[np.unique(reached.semiautomaton.table)] != IGNORE).any():
        raise ValueError("certificate: its transducer asks nothing of any string; certify again")


def _check_observed(certificate: Certificate, machine: TreeMachine | Transducer) -> None:
    """Refuse where the file does not say that enough answers and states were looked at, and that all were right."""
    if certificate.closure is None:
        raise ValueError(f"certificate: level {certificate.level} wants a closure, got none; certify again")
    for length in MIN_LENGTHS:
        answers = [t.num_graded for t in certificate.tested if abs(t.length - length) <= 1]
        states = [
            f.num_strings
            for f in certificate.followed
            if abs(f.length - length) <= 1 and f.num_nodes >= f.num_strings * _num_nodes(machine, f.length)
        ]
        if sum(states) < MIN_STRINGS or any(f.num_disagreements for f in certificate.followed):
            raise ValueError(
                f"certificate: level {certificate.level} wants {MIN_STRINGS:,} strings of {length:,} symbols with "
                "every state in its class, got fewer; certify again"
            )
        if not sum(answers):
            raise ValueError(
                f"certificate: level {certificate.level} wants answers to strings of {length:,} symbols, got none; "
                "certify again"
            )


def _num_nodes(machine: TreeMachine | Transducer, length: int) -> int:
    """How many states a string of that length has: one for each symbol, or one for each merge of its tree."""
    if isinstance(machine, Transducer):
        return length
    count, level = 0, length
    while level > 1:
        level = -(-level // machine.chunk_size)
        count += level
    return count


def _check_refuted(certificate: Certificate, task: Transducer) -> list[str]:
    found = certificate.counterexample
    if found is None:
        raise ValueError("certificate: level refuted wants a counterexample, got none; certify again")
    ids = {symbol: index for index, symbol in enumerate(task.symbols)}
    if not found.string or not set(found.string) <= ids.keys():
        raise ValueError("certificate: its counterexample is no string over the task's symbols; certify again")
    answer = int(task.run(np.array([[ids[symbol] for symbol in found.string]]))[0, -1])
    if answer == IGNORE or certificate.classes[answer] != found.expected:
        raise ValueError(
            f"certificate: the transducer does not answer its counterexample with {found.expected!r}; certify again"
        )
    if found.got == found.expected or found.got not in (None, *certificate.classes):
        raise ValueError(f"certificate: {found.got!r} is no wrong answer to its counterexample; certify again")
    if found.shortest == "of the machine":
        machine = None if certificate.machine is None else machine_from_json(certificate.machine)
        error = None if machine is None else first_error(machine, task)
        if error is None or len(error) != len(found.string):
            raise ValueError("certificate: its counterexample is no shortest one of its machine; certify again")
    return [f"the right answer to the counterexample ({len(found.string)} symbols) is {found.expected}"]
