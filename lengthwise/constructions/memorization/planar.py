"""Words that a rotation of the plane memorizes: exactly the words that are non-crossing at some stride."""

import numpy as np

from lengthwise.constructions.memorization.closed_form import rotation_matrix
from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.words import Word, at_stride, check_word, non_crossing_stride


def planar(word: Word) -> LinearGenerator:
    """Return a generator of dimension 2 of any word of period p >= 3 that is non-crossing at a stride u.

    Stride u reads the letters at positions 0, u, 2u, ... modulo p. In this order, the span of a symbol goes from its
    first to its last position. No two symbols cross (occur as x .. y .. x .. y), so two spans are nested or disjoint.
    The symbols therefore form a tree whose root is the symbol at position 0, with logit 0. For any other symbol x, a
    chord of the circle cuts off exactly the span of x. Let g_x be the signed distance of the state beyond this chord.
    The logit of x is y_x = y_parent(x) + g_x. At any position, g is positive for the position's symbol and its
    ancestors, and negative for all other symbols (except the root, which has no g).

    The recurrence matrix W_h turns the plane by 2 pi v / p with u v = 1 modulo p.

    Raises:
        ValueError: the period is below 3, or two symbols cross at every stride, so that no rotation suffices.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> planar(parse_word("abac")).generate(8)
        'abacabac'

    Source: "update on rnn memorization", section "How small can we make d?", for two symbols in two runs.
    Differs from the source: this function covers every word for which dimension 2 is possible.
    """
    check_word(word)
    p = word.period
    if p < 3:
        raise ValueError(
            f"word: expected a period of at least 3, got {p}; use simplex, which needs only dimension {p - 1}"
        )
    stride = non_crossing_stride(word.letters)
    if stride is None:
        raise ValueError(
            f"word: expected a word that is non-crossing at some stride, got {word.text}, in which two symbols cross "
            "at every stride; use memorize, which tries more than two dimensions"
        )
    strided = at_stride(word.letters, stride)
    weights, bias = np.zeros((len(word.symbols), 2)), np.zeros(len(word.symbols))
    spans = _spans(strided)
    # Larger spans first, so that a parent has its weights before its children.
    for symbol, (first, last) in sorted(spans.items(), key=lambda item: item[1][0] - item[1][1]):
        if symbol == strided[0]:
            continue
        parent = _parent(symbol, spans, int(strided[0]))
        middle, half = np.pi * (first + last) / p, np.pi * (last - first + 1) / p
        weights[symbol] = weights[parent] + [np.cos(middle), np.sin(middle)]
        bias[symbol] = bias[parent] - np.cos(half)
    back = pow(stride, -1, p)
    return LinearGenerator(rotation_matrix(2 * np.pi * back / p), weights, bias, np.array([1.0, 0.0]), word.symbols)


def _spans(letters: np.ndarray) -> dict[int, tuple[int, int]]:
    """Return the first and last position of each symbol."""
    return {int(x): (int(np.argmax(letters == x)), int(np.flatnonzero(letters == x)[-1])) for x in np.unique(letters)}


def _parent(symbol: int, spans: dict[int, tuple[int, int]], root: int) -> int:
    """Return a symbol's parent: the symbol with the smallest span that contains this symbol's span, or the root."""
    first, last = spans[symbol]
    around = [x for x, (low, high) in spans.items() if low < first and last < high and x != root]
    return min(around, key=lambda x: spans[x][1] - spans[x][0], default=root)
