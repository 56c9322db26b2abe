"""The machine that a net has become, where nobody says which that should be."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.subject import checked_subject
from lengthwise.conventions import Diverged
from lengthwise.display import counted
from lengthwise.extraction.base import reader_of
from lengthwise.extraction.prototypes import NotFinite
from lengthwise.models.base import RecurrentModel, check_is_model
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import RegularTask, make_task
from lengthwise.tasks.regular.machine import machine_task
from lengthwise.threads import one_thread
from lengthwise.validation import texts_of

NUM_STRINGS, LENGTH = 1_000, 40
"""Of strings whose states say how large the radii are."""


class Extracted(NamedTuple):
    """A machine read off a net, and the certificate of the net by it, of level `extracted` or above."""

    machine: LabeledMachine
    certificate: Certificate

    @property
    def task(self) -> RegularTask:
        """The task that the machine solves, by which other nets can be trained and certified."""
        return machine_task(self.machine)

    def __repr__(self) -> str:
        """Return the size of the machine and what is proved of the net, in plain sentences."""
        machine = self.machine.machine
        size = f"{counted(machine.num_states, 'state')} over {counted(len(machine.symbols), 'symbol')}"
        return f"A machine of {size}, read off a net. Of the net and this machine: {self.certificate}"


@one_thread()
def extract(model: RecurrentModel, symbols: Sequence[str], classes: Sequence[str], *, seed: int = 0) -> Extracted:
    """Read the machine off a net whose language is not known, and certify the net by it.

    States are closed into classes, from the largest of a few radii on (`extraction`), until the net is certified by the
    machine of these classes as it would be by one that was given: refuted by no string, and its states in the classes
    on all strings that were drawn. Level ``proved`` says that the net is this machine at every length. Nothing is said
    of what it should be, nor of the empty string, which nets do not read: the start is any state from which all strings
    lead on alike.

    Args:
        model: a recurrent one, for example a net of torch's modules (`wrap`).
        symbols: names of the symbols that it reads, in the order of their ids.
        classes: names of the answers, in the order of its logits.
        seed: draws the strings.

    Raises:
        NotFinite: no such machine comes out; the last reason is given.
        ValueError: the model is not recurrent, or `certify` would not take it.

    Example:
        >>> from lengthwise import construct, make_task
        >>> net = construct("rnn", make_task("regex", pattern="(a|b)*abb")).model
        >>> extracted = extract(net, "ab", ("no", "yes"))
        >>> extracted.machine.machine.num_states, extracted.certificate.level
        (4, 'proved')

    Source: clusters of states, Omlin and Giles, "Extraction of rules from discrete-time recurrent neural networks"
        (Neural Networks, 1996).
    Differs from the source: classes have a radius, not cells of a grid; a machine counts only with its certificate.
    """
    check_is_model(model)
    if not isinstance(model, RecurrentModel):
        raise ValueError(
            f"model: expected one that reads symbol by symbol, got a {type(model).__name__}; certify it by a machine "
            "that you suspect"
        )
    names = texts_of("symbols", symbols), texts_of("classes", classes)
    with checked_subject(model, _placeholder(*names)):
        reader = reader_of(model, names[0])
        assert reader is not None  # one reads all recurrent models
        strings = torch.randint(len(names[0]), (NUM_STRINGS, LENGTH), generator=generator_for(seed, "unknown"))
        reasons = []
        for radius in reader.radii(strings):
            try:
                return _certified(model, reader.extract(radius).machine, names[1], seed)
            except (ValueError, Diverged) as problem:
                reasons.append(f"with radius {radius:.3g}: {problem}")
    raise NotFinite(
        f"model: expected one that has become a finite machine, got none that was seen to be one ({reasons[-1]}); "
        "train it further, or certify it by a machine that you suspect"
    )


def _certified(model: RecurrentModel, machine: object, classes: tuple[str, ...], seed: int) -> Extracted:
    """The machine with its certificate; a ValueError where that says less than `extracted`."""
    assert isinstance(machine, Transducer)  # readers of recurrent models give no other kind
    labeled = LabeledMachine(machine.for_strings_that_are_not_empty(), classes)
    certificate = certify(model, machine_task(labeled), seed=seed)
    if not certificate.reaches("extracted"):
        raise ValueError(f"{labeled.machine.num_states} states, {certificate.level}: {certificate.reason}")
    return Extracted(labeled, certificate)


def _placeholder(symbols: tuple[str, ...], classes: tuple[str, ...]) -> RegularTask:
    """A task with these names, whose answers nobody looks at."""
    task = make_task("machine", alphabet=symbols, answers=classes, table=((0,) * len(symbols),), outputs=(0,))
    assert isinstance(task, RegularTask)
    return task
