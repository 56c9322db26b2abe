"""Components and clusters where they were planted."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.analysis.clusters import level_clusters, linkage_distances, num_clusters, principal_components
from lengthwise.analysis.states import BlockStates
from lengthwise.automata import library
from lengthwise.automata.monoid import transition_monoid

seeds = st.integers(0, 10_000)


def normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(seeds, st.integers(2, 40), st.integers(2, 6))
def test_components_are_eigenvectors_of_the_covariance(seed: int, count: int, width: int) -> None:
    states = normal(seed, count, width) * torch.arange(1, width + 1) + 5
    num = min(count, width, 3)
    points, shares = principal_components(states, num)
    variances, axes = np.linalg.eigh(np.cov(states.numpy().T, bias=True))
    expected = (states - states.mean(0)).numpy() @ axes[:, ::-1][:, :num]
    np.testing.assert_allclose(np.abs(points.numpy()), np.abs(expected), atol=1e-6)
    np.testing.assert_allclose(shares.numpy(), (variances[::-1] / variances.sum())[:num], atol=1e-9)


@given(seeds)
def test_a_planted_plane_is_found(seed: int) -> None:
    plane = torch.linalg.qr(normal(seed, 9, 2)).Q
    coordinates = normal(seed + 1, 50, 2) * torch.tensor([4.0, 1.0])
    points, shares = principal_components(coordinates @ plane.T + normal(seed + 2, 9))
    assert float(shares.sum()) == pytest.approx(1)
    torch.testing.assert_close(torch.pdist(points), torch.pdist(coordinates))


def test_the_picture_does_not_depend_on_the_order_of_states_or_on_the_dtype() -> None:
    states = normal(0, 30, 5)
    points = principal_components(states).points
    torch.testing.assert_close(principal_components(states.flip(0)).points, points.flip(0))
    torch.testing.assert_close(principal_components(states.float()).points, points, rtol=1e-4, atol=1e-5)


def test_equal_states_have_no_variance_and_too_many_components_are_refused() -> None:
    points, shares = principal_components(torch.ones(4, 3))
    assert points.abs().max() == 0
    assert shares.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match=r"num_components: expected 1 to 1 for states of shape \(1, 3\), got 2"):
        principal_components(torch.ones(1, 3))


def components_of_graph(states: torch.Tensor, distance: float) -> int:
    """Clusters by their definition: connected components, by joining sets."""
    sets = [{position} for position in range(len(states))]
    for one, other in combinations(range(len(states)), 2):
        if float((states[one] - states[other]).norm()) <= distance:
            first, second = (next(cluster for cluster in sets if position in cluster) for position in (one, other))
            if first is not second:
                sets.remove(second)
                first |= second
    return len(sets)


@given(seeds, st.integers(1, 12), st.floats(0.1, 4))
def test_clusters_are_connected_components(seed: int, count: int, distance: float) -> None:
    states = normal(seed, count, 3)
    linkage = linkage_distances(states)
    assert linkage.shape == (count - 1,)
    assert num_clusters(linkage, distance) == components_of_graph(states, distance)
    assert num_clusters(linkage, math.inf) == 1


def planted(scatter: float, *, mixed: bool = False) -> BlockStates:
    """Five clusters 10 apart on each of two levels; `mixed` puts states of one element into another's cluster."""
    monoid = transition_monoid(library.cycle(5).semiautomaton)
    elements = torch.arange(100) % 5
    centers = 10 * torch.eye(5, 8, dtype=torch.float64)
    positions = torch.where(torch.arange(100) < 5, (elements + 1) % 5, elements) if mixed else elements
    offsets = torch.nn.functional.normalize(normal(0, 100, 8), dim=1) * scatter
    levels = torch.arange(100) // 50 + 1
    return BlockStates(centers[positions] + offsets, levels, elements, monoid, chunk_size=2)


def test_planted_clusters_are_counted() -> None:
    for level in level_clusters(planted(0.5)):
        assert (level.num_states, level.num_elements) == (50, 5)
        assert num_clusters(level.linkage, 1.0) == 5
        assert level.are_elements
        assert 0 < level.within <= 1.0
        assert 10 * 2**0.5 - 1 <= level.between <= 10 * 2**0.5
        near = 1e-9  # distances of about 10 are rounded to 1e-15
        assert (
            num_clusters(level.linkage, level.within + near) == num_clusters(level.linkage, level.between - near) == 5
        )
        assert num_clusters(level.linkage, level.within - near) > 5 > num_clusters(level.linkage, level.between + near)


def test_clusters_that_mix_elements_are_told() -> None:
    first, second = level_clusters(planted(0.5, mixed=True))
    assert num_clusters(first.linkage, 1.0) == num_clusters(second.linkage, 1.0) == 5
    assert not first.are_elements
    assert second.are_elements


def test_one_element_has_nothing_between() -> None:
    blocks = planted(0.5)
    only = blocks._replace(elements=torch.zeros(100, dtype=torch.int64))
    assert [level.between for level in level_clusters(only)] == [math.inf, math.inf]
