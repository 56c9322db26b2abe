"""Drawings of finite machines, with states in layers from left to right, and transitions as curves between them."""

import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from lengthwise.automata.answers import acceptor_index
from lengthwise.automata.layout import LINE_HEIGHT, RADIUS, Layout, Point, Route, lay_out
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.conventions import IGNORE
from lengthwise.display import counted, printable
from lengthwise.validation import texts_of, type_in_words

MAX_DRAWN = 40
"""The largest number of states in a drawing. With more states, transitions cannot be distinguished."""

LABEL_WIDTH, MAX_LINES = 18, 3
"""The largest number of characters in a label's line, and of lines in a label. If some symbols do not fit, the last
line gives their number."""

MARGIN = 14
NOTE_LINE_HEIGHT, NOTE_LETTER_WIDTH, MIN_NOTE_WIDTH = 14.0, 6.2, 30
"""The height of a line and the width of a letter in the note below a drawing, in pixels. The third number is the
smallest width of the note, in letters."""
TINTS = ("#f2f2f2", "#cfe3fa", "#fbdfc3", "#cdeadc", "#f3d3e4", "#e3daf6")
"""The colors of states, one for each answer; colors are repeated if there are more answers."""


@runtime_checkable
class Drawable(Protocol):
    """The part of a transducer that a drawing needs."""

    @property
    def semiautomaton(self) -> Semiautomaton: ...
    @property
    def start(self) -> int: ...
    @property
    def outputs(self) -> np.ndarray: ...
    @property
    def symbols(self) -> tuple[str, ...]: ...
    @property
    def num_states(self) -> int: ...


def machine_svg(machine: Drawable, classes: Sequence[str], *, with_sinks: bool = False) -> str:
    """Draw a machine as an SVG: circles are states with their answers and names (q0, q1, ...), arrows are transitions.

    If the answers are accept and reject, accepting states have two circles. An arrow without a source points at the
    start. All symbols that lead from one state to another share one arrow. If not all symbols fit on the arrow's label,
    the arrow's title still lists them. The title appears when the pointer is on the arrow.

    Each state is an SVG group of class `state` with its number as `data-state`. Each transition is a group of class
    `transition` with `data-from` and `data-to`, so pages can highlight states and transitions. Colors are attributes,
    so any style sheet overrides them.

    Raises:
        ValueError: the machine has more than 40 states, or an answer without a name in `classes`.

    Example:
        >>> import numpy as np
        >>> from lengthwise.automata.transducer import Transducer
        >>> flip = Transducer(Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b")), 0, np.array([0, 1]))
        >>> picture = machine_svg(flip, ("even", "odd"))
        >>> picture.count("<circle"), picture.count('class="transition"')
        (2, 4)
    """
    outputs = _checked_outputs(machine, classes)
    sinks = () if with_sinks else find_sinks(machine, classes)
    symbols = transitions(machine, sinks)
    lines = {pair: label_lines(read, machine.symbols) for pair, read in symbols.items()}
    drawn = [state for state in range(machine.num_states) if state not in sinks]
    layout = _lay_out_states(drawn, machine.start, lines)
    answers = ["" if output == IGNORE else classes[output] for output in outputs]
    accepting = acceptor_index(classes)
    note, (left, top, right, bottom) = _note_below(layout, note_on_sinks(sinks, answers))
    size = f'width="{right - left + 2 * MARGIN:.0f}" height="{bottom - top + 2 * MARGIN:.0f}"'
    corner = f'x="{left - MARGIN:.0f}" y="{top - MARGIN:.0f}"'
    view = f"{left - MARGIN:.0f} {top - MARGIN:.0f} {right - left + 2 * MARGIN:.0f} {bottom - top + 2 * MARGIN:.0f}"
    num_states, alphabet = counted(machine.num_states, "state"), ", ".join(machine.symbols)
    about = f"A machine of {num_states} over {alphabet}; it starts in q{machine.start}."
    routes = layout.routes.items()
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="machine" viewBox="{view}" {size} role="img"'
            f' aria-label={quoteattr(printable(about))} font-family="sans-serif" font-size="13" text-anchor="middle">',
            f'<rect class="paper" {corner} {size} fill="white"/>',
            _arrow_svg("start", _path_of_start(layout), layout.start[1] - layout.start[0], layout.start[-1]),
            *(_transition_svg(pair, route, ", ".join(symbols[pair])) for pair, route in routes),
            *(_label_svg(pair, route, lines[pair]) for pair, route in routes),
            *(
                _state_svg(state, layout, answers[state], outputs[state], accepts=outputs[state] == accepting)
                for state in drawn
            ),
            *note,
            "</svg>\n",
        ]
    )


def _checked_outputs(machine: Drawable, classes: Sequence[str]) -> list[int]:
    """Return the outputs of a machine; errors are as in `machine_svg`."""
    if not hasattr(machine, "outputs"):
        raise ValueError(
            f"machine: expected a machine with an output for each state, got {type_in_words(machine)}; for a DFA, "
            "give dfa.transducer"
        )
    texts_of("classes", classes)
    outputs = [int(output) for output in machine.outputs]
    if sentence := drawing_obstacle(machine):
        raise ValueError(f"machine: {sentence}")
    if max(outputs) >= len(classes):
        raise ValueError(
            f"classes: expected at least {max(outputs) + 1} names, got {len(classes)}; add the missing names"
        )
    return outputs


