"""Drawings of machines hold every state, its answer, and every transition with all of its symbols."""

import textwrap
from xml.etree import ElementTree

import numpy as np
import pytest

from lengthwise.automata import DFA, Semiautomaton, Transducer
from lengthwise.automata.drawing import (
    MAX_DRAWN,
    _arrow_svg,
    drawing_obstacle,
    find_sinks,
    label_lines,
    label_rows,
    machine_svg,
    transitions,
)
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.layout import RADIUS, label_size, lay_out
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.conventions import IGNORE
from lengthwise.tasks import make_task

SVG = "{http://www.w3.org/2000/svg}"


def groups(picture: str, kind: str) -> list[ElementTree.Element]:
    return [group for group in ElementTree.fromstring(picture).iter(f"{SVG}g") if group.get("class") == kind]


def ends(group: ElementTree.Element) -> tuple[int, int]:
    return int(group.get("data-from")), int(group.get("data-to"))


def text_of(group: ElementTree.Element) -> str:
    return " ".join(span.text for span in group.iter(f"{SVG}tspan"))


def expected_symbols(machine: Transducer) -> dict[tuple[int, int], list[str]]:
    symbols: dict[tuple[int, int], list[str]] = {}
    for start, row in enumerate(machine.semiautomaton.table.tolist()):
        for symbol, end in zip(machine.symbols, row, strict=True):
            symbols.setdefault((start, end), []).append(symbol)
    return symbols


def test_every_transition_and_answer_is_drawn_and_parallel_ones_are_one_arrow() -> None:
    machine = dfa_from_regex("(a|b|c)*ab(a|b)*").minimize().transducer
    picture = machine_svg(machine, ("out", "in"))
    expected = {pair: ", ".join(symbols) for pair, symbols in expected_symbols(machine).items()}
    assert any(one == other for one, other in expected), "there are loops"
    assert any("," in symbols for symbols in expected.values()), "there are parallel transitions"
    labels = groups(picture, "label")
    assert {ends(label): text_of(label) for label in labels} == expected
    assert len(labels) == len(expected)
    titles = {ends(group): group.findtext(f"{SVG}title").split(": ")[1] for group in groups(picture, "transition")}
    assert titles == expected
    states = {int(state.get("data-state")): state.findall(f"{SVG}text")[0].text for state in groups(picture, "state")}
    assert states == {state: ("out", "in")[output] for state, output in enumerate(machine.outputs.tolist())}


def test_an_arrow_begins_and_ends_at_its_states() -> None:
    machine = dfa_from_regex("(a|b)*abb").minimize().transducer
    picture = machine_svg(machine, ("out", "in"))
    centers = {}
    for state in groups(picture, "state"):
        circle = state.find(f"{SVG}circle")
        centers[int(state.get("data-state"))] = np.array([float(circle.get("cx")), float(circle.get("cy"))])
    for group in groups(picture, "transition"):
        numbers = group.find(f"{SVG}path").get("d").replace("M", " ").replace("Q", " ").replace("C", " ").split()
        first, last = np.array(numbers[:2], dtype=float), np.array(numbers[-2:], dtype=float)
        one, other = ends(group)
        assert np.linalg.norm(first - centers[one]) < RADIUS + 5
        assert np.linalg.norm(last - centers[other]) < RADIUS + 6


def test_symbols_and_answers_are_escaped_and_long_lists_are_counted() -> None:
    symbols = ("<", "&", '"', *(f"word{number}" for number in range(20)))
    others = tuple(f"other{number}" for number in range(20))
    table = np.array([[0] * len(symbols) + [1] * len(others), [1] * len(symbols + others)])
    machine = Transducer(Semiautomaton(table, symbols + others), 0, np.array([0, 0]))
    picture = machine_svg(machine, ("<yes>",))
    label = groups(picture, "label")[0]
    quoted = text_of(label)
    assert quoted.startswith('<, &, ", word0')
    assert quoted.endswith(" more")
    num_quoted = len(quoted.partition(", and ")[0].split(", ")) if ", and " in quoted else quoted.count(", ")
    assert int(quoted.split()[-2]) == len(symbols) - num_quoted
    arrow = groups(picture, "transition")[0]
    assert arrow.findtext(f"{SVG}title") == f"q0 to q0: {', '.join(symbols)}"
    state = groups(picture, "state")[0]
    assert state.find(f"{SVG}text").text == "<yes>"


