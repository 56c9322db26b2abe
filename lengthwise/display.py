"""Notebook displays of objects: cards and small charts as self-contained HTML, for light and dark pages.

Text and lines have the color of the surrounding text, so neither style sheets nor scripts are needed.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import ROUND_FLOOR, Decimal
from html import escape
from typing import NamedTuple

NOTHING = "-"
"""The sign for a value that was not measured."""

ACCENT = "#3b7dd8"
"""The color of curves and of the edge of a card, readable on light and dark pages."""

WIDTH, HEIGHT = 460, 190
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 10.0, 34.0
"""The width and the height of a chart, and its four margins, in pixels."""

MAX_TICKS = 7
"""The largest number of labeled lengths on an axis."""


class Plotted(NamedTuple):
    """A point of a chart: an accuracy at a length, its 95 % interval, and the accuracy of the best constant answer."""

    length: int
    accuracy: float
    low: float
    high: float
    baseline: float


def printable(text: str) -> str:
    """Return a text whose unprintable characters are written as Python escapes.

    XML cannot contain control characters, and terminals obey them.

    Example:
        >>> printable("two\\nlines")
        'two\\\\nlines'
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV, with an apostrophe before each text that a spreadsheet would read as a formula.

    Example:
        >>> print(csv_text([("=1+1", "-3", -3, "a")]), end="")
        '=1+1,-3,-3,a
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_inert(cell) for cell in row] for row in rows)
    return text.getvalue()


def _inert(cell: object) -> object:
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    with suppress(ValueError):
        # A number such as "-3" stays a number: spreadsheets do not run it as a formula.
        float(cell)
        return cell
    return f"'{cell}"


def literal(text: str) -> str:
    """Escape the characters of a text that would act as markup, so that Markdown and HTML readers show it unchanged.

    Example:
        >>> print(literal("regex pattern=(a*b)* d_model=8 x < 1"), literal("<b>__a__"), literal("[a](b)"))
        regex pattern=(a\\*b)\\* d_model=8 x < 1 &lt;b>\\_\\_a\\_\\_ [a\\](b)
    """
    for pattern, better in _MARKUP:
        text = pattern.sub(better, text)
    return text


_MARKUP = [
    (re.compile(pattern), better)
    for pattern, better in (
        (r"\\(?=[^\w\s]|_)", r"\\\\"),
        (r"&(?=#|\w+;)", "&amp;"),
        (r"<(?=[A-Za-z/!?])", "&lt;"),
        (r"[*`]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[])", r"\\\g<0>"),
        (r"\s*[\n\r]\s*", " "),
    )
]
"""Patterns of markup and their escapes. Underscores inside words, and brackets without a link, are not markup."""


def spelled(string: Sequence[str], symbols: Sequence[str] = ()) -> str:
    """Return the symbols of a string as one text.

    Spaces separate the symbols if a symbol of the string, or one of `symbols`, has several characters.

    Example:
        >>> spelled(("a", "b")), spelled(("login", "view")), spelled(("a", "b"), symbols=("a", "b", "ab"))
        ('ab', 'login view', 'a b')
    """
    return (" " if any(len(symbol) > 1 for symbol in (*string, *symbols)) else "").join(string)


MAX_PERIOD = 16
"""The largest number of symbols of a word whose repetitions are written as a power."""

MIN_RUN, MIN_REPETITIONS = 4, 3
"""The smallest number of equal symbols in a row, and of equal words in a row, that are written as a power."""


def in_powers(string: Sequence[str]) -> str:
    """Return the symbols of a string as one text, with repetitions written as powers.

    From left to right, the longest repetition that begins at each index becomes a power.

    Example:
        >>> in_powers("a" * 76 + "bb"), in_powers("c" + "ab" * 30 + "aaa"), in_powers(("login", "view") * 5)
        ('a^76 bb', 'c (ab)^30 aaa', '(login view)^5')
    """
    start, parts = 0, list[str]()
    plain: list[str] = []
    while start < len(string):
        period, count = max(
            ((period, _repetitions(string, start, period)) for period in range(1, MAX_PERIOD + 1)),
            key=lambda pair: (pair[0] * pair[1] if pair[1] > 1 else 1, -pair[0]),
        )
        if count < (MIN_RUN if period == 1 else MIN_REPETITIONS):
            plain.append(string[start])
            start += 1
            continue
        word = spelled(string[start : start + period])
        parts += ([spelled(plain)] if plain else []) + [f"{word if period == 1 else f'({word})'}^{count}"]
        plain = []
        start += period * count
    return " ".join(parts + ([spelled(plain)] if plain else []))


def _repetitions(string: Sequence[str], start: int, period: int) -> int:
    """Return how many copies of the word of `period` symbols at index `start` follow each other from this index on."""
    count, word = 1, string[start : start + period]
    while len(word) == period and string[start + period * count : start + period * (count + 1)] == word:
        count += 1
    return count


def capitalized(text: str) -> str:
    """Return a text with a capital first letter; unlike `str.capitalize`, leave all other letters as they are.

    Example:
        >>> capitalized("strings of TestSR")
        'Strings of TestSR'
    """
    return f"{text[:1].upper()}{text[1:]}"


def counted(count: int, what: str) -> str:
    """Return a number and a noun in the singular or the plural.

    Example:
        >>> counted(1, "state"), counted(1_200, "state"), counted(2, "class")
        ('1 state', '1,200 states', '2 classes')
    """
    plural = "es" if what.endswith("s") else "s"
    return f"{count:,} {what}{plural * (count != 1)}"


def listed(phrases: Sequence[str]) -> str:
    """Return phrases as one text, with "and" before the last.

    Example:
        >>> listed(["a", "b", "c"]), listed(["a"]), listed([])
        ('a, b and c', 'a', '')
    """
    return " and ".join(filter(None, [", ".join(phrases[:-1]), *phrases[-1:]]))