def drawing_obstacle(machine: Drawable) -> str | None:
    """Return an error message if a machine has too many states for a drawing, else None."""
    if machine.num_states <= MAX_DRAWN:
        return None
    return (
        f"expected at most {MAX_DRAWN} states to draw, got {machine.num_states}; write the machine as DOT for Graphviz "
        "(.gv)"
    )


def find_sinks(machine: Drawable, classes: Sequence[str]) -> list[int]:
    """Return the sinks that a drawing may omit; a sink is a state whose symbols all lead back to it.

    The omitted sinks all reject, or all have no answer. The start is never omitted. The list is empty if some symbol
    leads only to these sinks, because the drawing would not show this symbol.

    Example:
        >>> from lengthwise.automata.regex import dfa_from_regex
        >>> find_sinks(dfa_from_regex("ab*").transducer, ("reject", "accept"))
        [2]
    """
    accepting, table = acceptor_index(classes), machine.semiautomaton.table
    candidates: dict[int, list[int]] = {}
    for state, output in enumerate(machine.outputs.tolist()):
        is_sink = state != machine.start and (table[state] == state).all()
        if is_sink and (output == IGNORE or accepting == 1 - output):
            candidates.setdefault(output, []).append(state)
    # If sinks with different answers were omitted, a missing arrow would not reveal the answer. So all omitted sinks
    # have the same answer.
    sinks = max(candidates.values(), key=lambda states: np.isin(table, states).sum(), default=[])
    # If a symbol had no arrow at all, readers would not see from the picture that it exists.
    shows_all = (~np.isin(table, sinks)).any(axis=0).all()
    return sinks if shows_all else []


def note_on_sinks(sinks: Sequence[int], answers: Sequence[str]) -> str:
    """Return a note about the states that are not drawn, or an empty string if all are drawn."""
    if not sinks:
        return ""
    names = ", ".join(f"q{sink} ({answers[sink] or 'no answer'})" for sink in sinks)
    return f"Not drawn: {names}. All symbols without an arrow lead there, and no string leads out."


def transitions(machine: Drawable, left_out: Collection[int] = ()) -> Mapping[tuple[int, int], list[str]]:
    """Return the symbols that lead from one state to another, for each connected pair of states outside `left_out`."""
    symbols: dict[tuple[int, int], list[str]] = {}
    for start, symbol, end in machine.semiautomaton.edges():
        if start not in left_out and end not in left_out:
            symbols.setdefault((start, end), []).append(symbol)
    return symbols


def _lay_out_states(states: Sequence[int], start: int, lines: Mapping[tuple[int, int], Sequence[str]]) -> Layout:
    """Lay out `states`; all other states get the start's center, so a state's number is the index of its center."""
    index = {state: number for number, state in enumerate(states)}
    layout = lay_out(len(states), index[start], {(index[p], index[q]): label for (p, q), label in lines.items()})
    routes = {(states[p], states[q]): route for (p, q), route in layout.routes.items()}
    centers = layout.centers[[index.get(state, index[start]) for state in range(max(states) + 1)]]
    return layout._replace(centers=centers, routes=routes)


def label_lines(symbols: Sequence[str], alphabet: Sequence[str] = ()) -> list[str]:
    """Return an arrow's label as lines: `symbols` or, if they do not fit, "all but" and the rest of `alphabet`.

    If neither list fits, only the first `symbols` are listed, and the last line counts the symbols that are left out.

    Example:
        >>> numbers = [str(number) for number in range(30)]
        >>> label_lines("ab"), label_lines(numbers[2:], numbers)
        (['a, b'], ['all but', '0, 1'])
        >>> label_lines(numbers)
        ['0, 1, 2, 3, 4, 5,', '6, 7, 8, 9, 10,', 'and 19 more']
    """
    lines = label_rows(symbols)
    if len(lines) > MAX_LINES and (others := _all_but(symbols, alphabet)):
        return others
    kept = lines if len(lines) <= MAX_LINES else lines[: MAX_LINES - 1]
    num_left_out = len(symbols) - sum(map(len, kept))
    texts = [", ".join(line) + "," * (line is not lines[-1]) for line in kept]
    return [*texts, f"and {num_left_out} more"] if num_left_out else texts


def _all_but(symbols: Sequence[str], alphabet: Sequence[str]) -> list[str]:
    """Return lines with `all but` and the symbols of `alphabet` not in `symbols`; no lines if they do not fit."""
    known = frozenset(symbols)
    others = [symbol for symbol in alphabet if symbol not in known]
    if not alphabet or any(symbol.startswith("all") for symbol in alphabet):
        return []
    lines = ["all but", *label_lines(others)] if others else ["all symbols"]
    return lines if len(lines) <= MAX_LINES and not lines[-1].endswith(" more") else []


