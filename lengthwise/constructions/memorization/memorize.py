"""The smallest linear RNN without feedback that repeats a word indefinitely, and the most robust of that size."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from lengthwise.constructions.memorization.closed_form import rotation_matrix
from lengthwise.constructions.memorization.frequencies import (
    Bounds,
    Frequencies,
    blocks,
    bounds,
    dimension,
    orbit,
    sets_of_dimension,
)
from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.separation import Robust, read_out, widest_margin
from lengthwise.constructions.memorization.words import Word, parse_word

BUDGET = 3_000
"""Linear programs that a search may take: about 10 CPU seconds for a binary word."""

SETS_PER_PROGRAM = 100
"""A search looks at no more than so many sets for each program of its budget: of a long word bounds exclude most."""


class Memorization(NamedTuple):
    """A generator of a word, and what is known of the smallest dimension d_min: `lower` <= d_min <= `upper`.

    Both are equal unless the search was given up. `frequencies` are the generator's, of dimension at most `upper`;
    `margin` is the distance of its states, which have norm 1, from where another symbol is read: the largest that
    these frequencies allow for two symbols, and for more at least `min_margin`, which is the largest of what the
    group lasso bounds. `programs` counts linear programs of the search for d_min; `is_widest` is False where the
    budget ended the search for wider margins.
    """

    word: Word
    lower: int
    upper: int
    frequencies: Frequencies
    generator: LinearGenerator
    margin: float
    min_margin: float
    programs: int
    is_widest: bool = True


def memorize(
    text: str, *, robust: bool = False, max_dimension: int | None = None, budget: int = BUDGET
) -> Memorization:
    """The smallest generator of ``(text)^+`` with W_x = 0: sets of frequencies in order of dimension, a program each.

    Of the first set that can be read out the widest margin is taken; with `robust`, of all sets of dimension d_min, or
    of all of dimension up to `max_dimension` if that is given. The restriction to W_h^p = 1 loses nothing: averaging
    the logits of any other W_h over steps that are p apart leaves frequencies k / p alone, and all inequalities strict.

    Raises:
        ValueError: the text is no word (`parse_word`), or it needs more than `max_dimension` dimensions.

    Example:
        >>> found = memorize("abacabad")
        >>> found.upper, found.frequencies, found.generator.generate(16)
        (3, (1, 4), 'abacabadabacabad')

    Source: "update on rnn memorization", section "How small can we make d?".
    Differs from the source: which asks only what order W_h can have; here the word is read out, too.
    """
    word = parse_word(text)
    if word.period == 1:
        return Memorization(word, 0, 0, (), _constant(word), np.inf, np.inf, 0)
    known = bounds(word)
    search, wider = (_Search(known, word.period, budget) for _ in range(2))
    smallest = _first(word, search)
    upper = dimension(smallest, word.period)
    lower = upper if search.is_complete else search.reached
    if max_dimension is not None and max_dimension < lower:
        raise ValueError(
            f"max_dimension: expected at least {lower}, which {word.text!r} needs, got {max_dimension}; allow more"
        )
    if max_dimension is not None and max_dimension < upper:
        raise ValueError(
            f"max_dimension: expected at least {upper}, got {max_dimension}; whether {word.text!r} needs more than "
            f"{lower} was not settled within the budget"
        )
    dimensions = range(upper, (max_dimension or upper) + 1) if robust else ()
    frequencies, best = _widest(word, smallest, wider, dimensions)
    generator = _assemble_weights(word, frequencies, best)
    margins = generator.margin(word.period), 1 / best.cost
    return Memorization(word, lower, upper, frequencies, generator, *margins, search.programs, wider.is_complete)


class _Search:
    """Sets of frequencies in order of dimension that no bound excludes, until the budget is used up.

    Whoever is given them counts the `programs` that they took. `reached` is the dimension of the set looked at last.
    """

    def __init__(self, known: Bounds, period: int, budget: int) -> None:
        self.known, self.period, self.budget = known, period, budget
        self.programs = 0
        self.reached = known.lower
        self.is_complete = True

    def sets(self, dimensions: Iterable[int]) -> Iterator[Frequencies]:
        """Those of these dimensions; where the budget ends before they do, `is_complete` becomes False."""
        looked_at = 0
        for d in dimensions:
            self.reached = d
            for frequencies in sets_of_dimension(self.period, d):
                if self.programs >= self.budget or looked_at >= SETS_PER_PROGRAM * self.budget:
                    self.is_complete = False
                    return
                looked_at += 1
                if not self.known.excludes(frequencies, self.period):
                    yield frequencies


def _first(word: Word, search: _Search) -> Frequencies:
    """The first set that can be read out; where the search ends before, one that is known to suffice."""
    for frequencies in search.sets(range(search.known.lower, search.known.upper)):
        search.programs += 1
        if read_out(word.letters, orbit(frequencies, word.period)) is not None:
            return frequencies
    return search.known.enough


def _widest(word: Word, first: Frequencies, search: _Search, dimensions: Iterable[int]) -> tuple[Frequencies, Robust]:
    """The widest margin of `first`, which can be read out, and of all sets of these dimensions."""
    found = _robust(word, first)
    assert found is not None, "a read-out of the first set was found"
    frequencies, best = first, found
    search.programs += found.programs
    for tried in search.sets(dimensions):
        if tried == first:
            continue
        found = _robust(word, tried)
        search.programs += found.programs if found else 1
        if found and found.cost < best.cost:
            frequencies, best = tried, found
    return frequencies, best


def _robust(word: Word, frequencies: Frequencies) -> Robust | None:
    p = word.period
    return widest_margin(word.letters, orbit(frequencies, p), blocks(frequencies, p))


def _constant(word: Word) -> LinearGenerator:
    """d = 0: the bias alone repeats one symbol."""
    return LinearGenerator(np.zeros((0, 0)), np.zeros((1, 0)), np.zeros(1), np.zeros(0), word.symbols)


def _assemble_weights(word: Word, frequencies: Frequencies, best: Robust) -> LinearGenerator:
    """The generator of these frequencies, its planes scaled as the margin wants them; unit states."""
    p = word.period
    indices = blocks(frequencies, p)
    d = dimension(frequencies, p)
    scales = np.sqrt(best.norms / best.cost)
    hidden, first, weights = np.zeros((d, d)), np.zeros(d), np.zeros((len(word.symbols), d))
    for k, block, scale in zip(frequencies, indices, scales, strict=True):
        size = block.stop - block.start
        hidden[block, block] = rotation_matrix(2 * np.pi * k / p)[:size, :size]
        first[block.start] = scale
        weights[:, block] = best.readout.weights[:, block] / scale if scale else 0.0
    return LinearGenerator(hidden, weights, best.readout.bias, first, word.symbols)
