"""The split of examples before a search: the longest examples and some of the others are held out."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from lengthwise.conventions import IGNORE
from lengthwise.learning.baselines import are_longest
from lengthwise.randomness import generator_for
from lengthwise.tasks.given.examples import Examples

SHARE_OF_LONGEST, SHARE_AT_RANDOM = 0.2, 0.1
"""The largest fraction of examples held out as the longest, and the chance that any other example is held out."""

MIN_TRAINED = 8
"""The smallest number of examples to train on."""

Part = Literal["trained on", "longest", "at random"]


def split_parts(examples: Examples, seed: int) -> dict[Part, Examples]:
    """Return the examples to train on, and the held-out examples in up to two parts; no part is empty.

    A held-out string can have a prefix in common with a training string. If such a prefix has a label in training, its
    label is removed from the held-out parts, because this label would test only memory. A part may lose all labels in
    this way.

    Raises:
        ValueError: fewer than `MIN_TRAINED` strings are left for training.
    """
    longest = are_longest(examples, SHARE_OF_LONGEST)
    drawn = generator_for(seed, "held out")
    chance = np.random.default_rng(int(drawn.initial_seed()) % 2**63).random(len(examples))
    at_random = ~longest & (chance < SHARE_AT_RANDOM)
    masks: dict[Part, Any] = {"trained on": ~longest & ~at_random, "longest": longest, "at random": at_random}
    if (count := int(masks["trained on"].sum())) < MIN_TRAINED:
        others = f"{len(examples) - count} of {len(examples)} different strings are held out"
        raise ValueError(
            f"examples: expected at least {MIN_TRAINED} strings to train on, got {count} ({others}); give more strings"
        )
    # Many held-out prefixes can also be in training. Memory alone would then look like learning, even with labels that
    # are coin flips.
    known = examples.prefixes[np.repeat(masks["trained on"], examples.lengths) & (examples.targets != IGNORE)]
    targets = np.where(np.isin(examples.prefixes, known), IGNORE, examples.targets)
    held_out = replace(examples, targets=targets)
    return {
        part: (examples if part == "trained on" else held_out).part(mask) for part, mask in masks.items() if mask.any()
    }
