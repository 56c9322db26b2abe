"""Small machine models of growing size, trained on examples until the best machine was learned several times."""

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
"""The numbers of states of the models, which may exceed the number of states of the machine that is learned."""

MIN_ALIKE = {True: 2, False: 4}
"""How many models have to learn the best machine, from different starts, if it makes no error and if it makes some."""

MAX_ROUNDS = 8
"""The number of times that all sizes are tried, each time with other seeds."""


class Attempt(NamedTuple):
    """A trained model: its size, its seed, the number of states of its machine, and the number of wrong labels.

    `num_bits` is the length of a message that names the machine and its wrong labels. The machine with the shorter
    message is preferred.

    Source: Rissanen, "Modeling by shortest data description" (Automatica, 1978).
    """

    size: int
    seed: int
    num_states: int
    num_errors: int
    num_bits: float
    seconds: float


class SearchResult(NamedTuple):
    """The best model of a search, its machine and attempt, all attempts, and how many of them learned this machine."""

    model: BlockLinearRNN
    machine: Transducer
    best: Attempt
    attempts: tuple[Attempt, ...]
    num_alike: int


class Sample(ExamplesTask):
    """The examples that a search trains on, held in memory."""

    name = "examples"

    held: Any

    @property
    def examples(self) -> Examples:
        """The examples that were given."""
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
    """Train models of 8, 16, ... states until several with different starts have learned the best machine.

    The best machine has the shortest message, which includes its errors. A small machine with few errors may therefore
    be preferred to a larger one without errors, unless labels are `exact`. Only these examples are read. The first
    model is trained whatever the `budget`, which is in CPU seconds. `keep` is called with each model and machine that
    is better than all before, so that a search can be interrupted.

    Raises:
        ValueError: no model became a machine; a string is longer than training allows.
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
            continue  # a larger model learned a machine without errors, and this size has failed before
        began = time.process_time()
        model = _train_model(task, size, own_seed, longest)
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
        if _num_alike(candidates, best) >= MIN_ALIKE[not best[0].num_errors] and not (exact and best[0].num_errors):
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
    """Yield sizes and seeds, round by round; the smallest size is tried once."""
    for number in range(MAX_ROUNDS):
        for size in SIZES if number == 0 else SIZES[1:]:
            yield size, MAX_ROUNDS * seed + number


def rank(attempt: Attempt, exact: bool) -> tuple[bool, float]:
    """Return a key that is smallest for the shortest message; with exact labels, machines without errors come first."""
    return exact and attempt.num_errors > 0, attempt.num_bits


_Candidate = tuple[Attempt, BlockLinearRNN, Transducer]


def _best(candidates: list[_Candidate], exact: bool) -> _Candidate:
    return min(candidates, key=lambda one: rank(one[0], exact))


def _num_alike(candidates: list[_Candidate], best: _Candidate) -> int:
    """Count the models that learned the best machine."""
    expected = best[2].to_json()
    return sum(machine.to_json() == expected for _, _, machine in candidates)


def _train_model(task: Sample, size: int, seed: int, longest: int) -> BlockLinearRNN | None:
    """Train a model of this size; return None if training diverges."""
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
    """Return the machine that the model has become; None if a column is not a one-hot vector."""
    with eval_mode(model):
        columns = one_hot_columns(model)
        if columns is None:
            return None
        machine = enumerate_states(model, symbols, columns).machine
    assert isinstance(machine, Transducer)
    return machine.minimize_nonempty()


def count_errors(machine: Transducer, examples: Examples) -> int:
    """Count the labels that the machine gets wrong."""
    count = 0
    for length in np.unique(examples.lengths).tolist():
        ids, targets = examples.of_length(length)
        count += int(((machine.run(ids) != targets) & (targets != IGNORE)).sum())
    return count


def message_length(machine: Transducer, examples: Examples, num_errors: int) -> float:
    """Return the bits that name the machine, its wrong labels, and the correct answers for these.

    A machine that is wrong on most labels tells nothing about them: each label then costs its bits without a machine.
    """
    return _bits_of(machine.num_states, examples, num_errors)


def constant_message_length(examples: Examples) -> float:
    """Return the message length of the machine of one state that always gives the most frequent answer."""
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
