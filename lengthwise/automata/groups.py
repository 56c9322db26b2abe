"""Permutation groups: their elements, their multiplication table, and their word problem as a machine."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from string import ascii_letters

import numpy as np
from jaxtyping import Int64

from lengthwise.automata.semiautomaton import Semiautomaton, explore
from lengthwise.automata.transducer import Transducer
from lengthwise.validation import check_kind

MAX_ELEMENTS = 1_000
"""The largest number of elements of a group."""

MAX_POINTS = 100
"""The largest number of points that a group permutes."""

Permutation = tuple[int, ...]
"""A permutation, as the images of the points 0, 1, ..., n-1 in this order."""


@dataclass(frozen=True, eq=False)
class PermutationGroup:
    """The group that permutations of the points 0 ... n-1 generate; in a product, the first factor acts first.

    Elements are numbered in lexicographic order of their images. So the identity is element 0, and the numbers do not
    depend on the generators. Names are cycles, as in ``"(0 1)(2 3 4)"``, and the identity is ``"()"``.

    Raises:
        ValueError: the list of generators is empty or has more than 1,000 entries; an entry is not a permutation of
            0 ... n-1; generators have different numbers of points; the group has over 100 points or 1,000 elements.

    Example:
        >>> group = PermutationGroup(((1, 0, 2), (1, 2, 0)))
        >>> group.names
        ('()', '(1 2)', '(0 1)', '(0 1 2)', '(0 2 1)', '(0 2)')
        >>> group.meanings
        {'a': '(0 1)', 'b': '(0 1 2)'}
        >>> group.names[group.table[2, 3]]
        '(0 2)'
    """

    generators: tuple[Permutation, ...]
    elements: Int64[np.ndarray, "M N"] = field(init=False)
    """The images of the points under every element."""
    transducer: Transducer = field(init=False)
    """The word problem as a machine: its answer is the number of the product of all generators read so far."""

    def __post_init__(self) -> None:
        _check_generators(self.generators)
        machine, products = self._close()
        elements = sorted(products)
        number = {element: e for e, element in enumerate(elements)}
        object.__setattr__(self, "elements", np.array(elements, dtype=np.int64))
        object.__setattr__(self, "transducer", Transducer(machine, 0, np.array([number[p] for p in products])))

    @property
    def degree(self) -> int:
        """The number of points that the group permutes, n."""
        return len(self.generators[0])

    @property
    def order(self) -> int:
        """The number of elements of the group, M."""
        return len(self.elements)

    @property
    def symbols(self) -> tuple[str, ...]:
        """A letter for every generator: a to z, then A to Z. With more than 52 generators, symbols are g0, g1, ..."""
        count = len(self.generators)
        return tuple(ascii_letters[:count] if count <= len(ascii_letters) else (f"g{index}" for index in range(count)))

    @property
    def generator_elements(self) -> Int64[np.ndarray, " V"]:
        """The number that each generator has as an element of the group."""
        same = (self.elements == np.array(self.generators)[:, None]).all(axis=2)
        return np.asarray(same.argmax(axis=1))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of every element, in cycle notation."""
        return tuple(map(cycle_notation, self.elements.tolist()))

    @property
    def meanings(self) -> dict[str, str]:
        """The generator that each symbol stands for, in cycle notation."""
        return dict(zip(self.symbols, map(cycle_notation, self.generators), strict=True))

    @cached_property
    def table(self) -> Int64[np.ndarray, "M M"]:
        """``table[a, b]`` is the product a b: ``elements[table[a, b], x] = elements[b, elements[a, x]]``.

        Elements and products are ranked together by the images of the first points. One more point is used at a time,
        until all elements differ. So the images of all M^2 products need not be in memory at once.
        """
        elements = self.elements
        rank = np.zeros(self.order, dtype=np.int64)
        product = np.zeros((self.order, self.order), dtype=np.int64)
        for point in range(self.degree):
            values, rank = np.unique(rank * self.degree + elements[:, point], return_inverse=True)
            # A product is an element, so its value is among the sorted values of the elements.
            product = np.searchsorted(values, product * self.degree + elements[:, elements[:, point]].T)
            if len(values) == self.order:
                break
        return product

    def over_elements(self) -> "PermutationGroup":
        """Return the same group with all elements as generators, in the order of their numbers.

        Example:
            >>> permutation_group("S3").over_elements().meanings
            {'a': '()', 'b': '(1 2)', 'c': '(0 1)', 'd': '(0 1 2)', 'e': '(0 2 1)', 'f': '(0 2)'}
        """
        return PermutationGroup(tuple(map(tuple, self.elements.tolist())))

    def _close(self) -> tuple[Semiautomaton, list[Permutation]]:
        """Return the Cayley graph as a machine, and the elements of the group, breadth first from the identity."""
        # Products of generators give the whole group, because in a finite group, every inverse is a power.
        by_symbol = dict(zip(self.symbols, self.generators, strict=True))
        seen = set()

        def step(product: Permutation, symbol: str) -> Permutation:
            generator = by_symbol[symbol]
            permutation = tuple(generator[image] for image in product)
            seen.add(permutation)
            if len(seen) > MAX_ELEMENTS:
                raise ValueError(
                    f"generators: expected permutations whose group has at most {MAX_ELEMENTS:,} elements, got more "
                    "elements; take a smaller group"
                )
            return permutation

        # The machine is the Cayley graph: states are elements, and a symbol multiplies by its generator.
        return explore(self.symbols, tuple(range(self.degree)), step)


