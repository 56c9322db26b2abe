"""The search for one machine that describes two nets, and the levels at which both are certified for it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeGuard

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.builder import CertificateBuilder
from lengthwise.certification.certify import certificate_of
from lengthwise.certification.counterexample import max_enumerated_length
from lengthwise.certification.equivalence import first_error, first_ungraded
from lengthwise.certification.methods.base import highest_level
from lengthwise.certification.parts import CLAIMS, Level, reaches
from lengthwise.conventions import Diverged
from lengthwise.display import counted
from lengthwise.evaluation.length_curve import prefix_answers
from lengthwise.extraction.answer_table import machine_of_answers
from lengthwise.extraction.base import reader_of
from lengthwise.models.base import RecurrentModel, SequenceModel
from lengthwise.models.machine import MachineModel, TransducerModel, TreeMachineModel, as_model
from lengthwise.ops.answers import answers_of
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import RegularTask
from lengthwise.tasks.regular.machine import machine_task

NUM_STRINGS, LENGTH = 1_000, 40
"""The number and the length of the random strings on which a machine must agree with a net before it is certified."""

Nets = tuple[SequenceModel, SequenceModel]
"""Two nets to compare."""


class Description(NamedTuple):
    """A comparison of a net with a machine: level, largest proved length, method or reason, and a string in error."""

    level: Level
    max_length: int | None = None
    method: str = ""
    reason: str = ""
    error: tuple[str, ...] | None = None


class Claim(NamedTuple):
    """The highest level at which both nets are described by one machine, with the fields of an `Equality`."""

    level: Level = "tested"
    up_to: int | None = None
    num_states: int | None = None
    levels: tuple[Level, Level] | None = None
    decided_by: str = ""
    reason: str = ""


def common_machine(nets: Nets, names: RegularTask, seed: int) -> tuple[Claim, tuple[str, ...] | None]:
    """Return a claim about both checked nets from one machine, and a string that the second net answers differently.

    `names` contains the symbols and the answers. A machine counts if the first net is certified for it at level
    ``extracted`` or above. The level of the claim is the lower of both nets' levels.
    """
    for net, position in zip(nets, ("first", "second"), strict=True):
        if highest_level(net) == "tested" and not _is_table(net):
            return Claim(reason=f"no method reads or proves a {type(net).__name__}, the {position} net"), None
    reason = "no machine gives all observed answers of the first net"
    for task in _machines(nets, names, seed):
        first = _describe(nets[0], task, seed)
        if not reaches(first.level, "extracted"):
            reason = f"the first net: {first.reason}"
            continue
        second = _describe(nets[1], task, seed)
        if not reaches(second.level, "extracted"):
            # Any other machine of the first net gives the same answers, so the second net would fail again.
            return Claim(reason=f"the second net: {second.reason}"), second.error
        return _claim((first, second), task), None
    return Claim(reason=reason), None


def _claim(both: tuple[Description, Description], task: RegularTask) -> Claim:
    first, second = both
    levels = first.level, second.level
    reasons = {"first": first.reason, "second": second.reason}
    shared = f"both nets: {first.reason}" if first.reason and first.reason == second.reason else ""
    lengths = [one.max_length for one in both if one.max_length is not None]
    num_states = task.transducer.num_states
    level = min(levels, key=list(CLAIMS).index)
    return Claim(
        level=level,
        up_to=min(lengths) if level == "bounded" else None,
        num_states=num_states,
        levels=levels,
        decided_by=f"one machine of {counted(num_states, 'state')} ({first.method}; {second.method})",
        reason=shared or "; ".join(f"the {net} net: {reason}" for net, reason in reasons.items() if reason),
    )


def _describe(net: SequenceModel, task: RegularTask, seed: int) -> Description:
    """Return the level at which a net is certified for a machine; long strings are read only if they decide it."""
    if _is_table(net):
        error = first_error(_machine_of(net), task.transducer)
        return Description("proved", method="a table") if error is None else _refuted(task, error)
    builder = CertificateBuilder(net, task)
    # A proof does not rest on tested strings, and reading 10,000 symbols takes most of the time of a certificate.
    certificate = certificate_of(builder, seed, num_lengths=1)
    if certificate.level == "extracted":
        certificate = certificate_of(builder, seed)
    method = "states observed" if certificate.evidence is None else certificate.evidence.method
    if (counterexample := certificate.counterexample) is not None:
        return _refuted(task, counterexample.string)
    return Description(certificate.level, certificate.max_length, method, certificate.reason)


def _refuted(task: RegularTask, error: tuple[str, ...]) -> Description:
    """Return the description of a net that answers a string differently from a machine."""
    size = counted(task.transducer.num_states, "state")
    reason = f"it differs from a machine of {size} on a string of {counted(len(error), 'symbol')}"
    return Description("refuted", reason=reason, error=error)


def _machines(nets: Nets, names: RegularTask, seed: int) -> Iterator[RegularTask]:
    """Yield the tasks of different machines that agree with the first net on random strings."""
    net, tried = nets[0], list[RegularTask]()
    shape = (NUM_STRINGS, min(LENGTH, net.max_length or LENGTH))
    strings = torch.randint(len(names.symbols), shape, generator=generator_for(seed, "equal"))
    answers = prefix_answers(net, strings).numpy()
    for machine in _candidates(nets, names, strings):
        smallest = machine.minimize_nonempty()
        # A certificate is about the strings that its machine answers, so the machine must answer all.
        if first_ungraded(smallest) is None and (smallest.run(strings.numpy()) == answers).all():
            task = machine_task(LabeledMachine(smallest, names.classes))
            if task not in tried:
                tried.append(task)
                yield task


def _candidates(nets: Nets, names: RegularTask, strings: Int64[Tensor, "B T"]) -> Iterator[Transducer]:
    """Yield machines that the nets may compute: from tables, answers to short strings, and states at each radius."""
    for net in nets:
        if _is_table(net) and isinstance(table := _machine_of(net), Transducer):
            yield table
    with suppress(ValueError):
        yield machine_of_answers(nets[0], names.symbols, max_enumerated_length(nets[0], names))
    for net in nets:
        reader = reader_of(net, names.symbols) if isinstance(net, RecurrentModel) else None
        if reader is None:
            continue
        for radius in reader.radii(strings):
            with suppress(ValueError, Diverged):
                machine = reader.extract(radius).machine
                if isinstance(machine, Transducer):
                    yield machine


def _is_table(net: SequenceModel) -> TypeGuard[MachineModel]:
    """Return whether a net is a machine's table, and nothing else changes its answers."""
    # A subclass, a hook or a replaced method may answer differently from the machine.
    if type(net) not in (TransducerModel, TreeMachineModel) or not isinstance(net, MachineModel):
        return False
    is_hooked = any(part._forward_hooks or part._forward_pre_hooks for part in net.modules())
    return not is_hooked and vars(net).keys() == vars(as_model(net.machine, net.classes)).keys()


def _machine_of(net: MachineModel) -> TreeMachine | Transducer:
    """Return the machine of a table with the answers that its logits give, also in states without an answer."""
    return replace(net.machine, outputs=answers_of(net.readout.scores).numpy())
