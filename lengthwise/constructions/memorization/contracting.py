"""Generators that read their own output and forget errors.

They forget errors because all eigenvalues of the recurrence matrix W_h (`LinearGenerator`) are inside the unit circle.

`feedback.digits` generates any word in one dimension, but its W_h expands. This module searches for contracting nets.
`contracting_line` decides which words one dimension can generate, and `contracting_plane` which words two dimensions
can generate.
"""

from typing import NamedTuple

import numpy as np

from lengthwise.constructions.memorization.contracting_line import contracting_rate
from lengthwise.constructions.memorization.contracting_plane import contracting_plane
from lengthwise.constructions.memorization.cycle import Undecided, cycle_states, net_of
from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.separation import read_out
from lengthwise.constructions.memorization.words import Word, check_binary
from lengthwise.validation import check_sizes


def shift_register(word: Word) -> LinearGenerator:
    """Return the net that stores the last m answers, for the smallest m with a linear read-out of the next answer.

    W_h shifts the stored answers, so W_h^m = 0.

    Raises:
        ValueError: the word does not have two symbols, or a linear program fails, for example on a long word.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> generator = shift_register(parse_word("0011"))
        >>> generator.dimension, generator.generate(8)
        (2, '00110011')
    """
    check_binary(word)
    letters = word.letters
    for size in range(1, word.period):
        kept = np.stack([np.roll(letters, 1 + k) for k in range(size)], 1).astype(float)
        try:
            readout = read_out(letters, kept)
        except RuntimeError as problem:
            raise ValueError(
                f"word: expected a word whose linear program can be solved, got {word.period} letters ({problem}); "
                "give a shorter word"
            ) from None
        if readout is not None:
            inputs = np.zeros((size, 2))
            inputs[0, 1] = 1.0
            return LinearGenerator(np.eye(size, k=-1), readout.weights, readout.bias, kept[0], word.symbols, inputs)
    raise AssertionError("expected a linear read-out from the last period - 1 answers, got none; report this word")


NUM_TRIES = 400
"""The number of random matrices W_h that `search_net` tries."""


def search_net(word: Word, dimension: int) -> LinearGenerator | None:
    """Return a net of this dimension with random eigenvalues inside the unit circle, or None, which proves nothing.

    W_h has a scaled 2 x 2 rotation for each pair of complex eigenvalues, and a number for each real eigenvalue. W_x has
    a column of ones for one symbol, and a column of zeros for the other symbol. Up to a change of basis, such nets
    cover every W_h with different eigenvalues for which W_x reaches all directions. W_h and W_x determine the states on
    the cycle, and a linear program searches for a read-out of the word from these states.

    Raises:
        ValueError: the word does not have two symbols, or the dimension is below 1.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> search_net(parse_word("0011"), 2).generate(8)
        '00110011'
    """
    check_binary(word)
    check_sizes(dimension=dimension)
    draws = np.random.default_rng(0)
    for _ in range(NUM_TRIES):
        hidden, added = _random_contraction(dimension, draws), np.ones(dimension)
        if net := net_of(word, hidden, added, cycle_states(hidden, added, word)):
            return net
    return None


def _random_contraction(dimension: int, draws: np.random.Generator) -> np.ndarray:
    """Draw a block-diagonal matrix with some pairs of complex eigenvalues; absolute values near 1 are most frequent."""
    hidden = np.zeros((dimension, dimension))
    first = 0
    while first < dimension:
        modulus = 1 - 0.9 * draws.random() ** 2
        if dimension - first >= 2 and draws.random() < 0.75:
            angle = np.pi * draws.random()
            cosine, sine = modulus * np.cos(angle), modulus * np.sin(angle)
            hidden[first : first + 2, first : first + 2] = [[cosine, -sine], [sine, cosine]]
            first += 2
        else:
            hidden[first, first] = modulus * draws.choice([-1, 1])
            first += 1
    return hidden


class FeedbackBounds(NamedTuple):
    """Bounds on the dimension of a word's smallest contracting net with feedback: at least `lower`, at most `upper`.

    A net is contracting if all eigenvalues of W_h are inside the unit circle. A net with feedback reads its output.
    """

    lower: int
    upper: int


def contracting_dimension(word: Word) -> FeedbackBounds:
    """Return bounds on the dimension of the smallest contracting net that generates a word of two symbols.

    A net is contracting if all eigenvalues of W_h are inside the unit circle. If one dimension is enough, both bounds
    are 1. If two dimensions are enough, both are 2. Otherwise, `lower` is 3, or 2 if it is undecided whether two
    dimensions are enough. `upper` is the first dimension from `lower` on in which `search_net` finds a net, or the
    dimension of the shift register.

    Raises:
        ValueError: the word does not have two symbols, or has more than `MAX_PERIOD` letters.
        Undecided: it is undecided whether one dimension is enough.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> contracting_dimension(parse_word("00101")), contracting_dimension(parse_word("0011"))
        (FeedbackBounds(lower=1, upper=1), FeedbackBounds(lower=2, upper=2))
        >>> contracting_dimension(parse_word("00011011"))
        FeedbackBounds(lower=3, upper=3)
    """
    if contracting_rate(word) is not None:
        return FeedbackBounds(1, 1)
    size = shift_register(word).dimension
    try:
        plane = contracting_plane(word)
    except Undecided:
        lower = 2
    else:
        if plane is not None:
            return FeedbackBounds(2, 2)
        lower = 3
    smaller = (d for d in range(lower, size) if search_net(word, d) is not None)
    return FeedbackBounds(lower, next(smaller, size))
