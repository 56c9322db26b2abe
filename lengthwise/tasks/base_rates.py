"""What answers score that solve nothing: the likeliest one, and the likeliest given something quickly read off."""

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
"""The name of the likeliest answer among base rates."""

MAX_DRAWN_PER_CHUNK = 1 << 11

FITTING_STEPS = 100
"""Of a logistic regression; more change no answer that can be seen in a sample."""


class ShallowTask(OracleTask):
    """A task of which it is known how well answers score that solve nothing, at each length."""

    num_counted: ClassVar[int] = 1 << 14
    """Problems of a length that are counted; one half fits shallow baselines, the other scores them."""

    @abstractmethod
    def draw(
        self, count: int, length: int, generator: torch.Generator
    ) -> tuple[Int64[Tensor, "N T"], Int64[Tensor, " N"]]:
        """Draw problems as they are written, all as wide, and their final answers."""

    @abstractmethod
    def shallow_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """Integers that are quickly read off a problem, by what they are; `base_rates` guesses answers from each."""

    def shallow_counts(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, "N F"]]:
        """Numbers of which a logistic regression guesses one of two answers, by what they are; none by default."""
        return {}

    def base_rates(self, length: int) -> Mapping[str, float]:
        """Accuracies of answers that solve nothing, the likeliest answer first, then those given a cheap feature.

        Given each of the `shallow_features`, the answer that was likeliest for its value on one half of the problems
        that are drawn, scored on the other half: but for what a sample leaves open, at least as good as any threshold
        on the feature. Of `shallow_counts`, a logistic regression on that half.
        """
        self.check_length(length)
        return {**_counted(self, length), MAJORITY: self.baseline(length)}


class CountedTask(ShallowTask):
    """A task whose likeliest answer is counted on samples, too, as no formula is known of it."""

    def baseline(self, length: int) -> float:
        """The share of the likeliest answer, counted on 16,384 problems (standard error at most 0.004)."""
        self.check_length(length)
        return _counted(self, length)[MAJORITY]


@lru_cache(maxsize=256)
def _counted(task: ShallowTask, length: int) -> Mapping[str, float]:
    generator = generator_for(0, "base rates", task.name, length)
    drawn = (task.draw(MAX_DRAWN_PER_CHUNK, length, generator) for _ in range(task.num_counted // MAX_DRAWN_PER_CHUNK))
    read_off = [(task.shallow_features(inputs), task.shallow_counts(inputs), answers) for inputs, answers in drawn]
    answers = torch.cat([of_part for *_, of_part in read_off])
    features = {name: torch.cat([of_part[name] for of_part, *_ in read_off]) for name in read_off[0][0]}
    num_classes = len(task.classes)
    counts = answers.bincount(minlength=num_classes)
    rates = {MAJORITY: float(counts.max()) / len(answers)}
    fitted, scored = answers.chunk(2)
    for name, feature in features.items():
        values, indices = feature.unique(return_inverse=True)
        known, held_out = indices.chunk(2)
        likeliest = torch.full((len(values),), int(counts.argmax()))
        pairs, times = (known * num_classes + fitted).unique(return_counts=True)
        # From the rarest pair to the most frequent, of equally frequent ones the first class last: the last one stays.
        for pair in pairs.flip(0)[times.flip(0).argsort(stable=True)].tolist():
            likeliest[pair // num_classes] = pair % num_classes
        rates[name] = float((likeliest[held_out] == scored).double().mean())
    for name in read_off[0][1]:
        known_counts, held_out_counts = torch.cat([counts[name] for _, counts, _ in read_off]).chunk(2)
        rates[name] = float((logistic_guesses(known_counts, fitted, held_out_counts) == scored).double().mean())
    return MappingProxyType(rates)


def logistic_guesses(
    known: Int64[Tensor, "M F"], answers: Int64[Tensor, " M"], counts: Int64[Tensor, "N F"]
) -> Int64[Tensor, " N"]:
    """The answers, 0 or 1, that a logistic regression on `known` guesses for other counts.

    It minimizes -sum log p(answer) + |w|^2 / 2 over weights w of standardized counts and a bias, by `FITTING_STEPS`
    steps that never raise it: the curvature of a logistic loss is at most a quarter of that of a squared one.

    Source: Boehning and Lindsay, Monotonicity of quadratic-approximation algorithms, 1988, section 4.
    """
    mean, scale = known.double().mean(0), known.double().std(0).clamp_min(1e-12)
    rows, others = (torch.cat([(x - mean) / scale, torch.ones(len(x), 1).double()], 1) for x in (known, counts))
    ridge = torch.eye(rows.shape[1], dtype=torch.float64)
    bound = torch.linalg.cholesky(rows.T @ rows / 4 + ridge)
    weights = torch.zeros(rows.shape[1], 1, dtype=torch.float64)
    for _ in range(FITTING_STEPS):
        gradient = rows.T @ ((rows @ weights).sigmoid() - answers[:, None]) + weights
        weights -= torch.cholesky_solve(gradient, bound)
    return (others @ weights > 0)[:, 0].long()
