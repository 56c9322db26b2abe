"""Positions of a machine's states in a drawing, and the curves of its transitions.

States are placed in layers by their distance from the start, which is on the left. The order within a layer reduces
crossings: each state is near the middle of its neighbors. A state without exits is placed below the others, near the
middle of its predecessors. Then each transition gets the cheapest of several curves. A curve costs more near other
states, curves and labels. After all transitions have curves, each transition chooses again.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures" (1981), for
layers and barycenters. Differs from the source: layers are found breadth first. Edges across several layers are curves
around states, instead of chains of dummy states.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

RADIUS = 24
"""The radius of a state's circle, in pixels. All lengths below are also in pixels."""
LAYER_GAP, ROW_GAP = 132, 104
"""The smallest distance between the centers of neighboring layers, and of neighboring states in a layer."""

LETTER_WIDTH, CAPITAL_WIDTH, LINE_HEIGHT = 7.2, 9.0, 15.0
"""The width of a small letter and of a capital letter in a label, and the height of a line."""

CLEARANCE = 9
"""The distance that curves keep from a state's circle."""

BENDS = (0, 14, -14, 24, -24, 38, -38, 56, -56, 80, -80, 110, -110, 150, -150, 200, -200)
"""The distances that the middle of a curve may have from the line between its two states, in order of preference."""

LOOP_ANGLES = (-90, 90, -55, -125, 55, 125, 0, 180)
"""The directions of a loop from its state, in degrees clockwise from the right, in order of preference."""

MIN_LOOP_DISTANCE = 45
"""A loop costs more if the angle between the loop and another curve at its state is below this number of degrees."""

LABEL_POSITIONS = (0.5, 0.4, 0.6, 0.3, 0.7)
"""The positions of a label on its curve, as fractions of the curve, in order of preference."""

SWEEPS = 12
"""The number of passes over all layers for reducing crossings."""

ROUNDS = 3
"""The number of times that each transition chooses its curve."""

SAMPLES = 13
"""The number of points along a curve at which distances and crossings are computed."""

Point = Float[np.ndarray, " 2"]
Points = Float[np.ndarray, "_ 2"]
Curves = Float[np.ndarray, "E _ 2"]


class Route(NamedTuple):
    """A transition's curve: its control points, points along it, and the center and the size of its label."""

    control: Points
    samples: Points
    label_at: Point
    label_size: tuple[float, float]


