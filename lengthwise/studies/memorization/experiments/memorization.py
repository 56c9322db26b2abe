"""Memorizing words with linear RNNs (2023): do trained nets find the known solutions, and for how long are they right?

This study has no recorded runs, because its nets have only a few parameters and hundreds of them are trained together.
"""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch

from lengthwise.constructions.memorization.frequencies import Frequencies, orbit, sets_of_dimension
from lengthwise.constructions.memorization.lifetime import (
    Precision,
    angle_formula,
    fastest_formula,
    predicted_lifetime,
    rounded,
    with_rounded_hidden,
)
from lengthwise.constructions.memorization.memorize import Memorization, memorize
from lengthwise.constructions.memorization.networks import as_linear_rnn
from lengthwise.constructions.memorization.separation import read_out
from lengthwise.experiment import EXPERIMENTS, Experiment, Scale, check_is_not_paper
from lengthwise.randomness import generator_for
from lengthwise.training.memorization import Descent, Stack, descend, draw, generate

LOW: tuple[Precision, ...] = ("bfloat16", "float16")


class Size(NamedTuple):
    """The size of the study: words, number of nets for each word and dimension, training, and numbers of symbols.

    Each period in `periods` has `num_drawn` random binary words. Nets are trained on the first `length` symbols and
    generate `longest` symbols. Constructed generators, whose W_h is rounded to a precision in `LOW`, generate
    `max_written` symbols.
    """

    periods: range
    num_drawn: int
    seeds: int
    descent: Descent
    length: int
    longest: int
    max_written: int


SIZES = {
    "smoke": Size(range(2, 4), 1, 1, Descent(steps=3), 8, 16, 200),
    "small": Size(range(2, 17), 1, 4, Descent(steps=1_000), 64, 640, 50_000),
}


