"""The search for a machine: first merge states, then train small models with more and more states."""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.constructions import construct
from lengthwise.conventions import Diverged
from lengthwise.extraction.readers.one_hot import enumerate_states, one_hot_columns
from lengthwise.learning.description_length import constant_description_length, description_length
from lengthwise.learning.merging_search import merged_machines
from lengthwise.learning.prefix_tree import prefix_tree
from lengthwise.models.base import build_model, eval_mode
from lengthwise.models.block_linear_rnn import BlockLinearRNN, BlockLinearRNNConfig
from lengthwise.presets.base import PRESETS
from lengthwise.tasks.given.examples import Examples
from lengthwise.tasks.given.task import ExamplesTask
from lengthwise.tasks.regular.machine import MAX_TABLE, machine_task
from lengthwise.training.loop import train
from lengthwise.training.recipe import MAX_LENGTH, Recipe
from lengthwise.validation import narrow

SIZES = (8, 16, 32, 64)
"""The numbers of states of the trained models; the learned machine may have fewer states than its model."""

MIN_ALIKE = {True: 2, False: 4}
"""The number of attempts that must find the best machine before a search ends.

The key is True if this machine makes no errors.
"""

MIN_MERGED_ALIKE = {True: 1, False: 2}
"""The number of merging settings that must give a machine before it is trusted (see also `MAX_TRUSTED_SHARE`).

The key is True if this machine makes no errors.
"""

MAX_TRUSTED_SHARE = 0.9
"""The largest description length of a machine that is trusted after merging alone.

The value is a fraction of the description length of the machine that always gives the most frequent answer.
"""

MAX_ROUNDS = 8
"""The largest number of times that all sizes are tried, each time with other seeds."""

NET, RPNI = "net", "RPNI"
"""The methods of attempts other than state merging; an attempt by state merging has the name of its setting instead."""


class Attempt(NamedTuple):
    """An attempt that found a machine with `num_states` states, which gets `num_errors` labels wrong.

    If a net was trained, `size` is the number of its states and `seed` its seed. `num_bits` is the description length
    of the machine and its wrong labels (`lengthwise.learning.description_length`). Machines with a shorter description
    are preferred.

    Source: Rissanen, "Modeling by shortest data description" (Automatica, 1978).
    """

    size: int
    seed: int
    num_states: int
    num_errors: int
    num_bits: float
    seconds: float
    method: str = NET


class SearchResult(NamedTuple):
    """The best model of a search with its machine and attempt, and all attempts.

    `num_alike` attempts found this machine. `runner_up` is the best attempt with another machine. The machine that
    always gives the most frequent answer also counts as an attempt.
    """

    model: BlockLinearRNN
    machine: Transducer
    best: Attempt
    attempts: tuple[Attempt, ...]
    num_alike: int
    runner_up: Attempt | None = None


class Sample(ExamplesTask):
    """The examples that a search trains on, held in memory."""

    name = "examples"

    held: Any

    @property
    def examples(self) -> Examples:
        """The examples that the search trains on, kept in the field `held`."""
        held: Examples = self.held
        return held


class _Candidate(NamedTuple):
    """An attempt, the machine that it found, and the net from which the machine was read, or None without a net."""

    attempt: Attempt
    machine: Transducer
    model: BlockLinearRNN | None


def search(
    examples: Examples,
    *,
    budget: float,
    seed: int,
    exact: bool = False,
    report: Callable[[Attempt], None] = lambda attempt: None,
    keep: Callable[[BlockLinearRNN, Transducer], None] = lambda model, machine: None,
) -> SearchResult:
    """Merge states under several settings; unless one machine is trusted, also train models of 8, 16, ... states.

    The best machine has the shortest description, which includes its errors. A small machine with few errors may
    therefore be preferred to a larger machine without errors, unless labels are `exact`. The search reads only
    `examples`, so callers can hold out other examples. The first setting is tried whatever the `budget`, which is in
    CPU seconds.

    A merged machine is trusted if its description is clearly shorter than the description of the machine that always
    gives the most frequent answer. The machine must also make no error, or be the result of two settings. If no machine
    is trusted, models with different initial weights are trained until several attempts have found the best machine.
    `keep` is called with each model and machine that is better than all before, so that a search can be interrupted.

    Raises:
        ValueError: no attempt found a machine, or a string is longer than training allows.
    """
    started = time.process_time()
    if (longest := int(examples.lengths.max())) > MAX_LENGTH:
        raise ValueError(
            f"examples: expected strings of at most {MAX_LENGTH:,} symbols, got a string of {longest:,}; leave out "
            "longer strings"
        )
    candidates: list[_Candidate] = []
    for candidate in _attempted(examples, candidates, budget=budget, seed=seed, started=started):
        candidates.append(candidate)
        report(candidate.attempt)
        best = _best(candidates, exact)
        if best is candidate:
            keep(candidate.model or compiled_model(candidate.machine, examples), candidate.machine)
        if _is_trusted(candidates, best, examples, exact):
            break
    if not candidates:
        raise ValueError(
            f"examples: no attempt found a machine of at most {MAX_TABLE:,} transitions; raise the budget, or check "
            "the labels"
        )
    return _result(candidates, examples, exact)