def test_an_arrow_of_most_symbols_names_the_others() -> None:
    """Their list is complete, also on paper, where no title appears."""
    words = [f"WORD_{number}" for number in range(9)]
    assert label_lines(words, words) == ["all symbols"]
    assert label_lines([*words[:3], *words[4:]], words) == ["all but", "WORD_3"]
    assert label_lines(words[:2], words) == ["WORD_0, WORD_1"]
    assert label_lines(words, [*words, *(f"OTHER_{number}" for number in range(9))])[-1] == "and 5 more"
    assert label_lines(words, [*words, "all but x"])[-1] == "and 5 more", "a symbol of this name would be confusing"


def test_symbols_of_several_words_are_not_taken_apart() -> None:
    symbols = ["open door", "close door", "turn left", "turn right", "go back"]
    assert label_lines(symbols) == ["open door,", "close door,", "and 3 more"]
    assert label_lines(["a symbol that is longer than a line of a label"]) == [
        "a symbol that is longer than a line of a label"
    ]
    for count in range(1, 40):
        lines = label_lines([str(number) for number in range(count)])
        *before, last = lines
        left_out = int(last.split()[1]) if last.endswith("more") else 0
        kept = ", ".join(line.rstrip(",") for line in (before if left_out else lines)).split(", ")
        assert kept == [str(number) for number in range(count - left_out)]
        # As a text of lines of 18 characters with a comma after each symbol.
        num_lines = len(textwrap.wrap(", ".join(map(str, range(count))) + ",", 18))
        assert (left_out > 0) == (num_lines > 3)
        assert len(lines) == min(num_lines, 3)


def test_labels_are_wrapped_like_text() -> None:
    """Lines have up to 18 characters, with a comma after each symbol."""
    random = np.random.default_rng(0)
    for _ in range(50):
        symbols = ["x" * length for length in random.integers(1, 12, size=random.integers(1, 9))]
        lines = textwrap.wrap(", ".join(symbols) + ",", 18)
        assert [", ".join(row) + "," for row in label_rows(symbols)] == lines


def test_heads_of_arrows_point_along_the_arrow() -> None:
    """A head is a triangle, symmetric to the direction, with its tip before its base."""
    for direction, tip in ((np.array([3.0, 4.0]), np.array([10.0, 20.0])), (np.array([-5.0, 0.0]), np.zeros(2))):
        head = _arrow_svg("arc", "M0 0", direction, tip).split('points="')[1].split('"')[0]
        first, *base = [np.array(corner.split(","), dtype=float) for corner in head.split()]
        assert np.linalg.norm(first - base[0]) == pytest.approx(np.linalg.norm(first - base[1]), abs=0.2)
        assert np.linalg.norm(base[0] - base[1]) > 5
        assert np.linalg.norm(first - tip) < 3, "the tip is at the end of the line"
        axis = first - (base[0] + base[1]) / 2
        assert axis @ direction == pytest.approx(np.linalg.norm(axis) * np.linalg.norm(direction), rel=0.01)


def test_a_state_without_an_answer_is_white_and_empty() -> None:
    machine = Transducer(Semiautomaton(np.array([[1], [1]]), ("x",)), 0, np.array([IGNORE, 0]))
    first, second = groups(machine_svg(machine, ("done",)), "state")
    assert [state.find(f"{SVG}text").text for state in (first, second)] == [None, "done"]
    assert first.find(f"{SVG}circle").get("fill") == "white"


def test_states_that_accept_have_two_circles() -> None:
    machine = Transducer(Semiautomaton(np.array([[1], [0]]), ("x",)), 0, np.array([0, 1]))
    for classes, expected in ((("reject", "accept"), [1, 2]), (("yes", "no"), [2, 1]), (("even", "odd"), [1, 1])):
        states = groups(machine_svg(machine, classes), "state")
        assert [len(state.findall(f"{SVG}circle")) for state in states] == expected


def test_large_machines_and_missing_names_are_refused_in_one_sentence() -> None:
    size = MAX_DRAWN + 1
    chain = Transducer(Semiautomaton(np.arange(size)[:, None], ("x",)), 0, np.zeros(size, dtype=int))
    expected = "machine: expected at most 40 states to draw, got 41; write the machine as DOT"
    with pytest.raises(ValueError, match=expected):
        machine_svg(chain, ("a",))
    assert "DOT" in drawing_obstacle(chain)
    with pytest.raises(ValueError, match="classes: expected at least 2 names, got 1;"):
        machine_svg(Transducer(Semiautomaton(np.array([[0]]), ("x",)), 0, np.array([1])), ("a",))