def trained_words(size: Size) -> list[Memorization]:
    """Return the words of each period, without repeated words.

    These are 0^a 1^b with a = b or a = b + 1, random binary words and, at periods 3 to 8, a random word of 3 letters.
    """
    texts = []
    for p in size.periods:
        drawn = generator_for(0, "words", p)
        texts.append("0" * (p - p // 2) + "1" * (p // 2))
        for num_symbols in [2] * size.num_drawn + [3] * (3 <= p <= 8):
            memorization = None
            while memorization is None or len(memorization.word.symbols) < num_symbols or memorization.word.period < p:
                memorization = memorize("".join(map(str, torch.randint(num_symbols, (p,), generator=drawn).tolist())))
            texts.append(memorization.word.text)
    return [memorize(text, robust=True) for text in dict.fromkeys(texts)]


class Rounded(NamedTuple):
    """A trained net with rounded recurrent matrix: its first wrong step by a formula and as measured (None: no error).

    `formula` is (pi / p) / |dtheta|. Here p is the word's period, and dtheta is the largest distance of an eigenvalue's
    angle from a multiple of 2 pi / p, after rounding. Even before rounding, the angles of a trained net are not exact.
    """

    formula: float
    first_wrong: int | None


class Trained(NamedTuple):
    """A trained net: its word, its dimension, its first wrong step, and the eigenvalues of its recurrent matrix W_h.

    `first_wrong` is the first step at which the net generates a wrong symbol in float64, or None if all symbols are
    right. `when_rounded` contains the result of the net with W_h rounded to each precision in `LOW`. `learns_inputs`
    is False if the input matrix W_x is 0, so that the net does not read its own answers.
    """

    word: Memorization
    dimension: int
    learns_inputs: bool
    loss: float
    first_wrong: int | None
    when_rounded: dict[Precision, Rounded]
    eigenvalues: tuple[complex, ...]

    def is_right(self, steps: int) -> bool:
        """Return True if the first `steps` symbols that the net generates are right."""
        return self.first_wrong is None or self.first_wrong > steps


def train_all(words: Sequence[Memorization], size: Size) -> list[Trained]:
    """Train nets of every dimension from 1 to the word's period, with input matrix W_x = 0 and with learned W_x.

    The nets of one dimension and kind are trained together, in one batch.
    """
    trained = []
    for d in range(1, max(memorization.word.period for memorization in words) + 1):
        chosen = [memorization for memorization in words if memorization.word.period >= d for _ in range(size.seeds)]
        for learns_inputs in (False, True):
            trained += _train(chosen, d, size, learns_inputs=learns_inputs)
    return trained


def _train(chosen: Sequence[Memorization], d: int, size: Size, *, learns_inputs: bool) -> list[Trained]:
    letters = torch.from_numpy(
        np.stack([np.resize(memorization.word.letters, size.longest) for memorization in chosen])
    )
    num_symbols = int(letters.max()) + 1
    stack = draw(len(chosen), d, num_symbols, generator_for(0, "nets", d, int(learns_inputs)))
    for index, memorization in enumerate(chosen):
        stack.bias[index, len(memorization.word.symbols) :] = -100.0  # symbols of other words
    stack, losses = descend(stack, letters[:, : size.length], size.descent, learns_inputs=learns_inputs)
    double = Stack(*(tensor.double() for tensor in stack))
    wrong = [_first(row) for row in generate(double, size.longest) != letters]
    low = {precision: rounded_nets(double, chosen, precision, size.longest) for precision in LOW}
    eigenvalues = torch.linalg.eigvals(double.hidden).tolist()
    return [
        Trained(
            memorization,
            d,
            learns_inputs,
            losses[i].item(),
            wrong[i],
            {precision: nets[i] for precision, nets in low.items()},
            tuple(eigenvalues[i]),
        )
        for i, memorization in enumerate(chosen)
    ]


def rounded_nets(nets: Stack, words: Sequence[Memorization], precision: Precision, count: int) -> list[Rounded]:
    """Round each net's recurrent matrix to `precision`, and return each net's first wrong step within `count` steps."""
    low = nets._replace(hidden=torch.from_numpy(rounded(nets.hidden.numpy(), precision)))
    generated, eigenvalues = generate(low, count), torch.linalg.eigvals(low.hidden).tolist()
    results = []
    for i, word in enumerate(one.word for one in words):
        _, off = frequencies_of(eigenvalues[i], word.period)
        letters = torch.from_numpy(np.resize(word.letters, count))
        results.append(
            Rounded(angle_formula(word.period, 2 * math.pi / word.period * off), _first(generated[i] != letters))
        )
    return results


def _first(is_wrong: torch.Tensor) -> int | None:
    """Return the first step, counted from 1, at which the tensor is True."""
    return int(is_wrong.int().argmax()) + 1 if bool(is_wrong.any()) else None


class Learned(NamedTuple):
    """The learned frequencies for a word, over right nets without feedback that have dimension d_min.

    Here d_min is the dimension of the smallest such net that `memorize` finds. A net is right if it generates the
    symbols of training correctly. A frequency is the angle of an eigenvalue of the recurrent matrix W_h, divided by
    2 pi / p, for a word of period p. A set of frequencies is readable if a net with these frequencies and some read-out
    generates the word.

    - `off`: the median over nets of the largest distance of a frequency from a whole number.
    - `readable`: the number of nets whose rounded frequencies are readable.
    - `robust`: the number of nets whose rounded frequencies are the set for which `memorize` finds the widest margin.
    - `sets`, `all_sets`: the number of readable sets and of all sets of this dimension, for comparison with chance.
    """

    word: Memorization
    num_right: int
    off: float
    readable: int
    robust: int
    sets: int
    all_sets: int


def learned_frequencies(trained: Sequence[Trained], size: Size) -> list[Learned]:
    """Compare the eigenvalues of trained nets with the frequencies that are found by linear programs."""
    smallest = [net for net in trained if not net.learns_inputs and net.dimension == net.word.upper]
    rows = []
    for _, group in groupby(sorted(smallest, key=_name), key=_name):
        nets = list(group)
        word = nets[0].word
        right = [net for net in nets if net.is_right(size.length)]
        period, letters = word.word.period, word.word.letters
        every = list(sets_of_dimension(period, word.upper))
        readable = {S for S in every if read_out(letters, orbit(S, period)) is not None}
        seen = [frequencies_of(net.eigenvalues, period) for net in right]
        offs = sorted(off for _, off in seen)
        rows.append(
            Learned(
                word,
                len(right),
                offs[len(offs) // 2] if offs else math.nan,
                sum(frequencies in readable for frequencies, _ in seen),
                sum(frequencies == word.frequencies for frequencies, _ in seen),
                len(readable),
                len(every),
            )
        )
    return rows


def _name(net: Trained) -> tuple[int, str]:
    return net.word.word.period, net.word.word.text


def frequencies_of(eigenvalues: Sequence[complex], period: int) -> tuple[Frequencies, float]:
    """Return the rounded frequencies of the eigenvalues, without 0, and the largest rounding error.

    A frequency is the absolute angle of an eigenvalue, divided by 2 pi / p for the period p.

    Example:
        >>> frequencies_of([1j, -1j, 0.9 + 0j], 8)
        ((2,), 0.0)
    """
    turns = [abs(math.atan2(value.imag, value.real)) / (2 * math.pi) * period for value in map(complex, eigenvalues)]
    off = max(abs(turn - round(turn)) for turn in turns)
    return tuple(sorted({round(turn) for turn in turns} - {0})), off


class Lasting(NamedTuple):
    """The first wrong steps of a constructed generator whose recurrent matrix W_h is rounded to a precision in `LOW`.

    W_h rotates an invariant plane, or flips an invariant line, for each frequency. A plane of the rounded W_h drifts:
    it rotates by another angle.

    - `threshold`: the largest minus the smallest bias of the read-out.
    - `formula`: (pi / p) / |dtheta|. Here p is the word's period, and dtheta is the angle by which the fastest plane
      drifts in a step.
    - `predicted`: the first wrong step, computed from the drift of all planes.
    - `measured`: the first wrong step with states in float64.
    - `wholly`: the first wrong step with all numbers in bfloat16, only for the precision bfloat16.

    None means that no wrong step was found. `wholly` is also None for other precisions.
    """

    word: Memorization
    precision: Precision
    threshold: float
    formula: float
    predicted: int | None
    measured: int | None
    wholly: int | None

    @property
    def is_plain(self) -> bool:
        """Return True if `formula` is valid for the generator: it has only one frequency, and its threshold is 0."""
        return len(self.word.frequencies) == 1 and self.threshold < 1e-6


def lifetimes(words: Sequence[Memorization], size: Size) -> list[Lasting]:
    """Measure for how many steps constructed generators are right if their recurrent matrix is rounded."""
    rows = []
    for memorization in words:
        count, letters = size.max_written, np.resize(memorization.word.letters, size.max_written)
        for precision in LOW:
            generator = with_rounded_hidden(memorization.generator, precision)
            generated = generator.logits(generator.states(count)).argmax(1)
            wholly = None
            if precision == "bfloat16":
                model = as_linear_rnn(memorization.generator, torch.bfloat16)
                wholly = _first(model.generate(count) != torch.from_numpy(letters))
            rows.append(
                Lasting(
                    memorization,
                    precision,
                    float(np.ptp(memorization.generator.bias)),
                    fastest_formula(memorization, precision),
                    predicted_lifetime(memorization, precision).first_wrong,
                    _first(torch.from_numpy(generated != letters)),
                    wholly,
                )
            )
    return rows


class Memorized(NamedTuple):
    """The results for nets that repeat words: trained nets, learned frequencies, and constructed generators."""

    size: Size
    words: list[Memorization]
    trained: list[Trained]
    learned: list[Learned]
    lasting: list[Lasting]


def study(size: Size) -> Memorized:
    """Train nets of all dimensions on all words; measure these nets, and constructed generators of the same words."""
    words = trained_words(size)
    trained = train_all(words, size)
    return Memorized(size, words, trained, learned_frequencies(trained, size), lifetimes(words, size))


@EXPERIMENTS.register("rnn-memorization")
def rnn_memorization(scale: Scale = "small") -> Experiment:
    """Train linear RNNs to repeat words: success against dimension, eigenvalues, and how long the nets are right."""
    check_is_not_paper(scale, "the note trains nothing")
    size = SIZES[scale]
    return Experiment(
        title="Learning to repeat words",
        about=(
            "The page also compares the eigenvalues of trained nets with the theory, and shows for how many steps nets "
            "are right if W_h is rounded."
        ),
        study=lambda root: study(size),
    )