@cache
def permutation_group(name: str) -> PermutationGroup:
    """Return the group of this name on the points 0 ... n-1, with its usual generators.

    - ``"S2"`` to ``"S6"``, the symmetric group: a = (0 1), b = (0 1 ... n-1), or (1 2 ... n-1) if n is even.
    - ``"A3"`` to ``"A6"``, the alternating group: a = (0 1 2), b as in the symmetric group.
    - ``"Z2"`` to ``"Z100"``, or ``"C2"`` to ``"C100"``, the cyclic group: a = (), b = (0 1 ... n-1).
    - ``"D3"`` to ``"D100"``, the dihedral group of 2n elements: a = (), b = (0 1 ... n-1), c maps x to n-1-x.
    - ``"Q8"``, ``"Q12"`` to ``"Q100"``, the dicyclic group of n elements, which acts on itself; Q8 is the group of
      quaternions. a = (), b is an element x of order n/2, and c is an element y with y y = x^(n/4) and x y x = y.
    - ``"A4xZ5"``, a direct product: the generators of all factors, and each factor has its own points. The generator ()
      occurs only once.

    S2 is Z2 and A3 is Z3, with the same generators. For every large enough T, every element is a product of T
    generators. So the length of a string gives no information about the product.

    Raises:
        ValueError: the name is not one of these; a product has more than 100 points or 1,000 elements.

    Example:
        >>> permutation_group("A5").order, permutation_group("A5").meanings
        (60, {'a': '(0 1 2)', 'b': '(0 1 2 3 4)'})
        >>> permutation_group("S3xZ2").meanings
        {'a': '(0 1)', 'b': '(0 1 2)', 'c': '()', 'd': '(3 4)'}
    """
    check_kind("name", name, str, "the name of a group, such as 'S5'")
    factors = name.split("x")
    if len(factors) == 1:
        return PermutationGroup(_generators(name, name))
    return PermutationGroup(_on_own_points([_generators(factor, name) for factor in factors]))


def _generators(factor: str, name: str) -> tuple[Permutation, ...]:
    match = re.fullmatch("([SAZCDQ])([1-9][0-9]{0,4})", factor)
    if match is not None:
        size = int(match[2])
        smallest, largest, step, generators = _FAMILIES[match[1]]
        if size in range(smallest, largest + 1, step):
            return generators(size)
    known = ", ".join(f"{family}{low} to {family}{high}" for family, (low, high, *_) in _FAMILIES.items())
    raise ValueError(
        f"group: expected one of {known} (Q in steps of 4), or a product such as A4xZ5, got {name[:40]!r}; use "
        "generators for other groups"
    )


def _on_own_points(factors: Sequence[tuple[Permutation, ...]]) -> tuple[Permutation, ...]:
    """Return the generators of a direct product, each once; each factor has points of its own."""
    degree = sum(len(generators[0]) for generators in factors)
    product, first = [], 0
    for generators in factors:
        size = len(generators[0])
        for generator in generators:
            moved = (first + image for image in generator)
            product.append((*range(first), *moved, *range(first + size, degree)))
        first += size
    return tuple(dict.fromkeys(product))


