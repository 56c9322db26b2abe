"""Pictures of finite machines: states on a line, transitions as arcs between them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE

MAX_DRAWN = 40
"""Machines with more states are not drawn: their arcs cannot be distinguished."""

MAX_LISTED = 5
"""A label lists up to this number of symbols and counts the others."""

SPACING, RADIUS, MARGIN = 120, 24, 16
LOOP_HEIGHT, ARC_HEIGHT = 52, 34
TINTS = ("#f2f2f2", "#cfe3fa", "#fbdfc3", "#cdeadc", "#f3d3e4", "#e3daf6")
"""Fill of states by answer, repeated where there are more answers."""


class _Arc(NamedTuple):
    path: str
    label: str
    label_at: tuple[float, float]


def machine_svg(machine: Transducer, classes: Sequence[str]) -> str:
    """A machine as an SVG: circles are states with their answers, arcs are transitions with the symbols they read.

    The small arrow points at the start. Arcs above the line lead to the right, arcs below it to the left.

    Raises:
        ValueError: more than 40 states, or an answer that has no name in `classes`.

    Example:
        >>> import numpy as np
        >>> from lengthwise.automata.semiautomaton import Semiautomaton
        >>> flip = Transducer(Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b")), 0, np.array([0, 1]))
        >>> picture = machine_svg(flip, ("even", "odd"))
        >>> picture.count("<circle"), picture.count('class="arc"')
        (2, 4)
    """
    outputs = [int(output) for output in machine.outputs]
    if machine.num_states > MAX_DRAWN:
        raise ValueError(
            f"machine: expected at most {MAX_DRAWN} states to draw, got {machine.num_states}; minimize it first"
        )
    if max(outputs) >= len(classes):
        raise ValueError(
            f"classes: expected a name for answer {max(outputs)}, got {len(classes)} names; add the others"
        )
    arcs = [_arc(start, end, label) for (start, end), label in _labels(machine).items()]
    above = max([LOOP_HEIGHT, *(-arc.label_at[1] for arc in arcs)]) + MARGIN
    below = max([RADIUS, *(arc.label_at[1] for arc in arcs)]) + MARGIN
    width = (machine.num_states - 1) * SPACING + 2 * (RADIUS + MARGIN) + 3 * MARGIN
    left = -(RADIUS + MARGIN) - 2 * MARGIN
    size = f'width="{width}" height="{above + below:g}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left} {-above:g} {width} {above + below:g}" {size}'
            ' font-family="sans-serif" font-size="13" text-anchor="middle">',
            _ARROWHEAD,
            f'<rect x="{left}" y="{-above:g}" {size} fill="white"/>',
            *(_line_svg(arc.path, "arc") for arc in arcs),
            _line_svg(_path_to_start(machine.start), "start"),
            *(_label_svg(arc) for arc in arcs),
            *(_state_svg(state, output, classes) for state, output in enumerate(outputs)),
            "</svg>\n",
        ]
    )


def _labels(machine: Transducer) -> Mapping[tuple[int, int], str]:
    """The symbols that lead from one state to another, for every pair that has some."""
    symbols: dict[tuple[int, int], list[str]] = {}
    for start, row in enumerate(machine.semiautomaton.table.tolist()):
        for symbol, end in zip(machine.symbols, row, strict=True):
            symbols.setdefault((start, end), []).append(symbol)
    return {ends: _listed(read) for ends, read in symbols.items()}


def _listed(symbols: Sequence[str]) -> str:
    """As many symbols as fit on an arc.

    Example:
        >>> _listed("ab"), _listed("0123456789")
        ('a, b', '0, 1, 2, 3, 4 and 5 more')
    """
    if len(symbols) <= MAX_LISTED:
        return ", ".join(symbols)
    return f"{', '.join(symbols[:MAX_LISTED])} and {len(symbols) - MAX_LISTED} more"


def _arc(start: int, end: int, label: str) -> _Arc:
    """The arc between two states on the line y = 0; its label stands in the middle."""
    x, to = start * SPACING, end * SPACING
    if start == end:
        path = f"M{x - 9} {-RADIUS + 2}C{x - 28} {-LOOP_HEIGHT - 14} {x + 28} {-LOOP_HEIGHT - 14} {x + 9} {-RADIUS + 2}"
        return _Arc(path, label, (x, -LOOP_HEIGHT))
    if end == start + 1:
        return _Arc(f"M{x + RADIUS} 0L{to - RADIUS} 0", label, ((x + to) / 2, 4))
    side = -1 if end > start else 1  # above or below the line
    inset = 12 if end > start else -12
    apex = ARC_HEIGHT * abs(end - start) + RADIUS / 2
    path = f"M{x + inset} {side * (RADIUS - 4)}Q{(x + to) / 2:g} {side * 2 * apex:g} {to - inset} {side * (RADIUS - 4)}"
    middle = side * (apex + RADIUS / 2)  # of the curve, which goes halfway to its control point
    return _Arc(path, label, ((x + to) / 2, middle + 4))


def _path_to_start(start: int) -> str:
    x = start * SPACING
    return f"M{x - RADIUS - 2 * MARGIN} {-RADIUS}L{x - RADIUS + 3} {-RADIUS / 2:g}"


_ARROWHEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>'
)


def _line_svg(path: str, kind: str) -> str:
    return f'<path class="{kind}" d="{path}" fill="none" stroke="#555" stroke-width="1.3" marker-end="url(#head)"/>'


def _label_svg(arc: _Arc) -> str:
    x, y = arc.label_at
    halo = 'stroke="white" stroke-width="5" paint-order="stroke"'  # other arcs end where a label begins
    return f'<text x="{x:g}" y="{y:g}" {halo}>{escape(arc.label)}</text>'


def _state_svg(state: int, output: int, classes: Sequence[str]) -> str:
    answer = "" if output == IGNORE else classes[output]
    size = min(13.0, 1.7 * (2 * RADIUS - 6) / max(1, len(answer)))  # the width of a letter is about 0.6 of its height
    fill = "white" if output == IGNORE else TINTS[output % len(TINTS)]
    circle = f'<circle cx="{state * SPACING}" cy="0" r="{RADIUS}" fill="{fill}" stroke="#333" stroke-width="1.5"/>'
    return f'{circle}<text x="{state * SPACING}" y="4" font-size="{size:g}">{escape(answer)}</text>'