class Layout(NamedTuple):
    """The geometry of a drawing: state centers, curves between connected states, and the arrow to the start state."""

    centers: Points
    routes: Mapping[tuple[int, int], Route]
    start: Points

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The smallest x and y and the largest x and y of all drawn elements."""
        corners = [self.centers - RADIUS, self.centers + RADIUS, self.start]
        for route in self.routes.values():
            half = np.array(route.label_size) / 2
            corners += [route.samples, (route.label_at - half)[None], (route.label_at + half)[None]]
        points = np.concatenate(corners)
        (left, top), (right, bottom) = points.min(0).tolist(), points.max(0).tolist()
        return left, top, right, bottom


def lay_out(num_states: int, start: int, labels: Mapping[tuple[int, int], Sequence[str]]) -> Layout:
    """Return the geometry of a drawing, given the lines of the label for each pair of connected states.

    Example:
        >>> layout = lay_out(2, 0, {(0, 0): ["a"], (0, 1): ["b"], (1, 1): ["a, b"]})
        >>> layout.centers.tolist()
        [[0.0, 0.0], [132.0, 0.0]]
    """
    sizes = [label_size(lines) for (one, other), lines in labels.items() if one != other]
    gap = max(LAYER_GAP, 2 * RADIUS + max((width for width, _ in sizes), default=0.0) + 44)
    row_gap = ROW_GAP + 2 * max((height - LINE_HEIGHT for _, height in sizes), default=0.0)
    columns = layers(num_states, start, list(labels))
    never_left = set(range(num_states)) - {one for one, other in labels if one != other}
    centers, below = np.zeros((num_states, 2)), []
    for column, layer in enumerate(columns):
        left = [state for state in layer if state not in never_left] or layer
        after = [state for state in layer if state not in left]
        below += after
        for row, state in enumerate([*left, *after]):
            centers[state] = (column * gap, (row - (len(left) - 1) / 2) * row_gap)
    if below:
        others = np.delete(centers[:, 1], below)
        centers[below, 1] += others.max() + row_gap - centers[below, 1].min()
    return _Router(centers, start, labels).run()


def label_size(lines: Sequence[str]) -> tuple[float, float]:
    """Return the width and the height of a label."""
    widths = (sum(CAPITAL_WIDTH if letter.isupper() else LETTER_WIDTH for letter in line) for line in lines)
    return max(widths) + 4, len(lines) * LINE_HEIGHT


def layers(num_states: int, start: int, pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the states in layers by their distance from the start; each layer lists its states from top to bottom.

    The order gives few crossings. If some states are not reachable from the start, the first of them is an additional
    start, and so on. A sink with several predecessors is placed in the layer closest to the mean of the predecessors'
    layers.

    Example:
        >>> layers(4, 0, [(0, 1), (1, 2), (2, 0), (1, 3), (3, 3)])
        [[0], [1], [2, 3]]
    """
    successors: dict[int, list[int]] = {state: [] for state in range(num_states)}
    neighbors: dict[int, list[int]] = {state: [] for state in range(num_states)}
    for one, other in pairs:
        if one != other:
            successors[one].append(other)
            neighbors[one].append(other)
            neighbors[other].append(one)
    depth: dict[int, int] = {}
    # The search is breadth first, because machines have cycles. Longest paths, as in the source, need acyclic graphs.
    for root in (start, *range(num_states)):
        order = [] if root in depth else [root]
        depth.setdefault(root, 0)
        for state in order:
            new = [other for other in successors[state] if other not in depth]
            depth |= dict.fromkeys(new, depth[state] + 1)
            order += dict.fromkeys(new)
    sinks = [state for state in depth if state != start and not successors[state] and len(neighbors[state]) > 1]
    for state in sinks:
        depth[state] = round(sum(depth[other] for other in neighbors[state]) / len(neighbors[state]))
    columns: list[list[int]] = [[] for _ in range(max(depth.values()) + 1)]
    for state, column in depth.items():
        columns[column].append(state)
    columns = [sorted(column, key=lambda state: state in sinks) for column in columns if column]
    return _ordered(columns, neighbors, set(sinks))


def _ordered(columns: list[list[int]], neighbors: Mapping[int, list[int]], last: set[int]) -> list[list[int]]:
    """Return the layers with their states sorted, so that a state is near the mean row of its neighbors.

    The states in `last` come last in their layers. A sweep over the layers may make the order worse, so the order with
    the shortest edges is returned.
    """

    def rows(candidate: list[list[int]]) -> dict[int, float]:
        return {state: row - (len(column) - 1) / 2 for column in candidate for row, state in enumerate(column)}

    def length(candidate: list[list[int]]) -> float:
        row = rows(candidate)
        return float(sum((row[state] - row[other]) ** 2 for state in row for other in neighbors[state]))

    # Barycenters are a heuristic. Finding the fewest crossings is NP-hard, even for two layers of which one is fixed
    # (Eades and Wormald, 1994).
    best = current = columns
    for sweep in range(SWEEPS):
        row = rows(current)
        order = range(len(current)) if sweep % 2 == 0 else range(len(current) - 1, -1, -1)
        current = [list(column) for column in current]
        for index in order:
            column = current[index]

            def key(state: int, row: Mapping[int, float] = row) -> tuple[bool, float]:
                near = [row[other] for other in neighbors[state]] or [row[state]]
                return state in last, sum(near) / len(near)

            column.sort(key=key)
            row |= rows([column])
        if length(current) < length(best):
            best = current
    return best


