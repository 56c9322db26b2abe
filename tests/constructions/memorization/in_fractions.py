"""Generators in fractions, which round nothing."""

from fractions import Fraction

import numpy as np

from lengthwise.constructions.memorization.generator import LinearGenerator


def in_fractions(generator: LinearGenerator) -> LinearGenerator:
    to_fraction = np.vectorize(Fraction, otypes=[object])
    exact = {
        name: to_fraction(array) if array.size else array.astype(object)
        for name, array in generator._asdict().items()
        if isinstance(array, np.ndarray)
    }
    return generator._replace(**exact)
