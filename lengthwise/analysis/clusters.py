"""Clusters of states, compared with the elements of a monoid: principal components and single linkage."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.analysis.states import BlockStates
from lengthwise.ops.shapes import check_axes, check_tensors


class PrincipalComponents(NamedTuple):
    """Coordinates of states on the axes of largest variance, and the fraction of the total variance on each axis."""

    points: Float[Tensor, "N P"]
    shares: Float[Tensor, " P"]


def principal_components(states: Float[Tensor, "N D"], num_components: int = 2) -> PrincipalComponents:
    """Project states minus their mean onto the first right singular vectors, in float64.

    In each vector, the entry of largest magnitude is positive, so that the result does not depend on the signs of the
    decomposition. The fractions of variance are 0 if all states are equal.

    Raises:
        ValueError: there are fewer than `num_components` states or dimensions, or a number is not finite.

    Example:
        >>> points, shares = principal_components(torch.tensor([[0.0, 3.0], [0.0, 1.0], [0.0, 2.0]]), 1)
        >>> points[:, 0].round(decimals=6).tolist(), shares.tolist()
        ([1.0, -1.0, 0.0], [1.0])
    """
    check_tensors(states=states)
    check_axes("states", states, "N, D")
    if not 1 <= num_components <= min(states.shape):
        raise ValueError(
            f"num_components: expected 1 to {min(states.shape)} for states of shape {tuple(states.shape)}, got "
            f"{num_components}; choose a number in this range"
        )
    if not states.isfinite().all():
        raise ValueError("states: expected finite numbers, got infinity or NaN; leave out the states that overflow")
    centered = states.double() - states.double().mean(0)
    _, sizes, axes = torch.linalg.svd(centered, full_matrices=False)
    axes = axes[:num_components]
    largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    variances = sizes.square()
    shares = variances[:num_components] / variances.sum().clamp_min(torch.finfo(variances.dtype).tiny)
    return PrincipalComponents(centered @ (axes * largest.sign()).T, shares)


def linkage_distances(states: Float[Tensor, "N D"]) -> Float[Tensor, " M"]:
    """Return the N - 1 distances at which clusters merge under single linkage, in ascending order.

    The distances are the edge lengths of a minimum spanning tree of the states. At distance r, two states are in one
    cluster if a path over states connects them in steps of at most r. So the number of clusters at distance r is 1 plus
    the number of edges that are longer than r (`num_clusters`).

    Example:
        >>> linkage_distances(torch.tensor([[0.0], [5.0], [1.0], [7.0]])).tolist()
        [1.0, 2.0, 4.0]
    """
    from scipy.cluster.hierarchy import linkage

    check_tensors(states=states)
    check_axes("states", states, "N, D")
    if len(states) < 2:
        return torch.zeros(0, dtype=torch.float64)
    return torch.from_numpy(linkage(states.double().numpy(), method="single")[:, 2].copy())


def num_clusters(linkage: Float[Tensor, " M"], distance: float) -> int:
    """Return the number of clusters at this distance, given the result `linkage` of `linkage_distances`."""
    return 1 + int((linkage > distance).sum())


class LevelClusters(NamedTuple):
    """The clusters of states of one level (`BlockStates`), compared with the monoid elements of the states' windows.

    `within` is the smallest distance at which the states of every element are in one cluster. `between` is the smallest
    distance between states of different elements, infinite if there is only one element. At distances from `within`
    to below `between`, clusters and elements correspond one to one.
    """

    level: int
    num_states: int
    num_elements: int
    linkage: Float[Tensor, " M"]
    within: float
    between: float

    @property
    def are_elements(self) -> bool:
        """Return whether clusters and monoid elements correspond one to one at some distance."""
        return self.within < self.between


def level_clusters(blocks: BlockStates) -> list[LevelClusters]:
    """Return, for each level from 1 up, a comparison of the level's clusters of states with monoid elements."""
    return [_clusters(level, blocks.at_level(level)) for level in range(1, blocks.num_levels + 1)]


def _clusters(level: int, blocks: BlockStates) -> LevelClusters:
    groups = [blocks.states[blocks.elements == element] for element in blocks.elements.unique()]
    between = math.inf
    for index, group in enumerate(groups[:-1]):
        later_states = torch.cat(groups[index + 1 :]).double()
        # If `cdist` used matrix products, distances of nearby states would have errors of thousandths.
        distances = torch.cdist(group.double(), later_states, compute_mode="donot_use_mm_for_euclid_dist")
        between = min(between, float(distances.min()))
    return LevelClusters(
        level=level,
        num_states=len(blocks.states),
        num_elements=len(groups),
        linkage=linkage_distances(blocks.states),
        within=max(float(linkage_distances(group).max()) if len(group) > 1 else 0.0 for group in groups),
        between=between,
    )