def label_rows(symbols: Sequence[str]) -> list[list[str]]:
    """Return the symbols of an arrow in lines of limited width, with as many lines as needed."""
    lines: list[list[str]] = [[]]
    for symbol in symbols:
        if lines[-1] and len(", ".join([*lines[-1], symbol])) > LABEL_WIDTH - 1:  # the line also ends in a comma
            lines.append([])
        lines[-1].append(symbol)
    return lines


def _text(text: str) -> str:
    return escape(printable(text))


def _path_of_start(layout: Layout) -> str:
    x, y = layout.start[0].tolist()
    to = layout.start[-1][0]
    return f"M{x:.1f} {y:.1f}H{to:.1f}"


def _transition_svg(pair: tuple[int, int], route: Route, symbols: str) -> str:
    begin, *middle = route.control
    letter = "Q" if len(middle) == 2 else "C"
    path = f"M{begin[0]:.1f} {begin[1]:.1f}{letter}" + " ".join(f"{x:.1f} {y:.1f}" for x, y in middle)
    title = f"<title>{_text(f'q{pair[0]} to q{pair[1]}: {symbols}')}</title>"
    group = f'class="transition" data-from="{pair[0]}" data-to="{pair[1]}"'
    drawn = _arrow_svg("arc", path, middle[-1] - middle[-2], middle[-1])
    return f"<g {group}>{title}{drawn}</g>"


def _arrow_svg(kind: str, path: str, direction: Point, tip: Point) -> str:
    """Return a line and its arrowhead. The head is a separate shape, so that style sheets can color line and head."""
    x, y = (direction / np.linalg.norm(direction)).tolist()
    corners = [(tip[0] + 2 * x, tip[1] + 2 * y)]
    corners += [(tip[0] - 6 * x - side * y, tip[1] - 6 * y + side * x) for side in (3.6, -3.6)]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
    line = f'<path class="{kind}" d="{path}" fill="none" stroke="#555" stroke-width="1.3"/>'
    return f'{line}<polygon class="head" points="{points}" fill="#555"/>'


def _label_svg(pair: tuple[int, int], route: Route, lines: Sequence[str]) -> str:
    """Return the lines of a label on a white patch, which hides the curves below it."""
    (x, y), (width, height) = route.label_at, route.label_size
    first = y + 4.5 - (len(lines) - 1) * LINE_HEIGHT / 2
    spans = "".join(
        f'<tspan x="{x:.1f}" y="{first + row * LINE_HEIGHT:.1f}">{_text(line)}</tspan>'
        for row, line in enumerate(lines)
    )
    patch = (
        f'<rect class="paper" x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="3" fill="white"/>'
    )
    ends = f'data-from="{pair[0]}" data-to="{pair[1]}"'
    return f'<g class="label" {ends}>{patch}<text xml:space="preserve" fill="#222">{spans}</text></g>'


def _state_svg(state: int, layout: Layout, answer: str, output: int, *, accepts: bool) -> str:
    x, y = layout.centers[state].tolist()
    size = min(13.0, 1.7 * (2 * RADIUS - 8) / max(1, len(answer)))  # the width of a letter is about 0.6 of its height
    fill = "white" if output == IGNORE else TINTS[output % len(TINTS)]
    tint = "tint-none" if output == IGNORE else f"tint-{output % len(TINTS)}"
    title = f"<title>{_text(f'state q{state}: {answer}' if answer else f'state q{state}, without an answer')}</title>"
    inner = (
        f'<circle class="inner" cx="{x:g}" cy="{y:g}" r="{RADIUS - 3.5}" fill="none" stroke="#333"/>' if accepts else ""
    )
    return (
        f'<g class="state" data-state="{state}">{title}<circle class="{tint}" cx="{x:g}" cy="{y:g}" r="{RADIUS}" '
        f'fill="{fill}" stroke="#333" stroke-width="1.5"/>{inner}<text class="answer" x="{x:g}" y="{y + 2:g}" '
        f'font-size="{size:g}" fill="#222">{_text(answer)}</text><text class="number" x="{x:g}" y="{y + 15:g}" '
        f'font-size="9" fill="#666">q{state}</text></g>'
    )


def _note_below(layout: Layout, sentence: str) -> tuple[list[str], tuple[float, float, float, float]]:
    """Return the lines of a note below a drawing, and the bounds of the drawing with its note."""
    left, top, right, bottom = layout.bounds
    lines = textwrap.wrap(sentence, max(MIN_NOTE_WIDTH, int((right - left) / NOTE_LETTER_WIDTH)))
    if not lines:
        return [], layout.bounds
    first = bottom + MARGIN + NOTE_LINE_HEIGHT / 2
    note = [
        f'<text class="note" x="{left:.1f}" y="{first + row * NOTE_LINE_HEIGHT:.1f}" font-size="11" '
        f'text-anchor="start" fill="#666">{_text(line)}</text>'
        for row, line in enumerate(lines)
    ]
    right = max(right, left + NOTE_LETTER_WIDTH * max(map(len, lines)))
    return note, (left, top, right, bottom + MARGIN + NOTE_LINE_HEIGHT * len(lines))
