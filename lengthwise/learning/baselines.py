"""Baselines that learn from examples: the most frequent label, overall or after the last symbols, and RPNI."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.tasks.given.examples import Examples

Answers = Callable[[Examples], Int64[np.ndarray, " M"]]
"""A function from examples to the answer for every prefix of every string, in the order of `Examples.targets`."""

NUM_LAST_SYMBOLS = 3
"""The number of symbols that the baseline of last symbols reads."""


class Accuracy(NamedTuple):
    """The number of labels that were predicted correctly, and the number of all labels."""

    num_correct: int
    num_labels: int

    @property
    def share(self) -> float | None:
        """The fraction of labels that were predicted correctly; None if there are no labels."""
        return self.num_correct / self.num_labels if self.num_labels else None


def accuracy(answers: Answers, examples: Examples) -> Accuracy:
    """Return the accuracy of the answers on the positions that have a label."""
    supervised = examples.targets != IGNORE
    return Accuracy(int((answers(examples) == examples.targets)[supervised].sum()), int(supervised.sum()))


def answers_of_machine(machine: Transducer) -> Answers:
    """Return a function that gives a machine's answers to all prefixes of the strings in examples."""

    def answers(examples: Examples) -> Int64[np.ndarray, " M"]:
        result = np.full(len(examples.ids), IGNORE)
        for length in np.unique(examples.lengths).tolist():
            positions = examples.starts[:-1][examples.lengths == length][:, None] + np.arange(length)
            result[positions] = machine.run(examples.ids[positions])
        return result

    return answers


def majority_answer(examples: Examples) -> Answers:
    """Return the baseline that answers every string with the most frequent label."""
    labels = examples.targets[examples.targets != IGNORE]
    best = int(np.bincount(labels).argmax())
    return lambda others: np.full(len(others.ids), best)


def last_symbols(examples: Examples) -> Answers:
    """Return the baseline that answers each prefix with the most frequent label after the prefix's last three symbols.

    If the examples have no label after these three symbols, the last two, one or no symbols are used.

    Source: Shannon, "A mathematical theory of communication" (1948), n-grams.
    Differs from the source: the last symbols predict the label, not the next symbol.
    """
    counts: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for context, target in zip(_contexts(examples), examples.targets.tolist(), strict=True):
        if target != IGNORE:
            for start in range(len(context) + 1):
                counts[context[start:]][target] += 1
    best = {context: max(counter, key=counter.__getitem__) for context, counter in counts.items()}

    def answers(others: Examples) -> Int64[np.ndarray, " M"]:
        return np.array(
            [
                next(best[context[start:]] for start in range(len(context) + 1) if context[start:] in best)
                for context in _contexts(others)
            ]
        )

    return answers


def _contexts(examples: Examples) -> Iterator[tuple[int, ...]]:
    """Yield the last symbols, at most `NUM_LAST_SYMBOLS`, of every prefix of every string."""
    ids = examples.ids.tolist()
    for start, end in zip(examples.starts[:-1].tolist(), examples.starts[1:].tolist(), strict=True):
        for position in range(start, end):
            yield tuple(ids[max(start, position + 1 - NUM_LAST_SYMBOLS) : position + 1])


MAX_SYMBOLS = 10_000_000
"""The largest total number of symbols in the labeled prefixes that RPNI gets, so that AALpy needs about a gigabyte."""


@lru_cache(maxsize=1)
def merged_states(examples: Examples) -> Transducer | None:
    """Return the machine that RPNI learns by merging states of the prefix tree of all examples in a fixed order.

    The result is None if AALpy is not installed, or if the labeled prefixes have more than `MAX_SYMBOLS` symbols in
    total. AALpy stores each prefix separately, so more symbols could fill memory. A prefix without a transition in the
    machine gets the most frequent label as its answer.

    Source: Oncina and Garcia, "Inferring regular languages in polynomial updated time" (1992), as AALpy implements it.
    Differs from the source: there can be more than two labels, and missing transitions get an answer.
    """
    try:
        from aalpy.learning_algs import run_RPNI
    except ImportError:
        return None
    positions = np.arange(len(examples.ids)) - np.repeat(examples.starts[:-1], examples.lengths)
    if int(positions[examples.targets != IGNORE].sum()) > MAX_SYMBOLS:
        return None
    data = labeled_prefixes(examples)
    learned = run_RPNI([*data.items()], automaton_type="moore", print_info=False)
    return completed_moore(learned, examples.symbols, data)


def labeled_prefixes(examples: Examples) -> dict[tuple[int, ...], int]:
    """Return one label for each labeled prefix, as AALpy needs; if a prefix has several labels, the first is used."""
    labels: dict[tuple[int, ...], int] = {}
    ids, targets = examples.ids.tolist(), examples.targets.tolist()
    for start, end in zip(examples.starts[:-1].tolist(), examples.starts[1:].tolist(), strict=True):
        for position in range(start, end):
            if targets[position] != IGNORE:
                labels.setdefault(tuple(ids[start : position + 1]), targets[position])
    return labels


def completed_moore(moore: Any, symbols: tuple[str, ...], labels: dict[tuple[int, ...], int]) -> Transducer:
    """Convert AALpy's machine to a `Transducer`.

    Missing transitions lead to a new sink state, whose answer is the most frequent label.
    """
    otherwise = int(np.bincount(np.array(list(labels.values()))).argmax())
    number = {state.state_id: index for index, state in enumerate(moore.states)}
    sink = len(number)
    table = np.full((sink + 1, len(symbols)), sink)
    outputs = np.full(sink + 1, otherwise)
    for state in moore.states:
        row = number[state.state_id]
        outputs[row] = otherwise if state.output is None else state.output
        for symbol, target in state.transitions.items():
            table[row, symbol] = number[target.state_id]
    return Transducer(Semiautomaton(table, symbols), number[moore.initial_state.state_id], outputs)


def are_longest(examples: Examples, share: float) -> Bool[np.ndarray, " N"]:
    """Return a mask of the longest strings: at most the fraction `share` of all strings.

    Strings of the same length are all included or all left out, so the mask may include no string.
    """
    ordered = np.sort(examples.lengths)
    max_kept = ordered[max(0, math.ceil((1 - share) * len(ordered)) - 1)]
    longer: np.ndarray = examples.lengths > max_kept
    return longer