def cycle_notation(permutation: Sequence[int]) -> str:
    """Return the cycles of two or more points, each beginning with its smallest point; the identity is ``"()"``.

    Example:
        >>> cycle_notation((1, 0, 3, 4, 2)), cycle_notation((0, 1))
        ('(0 1)(2 3 4)', '()')
    """
    check_kind("permutation", permutation, Collection, "the image of each point")
    if sorted(permutation) != list(range(len(permutation))):
        raise ValueError(
            f"permutation: expected each number from 0 to {len(permutation) - 1} once, got {tuple(permutation)}; give "
            "the image of each point"
        )
    left = set(range(len(permutation)))
    cycles = []
    while left:
        cycle = [min(left)]
        while (image := permutation[cycle[-1]]) != cycle[0]:
            cycle.append(image)
        left -= set(cycle)
        if len(cycle) > 1:
            cycles.append(f"({' '.join(map(str, cycle))})")
    return "".join(cycles) or "()"


def _rotation(first: int, size: int) -> Permutation:
    """Return the cycle (first, first + 1, ..., size - 1)."""
    return (*range(first), *range(first + 1, size), first)


def _cyclic(size: int) -> tuple[Permutation, ...]:
    # With the identity as a generator, every product of T generators is also a product of T + 1 generators.
    return tuple(range(size)), _rotation(0, size)


def _symmetric(size: int) -> tuple[Permutation, ...]:
    # With an even n, the cycle of all n points is an odd permutation, like (0 1). Then the sign of a product would show
    # whether its length is even. So a cycle of only n - 1 points is used, which is even.
    return ((1, 0, *range(2, size)), _rotation(1 - size % 2, size)) if size > 2 else _cyclic(size)


def _alternating(size: int) -> tuple[Permutation, ...]:
    # Cycles of an odd number of points are even permutations, so both generators are in the group.
    return ((1, 2, 0, *range(3, size)), _rotation(1 - size % 2, size)) if size > 3 else _cyclic(size)


def _dihedral(size: int) -> tuple[Permutation, ...]:
    # With an even n, both other generators can be odd, so the length would show the sign of a product. The identity,
    # which is even, prevents this.
    return tuple(range(size)), _rotation(0, size), tuple(reversed(range(size)))


def _dicyclic(size: int) -> tuple[Permutation, ...]:
    # Elements are x^i y^j, with number i + j n/2. They act from the right: y x = x^-1 y, and y y = x^(n/4).
    half = size // 2
    by_x = [(i + 1) % half for i in range(half)] + [half + (i - 1) % half for i in range(half)]
    by_y = [half + i for i in range(half)] + [(i + half // 2) % half for i in range(half)]
    return tuple(range(size)), tuple(by_x), tuple(by_y)


_FAMILIES = {
    "S": (2, 6, 1, _symmetric),
    "A": (3, 6, 1, _alternating),
    "Z": (2, MAX_POINTS, 1, _cyclic),
    "C": (2, MAX_POINTS, 1, _cyclic),
    "D": (3, MAX_POINTS, 1, _dihedral),
    "Q": (8, MAX_POINTS, 4, _dicyclic),
}
"""The families of named groups: smallest and largest n, the step from one n to the next, and the generators for n."""


def _check_generators(generators: tuple[Permutation, ...]) -> None:
    if not 1 <= len(generators) <= MAX_ELEMENTS:
        raise ValueError(
            f"generators: expected 1 to {MAX_ELEMENTS:,} permutations, got {len(generators)}; list a few "
            "permutations that generate the group"
        )
    degree = len(generators[0])
    if degree > MAX_POINTS:
        raise ValueError(
            f"generators: expected permutations of at most {MAX_POINTS} points, got {degree} points; take a "
            "smaller group"
        )
    for index, permutation in enumerate(generators):
        if len(permutation) != degree:
            raise ValueError(
                f"generators: expected permutations of the same number of points, got {degree} in generator 0 and "
                f"{len(permutation)} in generator {index}; add fixed points to the shorter permutation"
            )
        if sorted(permutation) != list(range(degree)):
            raise ValueError(
                f"generators: expected each of 0..{degree - 1} once, got {list(permutation)[:20]} as generator "
                f"{index}; list the images of the points"
            )
