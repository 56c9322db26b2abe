"""The smallest linear RNN without feedback that repeats a word indefinitely, with the widest margin at that size."""

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
from lengthwise.constructions.memorization.separation import WidestMargin, num_entries, read_out, widest_margin
from lengthwise.constructions.memorization.words import MAX_LENGTH, Word, parse_word
from lengthwise.validation import check_sizes

BUDGET = 3_000
"""The number of linear programs in a search: about 10 CPU seconds for a binary word."""

SETS_PER_PROGRAM, ENTRIES_PER_PROGRAM = 100, 10_000
"""A search with a budget of B programs ends once it has enumerated 100 B sets of frequencies, or once the constraints
of its programs have 10,000 B entries in total.

For a long word, bounds exclude most sets without a program. For a word of many symbols, the programs are large.
"""

MAX_READOUT_DIMENSION, MAX_ENTRIES = 200, 5_000_000
"""The largest dimension and the largest number of entries of a linear program. In higher dimensions, trigonometric
polynomials are too badly conditioned for float64."""


class Memorization(NamedTuple):
    """A generator of a word, and bounds on the smallest dimension d_min: `lower` <= d_min <= `upper`.

    The bounds are equal unless the budget ended the search. `frequencies` are the generator's frequencies. Their
    dimension is `upper`, or more if `memorize` searched larger dimensions for a wider margin. The generator's states
    have norm 1, and `margin` is their smallest distance to the region of another symbol. For two symbols, `margin` is
    the largest margin that these frequencies allow. For more symbols, `margin` is at least `min_margin`, the optimum of
    the group lasso in `widest_margin`. `programs` counts the linear programs of the search for d_min. `is_widest` is
    False if the budget ended the search for wider margins.
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
    """Return the smallest generator of ``(text)^+`` without feedback, by a linear program for each set of frequencies.

    Sets of frequencies are tried in order of dimension. The generator has the widest margin of the first set that can
    be read out. With `robust`, the generator has the widest margin of all sets of dimension at most `max_dimension` or,
    if `max_dimension` is None, of all sets of the smallest dimension.

    Only W_h with W_h^p = 1 are searched, for period p. This restriction loses nothing. With another W_h, states may
    grow or decay, and the fastest-growing parts of logits may tie. Average these states over steps that are p apart,
    part by part in the order of growth. Then only frequencies k / p are left, and the averaged states generate the same
    word (docs/memorization.md, "The smallest dimension").

    Raises:
        ValueError: the text is not a word (`parse_word`). The linear programs of the word are too large. The word needs
            more than `max_dimension` dimensions, or the search found no generator with at most this dimension.
            `max_dimension` is above 999, the most that any word needs.

    Example:
        >>> memorization = memorize("abacabad")
        >>> memorization.upper, memorization.frequencies, memorization.generator.generate(16)
        (3, (1, 4), 'abacabadabacabad')

    Source: "update on rnn memorization", section "How small can we make d?".
    Differs from the source: the source only determines which orders W_h can have; here the word is also read out.
    """
    word = parse_word(text)
    check_max_dimension(max_dimension)
    check_sizes(budget=budget)
    if word.period == 1:
        return Memorization(word, 0, 0, (), _constant(word), np.inf, np.inf, 0)
    known = bounds(word)
    _check_programs(word, known.upper)
    # Each search has the whole budget, so that d_min does not depend on `robust`.
    search, wider = (_Search(word, known, budget) for _ in range(2))
    smallest = _first(word, search)
    upper = dimension(smallest, word.period)
    lower = upper if search.is_complete else search.reached
    if max_dimension is not None and max_dimension < lower:
        raise ValueError(
            f"max_dimension: expected at least {lower}, which {word.text!r} needs, got {max_dimension}; allow more "
            "dimensions"
        )
    if max_dimension is not None and max_dimension < upper:
        raise ValueError(
            f"max_dimension: expected at least {upper}, the smallest dimension found for {word.text!r} within the "
            f"budget, got {max_dimension}; allow more dimensions or a larger budget"
        )
    dimensions = range(upper, min(max_dimension or upper, word.period - 1) + 1) if robust else ()
    frequencies, best = _widest(word, smallest, wider, dimensions)
    generator = _assemble_weights(word, frequencies, best)
    margins = generator.margin(word.period), 1 / best.cost
    return Memorization(word, lower, upper, frequencies, generator, *margins, search.programs, wider.is_complete)


def check_max_dimension(max_dimension: int | None) -> None:
    """Raise a ValueError if the limit on dimensions is larger than any word needs."""
    if max_dimension is not None and max_dimension >= MAX_LENGTH:
        raise ValueError(
            f"max_dimension: expected at most {MAX_LENGTH - 1}, which is enough for every word, got {max_dimension}; "
            "lower max_dimension or leave it out"
        )


def _check_programs(word: Word, upper: int) -> None:
    """Raise a ValueError if the linear program that is known to have a solution is too large."""
    size = num_entries(len(word.symbols), word.period, upper)
    if upper > MAX_READOUT_DIMENSION or size > MAX_ENTRIES:
        raise ValueError(
            f"word: expected a word whose linear program has at most {MAX_READOUT_DIMENSION} dimensions and "
            f"{MAX_ENTRIES:,} entries, got {upper} dimensions and {size:,} entries (period {word.period}, "
            f"{len(word.symbols)} symbols); give a shorter word, or a word with fewer symbols or longer blocks of "
            "equal symbols"
        )


class _Search:
    """A search through sets of frequencies that no bound excludes, in order of dimension, until the budget is used up.

    The caller solves linear programs for each set, and passes the number of these programs to `count`. `reached` is the
    dimension of the last set.
    """

    def __init__(self, word: Word, known: Bounds, budget: int) -> None:
        self.word = word
        self.known = known
        self.budget = budget
        self.programs = self.entries = 0
        self.reached = known.lower
        self.is_complete = True

    def sets(self, dimensions: Iterable[int]) -> Iterator[Frequencies]:
        """Yield the sets of frequencies with these dimensions, except the sets that a bound excludes.

        If the budget of linear programs ends before the last set, `is_complete` becomes False.
        """
        enumerated = 0
        for d in dimensions:
            self.reached = d
            for frequencies in sets_of_dimension(self.word.period, d):
                if (
                    self.programs >= self.budget
                    or self.entries >= ENTRIES_PER_PROGRAM * self.budget
                    or enumerated >= SETS_PER_PROGRAM * self.budget
                ):
                    self.is_complete = False
                    return
                enumerated += 1
                if not self.known.exclude(frequencies):
                    yield frequencies

    def count(self, programs: int) -> None:
        """Add the number of linear programs that were solved for the last set to the totals of the search."""
        self.programs += programs
        self.entries += programs * num_entries(len(self.word.symbols), self.word.period, self.reached)


def _first(word: Word, search: _Search) -> Frequencies:
    """Return the first set of frequencies that can be read out.

    If the search finds no such set, return the sufficient set of `Bounds`.
    """
    for frequencies in search.sets(range(search.known.lower, search.known.upper)):
        search.count(1)
        if read_out(word.letters, orbit(frequencies, word.period)) is not None:
            return frequencies
    return search.known.sufficient


def _widest(
    word: Word, first: Frequencies, search: _Search, dimensions: Iterable[int]
) -> tuple[Frequencies, WidestMargin]:
    """Return the set with the widest margin, and this margin, among `first` and all sets of these dimensions."""
    frequencies, best = first, _widest_margin(word, first)
    assert best is not None, "a read-out of the first set was found"
    search.count(best.programs)
    for candidate in search.sets(dimensions):
        if candidate == first:
            continue
        margin = _widest_margin(word, candidate)
        search.count(margin.programs if margin else 1)
        if margin and margin.cost < best.cost:
            frequencies, best = candidate, margin
    return frequencies, best


def _widest_margin(word: Word, frequencies: Frequencies) -> WidestMargin | None:
    p = word.period
    return widest_margin(word.letters, orbit(frequencies, p), blocks(frequencies, p))


def _constant(word: Word) -> LinearGenerator:
    """Return the generator of dimension 0, whose bias alone repeats one symbol."""
    return LinearGenerator(np.zeros((0, 0)), np.zeros((1, 0)), np.zeros(1), np.zeros(0), word.symbols)


def _assemble_weights(word: Word, frequencies: Frequencies, best: WidestMargin) -> LinearGenerator:
    """Return the generator with these frequencies, its planes scaled for the widest margin; states have norm 1."""
    p = word.period
    d = dimension(frequencies, p)
    scales = np.sqrt(best.norms / best.cost)
    hidden = np.zeros((d, d))
    first = np.zeros(d)
    weights = np.zeros((len(word.symbols), d))
    for k, block, scale in zip(frequencies, blocks(frequencies, p), scales, strict=True):
        size = block.stop - block.start
        hidden[block, block] = rotation_matrix(2 * np.pi * k / p)[:size, :size]
        first[block.start] = scale
        weights[:, block] = best.readout.weights[:, block] / scale if scale else 0.0
    return LinearGenerator(hidden, weights, best.readout.bias, first, word.symbols)
