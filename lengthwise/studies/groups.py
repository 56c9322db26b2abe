"""Groups of matrices on which several studies train, as settings of their word problems."""

from collections.abc import Mapping, Sequence
from itertools import product
from operator import mul

from lengthwise.runs.spec import Settings

TURN, SHEAR = ((0, 1), (-1, 0)), ((1, 1), (0, 1))
"""Generators of SL(2, p) for every prime p."""


def linear_group(prime: int, matrices: Sequence[Sequence[Sequence[int]]]) -> Settings:
    """Return the settings of the word problem of a matrix group, which permutes the row vectors that are not 0."""
    vectors = [vector for vector in product(range(prime), repeat=len(matrices[0])) if any(vector)]
    positions = {vector: position for position, vector in enumerate(vectors)}

    def image(vector: Sequence[int], matrix: Sequence[Sequence[int]]) -> int:
        columns = zip(*matrix, strict=True)
        return positions[tuple(sum(map(mul, vector, column)) % prime for column in columns)]

    return {"generators": tuple(tuple(image(vector, matrix) for vector in vectors) for matrix in matrices)}


UNSOLVABLE_LINEAR: Mapping[str, Settings] = {
    "SL(2, 5)": linear_group(5, (TURN, SHEAR)),
    "GL(3, 2)": linear_group(2, (((0, 1, 0), (0, 0, 1), (1, 1, 0)), ((1, 1, 0), (0, 1, 0), (0, 0, 1)))),
}
"""Two groups of matrices with at most 168 elements that are not solvable. Each group has two generators."""
