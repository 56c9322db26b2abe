"""Small machine models of growing size, trained on examples until the best machine has come out again."""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE, Diverged
from lengthwise.extraction.readers.one_hot import enumerate_states, one_hot_columns
from lengthwise.models.base import build_model, eval_mode
from lengthwise.models.block_linear_rnn import BlockLinearRNN, BlockLinearRNNConfig
from lengthwise.presets.base import PRESETS
from lengthwise.tasks.given.examples import Examples
from lengthwise.tasks.given.task import ExamplesTask
from lengthwise.tasks.regular.machine import MAX_TABLE
from lengthwise.training.loop import train
from lengthwise.training.recipe import MAX_LENGTH, Recipe

SIZES = (8, 16, 32, 64)
"""Numbers of states of the models, which have room for more than the machine that they become."""

NUM_ALIKE = {True: 2, False: 4}
"""How often the best machine has to come out, from starts apart, where it makes no error and where it makes some."""

MAX_ROUNDS = 8
"""How often all sizes are tried, each time from other seeds."""


class Attempt(NamedTuple):
    """A model that was trained: its size, its seed, the states of its machine, and what that gets wrong.

    `num_bits` is the length of a message that names the machine and the labels that it gets wrong: of two machines the
    one with the shorter message is preferred.

    Source: Rissanen, "Modeling by shortest data description" (Automatica, 1978).
    """

    size: int
    seed: int
    num_states: int
    num_errors: int
    num_bits: float
    seconds: float


class SearchResult(NamedTuple):
    """The best model of a search, its machine and attempt, all attempts, and how many of them gave this machine."""

    model: BlockLinearRNN
    machine: Transducer
    best: Attempt
    attempts: tuple[Attempt, ...]
    num_alike: int


class Sample(ExamplesTask):
    """Examples held in memory: those that a search trains on."""

    name = "examples"

    held: Any

    @property
    def examples(self) -> Examples:
        """Those that were given."""
        held: Examples = self.held
        return held


def search(
    examples: Examples,
    *,
    budget: float,
    seed: int,
    exact: bool = False,
    report: Callable[[Attempt], None] = lambda attempt: None,
    keep: Callable[[BlockLinearRNN, Transducer], None] = lambda model, machine: None,
) -> SearchResult:
    """Train models of 8, 16, ... states until several that started apart became the same machine, the best.

    The best has the shortest message, of which errors are a part: a small machine with few errors may be preferred to a
    larger one without any, unless labels are `exact`: then it never is. Only these examples are looked at. The first
    model is trained whatever the `budget`, which is in CPU seconds. `keep` gets each model and machine that is better
    than all before it, for those who cannot wait for the end.

    Raises:
        ValueError: no model became a machine; a string is longer than training can be.
    """
    task = Sample(held=examples)
    started = time.process_time()
    began = 0.0
    if (longest := int(examples.lengths.max())) > MAX_LENGTH:
        raise ValueError(f"examples: expected strings of at most {MAX_LENGTH:,} symbols, got one of {longest:,}")
    candidates: list[tuple[Attempt, BlockLinearRNN, Transducer]] = []
    for size, own_seed in _cells(seed):
        if began and time.process_time() - started > budget:
            break
        if any(not attempt.num_errors and attempt.size > size for attempt, _, _ in candidates):
            continue  # smaller ones have failed
        began = time.process_time()
        model = _trained(task, size, own_seed, longest)
        machine = None if model is None else _machine_of(model, examples.symbols)
        if model is None or machine is None or (machine.num_states + 1) * len(examples.symbols) > MAX_TABLE:
            continue
        num_errors = count_errors(machine, examples)
        bits, seconds = message_length(machine, examples, num_errors), time.process_time() - began
        candidates.append((Attempt(size, own_seed, machine.num_states, num_errors, bits, seconds), model, machine))
        report(candidates[-1][0])
        best = _best(candidates, exact)
        if best is candidates[-1]:
            keep(model, machine)
        if _num_alike(candidates, best) >= NUM_ALIKE[not best[0].num_errors] and not (exact and best[0].num_errors):
            break
    if not candidates:
        raise ValueError(
            f"examples: no model became a machine of at most {MAX_TABLE:,} transitions; raise the budget, or check the "
            "labels"
        )
    best = _best(candidates, exact)
    attempt, model, machine = best
    attempts = tuple(attempt for attempt, _, _ in candidates)
    return SearchResult(model, machine, attempt, attempts, _num_alike(candidates, best))