def percent(share: float) -> str:
    """Return a fraction as a percentage, cut (not rounded) to two decimals.

    Only exactly 1 is "100 %", and only exactly 0 is "0 %". So an accuracy with rare mistakes never looks perfect.

    Example:
        >>> percent(1.0), percent(0.99996), percent(1 - 1e-15), percent(0.57), percent(0.00001), percent(0.0)
        ('100 %', '99.99 %', '99.99 %', '57.00 %', '0.00 %', '0 %')
    """
    if math.isnan(share):
        return NOTHING
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    # Because of rounding errors, a mean such as 0.57 may be slightly too small. Rounding to 12 digits repairs this.
    hundredths = Decimal(f"{share:.12f}").scaleb(4).to_integral_value(ROUND_FLOOR)
    return f"{min(hundredths, Decimal(9999)).scaleb(-2):.2f} %"


def card(title: str, pairs: Iterable[tuple[str, str]], *parts: str, accent: str = ACCENT) -> str:
    """Return a framed card as HTML: a title, a table of terms and their values, and parts that are already HTML.

    The title, terms and values are escaped.

    Example:
        >>> card("<b>", [("length", "41")]).count("<b>"), "&lt;b&gt;" in card("<b>", [])
        (0, True)
    """
    term = "padding:1px 14px 1px 0;opacity:.7;text-align:left"
    value = "padding:1px 0;text-align:left"
    rows = "".join(
        f'<tr style="background:none"><td style="{term};vertical-align:top;white-space:nowrap">{escape(name)}</td>'
        f'<td style="{value};overflow-wrap:anywhere">{escape(text)}</td></tr>'
        for name, text in pairs
    )
    table = f'<table style="border-collapse:collapse;border:none;margin:4px 0">{rows}</table>' if rows else ""
    return (
        f'<div style="border:1px solid;border-color:color-mix(in srgb,currentColor 25%,transparent);'
        f"border-left:4px solid {accent};padding:8px 14px;max-width:46em;font-family:sans-serif;font-size:13px;"
        f'line-height:1.45"><div style="font-weight:600">{escape(title)}</div>{table}{"".join(parts)}</div>'
    )


def accuracy_svg(points: Sequence[Plotted], *, is_joined: bool) -> str:
    """Return a chart of accuracy by length on a logarithmic axis, with 95 % intervals and a dashed baseline.

    Example:
        >>> accuracy_svg([Plotted(41, 1.0, 0.985, 1.0, 0.5)], is_joined=True).count("<circle")
        1
    """
    lengths = [point.length for point in points]
    low, high = math.log(min(lengths)) - 0.15, math.log(max(lengths)) + 0.15

    def x(length: int) -> float:
        return LEFT + (math.log(length) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(share: float) -> float:
        return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)

    ordered = sorted(points)
    line = " ".join(f"{x(point.length):.1f},{y(point.accuracy):.1f}" for point in ordered)
    chance = " ".join(f"{x(point.length):.1f},{y(point.baseline):.1f}" for point in ordered)
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
            ' style="max-width:100%" font-family="sans-serif" font-size="11" fill="currentColor" role="img">',
            *(_share_line(share, y(share)) for share in (0.0, 0.25, 0.5, 0.75, 1.0)),
            *(
                _text(x(tick), HEIGHT - BOTTOM + 15, f"{tick:,}", "middle")
                for tick in _ticks(min(lengths), max(lengths))
            ),
            _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4.0, "length", "middle"),
            _text(WIDTH - RIGHT, HEIGHT - 4.0, "dashed: best constant answer", "end"),
            f'<g transform="translate(12 {(TOP + HEIGHT - BOTTOM) / 2:.1f}) rotate(-90)">',
            _text(0, 0, "accuracy", "middle"),
            "</g>",
            f'<polyline points="{chance}" fill="none" stroke="currentColor" stroke-opacity=".5"'
            ' stroke-dasharray="4 3"/>',
            *(_interval(x(point.length), y(point.low), y(point.high)) for point in ordered),
            f'<polyline points="{line}" fill="none" stroke="{ACCENT}" stroke-width="1.5"/>' if is_joined else "",
            *(_dot(x(point.length), y(point.accuracy), point) for point in ordered),
            "</svg>",
        ]
    )


def _share_line(share: float, y: float) -> str:
    rule = f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="currentColor" stroke-opacity=".15"/>'
    return rule + _text(LEFT - 6, y + 4, f"{share:.0%}", "end")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill-opacity=".75">{escape(text)}</text>'


def _interval(x: float, low: float, high: float) -> str:
    return f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{ACCENT}" stroke-opacity=".45"/>'


def _dot(x: float, y: float, point: Plotted) -> str:
    title = escape(
        f"length {point.length:,}: {percent(point.accuracy)} ({percent(point.low)} to {percent(point.high)})"
    )
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{ACCENT}"><title>{title}</title></circle>'


def _ticks(low: int, high: int) -> list[int]:
    """Return round lengths between two lengths, or these two themselves if no round length is between them.

    The round lengths are 1, 2 or 5 times powers of 10, or only the powers if there are more than `MAX_TICKS`.

    Example:
        >>> _ticks(41, 500), _ticks(41, 43), _ticks(1, 100_000)
        ([50, 100, 200, 500], [41, 43], [1, 10, 100, 1000, 10000, 100000])
    """
    powers = [10**power for power in range(len(str(high)))]
    fine = [digit * power for power in powers for digit in (1, 2, 5) if low <= digit * power <= high]
    coarse = [power for power in powers if low <= power <= high]
    return (fine if len(fine) <= MAX_TICKS else coarse) or sorted({low, high})