@pytest.mark.parametrize("size", [3, 4])
def test_notebooks_draw_small_machines(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("dfa", "drawing", "labeled", "transducer"):
        monkeypatch.setattr(f"lengthwise.automata.{module}.MAX_DRAWN", 3)
    ring = Semiautomaton((np.arange(size)[:, None] + 1) % size, ("x",))
    dfa, transducer = DFA(ring, 0, np.arange(size) == 1), Transducer(ring, 0, np.arange(size) // (size - 1))
    for machine in (dfa, transducer, LabeledMachine(transducer, ("even", "odd"))):
        picture = machine._repr_svg_()
        assert (picture is None) == (size > 3)
        assert picture is None or len(groups(picture, "state")) == size


def test_a_loop_does_not_stand_between_the_two_arrows_of_a_neighbor() -> None:
    """On a ring of five the state below another has it on the other side."""
    transducer = make_task("cycle-navigation").transducer
    labels = {pair: ["0"] for pair in transitions(transducer)}
    layout = lay_out(transducer.num_states, transducer.start, labels)
    for (state, other), route in layout.routes.items():
        if state == other:
            above = layout.centers[state] - route.label_at
            others = [route for pair, route in layout.routes.items() if state in pair and pair != (state, state)]
            beyond = [layout.centers[state] - route.samples[len(route.samples) // 2] for route in others]
            cosines = [above @ end / np.linalg.norm(above) / np.linalg.norm(end) for end in beyond]
            assert max(cosines) < np.cos(np.radians(45)), state


def test_control_characters_are_written_out() -> None:
    machine = Transducer(Semiautomaton(np.array([[0, 0]]), ("\x01", "b")), 0, np.array([0]))
    text = machine_svg(machine, ["\x02 <"])
    ElementTree.fromstring(text)
    assert "\\x01" in text
    assert "\\x02" in text


def test_a_rejecting_sink_is_left_out_and_a_note_says_so() -> None:
    machine = dfa_from_regex("ab*c").transducer
    picture = machine_svg(machine, ("reject", "accept"))
    assert [int(state.get("data-state")) for state in groups(picture, "state")] == [0, 1, 3]
    note = " ".join(
        text.text for text in ElementTree.fromstring(picture).iter(f"{SVG}text") if text.get("class") == "note"
    )
    assert note == "Not drawn: q2 (reject). All symbols without an arrow lead there, and no string leads out."
    whole = machine_svg(machine, ("reject", "accept"), with_sinks=True)
    assert len(groups(whole, "state")) == 4
    assert "Not drawn" not in whole
    assert len(groups(machine_svg(machine, ("even", "odd")), "state")) == 4, "its answer would be lost"
    logged = machine_svg(machine, ("FAIL", "OK"))
    assert "Not drawn: q2 (FAIL)." in logged
    assert logged.count('class="inner"') == 1, "OK accepts"


def test_sinks_of_two_answers_are_not_both_left_out() -> None:
    """Without arrows to either, a reader would not see which answer the missing symbols have."""
    table = np.array([[0, 3, 2, 2], [1, 1, 1, 1], [2, 2, 2, 2], [1, 0, 0, 0]])
    machine = Transducer(Semiautomaton(table, ("a", "b", "c", "d")), 0, np.array([1, IGNORE, 0, 1]))
    assert find_sinks(machine, ("reject", "accept")) == [2]


def test_states_have_names_that_are_not_taken_for_answers() -> None:
    machine = Transducer(Semiautomaton(np.array([[1], [0]]), ("x",)), 0, np.array([1, 0]))
    texts = [[text.text for text in state.iter(f"{SVG}text")] for state in groups(machine_svg(machine, "01"), "state")]
    assert texts == [["1", "q0"], ["0", "q1"]]
    titles = [state.findtext(f"{SVG}title") for state in groups(machine_svg(machine, "01"), "state")]
    assert titles == ["state q0: 1", "state q1: 0"]
    for state in groups(machine_svg(machine, "01"), "state"):
        middle = float(state.find(f"{SVG}circle").get("cy"))
        answer, number = (float(text.get("y")) - middle for text in state.iter(f"{SVG}text"))
        assert -RADIUS / 2 < answer <= number - 9 < number < RADIUS, "the number is below the answer, in the circle"


def test_labels_of_capitals_do_not_overlap() -> None:
    """A capital is wider than a small letter."""
    assert label_size(["CONNECT"])[0] > label_size(["connect"])[0]
