"""Extraction of the machine of a net whose language is not known."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import torch

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.subject import checked_subject
from lengthwise.conventions import Diverged, without_way_out
from lengthwise.devices import device_of, one_thread
from lengthwise.display import counted
from lengthwise.extraction.base import reader_of
from lengthwise.extraction.prototypes import NotFinite
from lengthwise.models.base import RecurrentModel, SequenceModel, check_is_model, eval_mode
from lengthwise.models.containers import first_line
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import RegularTask, make_task
from lengthwise.tasks.regular.machine import machine_task
from lengthwise.validation import texts_of, type_in_words

NUM_STRINGS, LENGTH = 1_000, 40
"""The number and the length of the random strings whose states determine the radii of classes."""

MAX_PROBED = 1 << 20
"""All ids of symbols that `sizes_of` tries are below this bound.

If the net rejects none of the tried ids, its number of symbols is unknown.
"""


class Extracted(NamedTuple):
    """A machine that was extracted from a net, and the net's certificate for it, of level `extracted` or higher."""

    machine: LabeledMachine
    certificate: Certificate

    @property
    def task(self) -> RegularTask:
        """Return the task that the machine solves; other nets can be trained and certified for this task."""
        return machine_task(self.machine)

    def __repr__(self) -> str:
        """Return plain sentences: the size of the machine, and the claim about the net."""
        machine = self.machine.machine
        size = f"{counted(machine.num_states, 'state')} over {counted(len(machine.symbols), 'symbol')}"
        return f"A machine of {size}, extracted from a net. The net, compared with this machine: {self.certificate}"


@one_thread()
def extract(model: RecurrentModel, symbols: Sequence[str], classes: Sequence[str], *, seed: int = 0) -> Extracted:
    """Extract the machine of a net whose language is not known, and certify the net for this machine.

    The net's states are sorted into classes (`extraction`). A few radii of classes are tried, the largest first. For
    each radius, the net is certified (`certify`) for the task that the machine of this radius solves. The machine is
    returned if no string refutes the net, and if on all drawn strings the net's states are in the classes that the
    machine predicts. Level ``proved`` means that the net computes this machine at every length.

    The result does not show whether the net has learned the right language. It is also not about the empty string,
    which nets do not read. So the machine may start in any state that gives the same answers to all other strings.

    Args:
        model: a recurrent model, for example a net of torch's modules (`wrap`).
        symbols: the names of the symbols that the model reads, in the order of their ids.
        classes: the names of the answers, in the order of the model's logits.
        seed: the seed that draws the strings.

    Raises:
        NotFinite: no radius gives a machine that meets these conditions. The message contains the last reason.
        ValueError: the model is not recurrent or cannot be certified (`subject.check_model`), or there is not exactly
            one name for each symbol and each answer.

    Example:
        >>> from lengthwise import construct, make_task
        >>> net = construct("rnn", make_task("regex", pattern="(a|b)*abb")).model
        >>> extracted = extract(net, "ab", ("no", "yes"))
        >>> extracted.machine.machine.num_states, extracted.certificate.level
        (4, 'proved')

    Source: clusters of states, Omlin and Giles, "Extraction of rules from discrete-time recurrent neural networks"
        (Neural Networks, 1996).
    Differs from the source: classes have a radius and are not cells of a grid; a machine is returned only
        with a certificate.
    """
    check_is_model(model)
    if not isinstance(model, RecurrentModel):
        raise ValueError(
            f"model: expected a model that reads symbol by symbol, got {type_in_words(model)}; certify the model for "
            "a machine of your choice (`lengthwise certify` with option `machine`)"
        )
    names = texts_of("symbols", symbols), texts_of("classes", classes)
    # If there were fewer names than symbols, "every string" would not mean every string that the net reads.
    num_symbols, num_answers = sizes_of("model", model)
    check_num_names("symbols", "symbol", num_symbols, names[0])
    check_num_names("classes", "answer", num_answers, names[1])
    with checked_subject(model, placeholder_task(*names)):
        reader = reader_of(model, names[0])
        assert reader is not None  # a reader supports all recurrent models
        strings = torch.randint(len(names[0]), (NUM_STRINGS, LENGTH), generator=generator_for(seed, "unknown"))
        reasons = []
        for radius in reader.radii(strings):
            try:
                return _certified(model, reader.extract(radius).machine, names[1], seed)
            except (ValueError, Diverged) as problem:
                reasons.append(without_way_out(problem).removeprefix("model: "))
    raise NotFinite(
        f"model: this net is not a finite machine, as far as its states show ({reasons[-1]}); train the net further, "
        "or certify the net for a machine of your choice (`lengthwise certify` with option `machine`)"
    )


