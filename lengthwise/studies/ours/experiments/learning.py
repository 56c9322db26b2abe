"""Machines learned from examples: how often `learn` finds the right machine, with and without wrong labels.

This study has no recorded runs, because `learn` trains its own small nets.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.parts import Level
from lengthwise.experiment import EXPERIMENTS, Experiment, Scale, check_is_not_paper
from lengthwise.learning.baselines import merged_states
from lengthwise.learning.learned import Learned, learn
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import make_task
from lengthwise.tasks.given.examples import Examples
from lengthwise.tasks.given.reading import read_examples
from lengthwise.tasks.regular.recognition import RecognitionTask

Pairs = list[tuple[str, str]]

CLASSES = ("no", "yes")


class Size(NamedTuple):
    """The size of the study: languages, examples, shares of wrong labels, and CPU seconds for each language."""

    languages: int = 20
    tomita: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7)
    examples: int = 2_000
    longest: int = 20
    wrong: tuple[float, ...] = (0.0, 0.01, 0.05, 0.1)
    budget: float = 60.0


SMOKE_SIZE = Size(languages=1, tomita=(), examples=200, longest=10, wrong=(0.05,), budget=0.0)


class Recovery(NamedTuple):
    """The result for one language: whether `learn` and RPNI recovered its machine from the same examples.

    Two machines count as the same if they agree on every nonempty string. `seconds` is the CPU time of `learn`,
    including the certificate. The results of RPNI, `merged_recovered` and `merged_states`, are None if AALpy is not
    installed.
    """

    name: str
    share_wrong: float
    num_states: int
    num_examples: int
    recovered: bool
    learned_states: int
    level: Level
    num_attempts: int
    seconds: float
    merged_recovered: bool | None
    merged_states: int | None


class Recoveries(NamedTuple):
    """The size of the study, and the `Recovery` of each language."""

    size: Size
    recoveries: list[Recovery]


def random_machine(num_states: int, seed: int) -> Transducer:
    """Draw a minimal machine of two symbols and two answers, uniformly among machines with this number of states.

    Each answer belongs to more than 30 % of the states.

    Example:
        >>> random_machine(5, 0).num_states
        5
    """
    chance = np.random.default_rng(seed)
    while True:
        table = chance.integers(num_states, size=(num_states, 2))
        outputs = chance.integers(2, size=num_states)
        machine = Transducer(Semiautomaton(table, ("a", "b")), 0, outputs).minimize()
        if machine.num_states == num_states and 0.3 < machine.outputs.mean() < 0.7:
            return machine


def examples_of(machine: Transducer, size: Size, seed: int, share_wrong: float = 0.0) -> Pairs:
    """Draw uniform strings of uniform lengths with labels of `machine`; flip a label with probability `share_wrong`."""
    chance = np.random.default_rng(seed)
    strings = chance.integers(len(machine.symbols), size=(size.examples, size.longest))
    lengths = chance.integers(1, size.longest + 1, size=size.examples)
    labels = machine.run(strings)[np.arange(size.examples), lengths - 1] ^ (chance.random(size.examples) < share_wrong)
    return [
        ("".join(machine.symbols[v] for v in string[:length]), CLASSES[label])
        for string, length, label in zip(strings, lengths.tolist(), labels.tolist(), strict=True)
    ]


def examples_of_language(task: RecognitionTask, size: Size, seed: int) -> Pairs:
    """Draw strings of a recognition task, with lengths uniform among legal lengths.

    The task draws strings in the language, near misses and other strings.
    """
    generator = generator_for(seed, "examples")
    legal = [length for length in range(1, size.longest + 1) if task.is_legal_length(length)]
    lengths = torch.randint(len(legal), (size.examples,), generator=generator)
    pairs = []
    for index, length in enumerate(legal):
        batch = task.sample(max(1, int((lengths == index).sum())), length, generator)
        answers = task.transducer.run(batch.inputs.numpy())[:, -1].tolist()
        pairs += [(task.decode(ids), CLASSES[answer]) for ids, answer in zip(batch.inputs, answers, strict=True)]
    return pairs


def recoveries(size: Size) -> Iterator[Recovery]:
    """Yield results for Tomita's languages with right labels, then for random machines by share of wrong labels."""
    for index in size.tomita:
        task = make_task("tomita", index=index)
        assert isinstance(task, RecognitionTask)
        yield _recovery(f"Tomita {index}", task.transducer, examples_of_language(task, size, index), 0.0, size)
    for share in size.wrong:
        for seed in range(size.languages):
            machine = random_machine(5 + seed % 11, seed)
            yield _recovery(f"machine {seed}", machine, examples_of(machine, size, seed, share), share, size)


def _recovery(name: str, machine: Transducer, pairs: Pairs, share_wrong: float, size: Size) -> Recovery:
    right, started = machine.minimize_nonempty(), time.process_time()
    learned: Learned = learn(pairs, budget=size.budget)
    seconds = time.process_time() - started
    examples: Examples = read_examples(pairs)
    merged = merged_states(examples)
    return Recovery(
        name,
        share_wrong,
        right.num_states,
        len(examples),
        learned.search.num_alike > 0 and same_machine(learned.machine, right),  # num_alike is 0 for RPNI's machine
        learned.machine.num_states,
        learned.certificate.level,
        len(learned.search.attempts),
        seconds,
        None if merged is None else same_machine(merged, right),
        None if merged is None else merged.minimize_nonempty().num_states,
    )


def same_machine(one: Transducer, other: Transducer) -> bool:
    """Return True if two machines over the same symbols agree on all nonempty strings."""
    return one.minimize_nonempty().to_json() == other.minimize_nonempty().to_json()


@EXPERIMENTS.register("learning/wrong-labels")
def wrong_labels(scale: Scale = "small") -> Experiment:
    """Recover machines from examples: Tomita's languages, and random machines with 0 to 10 % wrong labels."""
    check_is_not_paper(scale)
    size = Size() if scale == "small" else SMOKE_SIZE
    return Experiment(
        title="Machines learned from examples, some of which are mislabeled",
        about=(
            "The table shows how often `lengthwise learn` finds the machine that labeled the strings, with up to 10 % "
            "wrong labels.\n"
            "The command gets only the labeled strings. The baseline is RPNI, which merges states and treats every "
            "label as right."
        ),
        study=lambda root: Recoveries(size, list(recoveries(size))),
    )