def _result(candidates: list[_Candidate], examples: Examples, exact: bool) -> SearchResult:
    """Return the best candidate with its model, and the best attempt with another machine."""
    best = _best(candidates, exact)
    alike = _alike(candidates, best)
    others = [one.attempt for one in candidates if not any(one is other for other in alike)]
    model = best.model or compiled_model(best.machine, examples)
    attempts = tuple(one.attempt for one in candidates)
    runner_up = min([*others, _constant(examples)], key=lambda attempt: rank(attempt, exact))
    attempt = best.attempt if best.model else best.attempt._replace(size=model.config.d_model)
    return SearchResult(model, best.machine, attempt, attempts, len(alike), runner_up)


def _constant(examples: Examples) -> Attempt:
    """Return an attempt for the machine of one state that always gives the most frequent answer."""
    labels = prefix_tree(examples).labels
    num_errors = len(labels) - int(np.bincount(labels).max())
    return Attempt(1, 0, 1, num_errors, constant_description_length(examples), 0.0, "the most frequent answer")


def _attempted(
    examples: Examples, candidates: list[_Candidate], *, budget: float, seed: int, started: float
) -> Iterator[_Candidate]:
    """Yield merged machines, then machines of trained models, until the budget is used up; at least one is tried."""
    task = Sample(held=examples)
    for merged in merged_machines(examples, budget=budget):
        machine = merged.machine.minimize_nonempty()
        if _fits(machine):
            yield _Candidate(attempt_of(machine, examples, str(merged.setting), merged.seconds), machine, None)
    is_first = not candidates
    for size, own_seed in _cells(seed):
        began = time.process_time()
        if not is_first and began - started > budget:
            return
        is_first = False
        if any(one.model and not one.attempt.num_errors and one.attempt.size > size for one in candidates):
            continue  # a larger model learned a machine without errors, and this size has failed before
        model = _train_model(task, size, own_seed, int(examples.lengths.max()))
        read = None if model is None else _machine_of(model, examples.symbols)
        if read is None or not _fits(read):
            continue
        attempt = attempt_of(read, examples, NET)._replace(size=size, seed=own_seed)
        yield _Candidate(attempt._replace(seconds=time.process_time() - began), read, model)


def _fits(machine: Transducer) -> bool:
    return (machine.num_states + 1) * len(machine.symbols) <= MAX_TABLE


def compiled_model(machine: Transducer, examples: Examples) -> BlockLinearRNN:
    """Return a net that computes this machine.

    Raises:
        ValueError: the machine's table (states times symbols) is too large for a net.
    """
    task = machine_task(LabeledMachine(machine, examples.classes))
    return narrow(construct("block-linear-rnn", task).model, BlockLinearRNN)


def _is_trusted(candidates: list[_Candidate], best: _Candidate, examples: Examples, exact: bool) -> bool:
    """Return whether the best machine is trusted, so that the search can end."""
    errors, bits = best.attempt.num_errors, best.attempt.num_bits
    if exact and errors:
        return False
    alike = _alike(candidates, best)
    if len(alike) >= MIN_ALIKE[not errors]:
        return True
    merged = sum(one.model is None for one in alike)
    is_short = bits < MAX_TRUSTED_SHARE * constant_description_length(examples)
    return is_short and merged >= MIN_MERGED_ALIKE[not errors]


def _cells(seed: int) -> Iterator[tuple[int, int]]:
    """Yield the size and the seed of each model to train, round by round; the smallest size is tried only once."""
    for number in range(MAX_ROUNDS):
        for size in SIZES if number == 0 else SIZES[1:]:
            yield size, MAX_ROUNDS * seed + number


def rank(attempt: Attempt, exact: bool) -> tuple[bool, float]:
    """Return a key that sorts attempts by description length; if `exact`, attempts without wrong labels come first."""
    return exact and attempt.num_errors > 0, attempt.num_bits


def _best(candidates: list[_Candidate], exact: bool) -> _Candidate:
    return min(candidates, key=lambda one: rank(one.attempt, exact))


def _alike(candidates: list[_Candidate], best: _Candidate) -> list[_Candidate]:
    """Return the candidates whose machine equals the machine of the best candidate."""
    expected = best.machine.to_json()
    return [one for one in candidates if one.machine.to_json() == expected]


def _train_model(task: Sample, size: int, seed: int, longest: int) -> BlockLinearRNN | None:
    """Train a model of this size; return None if training diverges."""
    preset, name = PRESETS["examples"], "block-linear-rnn"
    settings = {**preset.models[name], "d_model": size, "block_dim": size}
    model = narrow(build_model(name, BlockLinearRNNConfig(**settings), task, seed), BlockLinearRNN)
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
    """Return the machine that the model computes; None if a column of a transition matrix is not a one-hot vector."""
    with eval_mode(model):
        columns = one_hot_columns(model)
        if columns is None:
            return None
        machine = enumerate_states(model, symbols, columns).machine
    return narrow(machine, Transducer).minimize_nonempty()


def attempt_of(machine: Transducer, examples: Examples, method: str, seconds: float = 0.0) -> Attempt:
    """Return the `Attempt` for a machine that `method` found without training a net."""
    num_errors = count_errors(machine, examples)
    bits = description_length(machine, examples, num_errors)
    return Attempt(0, 0, machine.num_states, num_errors, bits, seconds, method)


def count_errors(machine: Transducer, examples: Examples) -> int:
    """Count the labels that the machine gets wrong; a prefix that occurs in several strings counts once."""
    tree = prefix_tree(examples)
    states = tree.states(machine.semiautomaton.table, machine.start)
    return int((machine.outputs[states[tree.labeled]] != tree.labels).sum())