def check_num_names(argument: str, noun: str, size: int | None, names: Sequence[str]) -> None:
    """Raise a ValueError unless there are `size` names, one for each symbol or answer; size None allows any number."""
    if size not in (None, len(names)):
        raise ValueError(
            f"{argument}: expected {size:,} names, one for each {noun}, got {len(names):,}; name all {argument}"
        )


def _certified(model: RecurrentModel, machine: object, classes: tuple[str, ...], seed: int) -> Extracted:
    """Return the machine with its certificate; raise a ValueError if the level is below `extracted`."""
    assert isinstance(machine, Transducer)  # readers of recurrent models return only transducers
    # The net does not answer the empty string, so the machine may start in any state that gives the same answers to
    # all other strings.
    labeled = LabeledMachine(machine.minimize_nonempty(), classes)
    certificate = certify(model, machine_task(labeled), seed=seed)
    if not certificate.reaches("extracted"):
        raise ValueError(f"{labeled.machine.num_states} states, {certificate.level}: {certificate.reason}")
    return Extracted(labeled, certificate)


def placeholder_task(symbols: tuple[str, ...], classes: tuple[str, ...]) -> RegularTask:
    """Return a task with these names, for checks of a model. The task answers every string with the first class.

    Raises:
        ValueError: `symbols` or `classes` are not valid names for a task. The message contains the argument's name.
    """
    try:
        task = make_task("machine", alphabet=symbols, answers=classes, table=((0,) * len(symbols),), outputs=(0,))
    except ValueError as problem:
        raise ValueError(
            str(problem).replace("task.alphabet:", "symbols:").replace("task.answers:", "classes:")
        ) from None
    assert isinstance(task, RegularTask)
    return task


def sizes_of(argument: str, net: SequenceModel) -> tuple[int | None, int]:
    """Return a net's number of symbols and number of answers, after the net has read strings of one symbol.

    The number of symbols is the smallest id that the net rejects. It is None if the net rejects no id below
    `MAX_PROBED`. Both statements assume that a net that rejects an id also rejects all larger ids.

    Raises:
        ValueError: the weights are not on the CPU, or the net does not read symbol 0.
    """
    if (device := device_of(net).type) != "cpu":
        # A rejected id would end all later work on a GPU.
        raise ValueError(f"{argument}: expected weights on the CPU, got weights on {device}; pass {argument}.cpu()")

    def is_rejected(symbol: int) -> bool:
        try:
            net.last(torch.tensor([[symbol]]))
        except Exception:  # nets of other packages raise errors of any kind
            return True
        return False

    with eval_mode(net):
        try:
            num_answers = net.last(torch.tensor([[0]])).shape[1]
        except Exception as problem:
            raise ValueError(
                f"{argument}: expected a net that reads symbol 0, got an error ({first_line(problem)}); correct "
                "its cause"
            ) from problem
        # The attribute `num_symbols` is not read, because a net may accept other ids. Bisection tries only about 20
        # ids. It assumes that all ids above a rejected id are also rejected.
        num_symbols = bisect_left(range(MAX_PROBED), True, key=is_rejected)
    return num_symbols if num_symbols < MAX_PROBED else None, num_answers
