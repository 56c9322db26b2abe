"""Step 3 of `looped_approximation`: memory of values that change in small steps, as the bits of two integers."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from lengthwise.constructions.looped.forms import CLOCK, Form, Unit, assemble, pass_units, step
from lengthwise.constructions.looped.network import LoopedNetwork

Targets = Sequence[Sequence[int | float | Fraction]] | Shaped[np.ndarray, "K Y"]
"""Values to remember, with one value in each row. A float counts as exactly the fraction that it represents."""

MAX_VALUES = 1 << 18
"""The largest number of values to remember. Each value needs a loop, and a bit in the integers with which all loops
compute."""


def bit_sum(bits: Sequence[int]) -> LoopedNetwork:
    """Return a network that sums the first k of L bits, for k = 0 ... L, in L loops.

    The bits are the digits of one number theta in base 2, and beta is the current bit. Loop l adds the l-th bit to a
    running sum, shifts theta by one digit, and extracts the next bit: theta' = 2 theta - 2^L beta, and
    beta' = [2 theta' >= 2^L]. The new bit is a step function of an affine form in the old theta and beta, so one layer
    suffices. Loop l = k copies the running sum to the output. The network has state dimension 6 and width 8.

    Raises:
        ValueError: the number of bits is 0 or at least 2^18, or an entry is not a bit.

    Example:
        >>> from lengthwise.constructions.looped import evaluate_exactly
        >>> evaluate_exactly(bit_sum([1, 0, 1, 1]), [[[k] for k in range(5)]]).flatten().tolist()
        [0, 1, 1, 2, 3]

    Source: Xu and Sato (2024), Lemma A.8: one feed-forward layer.
    Differs from the source: theta is an integer, 2^L times the source's number. Here, units of Proposition A.3
        copy the running sum to the output in one loop, whereas the source sums only the bits up to k.
    """
    if not bits or any(bit not in (0, 1) for bit in bits):
        raise ValueError(
            f"bits: expected at least one bit, each 0 or 1, got {list(bits)[:8]}; give the digits in base 2"
        )
    _check_count(len(bits) + 1)
    walk = Walk("sum", np.array(bits, dtype=object), signs=(1,))
    summed, passing = pass_values([walk], CLOCK - Form.coordinate("k"))
    return assemble(
        inputs=["k"],
        starts={"k": Form.coordinate("k"), **walk.starts(0), **summed},
        units=[*walk.units(), *passing],
        outputs=[Form.coordinate(name) for name in summed],
        num_loops=len(bits),
    )


def stepwise_memory(targets: Targets) -> LoopedNetwork:
    """Return a network that remembers y_0 ... y_{K-1}: in K - 1 loops, input k gives y_k to within half a step.

    In each dimension i, the step eps_i is the largest |(y_k - y_{k-1})_i| of all k. Outputs are y_0 + eps a_k, where
    the integers a_k bring the output as near to y_k as possible. From one k to the next, a_k changes by -1, 0 or 1. Two
    bits encode each change. For values of d dimensions, the network has state dimension 6 d + 2 and width 10 d + 2.

    Raises:
        ValueError: the number of values is 0 or above 2^18, or their dimensions differ or are 0.

    Example:
        >>> from lengthwise.constructions.looped import evaluate_exactly
        >>> network = stepwise_memory([[0], [3], [5], [1]])
        >>> evaluate_exactly(network, [[[0], [1], [2], [3]]]).flatten().tolist()
        [0, 4, 4, 0]

    Source: Xu and Sato (2024), Lemma 4.1 and eq. (8).
    Differs from the source: the network is smaller than state dimension 12 d and width 18 d (docs/looped.md cites these
        sizes). Rounding to the nearest integer halves the bound on the error.
    """
    plan = round_to_steps(targets)
    walks = make_walks(plan)
    kept, passing = pass_values(walks, CLOCK - Form.coordinate("k"))
    starts = {"k": Form.coordinate("k")}
    for walk in walks:
        starts |= walk.starts(0)
    return assemble(
        inputs=["k"],
        starts=starts | kept,
        units=[*(unit for walk in walks for unit in walk.units()), *passing],
        outputs=plan.outputs(list(kept)),
        num_loops=len(plan.levels) - 1,
    )


class Rounded(NamedTuple):
    """Values rounded to a grid: value k is ``first + size * levels[k]``. Levels are integers, and levels[0] is 0."""

    first: Shaped[np.ndarray, " Y"]
    size: Shaped[np.ndarray, " Y"]
    levels: Shaped[np.ndarray, "K Y"]

    def outputs(self, names: Sequence[str]) -> list[Form]:
        """Return the affine forms that give value k if the coordinates `names` contain the integers `levels[k]`."""
        return [s * Form.coordinate(name) + y for y, s, name in zip(self.first, self.size, names, strict=True)]


def round_to_steps(targets: Targets) -> Rounded:
    """Return the values `Rounded` to a grid such that levels differ by at most 1 from one value to the next.

    Raises:
        ValueError: the number of values is 0 or above 2^18, or their dimensions differ or are 0.
    """
    values = table_of(targets)
    largest_step = abs(np.diff(values, axis=0, prepend=values[:1])).max(0)
    size = np.frompyfunc(lambda step: step or Fraction(1), 1, 1)(largest_step)
    levels = np.frompyfunc(_nearest, 1, 1)((values - values[0]) / size)
    return Rounded(values[0], size, levels)


def table_of(targets: Targets) -> Shaped[np.ndarray, "K Y"]:
    """Return the target values, which are vectors of one length, as an array of exact fractions.

    Raises:
        ValueError: the number of targets is 0 or above 2^18, or their dimensions differ or are 0.
    """
    dimensions = {len(value) for value in targets}
    if len(dimensions) != 1 or 0 in dimensions:
        raise ValueError(
            f"targets: expected one or more vectors of equal, nonzero length, got {len(targets)} vectors of lengths "
            f"{sorted(dimensions)}; give lists of equal length with at least one number"
        )
    _check_count(len(targets))
    values: np.ndarray = np.frompyfunc(Fraction, 1, 1)(np.array([list(value) for value in targets], dtype=object))
    return values


class Walk(NamedTuple):
    """A number that changes by -1, 0 or 1 in each loop.

    For each sign in `signs`, the bits of an integer show in which loops the number changes by this sign.
    """

    name: str
    moves: Shaped[np.ndarray, " L"]
    signs: tuple[int, ...] = (1, -1)

    def starts(self, delay: int) -> dict[str, Form]:
        """Return the walk's coordinates with their initial values; the first bit is extracted after `delay` loops."""
        starts = {f"{self.name}_running": Form({})}
        for sign in self.signs:
            theta = sum(1 << index for index, move in enumerate(reversed(self.moves)) if move == sign)
            first_bit = int(not delay and len(self.moves) > 0 and self.moves[0] == sign)
            # Each loop doubles theta, so dividing theta by 2^delay delays its digits by `delay` loops.
            starts[self._theta(sign)] = Form({}, Fraction(theta, 1 << delay))
            starts[self._bit(sign)] = Form({}, first_bit)
        return starts

    def units(self) -> list[Unit]:
        """Return the units that update the walk's coordinates in each loop: four units for each entry of `signs`."""
        top = 1 << len(self.moves)
        units = []
        for sign in self.signs:
            theta, bit = self._theta(sign), self._bit(sign)
            moved = 2 * Form.coordinate(theta) - top * Form.coordinate(bit)
            units.append(Unit(Form.coordinate(theta), {theta: 1}))
            units.append(Unit(Form.coordinate(bit), {theta: -top, bit: -1, f"{self.name}_running": sign}))
            units += step(2 * moved - top, {bit: 1})
        return units

    @property
    def value(self) -> Form:
        """Return the walk's number at the end of the current loop, as an affine form."""
        return sum(
            (sign * Form.coordinate(self._bit(sign)) for sign in self.signs), Form.coordinate(f"{self.name}_running")
        )

    def _theta(self, sign: int) -> str:
        return f"{self.name}_{'up' if sign > 0 else 'down'}"

    def _bit(self, sign: int) -> str:
        return f"{self._theta(sign)}_bit"


def make_walks(plan: Rounded) -> list[Walk]:
    """Return a `Walk` for each dimension of the values: it follows the integers to which the values are rounded."""
    return [Walk(f"y{i}", moves) for i, moves in enumerate(np.diff(plan.levels, axis=0).T)]


def pass_values(walks: Sequence[Walk], at: Form) -> tuple[dict[str, Form], list[Unit]]:
    """Return a coordinate for each walk, initially 0, and units that add the walk's value to it if `at` is 0."""
    kept = [f"{walk.name}_kept" for walk in walks]
    values = [(walk.value, {name: 1}) for walk, name in zip(walks, kept, strict=True)]
    bound = max(len(walks[0].moves), 1)
    return {name: Form({}) for name in kept}, pass_units(at, values, bound)


def _nearest(number: Fraction) -> int:
    """Round to the nearest integer, halves up: two numbers that are at most 1 apart are still at most 1 apart.

    Python's `round` would map 0.5 and 1.5 to 0 and 2.
    """
    return int((number + Fraction(1, 2)) // 1)


def _check_count(count: int) -> None:
    if count > MAX_VALUES:
        raise ValueError(f"values: expected at most {MAX_VALUES:,} values, got {count:,}; take fewer values")
