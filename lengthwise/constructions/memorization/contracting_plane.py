"""Contracting nets of two dimensions that read their own answers: a net for a word, or a proof that none exists.

Up to a change of basis, the trace s and the determinant t of the recurrence matrix W_h determine such a net's states.
Both eigenvalues of W_h are inside the unit circle iff (s, t) is inside the triangle |s| < 1 + t, t < 1. A net generates
the word iff a line separates its states with answer 1 from its states with answer 0. By Kirchberger's theorem, no line
separates these states iff no line separates some four of them. For four states, there are two cases. Either a segment
between states of one answer crosses a segment between states of the other answer. Or a state is in a triangle of states
with the other answer. Signs of polynomials in s and t decide whether one of these cases holds. A polynomial has one
sign on a whole triangle of (s, t) if all its Bernstein coefficients, which are integers, have this sign.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from math import comb, factorial, prod

import numpy as np

from lengthwise.constructions.memorization.cycle import Undecided, cycle_states, net_of
from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.words import MAX_PERIOD, Word, check_binary

MAX_TRIANGLES, MAX_HALVINGS = 20_000, 60
"""The numbers of triangles, and of successive halvings that lead to a triangle, after which `contracting_plane` gives
up."""

Form = Mapping[tuple[int, ...], int]
"""A polynomial: a map from exponents to integer coefficients. The exponents belong to the trace s and the determinant t
of W_h or, in Bernstein form, to the weights of a triangle's three corners."""

Triple = tuple[int, int, int]
"""The positions of three states. The turn of a triple is twice the signed area of the triangle of its states. The turn
is positive if the path through the three states turns left."""

Crossing = tuple[tuple[tuple[int, Triple], ...], ...]
"""Groups of triples. Each triple has a factor 1 or -1. If, in each group, the products of a triple's factor and the
sign of its turn are all equal and not 0, no line separates the states."""

_CORNERS = np.array([[-2.0, 1.0], [2.0, 1.0], [0.0, -1.0]])
_TRACE: Form = {(1, 0, 0): -2, (0, 1, 0): 2}
_DETERMINANT: Form = {(1, 0, 0): 1, (0, 1, 0): 1, (0, 0, 1): -1}
_ONE: Form = {(1, 0, 0): 1, (0, 1, 0): 1, (0, 0, 1): 1}
"""The number 1 as a linear form in the weights of a triangle's three corners; `_TRACE` is the trace of W_h, and
`_DETERMINANT` is the determinant of W_h."""

_ADDED = np.array([1.0, 0.0])
"""The column of W_x for the second symbol, if W_h is a companion matrix."""


def contracting_plane(word: Word) -> LinearGenerator | None:
    """Return a net whose contracting W_h of two dimensions generates a word of two symbols, or None if none exists.

    The search considers only nets that start on their cycle, and whose W_x reaches both dimensions. If W_x reaches only
    one dimension, a net of one dimension suffices. Triangles of traces and determinants of W_h are halved until each
    triangle has a `Crossing` with definite signs. On edges of triangles, signs may be 0, but edges need no proof. The
    reason is that a line that separates the states of a net also separates the states for every W_h that differs little
    enough.

    Raises:
        ValueError: the word does not have two symbols, or has more than `MAX_PERIOD` letters.
        Undecided: the search ends at `MAX_TRIANGLES` or `MAX_HALVINGS`.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> contracting_plane(parse_word("0011")).dimension, contracting_plane(parse_word("00011011"))
        (2, None)

    Source: ours; Kirchberger (1903) for four states, Bernstein's basis for signs on a triangle.
    """
    check_binary(word, MAX_PERIOD)
    signs = Signs(word)
    known: list[Crossing] = []
    waiting: deque[tuple[tuple[int, ...], np.ndarray]] = deque([((), _CORNERS)])
    count = 0
    while waiting:
        if count == MAX_TRIANGLES:
            break
        count += 1
        # Breadth first: a proof on a large triangle saves the search in all smaller triangles inside it.
        halvings, corners = waiting.popleft()
        if any(signs.refute(crossing, halvings) for crossing in known):
            continue
        trace, determinant = corners.mean(0)
        hidden = np.array([[trace, -determinant], [1.0, 0.0]])
        states = cycle_states(hidden, _ADDED, word)
        there = _clearest_crossing(word, states)
        if there is None and (net := net_of(word, hidden, _ADDED, states)):
            return net
        if there is not None and there not in known:
            known.append(there)
            if signs.refute(there, halvings):
                continue
        if len(halvings) == MAX_HALVINGS:
            break
        first, second, third = corners
        middle = (first + second) / 2
        waiting.append(((*halvings, 0), np.stack([first, third, middle])))
        waiting.append(((*halvings, 1), np.stack([second, third, middle])))
    else:
        return None
    raise Undecided(
        f"word: found neither a net that generates {word.text!r} nor a proof that no such net exists; take another word"
    )


def _crossings(word: Word) -> Iterator[Crossing]:
    """Yield all crossings: two states of each answer, or a state of one answer and three states of the other answer."""
    kinds = [np.flatnonzero(word.letters == letter).tolist() for letter in (1, 0)]
    for (a, b), (c, d) in ((one, two) for one in combinations(kinds[0], 2) for two in combinations(kinds[1], 2)):
        yield ((1, (a, b, c)), (-1, (a, b, d))), ((1, (c, d, a)), (-1, (c, d, b)))
    for inside, around in (kinds, kinds[::-1]):
        for x, (a, b, c) in ((x, three) for x in inside for three in combinations(around, 3)):
            yield (((1, (x, a, b)), (1, (x, b, c)), (1, (x, c, a))),)


