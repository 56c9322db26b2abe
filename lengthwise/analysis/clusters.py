"""Do states lie in clusters, and are these what they should be? Principal components and single linkage."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.analysis.states import BlockStates


class PrincipalComponents(NamedTuple):
    """Coordinates on the axes of largest variance, and the share of the whole variance that lies on each."""

    points: Float[Tensor, "N P"]
    shares: Float[Tensor, " P"]


def principal_components(states: Float[Tensor, "N D"], num_components: int = 2) -> PrincipalComponents:
    """Project states, less their mean, on the first right singular vectors; computed in float64.

    The number of largest size in each vector is positive, so that the picture does not depend on the sign that a
    decomposition happens to return. Shares are 0 where all states are equal.

    Raises:
        ValueError: there are fewer than `num_components` states or dimensions.

    Example:
        >>> points, shares = principal_components(torch.tensor([[0.0, 3.0], [0.0, 1.0], [0.0, 2.0]]), 1)
        >>> points[:, 0].round(decimals=6).tolist(), shares.tolist()
        ([1.0, -1.0, 0.0], [1.0])
    """
    if not 1 <= num_components <= min(states.shape):
        raise ValueError(
            f"num_components: expected 1 to {min(states.shape)} for states of shape {tuple(states.shape)}, got "
            f"{num_components}; ask for fewer"
        )
    centred = states.double() - states.double().mean(0)
    _, sizes, axes = torch.linalg.svd(centred, full_matrices=False)
    axes = axes[:num_components]
    largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    variances = sizes.square()
    shares = variances[:num_components] / variances.sum().clamp_min(torch.finfo(variances.dtype).tiny)
    return PrincipalComponents(centred @ (axes * largest.sign()).T, shares)


def linkage_distances(states: Float[Tensor, "N D"]) -> Float[Tensor, " M"]:
    """The N - 1 distances at which clusters join under single linkage, in ascending order.

    These are the lengths of the edges of a minimum spanning tree (Prim's algorithm, N^2 distances). At distance r,
    states are in one cluster if steps of at most r lead from one to the other over other states, so that there are
    ``num_clusters(linkage, r) = 1 + (number of distances > r)`` clusters, in whatever order the states come.

    Example:
        >>> linkage_distances(torch.tensor([[0.0], [5.0], [1.0], [7.0]])).tolist()
        [1.0, 2.0, 4.0]
    """
    points = states.double()
    apart = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    nearest = apart[0].clone()
    joined = []
    nearest[0] = math.inf
    reached = torch.zeros(len(points), dtype=torch.bool)
    reached[0] = True
    for _ in range(len(points) - 1):
        position = int(nearest.argmin())
        joined.append(nearest[position])
        reached[position] = True
        nearest = torch.minimum(nearest, apart[position]).masked_fill(reached, math.inf)
    return torch.stack(joined).sort().values if joined else apart.new_zeros(0)


def num_clusters(linkage: Float[Tensor, " M"], distance: float) -> int:
    """Clusters at that distance, from `linkage_distances`."""
    return 1 + int((linkage > distance).sum())


class LevelClusters(NamedTuple):
    """The clusters of one level next to the elements that its windows are.

    `within` is the smallest distance at which every element is in one cluster, `between` the smallest between states of
    different elements (infinite if there is one element). From `within` up to `between`, if that is more, clusters are
    elements, one for one.
    """

    level: int
    num_states: int
    num_elements: int
    linkage: Float[Tensor, " M"]
    within: float
    between: float

    @property
    def are_elements(self) -> bool:
        """Whether at some distance the clusters are the elements, one for one."""
        return self.within < self.between


def level_clusters(blocks: BlockStates) -> list[LevelClusters]:
    """Single linkage at every level, over all states of a level and over those of each element."""
    return [_clusters(level, blocks.at_level(level)) for level in range(1, blocks.num_levels + 1)]


def _clusters(level: int, blocks: BlockStates) -> LevelClusters:
    groups = [blocks.states[blocks.elements == element] for element in blocks.elements.unique()]
    between = math.inf
    for position, group in enumerate(groups[:-1]):
        others = torch.cat(groups[position + 1 :]).double()
        apart = torch.cdist(group.double(), others, compute_mode="donot_use_mm_for_euclid_dist")
        between = min(between, float(apart.min()))
    return LevelClusters(
        level=level,
        num_states=len(blocks.states),
        num_elements=len(groups),
        linkage=linkage_distances(blocks.states),
        within=max(float(linkage_distances(group).max()) if len(group) > 1 else 0.0 for group in groups),
        between=between,
    )
