"""Nets of all kinds, the machines that are read off them, and their proofs."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from proved_nets import NETS
from wrong_machines import net_answers, short_strings

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.builder import Candidate, CertificateBuilder, mask_unsupervised
from lengthwise.certification.certificate import Certificate, Evidence
from lengthwise.certification.methods.base import PROVERS, Prover, task_extraction
from lengthwise.constructions import CONSTRUCTIONS, construct
from lengthwise.extraction.base import Extraction, Reader, reader_of
from lengthwise.models import MODELS, SequenceModel, make_model
from lengthwise.tasks import make_task
from lengthwise.tasks.base import MachineTask

PARITY = make_task("parity")

NUM_SEEDS = 8
"""Nets that are drawn of each model, at most."""


class Net(NamedTuple):
    """A net, and a task whose strings it reads."""

    model: SequenceModel
    task: MachineTask


@cache
def constructed_net(name: str) -> Net:
    return Net(construct(name, PARITY).model.eval(), PARITY)


@cache
def drawn_net(name: str, seed: int = 0) -> Net:
    """Make a registered model, which is not trained."""
    return Net(make_model(name, PARITY, seed=seed).eval(), PARITY)


def nets(num_seeds: int = 1) -> Iterator[Net]:
    """Yield nets with weights by hand, then a net of every construction, then every registered model, seed by seed."""
    yield from (Net(model.eval(), task) for model, task in NETS.values())
    yield from map(constructed_net, CONSTRUCTIONS)
    for seed in range(num_seeds):
        yield from (drawn_net(name, seed) for name in MODELS)


class ReadNet(NamedTuple):
    """A net, the reader of its kind, and the machine read off it with a radius."""

    net: Net
    reader: Reader[Any]
    extraction: Extraction
    radius: float


def nets_read_by(name: str) -> Iterator[ReadNet]:
    """Yield what a registered reader reads off nets, with every radius with which their states close.

    Nets that give one answer to all strings are left out, since nearly every machine answers as they do.
    """
    for net in nets(NUM_SEEDS):
        reader = reader_of(net.model, net.task.symbols)
        if reader is None or reader.name != name or len(net_answers(net.model, net.task).unique()) == 1:
            continue
        with torch.no_grad():
            radii = reader.radii(short_strings(net.task)[-1])
        for radius in radii:
            try:
                extraction = reader.extract(radius)
            except ValueError:  # the states do not close
                continue
            yield ReadNet(net, reader, extraction, radius)


class Proof(NamedTuple):
    """A net, the extraction of which something is proved, its radius, the prover after its proof, and the evidence."""

    net: Net
    extraction: Extraction
    radius: float
    prover: Prover
    evidence: Evidence

    def certificate(self) -> Certificate:
        level = "proved" if self.evidence.proved_length is None else "bounded"
        builder = CertificateBuilder(self.net.model, self.net.task)
        # A method without a reader proves something of the task's own machine, which has no prototypes.
        candidate = None if self.prover.reader is None else Candidate(self.extraction, self.radius)
        return builder.certificate(level, "", candidate=candidate, evidence=self.evidence)


@cache
def first_proof(name: str) -> Proof:
    """Return the first proof that a registered prover finds.

    Weights by hand belong in `tests/proved_nets.py`, or in a construction, if nothing is proved of other nets.
    """
    reasons = []
    for net, prover, candidate, size in _candidates(PROVERS[name]):
        supervised = mask_unsupervised(candidate, net.task.reference)
        try:
            evidence = prover.prove(net.model, supervised)
        except ValueError as problem:
            reasons.append(f"{net.model.name}: {problem}")
            continue
        return Proof(net, supervised, size, prover, evidence)
    raise AssertionError(f"prover {name} proves nothing of any net: {reasons}")


def _candidates(kind: type[Prover]) -> Iterator[tuple[Net, Prover, Extraction, float]]:
    """Yield nets that a method is for, a new prover, and an extraction with its radius that the prover tries."""
    if kind.reader is None:
        for net in nets():
            if kind.applies_to(net.model) and isinstance(net.task.reference, Transducer):
                yield net, kind(), task_extraction(net.task.reference), 0.0
        return
    for net, reader, extraction, radius in nets_read_by(kind.reader):
        if kind.applies_to(net.model):
            prover = kind()
            for candidate, size in prover.candidates(reader, extraction, radius):
                yield net, prover, candidate, size
