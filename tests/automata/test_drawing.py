"""Pictures of machines hold every state, its answer, and every transition."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.automata.drawing import MAX_DRAWN, RADIUS, SPACING, machine_svg
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.conventions import IGNORE

SVG = "{http://www.w3.org/2000/svg}"


def drawn(machine: Transducer, classes: tuple[str, ...]) -> tuple[set[tuple[int, int, str]], list[str]]:
    """Transitions (from, to, label) and answers, read back from the picture by where its lines begin and end."""
    root = ElementTree.fromstring(machine_svg(machine, classes))
    arcs = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("class") == "arc"]
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    ends = [[int(float(number)) for number in re.findall(r"-?\d+(?:\.\d+)?", arc)] for arc in arcs]
    state = [(round(numbers[0] / SPACING), round(numbers[-2] / SPACING)) for numbers in ends]
    return {(*pair, label) for pair, label in zip(state, texts, strict=False)}, texts[len(arcs) :]


def test_every_transition_and_answer_is_drawn() -> None:
    language = dfa_from_regex("(a|b)*abb").minimize().transducer
    arcs, answers = drawn(language, ("out", "in"))
    expected: dict[tuple[int, int], list[str]] = {}
    for start, row in enumerate(language.semiautomaton.table.tolist()):
        for symbol, end in zip(language.symbols, row, strict=True):
            expected.setdefault((start, end), []).append(symbol)
    assert arcs == {(*ends, ", ".join(symbols)) for ends, symbols in expected.items()}
    assert answers == [("out", "in")[output] for output in language.outputs]


def test_symbols_and_answers_are_escaped_and_long_lists_are_counted() -> None:
    table = np.zeros((1, 7), dtype=int)
    machine = Transducer(Semiautomaton(table, ("<", "&", "c", "d", "e", "f", "g")), 0, np.array([0]))
    arcs, answers = drawn(machine, ("<yes>",))
    assert arcs == {(0, 0, "<, &, c, d, e and 2 more")}
    assert answers == ["<yes>"]


def test_a_state_without_an_answer_is_white_and_empty() -> None:
    machine = Transducer(Semiautomaton(np.array([[1], [1]]), ("x",)), 0, np.array([IGNORE, 0]))
    assert drawn(machine, ("done",))[1] == ["", "done"]


def test_circles_stay_inside_the_picture() -> None:
    table = np.roll(np.arange(6), -1)[:, None]
    root = ElementTree.fromstring(
        machine_svg(Transducer(Semiautomaton(table, ("x",)), 3, np.arange(6)), tuple("abcdef"))
    )
    left, top, width, height = map(float, root.get("viewBox").split())
    for circle in root.iter(f"{SVG}circle"):
        assert left <= float(circle.get("cx")) - RADIUS < float(circle.get("cx")) + RADIUS <= left + width
        assert top <= -RADIUS < RADIUS <= top + height


def test_large_machines_and_missing_names_are_refused_in_one_sentence() -> None:
    size = MAX_DRAWN + 1
    chain = Transducer(Semiautomaton(np.arange(size)[:, None], ("x",)), 0, np.zeros(size, dtype=int))
    with pytest.raises(ValueError, match="machine: expected at most 40 states to draw, got 41; minimize it first"):
        machine_svg(chain, ("a",))
    with pytest.raises(ValueError, match="classes: expected a name for answer 1, got 1 names"):
        machine_svg(Transducer(Semiautomaton(np.array([[0]]), ("x",)), 0, np.array([1])), ("a",))
