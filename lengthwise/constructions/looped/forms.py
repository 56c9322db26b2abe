"""A notation for constructions: named coordinates, affine forms in them, and ReLU units that read and write them.

A sub-network is a few named coordinates and a list of units. A network is the union of the coordinates and units of
several sub-networks; `assemble` makes its matrices. All sub-networks share one coordinate, the `CLOCK`. The clock has
the value t at the beginning of loop t = 1, 2, ... A unit that reads the clock can act in certain loops only.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from lengthwise.constructions.looped.network import Affine, Head, LoopedBlock, LoopedNetwork, Number


class Form:
    """An affine form, such as ``2 * x - y + 1``: weights of named coordinates, and a constant.

    Example:
        >>> x, y = Form.coordinate("x"), Form.coordinate("y")
        >>> form = 3 * (x - 2 * y) + 1
        >>> dict(form.weights), form.constant
        ({'x': 3, 'y': -6}, 1)
    """

    def __init__(self, weights: Mapping[str, Number], constant: Number = 0) -> None:
        self.weights = {name: weight for name, weight in weights.items() if weight}
        self.constant = constant

    @classmethod
    def coordinate(cls, name: str) -> "Form":
        """Return the form that consists of the coordinate of this name, with weight 1."""
        return cls({name: 1})

    def __add__(self, other: "Form | Number") -> "Form":
        if not isinstance(other, Form):
            return Form(self.weights, self.constant + other)
        names = self.weights | other.weights
        weights = {name: self.weights.get(name, 0) + other.weights.get(name, 0) for name in names}
        return Form(weights, self.constant + other.constant)

    def __mul__(self, factor: Number) -> "Form":
        return Form({name: factor * weight for name, weight in self.weights.items()}, factor * self.constant)

    def __sub__(self, other: "Form | Number") -> "Form":
        return self + other * -1

    __radd__, __rmul__ = __add__, __mul__


CLOCK = Form.coordinate("clock")
"""The form of the coordinate that counts loops from 1; a bias adds 1 to this coordinate in every loop."""


class Unit(NamedTuple):
    """One ReLU unit: it adds ``ReLU(reads)``, times the coordinate's weight, to each coordinate in `writes`."""

    reads: Form
    writes: Mapping[str, Number]


class Attention(NamedTuple):
    """An attention head of size 1 with forms as query, key and value; its result is added to coordinate `writes`."""

    query: Form
    key: Form
    value: Form
    writes: str


def step(form: Form, writes: Mapping[str, Number]) -> list[Unit]:
    """Return two units whose sum is 1 if the form is at least 0, 0 if it is at most -1, and linear in between.

    Source: Xu and Sato (2024), Proposition A.2.
    Differs from the source: the ramp has width 1; a multiple of the form makes the ramp steeper.
    """
    return [Unit(form + 1, writes), Unit(form, _times(-1, writes))]


def impulse(at: Form, writes: Mapping[str, Number]) -> list[Unit]:
    """Return three units whose sum is 1 if an integer form is 0, and otherwise 0.

    Source: Xu and Sato (2024), Appendix B.
    Differs from the source: Proposition A.3 takes four units. For the value 1 and integer forms, three suffice.
    """
    return [Unit(at + 1, writes), Unit(at, _times(-2, writes)), Unit(at + -1, writes)]


def pass_units(at: Form, values: Sequence[tuple[Form, Mapping[str, Number]]], bound: int) -> list[Unit]:
    """Return units that add each value to its coordinates if the integer form `at` is 0, and otherwise add 0.

    Each value needs two units, and all values share two more.

    Let u be the form `at`, g a value, and |g| <= M = `bound`. ReLU(g + 2M(u + 1/2)) - ReLU(g + 2M(u - 1/2)) is 0 for
    u < 0, g + M at u = 0, and 2M for u > 0. In these three cases, the same expression without g is 0, M and 2M. The
    difference of both expressions is g at u = 0, and otherwise 0.

    Source: Xu and Sato (2024), Proposition A.3.
    Differs from the source: values that are passed at the same time share two of the four units.
    """
    early, late = 2 * bound * at + bound, 2 * bound * at + -bound
    units = []
    total: dict[str, Number] = {}
    for value, writes in values:
        units += [Unit(value + early, writes), Unit(value + late, _times(-1, writes))]
        total |= {name: total.get(name, 0) + weight for name, weight in writes.items()}
    return [*units, Unit(early, _times(-1, total)), Unit(late, total)]


def assemble(
    *,
    inputs: Sequence[str],
    starts: Mapping[str, Form],
    units: Sequence[Unit],
    outputs: Sequence[Form],
    num_loops: int,
    attention: Attention | None = None,
    scales: Mapping[str, Shaped[np.ndarray, " R"]] | None = None,
) -> LoopedNetwork:
    """Return the network of the given units; its coordinates are the clock and the names in `starts`.

    `starts` contains the initial values of the coordinates, as forms in the inputs. `outputs` are forms in the
    coordinates. For some coordinates, `scales` contains a factor for each loop; all other coordinates have factor 1.
    """
    starts = {**starts, "clock": Form({}, 1)}
    names = list(starts)
    heads = () if attention is None else (_head(attention, names),)
    down = Affine(_columns([unit.writes for unit in units], names), _vector([int(name == "clock") for name in names]))
    etas = None
    if scales is not None:
        etas = np.full((num_loops, len(names)), 1, dtype=object)
        for name, values in scales.items():
            etas[:, names.index(name)] = values
    block = LoopedBlock(heads, _rows([unit.reads for unit in units], names), down)
    return LoopedNetwork(_rows(list(starts.values()), inputs), block, _rows(outputs, names), num_loops, etas)


def _head(attention: Attention, names: Sequence[str]) -> Head:
    forms = (attention.query, attention.key, attention.value)
    assert not any(form.constant for form in forms), "attention is linear"
    query, key, value = (_rows([form], names).weight for form in forms)
    return Head(query, key, value, _columns([{attention.writes: 1}], names))


def _rows(forms: Sequence[Form], names: Sequence[str]) -> Affine:
    assert all(form.weights.keys() <= set(names) for form in forms), "a form in unknown coordinates"
    return Affine(_matrix([form.weights for form in forms], names), _vector([form.constant for form in forms]))


def _columns(writes: Sequence[Mapping[str, Number]], names: Sequence[str]) -> np.ndarray:
    assert all(weights.keys() <= set(names) for weights in writes), "a unit writes to an unknown coordinate"
    return _matrix(writes, names).T


def _matrix(rows: Sequence[Mapping[str, Number]], names: Sequence[str]) -> np.ndarray:
    filled = [[row.get(name, 0) for name in names] for row in rows]
    return np.array(filled, dtype=object).reshape(len(rows), len(names))


def _vector(numbers: Sequence[Number]) -> np.ndarray:
    return np.array(numbers, dtype=object)


def _times(factor: Number, writes: Mapping[str, Number]) -> dict[str, Number]:
    return {name: factor * weight for name, weight in writes.items()}
