"""The separate checker's bounds have slack for the worst rounding of float32."""

from typing import Any

import numpy as np
import pytest

from lengthwise.certification import checker
from lengthwise.certification.checker import Form, total


def net(name: str, settings: dict[str, Any], weights: checker.Tensors) -> checker.Net:
    """A net of these settings, which nobody looks at."""
    return checker.Net(name, settings, weights, num_symbols=2, num_classes=2)


def known(number: float) -> tuple[checker.Array, checker.Array, checker.Array]:
    """The center, slope and rest of a number that is known exactly."""
    return np.array([number]), np.zeros((0, 1)), np.zeros(1)


U = 2.0**-24
"""Half of the distance of 1 to the next float32: the largest relative error of one operation."""


@pytest.mark.parametrize("count", [1, 2, 7, 64, 1000])
def test_sums_have_slack_for_the_worst_rounding(count: int) -> None:
    """Bounds cover that every operation rounds up by u.

    A sum of n positive terms then grows by at most (1 + u)^(n - 1), and a weighted sum with a bias by (1 + u)^(n + 1).
    """
    terms = np.full(count, 1.1)
    bounds = {
        "sum": Form(*known(0.0))._replace(center=terms, slope=np.zeros((0, count)), rest=np.zeros(count)).sum(-1),
        "total": total(
            {"weight": np.full((1, count), 1.3), "bias": np.full(1, 0.7)},
            (Form(terms, np.zeros((0, count)), np.zeros(count)), "{}"),
        ),
    }
    exact = {"sum": 1.1 * count, "total": 1.1 * 1.3 * count + 0.7}
    num_operations = {"sum": count - 1, "total": count + 1}  # a product, and a sum for each other term and the bias
    for name, bound in bounds.items():
        assert exact[name] * ((1 + U) ** num_operations[name] - 1) <= bound.radius[0], name


@np.errstate(all="ignore")
def test_single_operations_have_slack_for_the_worst_rounding() -> None:
    one, other = Form(*known(1.1)), Form(*known(1.3))
    assert one.plus(other).radius[0] >= U * 2.4
    assert one.plus(other, -1).radius[0] >= U * 0.2
    assert one.times(other).radius[0] >= U * 1.43
    assert one.scaled(1.3, 0.7).radius[0] >= U * (1.43 + 2.13)
    for image in (one.monotone(np.tanh), one.smooth(*checker.TANH)):
        assert image.radius[0] >= 8 * U * np.tanh(1.1), "eight units are what `kernels` measures"