def _cells(seed: int) -> Iterator[tuple[int, int]]:
    """Sizes and seeds, round by round; the smallest size has one chance."""
    for number in range(MAX_ROUNDS):
        for size in SIZES if number == 0 else SIZES[1:]:
            yield size, MAX_ROUNDS * seed + number


def rank(attempt: Attempt, exact: bool) -> tuple[bool, float]:
    """Least for the shortest message, with exact labels of those without errors, where there are any."""
    return exact and attempt.num_errors > 0, attempt.num_bits


_Candidate = tuple[Attempt, BlockLinearRNN, Transducer]


def _best(candidates: list[_Candidate], exact: bool) -> _Candidate:
    return min(candidates, key=lambda one: rank(one[0], exact))


def _num_alike(candidates: list[_Candidate], best: _Candidate) -> int:
    """How often the best machine came out."""
    expected = best[2].to_json()
    return sum(machine.to_json() == expected for _, _, machine in candidates)


def _trained(task: Sample, size: int, seed: int, longest: int) -> BlockLinearRNN | None:
    """A model of this size; None where training diverged."""
    preset, name = PRESETS["examples"], "block-linear-rnn"
    settings = {**preset.models[name], "d_model": size, "block_dim": size}
    model = build_model(name, BlockLinearRNNConfig(**settings), task, seed)
    assert isinstance(model, BlockLinearRNN)
    shortest = int(task.examples.lengths.min())
    recipe = Recipe(
        **{**preset.train, "min_length": shortest, "max_length": longest, "supervision": task.examples.supervision}
    )
    try:
        train(model, task, recipe, seed=seed)
    except Diverged:
        return None
    return model


def _machine_of(model: BlockLinearRNN, symbols: tuple[str, ...]) -> Transducer | None:
    """The machine that the model has become; None where its columns are no one-hot vectors."""
    with eval_mode(model):
        columns = one_hot_columns(model)
        if columns is None:
            return None
        machine = enumerate_states(model, symbols, columns).machine
    assert isinstance(machine, Transducer)
    return machine.for_strings_that_are_not_empty()


def count_errors(machine: Transducer, examples: Examples) -> int:
    """Labels that the machine gets wrong."""
    count = 0
    for length in np.unique(examples.lengths).tolist():
        ids, targets = examples.of_length(length)
        count += int(((machine.run(ids) != targets) & (targets != IGNORE)).sum())
    return count


def message_length(machine: Transducer, examples: Examples, num_errors: int) -> float:
    """Bits that name the machine, which labels it gets wrong, and what these are instead.

    A machine that is wrong on most labels says nothing of what they are: each costs as many bits as it would alone.
    """
    return _bits_of(machine.num_states, examples, num_errors)


def constant_message_length(examples: Examples) -> float:
    """The message of the machine of one state that always gives the most frequent answer."""
    labels = examples.targets[examples.targets != IGNORE]
    return _bits_of(1, examples, len(labels) - int(np.bincount(labels).max()))


def _bits_of(states: int, examples: Examples, num_errors: int) -> float:
    symbols, classes = len(examples.symbols), len(examples.classes)
    num_labels = int((examples.targets != IGNORE).sum())
    share = num_errors / num_labels
    of_machine = states * (symbols * math.log2(states) + math.log2(classes))
    if share > 1 - 1 / classes:
        return of_machine + num_labels * math.log2(classes)
    which = 0.0 if share == 0 else -share * math.log2(share) - (1 - share) * math.log2(1 - share)
    return of_machine + num_labels * which + num_errors * math.log2(max(1, classes - 1))