def _clearest_crossing(word: Word, states: np.ndarray) -> Crossing | None:
    """Return the crossing whose smallest absolute turn in float64 is the largest, or None if there is no crossing."""
    clearest, seen = 0.0, None
    for crossing in _crossings(word):
        groups = [[sign * _turn(states, triple) for sign, triple in group] for group in crossing]
        clear = min(max(min(group), -max(group)) for group in groups)
        if clear > clearest:
            clearest, seen = clear, crossing
    return seen


def _turn(states: np.ndarray, triple: Triple) -> float:
    i, j, k = triple
    (a, b), (c, d) = states[j] - states[i], states[k] - states[i]
    return float(a * d - b * c)


class Signs:
    """The signs of the turns of a word's states, for all W_h whose trace and determinant are in a triangle.

    The turn of three states is twice the signed area of their triangle (`Triple`). A tuple of halvings identifies a
    triangle of traces and determinants: 0 is the half at the first corner, and 1 the half at the second corner.
    """

    def __init__(self, word: Word) -> None:
        self.states = _scaled_states(word)
        self.coefficients = cache(self._coefficients)

    def refute(self, crossing: Crossing, halvings: tuple[int, ...]) -> bool:
        """Return whether a `Crossing` has definite signs inside the whole triangle.

        If so, no line separates the states of different answers, for any W_h in the triangle.
        """
        for group in crossing:
            signs = {sign * self.sign(triple, halvings) for sign, triple in group}
            if len(signs) > 1 or 0 in signs:
                return False
        return True

    def sign(self, triple: Triple, halvings: tuple[int, ...]) -> int:
        """Return the sign of a `Triple`'s turn in all of a triangle, or 0 if the turn's coefficients differ in sign."""
        values = self.coefficients(triple, halvings).values()
        low, high = min(values), max(values)
        return int(high > 0) - int(low < 0) if low * high >= 0 else 0

    def _turn(self, triple: Triple) -> Form:
        i, j, k = triple
        (a, b), (c, d) = (
            [_plus(self.states[other][axis], self.states[i][axis], -1) for axis in (0, 1)] for other in (j, k)
        )
        return _in_corners(_plus(_times(a, d), _times(b, c), -1))

    def _coefficients(self, triple: Triple, halvings: tuple[int, ...]) -> Form:
        if not halvings:
            return self._turn(triple)
        return _halved(self.coefficients(triple, halvings[:-1]), halvings[-1])


def _scaled_states(word: Word) -> list[list[Form]]:
    """Return (1 - W_h^p) h for the state h before each answer, as forms in the trace and the determinant of W_h.

    Turns keep their signs, because det(1 - W_h^p) is positive.
    """
    power: list[Form] = [{}, {(0, 0): 1}]  # the first column of W_h^k, its lower number first
    for _ in range(word.period - 1):
        power.append(_plus(_times({(1, 0): 1}, power[-1]), _times({(0, 1): 1}, power[-2]), -1))
    states = []
    for i in range(word.period):
        state: list[Form] = [{}, {}]
        for k in range(word.period):
            if word.letters[(i - 1 - k) % word.period]:
                state = [_plus(state[0], power[k + 1]), _plus(state[1], power[k])]
        states.append(state)
    return states


def _plus(one: Form, other: Form, factor: int = 1) -> Form:
    total = dict(one)
    for key, value in other.items():
        total[key] = total.get(key, 0) + factor * value
    return {key: value for key, value in total.items() if value}


def _times(one: Form, other: Form) -> Form:
    product: dict[tuple[int, ...], int] = {}
    for left, a in one.items():
        for right, b in other.items():
            key = tuple(x + y for x, y in zip(left, right, strict=True))
            product[key] = product.get(key, 0) + a * b
    return product


def _in_corners(form: Form) -> Form:
    """Return a form's Bernstein coefficients on the triangle of contracting W_h, times the factorial of the degree."""
    degree = max((sum(key) for key in form), default=0)
    total: Form = {}
    for (s, t), value in form.items():
        term: Form = {(0, 0, 0): value}
        for factor, times in ((_TRACE, s), (_DETERMINANT, t), (_ONE, degree - s - t)):
            for _ in range(times):
                term = _times(term, factor)
        total = _plus(total, term)
    corners = ((i, j, degree - i - j) for i in range(degree + 1) for j in range(degree + 1 - i))
    return {key: total.get(key, 0) * prod(map(factorial, key)) for key in corners}


@cache
def _halving(size: int) -> Sequence[Sequence[int]]:
    """Return de Casteljau's coefficients of the first half of an edge, times 2^size."""
    return [[comb(r, s) << (size - r) for s in range(r + 1)] for r in range(size + 1)]


def _halved(form: Form, half: int) -> Form:
    """Return Bernstein coefficients on the half of a triangle at its corner 1 or 2.

    The other corners of this half are corner 3 and the middle of the edge between corners 1 and 2. All coefficients are
    multiplied by 2^degree, which changes no sign and keeps them integers.
    """
    degree = sum(next(iter(form)))
    halved: dict[tuple[int, ...], int] = {}
    for k in range(degree + 1):
        size = degree - k
        row = [form[(size - j, j, k) if half == 0 else (j, size - j, k)] for j in range(size + 1)]
        for r, weights in enumerate(_halving(size)):
            value = sum(weight * number for weight, number in zip(weights, row, strict=False))
            halved[size - r, k, r] = value << k
    return halved
