"""Bounds of sums hold in every order, also of sums that are made to show in which order they were added.

Such sums are the detectors of Szász, Bánhelyi and Jelasity, "No soundness in the real world" (2025), section 7. With
omega = 2^24, omega + 1 is omega in float32, so that a net can tell by a sum in which order or precision it runs.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lengthwise.certification import checker
from lengthwise.certification.methods.affine import Affine
from lengthwise.certification.methods.steps import margin
from lengthwise.certification.sweeps import Array, Products, cancelling_products, error
from lengthwise.ops.intervals import Intervals

DTYPES = [torch.float32, torch.float64]
COUNTS = [1, 2, 3, 16, 33, 100]


def one_by_one(terms: Array) -> Any:
    return reduce(np.add, terms)


def pairwise(terms: Array) -> Any:
    if len(terms) == 1:
        return terms[0]
    return pairwise(terms[: len(terms) // 2]) + pairwise(terms[len(terms) // 2 :])


def in_blocks(terms: Array) -> Any:
    """As vectors of 8 numbers, which are added to one another last."""
    return pairwise(np.array([one_by_one(terms[start::8]) for start in range(min(8, len(terms)))]))


def by_size(terms: Array) -> Any:
    return one_by_one(terms[np.argsort(np.abs(terms))])


def largest_first(terms: Array) -> Any:
    return one_by_one(terms[np.argsort(-np.abs(terms))])


def decreasing(terms: Array) -> Any:
    return one_by_one(np.sort(terms)[::-1])


def shuffled(terms: Array) -> Any:
    return one_by_one(np.random.default_rng(1).permutation(terms))


def reversed_order(terms: Array) -> Any:
    return one_by_one(terms[::-1])


ORDERS = [one_by_one, reversed_order, pairwise, in_blocks, by_size, largest_first, decreasing, shuffled]


def fused(vector: Array, row: Array, bias: Any) -> Any:
    """Each product is added before it is rounded, as by an FMA."""
    total = bias
    for one, another in zip(vector, row, strict=True):
        total = vector.dtype.type(float(Fraction(float(one)) * Fraction(float(another)) + Fraction(float(total))))
    return total


def bias_first(vector: Array, row: Array, bias: Any) -> Any:
    return one_by_one(np.concatenate([[bias], vector * row]))


WAYS: dict[str, Callable[[Array, Array, Any], Any]] = {"fused": fused, "bias first": bias_first}
WAYS |= {
    order.__name__: lambda vector, row, bias, order=order: order(np.append(vector * row, bias)) for order in ORDERS
}


def results(products: Products, way: str) -> torch.Tensor:
    vectors, rows, bias = (one.numpy() for one in products[:3])
    return torch.from_numpy(
        np.array([[WAYS[way](vector, row, b) for row, b in zip(rows, bias, strict=True)] for vector in vectors])
    )


def bounds_of(vectors: torch.Tensor, rows: torch.Tensor, bias: torch.Tensor) -> dict[str, tuple[Any, Any]]:
    """Return the bounds of each kind on the sums of products and a bias."""
    points = vectors.double()
    intervals = Intervals.around(points).linear(rows, bias)
    affine = Affine(points, torch.zeros(*points.shape, 0), torch.zeros_like(points)).linear(rows, bias)
    named = {"a.weight": rows.numpy(), "a.bias": bias.numpy()}
    form = checker.total(named, (checker.between(points.numpy()), "a.{}"))
    return {
        "intervals": (intervals.low, intervals.high),
        "affine": (affine.center - affine.radius, affine.center + affine.radius),
        "checker": tuple(map(torch.from_numpy, form.ends)),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("way", WAYS)
def test_sums_in_any_order_are_within_n_plus_2_units(way: str, count: int, dtype: torch.dtype) -> None:
    products = cancelling_products(4, 3, count, dtype)
    computed = results(products, way)
    assert computed.dtype == dtype
    assert error(computed, products.sums, products.sizes) <= products.assumed == (count + 2) / 2
    for kind, (low, high) in bounds_of(products.vectors, products.rows, products.bias).items():
        assert bool(((low <= computed) & (computed <= high)).all()), kind


OMEGA = 2.0**24
DETECTORS = {
    "Order1, eq. (3)": [*[OMEGA / 4] * 4, 1.0, *[-OMEGA / 4] * 4] * 15,
    "Order2, eq. (4)": [*[2 / 512] * 512, OMEGA, -OMEGA],
    "Order3, eq. (5)": [*[1.0] * 512, OMEGA, -OMEGA],
    "precision, 7.1": [OMEGA, 1.0, -OMEGA],
}


@pytest.mark.parametrize("name", DETECTORS)
def test_bounds_hold_what_detects_the_order_of_sums(name: str) -> None:
    terms = torch.tensor(DETECTORS[name])
    vector, bias = torch.ones(1, len(terms)), torch.zeros(1)
    computed = {float(order(terms.numpy())) for order in ORDERS}
    computed |= {float(terms.double().sum()), float(nn.functional.linear(vector, terms[None])), float(terms.sum())}
    assert len(computed) > 1, "orders, or precisions, differ"
    for kind, (low, high) in bounds_of(vector, terms[None], bias).items():
        assert float(low) <= min(computed), kind
        assert max(computed) <= float(high), kind
    # An answer that depends on such a sum has no margin.
    logits = nn.Linear(len(terms), 2)
    with torch.no_grad():
        logits.weight.copy_(torch.stack([terms, torch.zeros_like(terms)]))
        logits.bias.copy_(torch.tensor([-0.5, 0.0]))
        for answer in (0, 1):
            assert not margin(logits, Intervals.around(vector.double()), torch.tensor([answer])) > 0
