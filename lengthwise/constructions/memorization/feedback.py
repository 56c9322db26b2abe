"""Generators that read their own output, W_x != 0: smaller than any without feedback."""

import numpy as np

from lengthwise.constructions.memorization.generator import LinearGenerator


def cycle(symbols: tuple[str, ...]) -> LinearGenerator:
    """Different symbols in a circle with d = 1 and W_h = 0: the state is the index of the last symbol.

    With t the index of the symbol before j, y_j = 2 t h - t^2 is largest for the index t nearest to the state h.

    Example:
        >>> cycle(("a", "b", "c", "d")).generate(6)
        'abcdab'
    """
    if len(symbols) < 2 or len(set(symbols)) < len(symbols):
        raise ValueError(f"symbols: expected two or more different ones, got {symbols}; list each of them once")
    indices = np.arange(len(symbols))
    before = np.roll(indices, 1)
    return LinearGenerator(
        np.zeros((1, 1), int), 2 * before[:, None], -(before**2), indices[-1:], symbols, indices[None, :]
    )


def counter(zeros: int) -> LinearGenerator:
    """(0^a 1)^+ with d = 1: the state counts zeros, a one resets it, and y compares it with a - 1/2.

    Example:
        >>> counter(3).generate(9)
        '000100010'
    """
    if zeros < 1:
        raise ValueError(f"zeros: expected at least 1, got {zeros}; a bias alone repeats one symbol (d = 0)")
    return LinearGenerator(
        np.ones((1, 1), int),
        np.array([[-1], [1]]),
        np.array([zeros, 1 - zeros]),
        np.zeros(1, int),
        ("0", "1"),
        np.array([[1, -zeros]]),
    )
