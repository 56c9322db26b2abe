"""The search for one machine that describes two nets, and the levels at which both nets are certified for it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor, nn

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.lookup import StateLookup, TreeLookup
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.builder import CertificateBuilder
from lengthwise.certification.certify import certificate_of
from lengthwise.certification.counterexample import max_enumerated_length
from lengthwise.certification.equivalence import first_ungraded
from lengthwise.certification.methods.base import highest_level
from lengthwise.certification.methods.usual_parts import has_global_hooks
from lengthwise.certification.parts import CLAIMS, Level, reaches
from lengthwise.certification.step_budget import BudgetSpent, StepBudget
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
from lengthwise.validation import type_in_words

NUM_STRINGS, LENGTH = 1_000, 40
"""The number and the length of the random strings on which a machine must agree with the first net.

Other machines are discarded before the nets are certified.
"""

COST_OF_LONG_STRINGS = 20
"""The expected CPU time for reading all tested strings, relative to the time for the shortest tested length alone."""

Nets = tuple[SequenceModel, SequenceModel]
"""Two nets to compare."""

Table = TreeMachine | Transducer
"""The machine of a net that looks up its answers in a table (`MachineModel`), with an answer in every state."""

PARTS = (nn.Module, StateLookup, TreeLookup, Semiautomaton, Transducer, TreeMachine)
"""The Python classes of a `MachineModel` and its parts. All attributes of objects of these classes are compared."""


class Description(NamedTuple):
    """The result of certifying a net for a machine: level, proved length, method, reason, and a refuting string.

    `reason` explains why the level is not higher.
    """

    level: Level
    max_length: int | None = None
    method: str = ""
    reason: str = ""
    error: tuple[str, ...] | None = None


class Claim(NamedTuple):
    """The highest level at which one machine describes two nets, and its evidence (fields as in `Equality`)."""

    level: Level = "tested"
    up_to: int | None = None
    num_states: int | None = None
    levels: tuple[Level, Level] | None = None
    decided_by: str = ""
    reason: str = ""


def common_machine(
    nets: Nets, names: RegularTask, seed: int, budget: StepBudget | None = None
) -> tuple[Claim, tuple[str, ...] | None]:
    """Return a claim that one machine describes both nets; also return a string that refutes this claim, or None.

    `names` contains the symbols and the answers. A machine is accepted if the first net is certified for it at level
    ``extracted`` or above. The second net is then certified for the first accepted machine. If its level is also
    ``extracted`` or above, the level of the claim is the lower of both nets' levels. In all other cases, also if the
    budget ends, the claim has level ``tested``.

    The second net and a machine of the first net give different answers to the returned string. The string is None if
    no difference was found.
    """
    tables = [_table_of(net, names.symbols) for net in nets]
    for net, table, position in zip(nets, tables, ("first", "second"), strict=True):
        if highest_level(net) == "tested" and table is None:
            return Claim(reason=f"no reader or prover supports the {position} net, {type_in_words(net)}"), None
    try:
        return _compared_tables(*tables) or _compared(nets, tables, names, seed, budget or StepBudget())
    except (ValueError, BudgetSpent) as problem:  # a machine is too large, or the budget too small
        return Claim(reason=str(problem)), None


def _compared_tables(first: Table | None, second: Table | None) -> tuple[Claim, tuple[str, ...] | None] | None:
    """Return the result of `common_machine` for two transducers of any size, or None for other nets."""
    if not isinstance(first, Transducer) or not isinstance(second, Transducer):
        return None
    if (error := _first_difference(first, second)) is not None:
        return Claim(reason=f"the tables differ on a string of {counted(len(error), 'symbol')}"), error
    proved = Description("proved", method="a table")
    return _claim((proved, proved), first.minimize_nonempty().num_states), None


def _compared(
    nets: Nets, tables: Sequence[Table | None], names: RegularTask, seed: int, budget: StepBudget
) -> tuple[Claim, tuple[str, ...] | None]:
    budget.begin("extracting machines from the nets")
    reason = "no machine gives all observed answers of the first net"
    for task in _machines(nets, tables, names, seed):
        first = _describe(nets[0], tables[0], task, seed, budget)
        if not reaches(first.level, "extracted"):
            reason = f"the first net: {first.reason}"
            continue
        second = _describe(nets[1], tables[1], task, seed, budget)
        if not reaches(second.level, "extracted"):
            # The first net follows this machine, and other candidates answer some strings differently. So the first
            # net would hardly follow another candidate.
            return Claim(reason=f"the second net: {second.reason}"), second.error
        return _claim((first, second), task.transducer.num_states), None
    return Claim(reason=reason), None


def _claim(both: tuple[Description, Description], num_states: int) -> Claim:
    first, second = both
    levels = first.level, second.level
    reasons = {"first": first.reason, "second": second.reason}
    shared = f"both nets: {first.reason}" if first.reason and first.reason == second.reason else ""
    lengths = [one.max_length for one in both if one.max_length is not None]
    level = min(levels, key=list(CLAIMS).index)
    return Claim(
        level=level,
        up_to=min(lengths) if level == "bounded" else None,
        num_states=num_states,
        levels=levels,
        decided_by=f"one machine of {counted(num_states, 'state')} ({first.method}; {second.method})",
        reason=shared or "; ".join(f"the {net} net: {reason}" for net, reason in reasons.items() if reason),
    )


def _describe(net: SequenceModel, table: Table | None, task: RegularTask, seed: int, budget: StepBudget) -> Description:
    """Certify a net for a machine, and return the result.

    The net reads long strings only if they can change the result.
    """
    if table is not None:
        error = _first_difference(table, task.transducer)
        return Description("proved", method="a table") if error is None else _refuted(task, error)
    builder, size = CertificateBuilder(net, task), counted(task.transducer.num_states, "state")
    budget.begin(f"certifying a net for a machine of {size}")
    started = budget.used
    # A proof does not depend on tested strings, and reading strings of 10,000 symbols takes most of the time.
    certificate = certificate_of(builder, seed, num_lengths=1)
    if certificate.level == "extracted":
        expected = COST_OF_LONG_STRINGS * (budget.used - started)
        budget.begin(f"reading long strings with a net and its machine of {size}", expected)
        certificate = certificate_of(builder, seed)
    method = "states observed" if certificate.evidence is None else certificate.evidence.method
    if (counterexample := certificate.counterexample) is not None:
        return _refuted(task, counterexample.string)
    return Description(certificate.level, certificate.max_length, method, certificate.reason)


def _refuted(task: RegularTask, error: tuple[str, ...]) -> Description:
    """Return a description with level ``refuted``: the net answers the string `error` differently from the machine."""
    size = counted(task.transducer.num_states, "state")
    reason = f"it differs from a machine of {size} on a string of {counted(len(error), 'symbol')}"
    return Description("refuted", reason=reason, error=error)


def _machines(nets: Nets, tables: Sequence[Table | None], names: RegularTask, seed: int) -> Iterator[RegularTask]:
    """Yield the tasks of different machines that agree with the first net on random strings."""
    net, tried = nets[0], list[RegularTask]()
    shape = (NUM_STRINGS, min(LENGTH, net.max_length or LENGTH))
    strings = torch.randint(len(names.symbols), shape, generator=generator_for(seed, "equal"))
    answers = prefix_answers(net, strings).numpy()
    for machine in _candidates(nets, tables, names, strings):
        smallest = machine.minimize_nonempty()
        # A certificate is about the strings that its machine answers, so the machine must answer all strings.
        if first_ungraded(smallest) is None and (smallest.run(strings.numpy()) == answers).all():
            task = machine_task(LabeledMachine(smallest, names.classes))
            if task not in tried:
                tried.append(task)
                yield task


def _candidates(
    nets: Nets, tables: Sequence[Table | None], names: RegularTask, strings: Int64[Tensor, "B T"]
) -> Iterator[Transducer]:
    """Yield machines that the nets may compute.

    The machines come from the nets' tables, from the first net's answers to short strings, and from the states of
    recurrent nets.
    """
    yield from (table for table in tables if isinstance(table, Transducer))
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


def _table_of(net: SequenceModel, symbols: tuple[str, ...]) -> Table | None:
    """Return the machine of a net that looks up its answers in a table, or None for any other net.

    The result is also None if anything besides the table may change the net's answers. Symbols keep their ids, and get
    the given names. Each state gets the answer with the largest logit, even if the net's machine leaves the state
    without an answer.
    """
    # An instance of a user's subclass may not answer by its table.
    if not isinstance(net, MachineModel) or type(net) not in (TransducerModel, TreeMachineModel):
        return None
    if has_global_hooks():
        return None
    # Every attribute must equal the attribute of a newly built model, because a replaced machine, look-up, read-out,
    # method or hook may give other answers.
    try:
        fresh = as_model(_renamed(net.machine, net.machine.symbols), net.classes).eval()
        if not _are_same(net, fresh):
            return None
    except (AttributeError, TypeError, ValueError):  # attributes of unknown kinds cannot be compared
        return None
    return _renamed(replace(fresh.machine, outputs=answers_of(fresh.readout.scores).numpy()), symbols)


def _renamed(machine: Table, symbols: tuple[str, ...]) -> Table:
    """Return a new machine with other names of symbols, and with copies of the arrays."""
    if isinstance(machine, TreeMachine):
        return TreeMachine(symbols, machine.leaves, machine.table, machine.outputs)
    return Transducer(Semiautomaton(machine.semiautomaton.table, symbols), machine.start, machine.outputs)


def _are_same(value: Any, other: Any) -> bool:
    """Return whether two objects have the same class and equal attributes, down to numbers and arrays."""
    if type(value) is not type(other):
        return False
    if isinstance(value, Tensor):
        return torch.equal(value.double(), other.double())
    if isinstance(value, np.ndarray):
        return value.dtype == other.dtype and np.array_equal(value, other)
    if isinstance(value, ref):  # torch's recurrences keep references to their weights
        return _are_same(value(), other())
    if isinstance(value, dict):
        return value.keys() == other.keys() and all(_are_same(value[key], other[key]) for key in value)
    if isinstance(value, list | tuple):
        return len(value) == len(other) and all(map(_are_same, value, other))
    if not isinstance(value, PARTS):
        return bool(value == other)
    # A name may be in `vars` of one object alone. If it is a cached result, `getattr` computes the result for the other
    # object. If it is a replaced method, `getattr` finds the other object's original method, and the two differ.
    names = vars(value).keys() | vars(other).keys()
    return all(_are_same(getattr(value, name), getattr(other, name)) for name in names)


def are_identical(net: SequenceModel, other: SequenceModel) -> bool:
    """Return whether two nets have the same class, equal attributes and the same bits in all parameters and buffers.

    Such nets compute the same answers if their answers depend on the string alone.
    """
    tensors, others = ([*one.parameters(), *one.buffers()] for one in (net, other))
    try:
        return not has_global_hooks() and _are_same(net, other) and all(map(_have_same_bits, tensors, others))
    except (AttributeError, RuntimeError, TypeError, ValueError):  # attributes of unknown kinds cannot be compared
        return False


def _have_same_bits(one: Tensor, other: Tensor) -> bool:
    # 0 and -0 are equal numbers, but 1 / 0 and 1 / -0 are not.
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    first, second = (tensor.detach().cpu().reshape(-1).view(torch.uint8) for tensor in (one, other))
    return torch.equal(first, second)


def _first_difference(table: Table, machine: Transducer) -> tuple[str, ...] | None:
    """Return a shortest string that a table and a machine answer differently; None proves that they agree."""
    if isinstance(table, TreeMachine):
        return table.difference_string(machine)
    # Nets do not read the empty string, so both machines get the same answer to the empty string.
    return table.with_empty_answer(0).difference_string(machine.with_empty_answer(0))
