"""What answers score that solve nothing: the likeliest one, and the likeliest given something quickly read off."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.randomness import generator_for
from lengthwise.tasks.base import OracleTask

STRINGS_COUNTED = 1 << 14
"""Problems of a length that base rates are counted on; one half fits shallow baselines, the other scores them."""

MAJORITY = "majority class"
"""The name of the likeliest answer among base rates."""

MAX_DRAWN_PER_CHUNK = 1 << 11


class CountedTask(OracleTask):
    """A task whose shallow baselines are counted on samples, as no formula is known of them."""

    @abstractmethod
    def draw(
        self, count: int, length: int, generator: torch.Generator
    ) -> tuple[Int64[Tensor, "N T"], Int64[Tensor, " N"]]:
        """Draw problems as they are written, all as wide, and their final answers."""

    @abstractmethod
    def shallow_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """Integers that are quickly read off a problem, by what they are; `base_rates` guesses answers from each."""

    def baseline(self, length: int) -> float:
        """The share of the likeliest answer, counted on 16,384 problems (standard error at most 0.004)."""
        self.check_length(length)
        return _counted(self, length)[MAJORITY]

    def base_rates(self, length: int) -> Mapping[str, float]:
        """Accuracies of answers that solve nothing, the likeliest answer first, then those given a cheap feature.

        Given each of the `shallow_features`, the answer that was likeliest for its value on 8,192 problems, scored on
        8,192 others: but for what a sample leaves open, at least as good as any threshold on the feature.
        """
        self.check_length(length)
        return {**_counted(self, length), MAJORITY: self.baseline(length)}


@lru_cache(maxsize=256)
def _counted(task: CountedTask, length: int) -> Mapping[str, float]:
    generator = generator_for(0, "base rates", task.name, length)
    drawn = (task.draw(MAX_DRAWN_PER_CHUNK, length, generator) for _ in range(STRINGS_COUNTED // MAX_DRAWN_PER_CHUNK))
    read_off = [(task.shallow_features(inputs), answers) for inputs, answers in drawn]
    answers = torch.cat([of_part for _, of_part in read_off])
    features = {name: torch.cat([of_part[name] for of_part, _ in read_off]) for name in read_off[0][0]}
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
    return MappingProxyType(rates)
