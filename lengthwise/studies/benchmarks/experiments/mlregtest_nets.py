"""Nets trained on the languages of MLRegTest, and measured on strings as in its four test sets."""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lengthwise.automata.dfa import DFA
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import (
    EXPERIMENTS,
    Cell,
    Experiment,
    Requirements,
    Scale,
    Scoring,
    check_is_not_paper,
    with_certificates,
)
from lengthwise.runs.spec import RunSpec, Settings
from lengthwise.studies.benchmarks.benchmark import BENCHMARKS, Benchmark, entrants_of, references
from lengthwise.studies.benchmarks.experiments.mlregtest import FOLDER, LANGUAGES, OWN, missing_folder
from lengthwise.studies.languages import Language
from lengthwise.studies.leaderboard.experiments.leaderboard import Entrant, protocol_specs, rates_of
from lengthwise.tasks.given.mlregtest_library import draw_languages, language_names, read_language
from lengthwise.tasks.given.mlregtest_sampler import LONG, SHORT
from lengthwise.tasks.regular.mlregtest import MLRegTestLanguage

TRAINING_SET, BATCH_SIZE, EPOCHS = 10_000, 64, 30
STEPS = EPOCHS * TRAINING_SET // BATCH_SIZE

TESTS = {
    "short random strings (TestSR)": (SHORT, False),
    "short pairs (TestSA)": (SHORT, True),
    "long random strings (TestLR)": (LONG, False),
    "long pairs (TestLA)": (LONG, True),
}
"""The parts of the experiment, one for each test set: the lengths, and True if strings are pairs of similar strings."""

PROTOCOL = (
    "*Short* strings have 20-29 symbols, and *long* strings have 31-50. In *pairs*, a string in the language and one "
    "outside it differ in one symbol.",
    "The published protocol: for each of 1,800 languages, nets are trained for 30 epochs of 1,000, 10,000 or 100,000 "
    "strings of 20-29 symbols, in batches of 64. Four test sets have random strings or pairs that differ by one edit, "
    "of 20-29 or of 31-50 symbols. The package contains no published entries, because the tables of the paper were not "
    "available.",
    f"Our protocol: {LANGUAGES} languages drawn from all 16 classes, one seed, a fixed training set of "
    f"{TRAINING_SET:,} strings, and {STEPS:,} steps of {BATCH_SIZE} strings. Final weights are measured on new random "
    "strings, which may also be training strings. The two strings of a pair differ in one replaced symbol. Models have "
    "the sizes and learning rates of the leaderboard. *Finite machine, likelihood* has 880 Baum-Welch steps of 128 of "
    "these strings instead.",
    "A net is proved if it is right on every string, not only on strings of these lengths.",
    f"The automata are not part of the package: the environment variable {FOLDER} names their folder.",
)


@cache
def _languages(folder: str | None) -> dict[str, DFA]:
    """Return the languages of the rows by name: from a folder of automata or, without a folder, only `OWN`."""
    if folder is None:
        name, language = OWN
        return {name: language}
    count = min(LANGUAGES, len(language_names(Path(folder))))
    return {name: read_language(Path(folder), name) for name in draw_languages(Path(folder), count)}


def nets_experiment(entrants: Sequence[Entrant], scale: Scale) -> Experiment:
    """Return the experiment of this benchmark, with a column for each model in `entrants`.

    Raises:
        ValueError: the scale is `paper`, or the folder does not contain the automata.
    """
    check_is_not_paper(scale, "training nets on 1,800 languages, each with 100,000 strings, takes weeks")
    is_smoke = scale == "smoke"
    languages = _languages(None if is_smoke else os.environ.get(FOLDER))
    plan = EvaluationPlan(
        dense=(min(SHORT), max(LONG)), dense_strings=100, long=((1_000, 64),), structured=(), certificate=True
    )
    return Experiment(
        title="Benchmark: nets trained on MLRegTest",
        about=(
            "Nets are trained to recognize languages of MLRegTest from a fixed set of strings of 20 to 29 symbols, and "
            "tested on strings of 20 to 50 symbols. Chance is 50 %."
        ),
        notes=PROTOCOL,
        cells=[
            cell
            for name, language in languages.items()
            for entrant in entrants
            for cell in _cells(name, language, entrant, scale)
        ],
        plan=with_certificates(plan, scale),
        scoring=Scoring(measure="legal"),
        is_matrix=True,
        requires=Requirements(lacks="" if is_smoke else missing_folder()),
    )


def _cells(name: str, language: DFA, entrant: Entrant, scale: Scale) -> list[Cell]:
    """Return a cell for each test set. All of these cells have the same runs."""
    fields = {**language.to_json(), "title": name}
    pairs = MLRegTestLanguage(**fields, strings="pairs")
    specs = tuple(
        spec._replace(other_tasks=(pairs,)) for spec in _specs(Language(name, "mlregtest", fields), entrant, scale)
    )
    return [
        Cell(
            name,
            entrant.column,
            specs,
            # At scale smoke, the plan does not measure these lengths.
            window=None if scale == "smoke" else (min(lengths), max(lengths)),
            task=pairs if are_pairs else None,
            part=part,
        )
        for part, (lengths, are_pairs) in TESTS.items()
    ]


def _specs(language: Language, entrant: Entrant, scale: Scale) -> tuple[RunSpec, ...]:
    data: Settings = {
        "min_length": min(SHORT),
        "max_length": max(SHORT),
        "length_sampling": "uniform",
        "lengths": "legal",
        "num_examples": TRAINING_SET // len(SHORT),
    }
    train: Settings = {**data, "steps": STEPS, "batch_size": BATCH_SIZE, "supervision": "last"}
    return protocol_specs(entrant, language, train, (0,), scale, data)


@BENCHMARKS.register("mlregtest")
def mlregtest() -> Benchmark:
    """Recognition of 60 languages of MLRegTest, from 10,000 strings of 20-29 symbols (van der Poel et al., 2024)."""
    return Benchmark(
        title="Languages of MLRegTest",
        source="van der Poel et al., MLRegTest: A Benchmark for the Machine Learning of Regular Languages (2024)",
        bibtex=references("vanderpoel2024mlregtest"),
        protocol=PROTOCOL,
        experiment="bench/mlregtest-nets",
        entrants=entrants_of(),
        make=nets_experiment,
        published={},
        rates=rates_of,
    )


@EXPERIMENTS.register("bench/mlregtest-nets")
def bench_mlregtest_nets(scale: Scale = "small") -> Experiment:
    """Train five models on 60 languages of MLRegTest, from 10,000 strings each, and certify them."""
    return nets_experiment(entrants_of(), scale)
