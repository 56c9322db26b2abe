"""Generators of strings that end: after the string, END follows indefinitely."""

import math

import numpy as np

from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.separation import read_out
from lengthwise.validation import check_kind

END = "$"
"""The default symbol that marks the end of a string."""

MAX_STEPS = 10_000_000
"""The largest number of steps until states are too small to change an answer. Logits of all steps are computed."""

MAX_DIMENSION = 30
"""The largest dimension that is tried. In higher dimensions, rounding hides the read-outs."""

MAX_LENGTH = 1_000
"""The longest string, in symbols."""


def end_indefinitely(text: str, *, end: str = END) -> LinearGenerator:
    """Return a generator of the text, followed by END indefinitely: W_h is diagonal with different numbers in (0, 1).

    In dimension d, logits are sums of d exponentials and a constant. Such a sum changes its sign at most d times, and
    the positions of the changes are arbitrary. A text of two symbols with c changes of symbol therefore needs d = c,
    and END needs no further dimension. The dimension is the first at which a linear program finds a read-out from
    states with entries x^(k i), k = 1 ... d, at step i, where x^len(text) = 1/2. If each symbol has a single run, d = 1
    suffices, because the upper envelope of lines gives the symbols in turn. A check shows that the generator stays at
    END. Since the generator's state shrinks, a bound on the state's effect on the logits suffices from some step on.

    Raises:
        ValueError: the text is empty, contains the end symbol, or has more than 1,000 symbols; or its symbols
            change so often (about ten times or more) that rounding hides its read-out.

    Example:
        >>> generator = end_indefinitely("aaabbc")
        >>> generator.dimension, generator.generate(10)
        (1, 'aaabbc$$$$')
        >>> end_indefinitely("abab").dimension  # three changes of symbol
        3
    """
    _check(text, end)
    symbols = tuple(sorted(set(text) | {end}))
    letters = np.array([symbols.index(letter) for letter in (*text, end, end)])
    base = 0.5 ** (1 / len(text))
    for d in range(1, min(len(text), MAX_DIMENSION) + 1):
        eigenvalues = base ** np.arange(1, d + 1)
        # The last row is the limit of the states. There, END must also have the largest logit.
        states = np.vander([*(base**i for i in range(len(text) + 1)), 0.0], d + 1, increasing=True)[:, 1:]
        try:
            readout = read_out(letters, states)
        except RuntimeError:  # powers of many numbers are nearly dependent, and rounding leaves no margin
            continue
        if readout is None:
            continue
        generator = LinearGenerator(np.diag(eigenvalues), readout.weights, readout.bias, np.ones(d), symbols)
        if _stays(generator, len(text), symbols.index(end)):
            return generator
    raise ValueError(
        f"text: expected a text that a net in float64 can generate, got {len(text)} symbols in too many "
        "blocks; give a shorter text, or a text with longer blocks of equal symbols"
    )


def _stays(generator: LinearGenerator, start: int, end: int) -> bool:
    """Return whether END follows at every step from `start` on; early logits are computed, and late logits bounded."""
    eigenvalues = np.diag(generator.hidden)
    offsets = np.delete(generator.bias[end] - generator.bias, end)
    if offsets.min() <= 0:
        return False
    differences = np.delete(generator.readout[end] - generator.readout, end, axis=0)
    largest = np.abs(differences).sum(1).max()
    # From this step on, the state changes a difference of logits by at most half of the smallest offset.
    steps = start + max(0, math.ceil(math.log(offsets.min() / (2 * largest)) / math.log(eigenvalues.max())))
    if steps > MAX_STEPS:
        return False
    states = eigenvalues ** np.arange(start, steps + 1)[:, None]
    return bool((states @ differences.T + offsets > 0).all())


def _check(text: str, end: str) -> None:
    check_kind("text", text, str, "a text")
    check_kind("end", end, str, "a symbol")
    if not text:
        raise ValueError(
            "text: expected at least one symbol before the end, got an empty text; give a text of one symbol or more"
        )
    if end in text:
        raise ValueError(
            f"text: expected a string without the end symbol {end!r}, got {text!r}; choose another end symbol"
        )
    if len(text) > MAX_LENGTH:
        raise ValueError(f"text: expected at most {MAX_LENGTH:,} symbols, got {len(text):,}; give a shorter string")
