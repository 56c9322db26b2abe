"""A memorized word in lines of text: dimension, frequencies, margin, matrices, lifetime."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from lengthwise.constructions.memorization.farkas import FarkasCertificate
from lengthwise.constructions.memorization.generator import Array, LinearGenerator
from lengthwise.constructions.memorization.lifetime import PRECISIONS, Lifetime, fastest_formula, predicted_lifetime
from lengthwise.constructions.memorization.memorize import Memorization
from lengthwise.constructions.memorization.rational import RationalMemorization
from lengthwise.constructions.memorization.words import Word
from lengthwise.validation import truncate

Memorized = Memorization | RationalMemorization

LARGEST_INTEGER = {"bfloat16": 2**8, "float16": 2**11, "float32": 2**24, "float64": 2**53}
"""For each precision, the largest integer up to which the precision represents all integers exactly."""


def memorization_lines(net: Memorized, width: int) -> Iterator[str]:
    """Yield lines about a net that repeats a word; matrices are wrapped at `width`, the width of the screen."""
    yield from _word_lines(net.word)
    if not net.generator.dimension:
        yield "dimension: 0, the bias alone repeats one symbol"
        return
    yield from (_rational_lines(net) if isinstance(net, RationalMemorization) else _real_lines(net))
    yield from _matrix_lines(net.generator, width)
    yield from (_integer_lines(net) if isinstance(net, RationalMemorization) else _lifetime_lines(net))


def _word_lines(word: Word) -> Iterator[str]:
    yield f"word: {truncate(word.text)}, period {word.period}, symbols {' '.join(word.symbols)}"
    if word.power > 1:
        yield f" the given text is this word {word.power} times, and the same net generates it"


def _real_lines(net: Memorization) -> Iterator[str]:
    if net.lower < net.upper:
        why = _given_up(net)
        yield f"BOUNDS ONLY: the smallest dimension is at least {net.lower} and at most {net.upper}; {why}"
        yield f"dimension: {net.generator.dimension} here, maybe not the smallest"
    elif net.generator.dimension > net.upper:
        yield f"dimension: {net.generator.dimension}, for a wider margin; the smallest is {net.upper}"
    else:
        yield f"dimension: {net.upper}, the smallest without feedback (linear programs: {net.programs})"
    turns = ", ".join(map(str, net.frequencies))
    yield f"frequencies: {turns} (of {net.word.period}: W_h turns by 2 pi k / {net.word.period})"
    yield f"margin: {net.margin:.4g} (states have norm 1)" + _margin_note(net)


def _given_up(net: Memorized) -> str:
    return f"the search ended after {net.programs:,} linear programs, its budget"


def _margin_note(net: Memorization) -> str:
    given_up = "" if net.is_widest else "; NOT ALL frequencies were tried, for lack of budget"
    if len(net.word.symbols) == 2:
        return f", the largest that these frequencies allow{given_up}"
    return f"; a lower bound on the margin was maximized, {net.min_margin:.4g}{given_up}"


def _rational_lines(net: RationalMemorization) -> Iterator[str]:
    d, p = net.dimension, net.word.period
    more = "as many as" if d == net.order_dimension else f"more than the {net.order_dimension} that"
    if net.lower < d:
        why = _given_up(net) if net.programs else f"{p} has too many divisors for a search"
        yield f"BOUNDS ONLY: the smallest dimension of a rational W_h is at least {net.lower} and at most {d}; {why}"
        yield f"dimension: {d} here, maybe not the smallest, {more} a matrix of order {p} needs"
    else:
        yield f"dimension: {d}, the smallest with a rational W_h, {more} a matrix of order {p} needs"
    factors = " ".join(f"Phi_{order}" for order in net.orders)
    yield f"minimal polynomial: {factors} (W_h: companion matrices, integers)"


def _matrix_lines(generator: LinearGenerator, width: int) -> Iterator[str]:
    for name, array in (
        ("W_h", generator.hidden),
        ("W_y", generator.readout),
        ("b_y", generator.bias),
        ("h_1", generator.first),
    ):
        yield f"{name}:"
        yield from (f"  {line}" for line in _array_text(array, width - 2).splitlines())


def _array_text(array: Array, width: int) -> str:
    return np.array2string(array, precision=4, suppress_small=True, max_line_width=max(24, width), threshold=4_096)


def _lifetime_lines(net: Memorization) -> Iterator[str]:
    yield "lifetime, if entries of W_h are rounded and the rest is in float64; in brackets (pi / p) / |dtheta|:"
    for precision in PRECISIONS:
        formula = fastest_formula(net, precision)
        bare = "" if formula == float("inf") else f" ({_count(formula)})"
        yield f"  {precision}: {lifetime_text(predicted_lifetime(net, precision))}{bare}"


def lifetime_text(lifetime: Lifetime) -> str:
    """Return a phrase that states the step of a net's first wrong symbol, or how long all its symbols are right."""
    if lifetime.first_wrong is not None:
        return f"first wrong symbol at step {_count(lifetime.first_wrong)}"
    if lifetime.horizon == float("inf"):
        return "indefinitely: rounding changes nothing"
    return f"right up to step {_count(lifetime.horizon)}, the last step that was checked"


def _count(number: float | int) -> str:
    return f"{number:,.0f}" if number < 1e9 else f"{number:.3g}"


def _integer_lines(net: RationalMemorization) -> Iterator[str]:
    generator = net.generator
    states = generator.states(net.word.period)
    largest = max(int(np.abs(array).max()) for array in (generator.hidden, states))
    logits = int((np.abs(states) @ np.abs(generator.readout.T) + np.abs(generator.bias)).max())
    yield f"lifetime, if integers up to {max(largest, logits):,} are not rounded (states: up to {largest}):"
    for precision in PRECISIONS:
        maximum = LARGEST_INTEGER[precision]
        yield f"  {precision}: {'indefinitely' if logits <= maximum else 'logits, or states, are rounded'}"


def proof_line(certificates: Sequence[FarkasCertificate], net: Memorized) -> str:
    """Return a sentence about the proof that no smaller dimension is enough, with the number of Farkas certificates."""
    if not certificates:
        return f"proof: no set of frequencies with this period has a dimension below {net.lower}"
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(c.kind for c in certificates).items()))
    return (
        f"proof: no dimension below {net.lower} is enough. It has {len(certificates)} maximal sets of frequencies, and "
        f"a verified Farkas certificate refutes each of them ({kinds})"
    )