class _Router:
    """A router that chooses a curve for each transition in turn, and then again when all other curves are known."""

    def __init__(self, centers: Points, start: int, labels: Mapping[tuple[int, int], Sequence[str]]) -> None:
        self.centers, self.labels = centers, labels
        head = centers[start] - (RADIUS + 2, 0)
        self.start = np.linspace(head - (30, 0), head, SAMPLES)
        self.routes: dict[tuple[int, int], Route] = {}

    def run(self) -> Layout:
        def distance(pair: tuple[int, int]) -> float:
            return float(np.linalg.norm(self.centers[pair[0]] - self.centers[pair[1]]))

        for _ in range(ROUNDS):
            # Short transitions choose first, because few curves fit for them.
            for pair in sorted(self.labels, key=distance):
                self.routes.pop(pair, None)
                self.routes[pair] = self._cheapest(pair)
        return Layout(self.centers, {pair: self.routes[pair] for pair in self.labels}, self.start)

    def _cheapest(self, pair: tuple[int, int]) -> Route:
        candidates = self._loops(pair[0]) if pair[0] == pair[1] else self._curves(*pair)
        size = label_size(self.labels[pair])
        others = np.delete(self.centers, list(set(pair)), 0)
        curves = np.stack([*(route.samples for route in self.routes.values()), self.start])
        dense = _dense(curves)
        priced: list[tuple[float, Points, Points]] = []
        for cost, control in candidates:
            samples = _bezier(control, np.linspace(0, 1, SAMPLES))
            near = np.maximum(0, RADIUS + CLEARANCE - _distances(samples, others)).sum(initial=0)
            priced.append((cost + 40 * float(near), control, samples))
        best, least = None, np.inf
        # The cost so far is a lower bound on the whole cost. Candidates with low bounds come first, so the search can
        # end early.
        for cost, control, samples in sorted(priced, key=lambda candidate: candidate[0]):
            if cost >= least:
                break
            crossed = cost + 60 * _crossings(samples, curves)
            if crossed >= least:
                continue
            for preference, center in self._label_centers(control, size, pair):
                total = crossed + preference + self._label_cost(center, size, dense)
                if total < least:
                    best, least = Route(control, samples, center, size), total
        assert best is not None
        return best

    def _curves(self, one: int, other: int) -> list[tuple[float, Points]]:
        """Return quadratic curves of all bends between two circles, each with the cost of its bend."""
        begin, end = self.centers[one], self.centers[other]
        along = end - begin
        normal = np.array([along[1], -along[0]]) / np.linalg.norm(along)
        candidates = []
        has_opposite = (other, one) in self.labels
        for bend in BENDS:
            middle = (begin + end) / 2 + 2 * bend * normal
            control = np.array([_on_circle(begin, middle, 1.0), middle, _on_circle(end, middle, 4.0)])
            # If there are transitions in both directions, they bend away from each other to keep their labels apart.
            crowded = 400.0 if has_opposite and bend < 14 else 0.0
            candidates.append((0.9 * abs(bend) + crowded, control))
        return candidates

    def _loops(self, state: int) -> list[tuple[float, Points]]:
        """Return loops at a state as cubic curves with their costs; loops near ends of other curves cost more."""
        center, candidates = self.centers[state], []
        ends = [
            route.samples[i] for pair, route in self.routes.items() for i, at in ((2, 0), (-3, 1)) if pair[at] == state
        ]
        taken = [np.degrees(np.arctan2(y - center[1], x - center[0])) for x, y in ends]
        for preference, angle in enumerate(LOOP_ANGLES):
            outward = [np.array([np.cos(turn), np.sin(turn)]) for turn in np.radians([angle - 24, angle + 24])]
            far = [np.array([np.cos(turn), np.sin(turn)]) for turn in np.radians([angle - 34, angle + 34])]
            control = center + np.array(
                [(RADIUS + 1) * outward[0], (RADIUS + 36) * far[0], (RADIUS + 36) * far[1], (RADIUS + 4) * outward[1]]
            )
            crowded = sum(abs((angle - other + 180) % 360 - 180) < MIN_LOOP_DISTANCE for other in taken)
            candidates.append((8.0 * preference + 30.0 * crowded, control))
        return candidates

    def _label_centers(
        self, control: Points, size: tuple[float, float], pair: tuple[int, int]
    ) -> list[tuple[float, Point]]:
        """Return the possible centers of a label, with their costs: on the curve, or outside the top of a loop."""
        if pair[0] != pair[1]:
            return [(12.0 * index, _bezier(control, np.array([t]))[0]) for index, t in enumerate(LABEL_POSITIONS)]
        (top,) = _bezier(control, np.array([0.5]))
        outward = (top - self.centers[pair[0]]) / np.linalg.norm(top - self.centers[pair[0]])
        return [(0.0, top + outward * (np.abs(outward) @ np.array(size) / 2 + 1))]

    def _label_cost(self, center: Point, size: tuple[float, float], dense: Curves) -> float:
        """Return the cost of a label for the states, other labels and other curves that it covers."""
        half = np.array(size) / 2
        beyond = np.maximum(np.abs(self.centers - center) - half, 0)
        cost = 60 * float(np.maximum(0, RADIUS + 4 - np.hypot(*beyond.T)).sum())
        for route in self.routes.values():
            slack = [
                (mine + its) / 2 + 2 - abs(x - y)
                for mine, its, x, y in zip(size, route.label_size, center, route.label_at, strict=True)
            ]
            cost += 25 * max(0.0, min(slack))
        return cost + 45 * int((np.abs(dense - center) < half + 1).all(2).any(1).sum())


