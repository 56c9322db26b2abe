"""Strings that end: followed by END indefinitely, or until a generator that reads END is stopped."""

import math

import numpy as np

from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.memorize import Memorization, memorize
from lengthwise.constructions.memorization.separation import read_out

END = "$"
"""The symbol after a string, where no other is asked for."""

MAX_STEPS = 10_000_000
"""Logits are looked at for so many steps after the end; by then all exponentials have to be small."""


def end_by_period(text: str, *, end: str = END) -> Memorization:
    """The note's own device: ``(text END)^+``, which whoever runs it stops at the first END.

    Raises:
        ValueError: the text is empty or holds the end symbol.

    Example:
        >>> found = end_by_period("aab")
        >>> found.upper, found.generator.generate(8)
        (2, 'aab$aab$')

    Source: "update on rnn memorization", section (s_1^a_1 ... s_k^a_k)^+: "we can choose s_k = END and a_k = 1".
    Differs from the source: in nothing but the dimension, which is the smallest one.
    """
    _check(text, end)
    return memorize(text + end)


def end_for_ever(text: str, *, end: str = END) -> LinearGenerator:
    """A generator that says the text and then END indefinitely: W_h is diagonal with different numbers in (0, 1).

    Logits are sums of d exponentials and a constant, which change sign at most d times, at any places: a binary string
    with c changes, END included, needs no more than d = c. The dimension is the first at which a linear program finds a
    read-out from states with entries x^(k i), k = 1 ... d, with x halved over the length of the text; symbols of one
    run each need d = 1, as the upper envelope of lines. That END is said indefinitely is checked: the state shrinks,
    and what it adds to the bias is bounded from some step on.

    Raises:
        ValueError: the text is empty or holds the end symbol.

    Example:
        >>> generator = end_for_ever("aaabbc")
        >>> generator.dimension, generator.generate(10)
        (1, 'aaabbc$$$$')
        >>> end_for_ever("abab").dimension  # three changes, END included
        3
    """
    _check(text, end)
    symbols = tuple(sorted(set(text) | {end}))
    letters = np.array([symbols.index(letter) for letter in (*text, end, end)])
    base = 0.5 ** (1 / len(text))
    for d in range(1, len(text) + 1):
        eigenvalues = base ** np.arange(1, d + 1)
        states = np.vander([*(base**i for i in range(len(text) + 1)), 0.0], d + 1, increasing=True)[:, 1:]
        found = read_out(letters, states)
        if found is None:
            continue
        made = LinearGenerator(np.diag(eigenvalues), found.weights, found.bias, np.ones(d), symbols)
        if _stays(made, len(text), symbols.index(end)):
            return made
    raise RuntimeError(f"text: found no read-out of {text!r} in {len(text)} dimensions")


def _stays(generator: LinearGenerator, start: int, end: int) -> bool:
    """Whether END is answered at every step from `start` on: one after another, then by the norm of the state."""
    eigenvalues = np.diag(generator.hidden)
    ahead = np.delete(generator.bias[end] - generator.bias, end)
    differences = np.delete(generator.readout[end] - generator.readout, end, axis=0)
    reach = np.abs(differences).sum(1).max()
    steps = start + max(0, math.ceil(math.log(ahead.min() / (2 * reach)) / math.log(eigenvalues.max())))
    if ahead.min() <= 0 or steps > MAX_STEPS:
        return False
    states = eigenvalues ** np.arange(start, steps + 1)[:, None]
    return bool((states @ differences.T + ahead > 0).all())


def _check(text: str, end: str) -> None:
    if not text:
        raise ValueError("text: expected at least one symbol before the end, got none; give a string")
    if end in text:
        raise ValueError(f"text: expected a string without the end symbol {end!r}, got {text!r}; choose another end")
