"""Standard and linear RNNs that learn to repeat words: a test of the first claim in the note on memorization.

Like `rnn-memorization`, this study has no recorded runs.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch

from lengthwise.constructions.memorization.memorize import memorize
from lengthwise.constructions.memorization.words import Word, parse_word
from lengthwise.experiment import EXPERIMENTS, Experiment, Scale, check_is_not_paper
from lengthwise.randomness import generator_for
from lengthwise.training.memorization import Activation, Descent, Stack, descend, draw, generate

WORDS = ("01", "001", "0011", "0001", "00011", "00101", "000111", "001011")


class Kind(NamedTuple):
    """A kind of net: the activation of its states, and whether the net reads its own answers."""

    activation: Activation
    learns_inputs: bool


KINDS: Mapping[str, Kind] = {
    "linear, W_x = 0": Kind("identity", False),
    "linear, W_x learned": Kind("identity", True),
    "tanh, W_x = 0": Kind("tanh", False),
    "tanh, W_x learned": Kind("tanh", True),
}


class Size(NamedTuple):
    """The size of the study: words, dimensions, the number of nets for each case, training settings, and two lengths.

    A case is a word, a kind of net and a dimension. Nets are trained on the first `length` symbols of the repeated
    word, and generate `longest` symbols.
    """

    words: tuple[str, ...]
    dimensions: range
    seeds: int
    descent: Descent
    length: int
    longest: int


SIZES: Mapping[str, Size] = {
    "small": Size(WORDS, range(1, 7), 8, Descent(steps=1_000), 48, 4_800),
    "smoke": Size(("001",), range(1, 3), 2, Descent(steps=3), 8, 16),
}


class Success(NamedTuple):
    """The numbers of successful nets of one kind and dimension that were trained on one word.

    `num_right` counts the nets that generate the first `Size.length` symbols correctly, and `num_lasting` the nets that
    generate the first `Size.longest` symbols correctly. `smallest` is the dimension of the smallest linear RNN without
    feedback that `memorize` finds. This is an upper bound on the smallest possible dimension d_min. The bound is exact
    if the search of `memorize` finishes.
    """

    word: str
    kind: str
    dimension: int
    smallest: int
    num_right: int
    num_lasting: int


class Standard(NamedTuple):
    """The size of the study, and the `Success` of each kind of net, dimension and word."""

    size: Size
    rows: list[Success]


@EXPERIMENTS.register("rnn-memorization/standard")
def standard(scale: Scale = "small") -> Experiment:
    """Train standard and linear RNNs to repeat short words: success against dimension, and for how many symbols."""
    check_is_not_paper(scale, "the note trains nothing")
    size = SIZES[scale]
    return Experiment(
        title="Learning to repeat words: standard RNNs compared with linear RNNs",
        about=(
            'The note "update on rnn memorization" (2023; see [memorization](../memorization.md)) claims that an RNN '
            "that is trained on one string for long enough generates nothing else. This page tests the claim for "
            "standard RNNs, which have tanh, and for linear RNNs."
        ),
        study=lambda root: study(size),
    )


def study(size: Size) -> Standard:
    """Train nets of all kinds and dimensions. The nets of one kind and dimension are trained in one batch."""
    words = [parse_word(text) for text in size.words for _ in range(size.seeds)]
    smallest = {text: memorize(text).upper for text in size.words}
    rows = []
    for kind in KINDS:
        for dimension in size.dimensions:
            first_wrong = _first_wrong(words, kind, dimension, size)
            for index, text in enumerate(size.words):
                own = first_wrong[index * size.seeds : (index + 1) * size.seeds]
                right, lasting = (sum(step > count for step in own) for count in (size.length, size.longest))
                rows.append(Success(text, kind, dimension, smallest[text], right, lasting))
    return Standard(size, rows)


def _first_wrong(words: list[Word], kind: str, dimension: int, size: Size) -> list[int]:
    """Return each net's first wrong step, counted from 1. If no step is wrong, return the number of steps plus 1."""
    activation, learns_inputs = KINDS[kind]
    letters = torch.from_numpy(np.stack([np.resize(word.letters, size.longest) for word in words]))
    generator = generator_for(0, "standard", kind, dimension)
    stack = draw(len(words), dimension, int(letters.max()) + 1, generator)
    stack, _ = descend(
        stack, letters[:, : size.length], size.descent, learns_inputs=learns_inputs, activation=activation
    )
    double = Stack(*(tensor.double() for tensor in stack))
    wrong = generate(double, size.longest, activation) != letters
    steps = torch.where(wrong.any(1), wrong.int().argmax(1) + 1, size.longest + 1)
    return [int(step) for step in steps]
