"""Sizes of drawings in DOT, and the work that they cause, are bounded."""

import sys

import pytest

from lengthwise.formats import dot_syntax
from lengthwise.formats import draft as draft_module
from lengthwise.formats.dot import DOT

START = "i [shape=point]; i -> q0; "


def drawn(body: str) -> str:
    return f"digraph {{ {START}{body} }}"


BOUNDED = "q0 [shape=doublecircle]; "


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f'q0 -> q0 [label="{"a" * 1_000_000}"]', r"^line 1: expected names and labels of at most 100,000 characters"),
        (f"q0 -> q0 [label={'a' * 1_000_000}]", r"^line 1: expected names and labels of at most 100,000 characters"),
        (f"q0 -> q0 [label=<{'a' * 1_000_000}>]", r"^line 1: expected names and labels of at most 100,000 characters"),
        ("q0 -> q0 [label=" + "+".join(['"' + "a" * 9_999 + '"'] * 11) + "]", r"at most 100,000 characters"),
        (f'q0 -> q0 [label="{"a" * 1_001}"]', r"^expected symbols and answers of at most 1,000 characters, got 1,001"),
        ("{" * 200, r"^line 1: expected at most 100 subgraphs inside one another, got {"),
    ],
)
def test_names_labels_and_groups_are_bounded(body: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DOT.read(drawn(BOUNDED + body))


def test_graphs_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr(dot_syntax, "MAX_NODES", 5)
    monkeypatch.setattr(dot_syntax, "MAX_EDGES", 10)
    nodes = " ".join(f"n{node};" for node in range(9))
    with pytest.raises(ValueError, match=r"^line 1: expected at most 5 nodes, got more nodes; minimize the machine$"):
        DOT.read(drawn(nodes))
    with pytest.raises(ValueError, match=r"^line 1: expected at most 10 edges, got more edges; minimize the machine$"):
        DOT.read(drawn("{q0 n1 n2 n3} -> {q0 n1 n2 n3} [label=a]"))


def test_edges_of_several_symbols_count_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft_module, "MAX_EDGES", 3)
    with pytest.raises(ValueError, match=r"^expected at most 3 edges, got more edges; make the machine smaller$"):
        DOT.read(drawn('q0 [shape=doublecircle]; q0 -> q0 [label="a, b, c, d"]'))


def test_tables_are_bounded(monkeypatch) -> None:
    """States times symbols, of which a small file may have millions."""
    monkeypatch.setattr(draft_module, "MAX_TRANSITIONS", 100)
    edges = " ".join(f'q{state} -> q{state + 1} [label="a{state}{{}}"];' for state in range(10))
    for output, body in (("", "q0 [shape=doublecircle];"), ("/x", ""), ("", "")):
        states = " ".join(f'q{state} [label="q{state}/x"];' for state in range(11)) if not body + output else ""
        with pytest.raises(
            ValueError, match=r"^expected at most 100 transitions, got 1\d0 \(1\d states and 10 symbols"
        ):
            DOT.read(drawn(body + states + "node [shape=circle];" * bool(body) + edges.replace("{}", output)))


def test_sets_of_states_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr(draft_module, "MAX_MEMBERS", 100)
    edges = " ".join(f"q{state} -> {{q0 q{state + 1}}} [label=a];" for state in range(30))
    with pytest.raises(
        ValueError,
        match=r"construction with at most 100 states in all its sets, got more; give a smaller nondet",
    ):
        DOT.read(drawn(f"q0 [shape=doublecircle]; node [shape=circle]; {edges}"))


def steps(text: str) -> int:
    """The lines of Python that run while a text is read."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        DOT.read(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.unchecked  # checks are lines of Python as well
def test_work_grows_with_the_text_alone() -> None:
    """Twice as many brackets, states or edges take at most a little more than twice as many lines of Python."""

    def brackets(size: int) -> str:
        return drawn(f'q0 [shape=doublecircle]; q0 -> q0 [label="{"(" * size}{"(,)" * size}a"]')

    def ring(size: int) -> str:
        states = " ".join(f"q{state} [shape={'double' * (state == 0)}circle];" for state in range(size))
        return drawn(states + " ".join(f"q{state} -> q{(state + 1) % size} [label=a];" for state in range(size)))

    for draw in (brackets, ring):
        assert steps(draw(200)) < 2.2 * steps(draw(100))
