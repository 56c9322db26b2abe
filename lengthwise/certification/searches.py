"""Searches for a wrongly answered string, in the order in which `certify` runs them.

A model may read a string in several ways: in a batch, alone, or as a prefix of another string. Each way rounds
differently, so each way has its own search. Another search reads strings of a test suite for the task's machine.
"""

from collections.abc import Callable
from itertools import chain, groupby, takewhile
from typing import NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.automata.conformance import conformance_strings
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.counterexample import Graded, String, all_strings, first_wrong, max_enumerated_length
from lengthwise.certification.parts import Tested
from lengthwise.certification.traces import AllStrings
from lengthwise.conventions import IGNORE
from lengthwise.devices import denormals_kept
from lengthwise.evaluation.length_curve import prefix_answers
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import MachineTask, OracleTask

MAX_SHORT = 64
"""If a length has at most this number of strings, the model reads each of these strings alone."""

NUM_LONGEST = 16
"""At most this many strings of the largest tested length are read again without rounding denormal numbers to 0.

Keeping denormal numbers is slow.
"""

MAX_SYMBOLS_OF_PREFIXES = 4_096
"""The approximate total number of symbols, for each length, in the strings that `search_prefixes` reads."""

MAX_SYMBOLS_OF_SUITE = 100_000
"""The largest total number of symbols in the strings of the conformance suite."""


class Outcome(NamedTuple):
    """The result of a search: a wrongly answered string or None, counts of right answers, and the search's name."""

    wrong: String | None
    tested: tuple[Tested, ...] = ()
    found_by: str = ""


def run_searches(model: SequenceModel, task: MachineTask, strings: AllStrings) -> Outcome:
    """Run `SEARCHES` in turn, until one of them finds a wrongly answered string."""
    tested: tuple[Tested, ...] = ()
    # A single wrong answer can decide the level, so the first wrong answer ends all searches.
    for name, run in SEARCHES.items():
        outcome = run(model, task, strings)
        tested += outcome.tested
        if outcome.wrong is not None:
            return Outcome(outcome.wrong, tested, name)
    return Outcome(None, tested)


def search_samples(model: SequenceModel, task: OracleTask, strings: AllStrings) -> Outcome:
    """Grade a model's answers to the tested strings in batches, and count the right answers.

    The first batch with a wrong answer is the last batch; its answers are also counted.

    If no reader can trace the model's states, the model answers only some of the longest strings (`TracedStrings`).
    """
    tested: list[Tested] = []
    for traced in strings:
        graded_parts, wrong = [], None
        for part, graded in traced.graded(model, task):
            graded_parts.append(graded)
            if bool(graded.wrong.any()):
                wrong = part[graded.wrong][0]
                break
        all_graded = Graded(*map(torch.cat, zip(*graded_parts, strict=True)))
        num_graded = int((all_graded.expected != IGNORE).sum())
        num_wrong = int(all_graded.wrong.sum())
        tested.append(
            Tested(
                length=traced.strings.shape[1],
                num_strings=len(all_graded.answers),
                num_graded=num_graded,
                num_correct=num_graded - num_wrong,
            )
        )
        if wrong is not None:
            return Outcome(wrong, tuple(tested))
    return Outcome(None, tuple(tested))


def search_alone(model: SequenceModel, task: OracleTask, strings: AllStrings) -> Outcome:
    """Grade strings that the model reads one by one, as users run the model.

    The strings are all strings of each length that has at most `MAX_SHORT` strings, and about 100 strings of each of
    the two shortest tested lengths.

    If a machine can be extracted from the model, the model also reads up to `NUM_LONGEST` strings of the largest tested
    length. It reads these strings in one batch.
    """
    alone = (*_shortest(model, task), *(traced.subsample for traced in strings[:2]))
    # Without a reader, models such as transformers would take too long for the longest strings.
    longest = (traced.strings for traced in strings[2:] if traced.traces is not None)
    batches = (*(batch.split(1) for batch in alone), [each[:: -(-len(each) // NUM_LONGEST)] for each in longest])
    with denormals_kept():
        return Outcome(first_wrong(model, task, chain.from_iterable(batches)))


def search_prefixes(model: SequenceModel, task: OracleTask, strings: AllStrings) -> Outcome:
    """Grade answers to prefixes: the model answers all prefixes of a string at once, as in training on every prefix."""
    for traced in strings[:2]:
        sample = traced.subsample
        sample = sample[:: max(1, sample.numel() // MAX_SYMBOLS_OF_PREFIXES)]
        expected = task.solve(sample)
        with denormals_kept():
            wrong = (expected != IGNORE) & (prefix_answers(model, sample) != expected)
        for row, index in torch.nonzero(wrong)[:1].tolist():
            return Outcome(sample[row, : index + 1])
    return Outcome(None)


def search_conformance(model: SequenceModel, task: MachineTask, strings: AllStrings) -> Outcome:
    """Grade the conformance suite, whose strings distinguish the task's machine from others (`automata.conformance`).

    The strings lead to every state and through every transition, as far as `MAX_SYMBOLS_OF_SUITE` and the model's
    largest length allow. Within these limits, a model that never gives one of the answers is wrong on a string of the
    suite. The argument `strings` is not used.
    """
    if not isinstance(reference := task.reference, Transducer):
        return Outcome(None)
    suite = conformance_strings(reference, MAX_SYMBOLS_OF_SUITE)
    readable = takewhile(lambda string: len(string) <= (model.max_length or len(string)), suite)
    batches = (torch.tensor(list(group)) for _, group in groupby(readable, key=len))
    return Outcome(first_wrong(model, task, batches))


def _shortest(model: SequenceModel, task: OracleTask) -> list[Int64[Tensor, "B T"]]:
    """Return all strings of each length that has at most `MAX_SHORT` strings."""
    lengths = range(1, max_enumerated_length(model, task) + 1)
    return [all_strings(task, length) for length in lengths if len(task.symbols) ** length <= MAX_SHORT]


SEARCHES: dict[str, Callable[[SequenceModel, MachineTask, AllStrings], Outcome]] = {
    "samples": search_samples,
    "strings read alone": search_alone,
    "prefixes": search_prefixes,
    "conformance suite": search_conformance,
}
"""The searches in their order, under the names that a certificate gives them."""