@pytest.mark.parametrize("count", [16, 64, 512])
@pytest.mark.parametrize("is_interval", [False, True])
def test_norms_have_slack_for_the_worst_rounding(count: int, is_interval: bool) -> None:
    """The n - 1 sums may shift the mean of a and -a from 0, and 2 n roundings may change the mean square."""
    values = np.tile([1.1, -1.1], count // 2)
    form = Form(values, np.zeros((0, count)), np.zeros(count))
    off = (count + 8) * U  # n - 1 units from the sums of the mean, 8 from x s - mean s, and 1 from the difference
    mean_square = 1.1**2 * (1 - off) ** 2 * (1 - 2 * count * U)
    worst = 1.1 * (1 + off) / np.sqrt(mean_square + checker.EPSILON) * (1 + 8 * U) * (1 + U)
    bound = form.normed({})
    if is_interval:
        deviation = form.plus(form.sum(-1).scaled(1 / count), -1).rounded(np.full(count, 1.1), 8)
        bound = deviation.normed_intervals(checker.EPSILON)
    assert worst <= bound.ends[1][0]
    assert bound.ends[0][1] <= -worst


def test_each_side_of_an_enclosure_has_its_own_input() -> None:
    """Input j of part i moves the number k by ``axes[k, j] * radius[j]``; no other part moves with it."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    radius = np.array([1.0, 2.0, 0.5])
    sets = {
        "center": np.zeros((1, 3)),
        "axes": turn[None],
        "radius": radius[None],
        "table": np.zeros((1, 1), np.int64),
    }
    for index in range(2):
        form = checker.enclosures_of(sets, np.array([0]), index)
        expected = np.zeros((2, 3, 3))
        expected[index] = (turn * radius).T
        assert np.array_equal(form.slope[:, 0], expected.reshape(6, 3))


@pytest.mark.unchecked  # NumPy gives a number and no array for the largest of a vector
def test_a_tie_in_one_relation_is_rejected() -> None:
    relations = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 0.0]]])
    weights = {"cell.temperature": np.zeros(()), "cell.rounding": np.ones(()), "cell.table": np.zeros((2, 2, 2, 2, 2))}
    weights |= {"cell.relations": relations, "cell.top": np.array([1.0, 0.0]), "cell.left": np.array([1.0, 0.0])}
    with pytest.raises(checker.Rejected, match="two classes of a border or relation have the same logit"):
        checker.rule_of(net("grid-recurrence", {}, weights))


def test_enclosures_have_slack_for_their_axes() -> None:
    """Axes may be off by 1e-12, a coordinate then by 1e-12 times the sum of the D radii, plus its own rounding."""
    radius, center = np.array([[3.0, 4.0]]), np.array([[-7.0, 2.0]])
    slack = checker.slack_of({"radius": radius, "center": center}, np.array([0]))
    assert (slack >= 1e-12 * radius.sum() + 2**-53 * (2 * radius.sum() + np.abs(center).max())).all()
    assert (slack >= 1e-9 * 12).all(), "1e-9 of the norm and of the largest coordinate"


@pytest.mark.parametrize("digits", [0, 5])
def test_exact_maps_have_24_binary_digits(digits: int) -> None:
    unit = 2.0**-digits
    weights = {"map.weight": np.ones((1, 2), np.float32), "map.bias": np.zeros(1, np.float32)}
    largest = np.array([[2.0**24 - 1], [1.0]]) * unit
    assert checker.exact_map(weights, "map", largest)[0, 0] == 2.0**24 * unit
    with pytest.raises(checker.Rejected, match="float32 rounds a merge"):
        checker.exact_map(weights, "map", largest + np.array([[0.0], [unit]]))
    with pytest.raises(checker.Rejected, match="float32 rounds a merge"):
        checker.exact_map(weights | {"map.bias": np.full(1, unit, np.float32)}, "map", largest)


def test_the_digits_of_a_product_are_those_of_both_factors() -> None:
    """9/8 times 2^18 + 1/8 has six binary digits after the point, and 19 before it."""
    weights = {"map.weight": np.full((1, 1), 1.125, np.float32), "map.bias": np.zeros(1, np.float32)}
    column = np.array([[2.0**18 + 0.125]])
    assert float(np.float32(1.125) * np.float32(column[0, 0])) != 1.125 * column[0, 0]
    with pytest.raises(checker.Rejected, match="float32 rounds a merge"):
        checker.exact_map(weights, "map", column)


@np.errstate(all="ignore")
def test_gates_have_slack_for_the_worst_rounding() -> None:
    """At z = 1 a GRU keeps h. A sigmoid that is off by eight units moves h' by eight times |h - n|, and it rounds."""
    weights = {f"c.weight_{kind}_l0": np.zeros((3, 1)) for kind in ("ih", "hh")}
    weights |= {"c.bias_hh_l0": np.zeros(3), "c.bias_ih_l0": np.array([0.0, 100.0, -100.0])}
    bound = checker.gru_cell(weights, "c.{}_{}_l0", Form(*known(0.0)), Form(*known(1.0)))
    worst = (8 * 2 + 3) * U
    assert bound.ends[1][0] >= 1 + worst
    assert bound.ends[0][0] <= 1 - worst


@pytest.mark.parametrize("count", [2, 9, 100])
def test_shares_have_slack_for_the_worst_rounding(count: int) -> None:
    """An exponential and a sum of exponentials are off by eight units each, the sum by one for each term more."""
    shares = checker.softmax_shares(Form(np.zeros((1, count)), np.zeros((0, 1, count)), np.zeros((1, count))))
    assert (shares.radius >= (2 * 8 + count) * U / count).all()


@np.errstate(all="ignore")
def test_mixtures_with_a_small_lead_are_rejected() -> None:
    """Two logarithms are off by eight units each, and so are the exponentials in them."""
    answers = np.array([1])
    checker.demand_mixture(np.array([[0.0, 1e-4]]), answers)
    with pytest.raises(checker.Rejected, match="states with several answers"):
        checker.demand_mixture(np.array([[0.0, 2 * 16 * U]]), answers)


@np.errstate(all="ignore")
def test_norms_of_sets_around_a_constant_contain_its_neighbors() -> None:
    """Of many deviations one alone may differ from 0, so that hardly more than epsilon remains below the root."""
    count, radius = 1024, 0.02
    deviation = Form(np.zeros(count), np.zeros((0, count)), np.full(count, radius))
    low, high = deviation.normed_intervals(checker.EPSILON).ends
    normed = radius / np.sqrt(radius**2 / count + checker.EPSILON)
    assert low[0] <= -normed
    assert normed <= high[0]
