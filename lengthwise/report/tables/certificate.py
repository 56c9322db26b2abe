"""Certificates in words, for a terminal and for a page."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int64

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.certificate import Certificate, machine_from_json
from lengthwise.certification.verify import Checked
from lengthwise.report.tables.numbers import percent

MAX_QUOTED_LENGTH = 60
MAX_TRIED = 4_096


def certificate_lines(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """What a certificate says, as (name, sentence)."""
    yield certificate.level, certificate.claim
    if certificate.level in ("tested", "extracted"):
        yield "not higher, because", certificate.reason
    if counterexample := certificate.counterexample:
        quoted = "".join(counterexample.string)
        if len(quoted) > MAX_QUOTED_LENGTH:
            quoted = f"{quoted[: MAX_QUOTED_LENGTH - 20]}... ({len(counterexample.string):,} symbols)"
        how = {
            "of all strings": "no shorter string is answered wrongly",
            "of the machine": "the shortest on which the machine read off the model errs",
            "as found": "made as short as leaving out parts allows",
        }[counterexample.shortest]
        answer = "overflows" if counterexample.got is None else f"says {counterexample.got}"
        yield "counterexample", f"{quoted}: the model {answer}, right is {counterexample.expected} ({how})"
    yield from _machine(certificate)
    if certificate.tested:
        counts = (
            f"{tested.num_correct:,} of {tested.num_graded:,} at {tested.length:,} (from {percent(tested.interval[0])})"
            for tested in certificate.tested
        )
        yield "answered rightly", ", ".join(counts)
    if certificate.trace_agreement:
        nodes = ", ".join(f"{seen.num_nodes:,} at {seen.length:,}" for seen in certificate.trace_agreement)
        missed = sum(seen.num_disagreements for seen in certificate.trace_agreement)
        farthest = max(seen.max_distance for seen in certificate.trace_agreement)
        yield "states compared", f"{nodes}; {missed} outside their class, up to {farthest:.2f} from a prototype"
    if certificate.evidence is not None:
        yield certificate.evidence.method, certificate.evidence.describe()


def _machine(certificate: Certificate) -> Iterator[tuple[str, str]]:
    machine, closure, laws = certificate.machine, certificate.closure, certificate.laws
    if machine is not None:
        size, size_of_task = certificate.num_classes
        yield (
            ("machine", f"{size} classes go down; of the task's rule {size_of_task}")
            if certificate.is_of_grid
            else ("machine", f"{size} classes; the task's transducer has {size_of_task} states")
        )
    if closure is not None:
        gap = "no two classes" if closure.gap is None else f"prototypes of two classes {closure.gap:.2f} apart"
        yield (
            "classes",
            f"{closure.num_prototypes} prototypes, closed after {closure.num_levels} levels; states within "
            f"{closure.radius:.2f} of theirs, {gap}",
        )
    if laws is not None:
        identity = "the pad is the identity" if laws.pad_is_identity else "the pad is not the identity"
        yield (
            "monoid",
            f"{identity}; {laws.num_violations:,} of {laws.num_decided:,} products depend on the bracketing",
        )


def checked_lines(certificate: Certificate, checked: Checked) -> Iterator[tuple[str, str]]:
    """What checking a certificate showed."""
    yield certificate.level, certificate.claim
    yield from (("verified", sentence) for sentence in checked.verified)
    yield from (("taken from the file", sentence) for sentence in checked.taken_on_trust)


def class_names(certificate: Certificate) -> list[str]:
    """For each class of a certificate's machine the first string that has it, the pad (a dot) before all.

    Where no string up to the length at which there are `MAX_TRIED` has it, its number, or that it is the start.
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
    while len(machine.symbols) ** (length + 1) <= MAX_TRIED and len(names) < len(machine.outputs):
        length += 1
        strings = np.indices((len(machine.symbols),) * length).reshape(length, -1).T
        present, first = np.unique(_classes(machine, strings), return_index=True)
        for k, row in sorted(zip(present.tolist(), first.tolist(), strict=True), key=lambda pair: pair[1]):
            names.setdefault(k, "".join(machine.symbols[v] for v in strings[row]))
    if isinstance(machine, Transducer):
        names.setdefault(machine.start, "(start)")
    return [names.get(k, f"#{k}") for k in range(len(machine.outputs))]


def _classes(machine: TreeMachine | Transducer, strings: Int64[np.ndarray, "B T"]) -> Int64[np.ndarray, " B"]:
    if isinstance(machine, TreeMachine):
        return machine.final_classes(strings)
    return machine.semiautomaton.final_states(strings, machine.start)
