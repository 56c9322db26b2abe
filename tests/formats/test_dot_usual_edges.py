"""Edges that are read at once say what they say when they are read token by token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.formats.dot_syntax import Graph, parse_dot

NAMES = st.sampled_from(["a", "_b", "node", "Edge", "strict", "subgraph", "é", "c9", '"q 0"', "7", "-.5", "x" * 65])
LABELS = st.sampled_from(["x", " ", "a,b", "λ", "{p|q}", "a/b", r"a\"b", r"\n", "two\nlines", "->", "];", "l" * 65, ""])
ATTRIBUTES = st.one_of(
    LABELS.map(lambda label: f'[label="{label}"]'),
    st.sampled_from(
        ["", "[label=x]", '[label="x", color=red]', '[label="x"][label="y"]', "[label=<i>]", '[xlabel="x"]']
    ),
)
SPACES = st.sampled_from(["", " ", "  ", "\n", "\t"])


USUAL = st.builds(
    lambda source, target, label: (
        f'{source} -> {target} [label="{label}"];\n',
        f'{source}/**/->/**/{target}/**/[/**/label/**/=/**/"{label}"/**/]/**/;\n',
    ),
    st.sampled_from(["a", "b", "c", "node", "Edge", "subgraph"]),
    st.sampled_from(["a", "b", "c", "node", "Edge", "subgraph"]),
    st.sampled_from(["x", "x", "y"]),
)


@st.composite
def statements(draw: st.DrawFn) -> tuple[str, str]:
    """A statement as tools write it, and with a comment between all of its tokens."""
    names, attributes, space = draw(st.lists(NAMES, min_size=1, max_size=3)), draw(ATTRIBUTES), draw(SPACES)
    end = draw(st.sampled_from([";", ",", ""]))
    usual = f"{space}->{space}".join(names) + f"{space}{attributes}{end}\n"
    return usual, "/**/->/**/".join(names) + f"/**/{attributes}/**/{end}\n"


def result(text: str) -> Graph | str:
    try:
        return parse_dot(text)
    except ValueError as problem:
        return str(problem)


@given(
    st.lists(st.one_of(USUAL, USUAL, statements()), max_size=4),
    st.sampled_from(["digraph", "strict digraph"]),
    st.sampled_from(["", 'edge [label="z", style=bold]', "node [shape=box]"]),
    st.booleans(),
)
def test_edges_at_once_are_edges_by_token(
    lines: list[tuple[str, str]], kind: str, defaults: str, grouped: bool
) -> None:
    """The fast way against its definition: defaults, groups, strictness, keywords and errors are alike.

    A line break within a statement moves later lines in one of the texts, so that lines are not compared where it has.
    """
    fast, slow = (
        (
            f"{kind} {{ {defaults}\n" + ("{" if grouped else "") + "".join(texts) + ("}" if grouped else "") + "}"
            for texts in zip(*lines, strict=True)
        )
        if lines
        else (f"{kind} {{}}", f"{kind} {{}}")
    )
    one, other = result(fast), result(slow)
    if fast.count("\n") != slow.count("\n"):
        return
    assert one == other


@pytest.mark.parametrize("count", [1, 3])
def test_limits_hold_for_edges_at_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lengthwise.formats.dot_syntax.MAX_EDGES", count)
    edges = [f'q{index} -> q0 [label="x"];' for index in range(count + 1)]
    parse_dot("digraph {\n" + "\n".join(edges[:-1]) + "}")
    with pytest.raises(ValueError, match=rf"^line {count + 2}: expected at most {count:,} edges, got more"):
        parse_dot("digraph {\n" + "\n".join(edges) + "}")
