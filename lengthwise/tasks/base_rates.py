"""Scores of shallow baselines: the likeliest answer, and guesses from features and counts that are cheap to compute."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.randomness import generator_for
from lengthwise.tasks.base import OracleTask

MAJORITY = "majority class"
"""The name of the baseline that always gives the likeliest answer."""

MAX_DRAWN_PER_CHUNK = 1 << 11
"""The number of problems that are drawn at a time."""

FITTING_STEPS = 100
"""The number of steps of a logistic regression; further steps change hardly any guess."""


Problems = tuple[Int64[Tensor, "N T"], Int64[Tensor, " N"]]
"""Problems of equal width, and their final answers."""


class ShallowTask(OracleTask):
    """A task that measures at each length the accuracy of shallow baselines, which read only cheap features."""

    num_counted: ClassVar[int] = 1 << 14
    """The number of problems that are counted at a length: one half fits shallow baselines, and the other half scores
    them."""

    @abstractmethod
    def draw(self, count: int, length: int, generator: torch.Generator) -> Problems:
        """Draw problems of equal width and return them with their final answers."""

    @abstractmethod
    def shallow_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """Return features by name: for each problem a cheap integer, from which `base_rates` guesses the answer."""

    def shallow_counts(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, "N F"]]:
        """Return counts for each problem, by name, from which a logistic regression guesses one of two answers.

        By default, there are no such counts.
        """
        return {}

    def base_rates(self, length: int) -> Mapping[str, float]:
        """Return accuracies of shallow baselines by name: the likeliest answer, and guesses from cheap features.

        Each of the `shallow_features` is scored as follows. One half of the drawn problems determines the likeliest
        answer for every value of the feature, and the other half scores these guesses. Up to sampling error, these
        guesses are at least as good as any threshold on the feature. For `shallow_counts`, a logistic regression is
        fitted and scored on the same halves.
        """
        self.check_length(length)
        return {**_counted(self, length), MAJORITY: self.baseline(length)}


class CountedTask(ShallowTask):
    """A task whose likeliest answer is counted on samples, because no formula is known."""

    def baseline(self, length: int) -> float:
        """Return the share of the likeliest answer among `num_counted` problems (standard error at most 0.008)."""
        return _counted(self, length)[MAJORITY]


@lru_cache(maxsize=256)
def _counted(task: ShallowTask, length: int) -> Mapping[str, float]:
    # The seed is fixed, so that all reports show the same rates.
    generator = generator_for(0, "base rates", task.name, length)
    drawn = (task.draw(MAX_DRAWN_PER_CHUNK, length, generator) for _ in range(task.num_counted // MAX_DRAWN_PER_CHUNK))
    problems = [(task.shallow_features(inputs), task.shallow_counts(inputs), answers) for inputs, answers in drawn]
    answers = torch.cat([column for *_, column in problems])
    features = {name: torch.cat([column[name] for column, *_ in problems]) for name in problems[0][0]}
    num_classes = len(task.classes)
    counts = answers.bincount(minlength=num_classes)
    rates = {MAJORITY: float(counts.max()) / len(answers)}
    fitted, scored = answers.chunk(2)
    for name, feature in features.items():
        values, indices = feature.unique(return_inverse=True)
        known, held_out = indices.chunk(2)
        likeliest = torch.full((len(values),), int(counts.argmax()))
        pairs, times = (known * num_classes + fitted).unique(return_counts=True)
        # Pairs (value of the feature, answer) are written from the rarest to the most frequent. Later pairs overwrite
        # earlier pairs of the same value, so the most frequent answer to each value remains. Among equally frequent
        # answers, the first class is written last and remains.
        for pair in pairs.flip(0)[times.flip(0).argsort(stable=True)].tolist():
            likeliest[pair // num_classes] = pair % num_classes
        rates[name] = float((likeliest[held_out] == scored).double().mean())
    for name in problems[0][1]:
        known_counts, held_out_counts = torch.cat([counts[name] for _, counts, _ in problems]).chunk(2)
        rates[name] = float((logistic_guesses(known_counts, fitted, held_out_counts) == scored).double().mean())
    return MappingProxyType(rates)


def logistic_guesses(
    known: Int64[Tensor, "M F"], answers: Int64[Tensor, " M"], counts: Int64[Tensor, "N F"]
) -> Int64[Tensor, " N"]:
    """Return the answers, 0 or 1, that a logistic regression guesses for `counts`, fitted to `known` and `answers`.

    The regression minimizes -sum log p(answer) + |w|^2 / 2 over weights w of standardized counts and a bias, in
    `FITTING_STEPS` steps. Each step minimizes a quadratic upper bound on the objective, so no step raises the
    objective. The bound holds because the curvature of a logistic loss is at most a quarter of the curvature of a
    squared loss.

    Source: Boehning and Lindsay, Monotonicity of quadratic-approximation algorithms, 1988, section 4.
    Differs from the source: the penalty |w|^2 / 2 is ours.
    """
    # The lower bound avoids a division by 0 for a count that is always the same.
    mean, scale = known.double().mean(0), known.double().std(0).clamp_min(1e-12)
    rows, others = (torch.cat([(x - mean) / scale, torch.ones(len(x), 1).double()], 1) for x in (known, counts))
    ridge = torch.eye(rows.shape[1], dtype=torch.float64)
    bound = torch.linalg.cholesky(rows.T @ rows / 4 + ridge)
    weights = torch.zeros(rows.shape[1], 1, dtype=torch.float64)
    for _ in range(FITTING_STEPS):
        gradient = rows.T @ ((rows @ weights).sigmoid() - answers[:, None]) + weights
        weights -= torch.cholesky_solve(gradient, bound)
    return (others @ weights > 0)[:, 0].long()


def symbol_counts(inputs: Int64[Tensor, "N T"], num_symbols: int) -> Int64[Tensor, "N S"]:
    """Return how often each symbol occurs in each string."""
    return torch.zeros(len(inputs), num_symbols, dtype=torch.int64).scatter_add_(1, inputs, torch.ones_like(inputs))
