"""Machines learned from MLRegTest's training sets alone, and their accuracy on its four test sets."""

import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter

from lengthwise.automata.dfa import DFA
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.parts import Level
from lengthwise.experiment import EXPERIMENTS, Experiment, Requirements, Scale, check_is_not_paper
from lengthwise.learning.learned import learn
from lengthwise.studies.saved import saved_outcomes
from lengthwise.tasks.given.mlregtest_library import draw_languages, language_class, read_language
from lengthwise.tasks.given.mlregtest_sampler import Group, mlregtest_splits, rows_of

FOLDER = "LENGTHWISE_MLREGTEST"
"""The environment variable that names the folder of automata: `src/fstlib/att_format` of MLRegTest's repository."""

TESTS = ("TestSR", "TestSA", "TestLR", "TestLA")

LANGUAGES, SIZES = 60, (1_000, 10_000)

OWN = ("04.04.SL.2.1.0", dfa_from_regex("(b?(a|c|d))*b?"))
"""The name and the automaton of the language at scale `smoke`: strings of a, b, c and d in which bb does not occur."""


def missing_folder() -> str:
    """Return a message if the environment variable `LENGTHWISE_MLREGTEST` is not set, or else an empty text."""
    if os.environ.get(FOLDER):
        return ""
    return (
        f"{FOLDER}: expected the folder of MLRegTest's automata (.att), got none; set this environment variable, or "
        "use scale smoke"
    )


class LearnedLanguage(NamedTuple):
    """The result for a language and a number of training strings.

    `accuracies` contains the accuracy on each of the four test sets (`TESTS`). `is_right` is True if the learned
    machine answers all nonempty strings correctly. `seconds` are CPU seconds, certificate included.
    """

    name: str
    num_states: int
    size: int
    accuracies: tuple[float, ...]
    is_right: bool
    learned_states: int
    is_confirmed: bool
    level: Level
    seconds: float

    @property
    def language_class(self) -> str:
        """The class to which MLRegTest assigns the language (`language_class`)."""
        return language_class(self.name)


_RESULTS: TypeAdapter[list[LearnedLanguage]] = TypeAdapter(list[LearnedLanguage])


class LearnedLanguages(NamedTuple):
    """The results by language, and the CPU seconds after which `learn` began no further attempt for a language."""

    results: list[LearnedLanguage]
    budget: float


def learned_language(name: str, language: DFA, size: int, *, budget: float, seed: int = 0) -> LearnedLanguage:
    """Draw a language's data sets, learn a machine from the training set alone, and test this machine.

    All labels are right, so the search prefers machines that contradict no label.
    """
    splits = mlregtest_splits(language, size, seed=seed)
    started = time.process_time()
    learned = learn([*rows_of(splits["Train"], language.symbols)], budget=budget, seed=seed, exact=True)
    seconds = time.process_time() - started
    right = language.transducer.minimize_nonempty()
    machine = learned.labeled.with_symbols(language.symbols).aligned(language.symbols, ("FALSE", "TRUE")).machine
    return LearnedLanguage(
        name,
        right.num_states,
        size,
        tuple(_accuracy(machine, splits[test]) for test in TESTS),
        machine.minimize_nonempty().equivalent(right),
        learned.machine.num_states,
        learned.doubt is None,
        learned.certificate.level,
        seconds,
    )


def _accuracy(machine: Transducer, groups: list[Group]) -> float:
    accepting = DFA(machine.semiautomaton, machine.start, machine.outputs == 1)
    are_right = [accepting.accepts_each(group.strings) == (group.label == "TRUE") for group in groups]
    return float(np.concatenate(are_right).mean())


def learned_languages(root: Path, count: int, sizes: tuple[int, ...], budget: float) -> list[LearnedLanguage]:
    """Return the results for languages of all classes; `LENGTHWISE_MLREGTEST` names the folder of these languages.

    This takes about an hour. A stopped study continues from the results in the folder of runs.
    """
    folder = Path(os.environ[FOLDER])
    languages = {name: read_language(folder, name) for name in draw_languages(folder, count)}
    problems = [(name, size) for name in languages for size in sizes]

    def solve(problem: tuple[str, int]) -> LearnedLanguage:
        name, size = problem
        return learned_language(name, languages[name], size, budget=budget)

    # The settings contain the automata, because another folder may contain other automata of the same names.
    settings = ([(name, language.to_json()) for name, language in languages.items()], sizes, budget)
    return saved_outcomes(root / "mlregtest", settings, _RESULTS, problems, solve)


@EXPERIMENTS.register("bench/mlregtest")
def bench_mlregtest(scale: Scale = "small") -> Experiment:
    """Learn 60 languages of MLRegTest from 1,000 and 10,000 strings alone, and test the learned machines."""
    check_is_not_paper(scale)
    is_smoke = scale == "smoke"

    def study(root: Path) -> LearnedLanguages:
        if is_smoke:
            return LearnedLanguages([learned_language(*OWN, 40, budget=0.0)], 0.0)
        return LearnedLanguages(learned_languages(root, LANGUAGES, SIZES, 10.0), 10.0)

    return Experiment(
        title="Benchmark: machines learned from MLRegTest",
        about=(
            "For each language, `learn` gets only the training strings and their labels. The learned machine is "
            "tested on four test sets. Chance is 50 %, because half of the strings are in the language."
        ),
        study=study,
        requires=Requirements(lacks="" if is_smoke else missing_folder()),
    )