def _on_circle(center: Point, toward: Point, gap: float) -> Point:
    """Return the point at distance `gap` outside of a state's circle, in the direction of another point."""
    step: Point = (toward - center) / np.linalg.norm(toward - center)
    return center + (RADIUS + gap) * step


def _bezier(control: Points, at: Float[np.ndarray, " N"]) -> Points:
    """Return points of the Bézier curve with three or four control points, by de Casteljau's algorithm."""
    points = np.repeat(control[None], len(at), 0)
    while points.shape[1] > 1:
        points = points[:, :-1] + at[:, None, None] * (points[:, 1:] - points[:, :-1])
    return np.asarray(points[:, 0])


def _dense(curves: Curves) -> Curves:
    """Return the points of curves, with two more points between any two neighboring points."""
    begin, step = curves[:, :-1], curves[:, 1:] - curves[:, :-1]
    return np.concatenate([*(begin + share * step for share in (0, 1 / 3, 2 / 3)), curves[:, -1:]], 1)


def _distances(points: Points, centers: Points) -> Float[np.ndarray, "_ _"]:
    return np.asarray(np.hypot(*np.moveaxis(points[:, None] - centers, -1, 0)))


def _crossings(one: Points, others: Curves) -> int:
    """Return the number of times that a polyline crosses other polylines."""
    # Curves with disjoint bounding boxes cannot cross. This excludes most pairs without the equations below.
    near = ((one.min(0) <= others.max(1)) & (others.min(1) <= one.max(0))).all(1)
    p, r = one[:-1, None], (one[1:] - one[:-1])[:, None]
    q, s = others[near, None, :-1], (others[near, 1:] - others[near, :-1])[:, None]
    determinant = r[..., 0] * s[..., 1] - r[..., 1] * s[..., 0]
    between = q - p
    # Find t and u with p + t r = q + u s. Parallel segments have determinant 0. Their infinite or NaN results fail all
    # comparisons below.
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (between[..., 0] * s[..., 1] - between[..., 1] * s[..., 0]) / determinant
        u = (between[..., 0] * r[..., 1] - between[..., 1] * r[..., 0]) / determinant
    return int(((t > 0) & (t < 1) & (u > 0) & (u < 1)).sum())
