"""DOT in the dialects of many tools: each is read as the machine that is drawn, or refused with what was seen."""

import numpy as np
import pytest

from lengthwise.automata.labeled import LabeledMachine, difference
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.formats.att import ATT
from lengthwise.formats.dot import DOT
from lengthwise.formats.dot_edges import symbols_of_label

START = "i [shape=point]; i -> q0; "


FLIP = "q0 -> q1 [label=a]; q1 -> q0 [label=a]; "


def drawn(body: str) -> str:
    return f"digraph {{ {START}{body} }}"


@pytest.mark.parametrize(
    "states",
    [
        'q0 [label="q0/no"]; q1 [label="q1/si"]; ',
        'q0 [label="q0 /no"]; q1 [label="q1 /si"]; ',
        'q0 [label="A / no"]; q1 [label="B / si"]; ',
        'q0 [label="0/no"]; q1 [label="1/si"]; ',
        r'q0 [label="q0\nno"]; q1 [label="\N\nsi\n"]; ',
        'q0 [label="q0\nno"]; q1 [label="q1\r\nsi"]; ',
        "q0 [label=<q0<br/>no>]; q1 [label=<<b>q1</b><br/>si>]; ",
        "q0 [label=<q<sub>0</sub><br/>no>]; q1 [label=<q<sub>1</sub><br/>si>]; ",
        'q0 [shape=record label="{<left> q0|<right> no}"]; q1 [shape=Mrecord label="q1|si"]; ',
    ],
)
def test_outputs_in_labels_of_states_are_read(states: str) -> None:
    machine = DOT.read(drawn(states + FLIP))
    assert machine.answer_names() == ["no", "si"]
    other = DOT.read(drawn(states.replace("no", "x").replace("si", "no").replace("x", "si") + FLIP))
    assert difference(machine, other) is not None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('q0 [label="A/0"]; q1 [label="B/1"]; ' + FLIP, r"got the label 'A/0' \(node 'q0'\); write state/output"),
        (
            'q0 [label="q0/0"]; q1 [label="q1"]; ' + FLIP,
            r"an output in the label of each state, .* \(node 'q1'\); add the output",
        ),
        ('q0 [label="q0:0"]; q1 [label="q1:1"]; ' + FLIP, r"got only the label 'q0:0' \(node 'q0'\)"),
        ('q0 [label="closed"]; q1 [label="open"]; ' + FLIP, r"got only the label 'closed' \(node 'q0'\)"),
        ("q0; q1 [color=red]; " + FLIP, r"got only color=red \(node 'q1'\)"),
        ("node [style=filled fillcolor=green]; q0; q1; " + FLIP, r"got only style=filled \(node 'q1'\)"),
        ("q0; q1 [shape=box]; " + FLIP, r"got only shape=box \(node 'q1'\)"),
        (
            "q0 [shape=doublecircle]; q1 [shape=box]; q2; q0 -> q1 [label=a]; ",
            r"look alike, got the shapes box and circle \(node 'q2'\)",
        ),
        ("q0; q1 [shape=tripleoctagon]; " + FLIP, r"or two if they accept, got shape=tripleoctagon"),
        ("q0; q1 [shape=doublecircle peripheries=1]; " + FLIP, r"got shape=doublecircle with peripheries=1"),
        ("q0; q1 [xlabel=1]; " + FLIP, r"^line 1: expected attributes that only affect drawings, got 'xlabel'"),
        ("q0; q1 [accepting=true]; " + FLIP, r"got 'accepting', which may belong to the machine"),
        ("start=q0; q0; q1 [shape=doublecircle]; " + FLIP, r"got 'start', which may belong to the machine"),
        ('q0; q1 [shape=doublecircle]; legend [shape=none label="red accepts"]; ' + FLIP, r"a text without an edge"),
        (
            "subgraph cluster_a { label=accepting; q1; } q0; " + FLIP,
            r"expected subgraphs without labels, got a label",
        ),
        (
            "q0; q1 [shape=doublecircle]; q0 -> q1 [label=a dir=back]",
            r"point forward, got dir=back; draw a forward edge",
        ),
        ("q0; q1 [shape=doublecircle]; q0 -> q1 [label=a weight=0.5]", r"whole number as the weight .* got '0\.5'"),
        ("q0; q1 [shape=doublecircle weight=2]; " + FLIP, r"got 'weight', which may belong to the machine"),
        (
            "q0; q1 [shape=doublecircle]; q0 -> q1 [label=a style=invis]",
            r"only visible edges to have labels, got a label on an invisible",
        ),
        (
            "q0; q1 [shape=doublecircle]; q:1 -> q0 [label=a]",
            r"compass point as the port of node 'q', got '1'; remove the port",
        ),
    ],
)
def test_what_is_not_understood_is_refused(body: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DOT.read(drawn(body))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (("a:0.5", "a:0.5"), r"^line 2: expected symbols without probabilities, got 'a:0\.5'; remove the probability"),
        (("a:1", "b:1"), r"got 'a:1', which may be one symbol or several parts; write \\: in a symbol"),
        (("0.5", "0.5"), r"got '0\.5'; remove the probability"),
        (("a (50%)", "b (50%)"), r"got 'a \(50%\)'; remove the probability"),
        (("a, 0.5", "b, 1.0"), r"got 'a, 0\.5'; remove the probability"),
        (("a/x:0.5", "b/x:0.5"), r"expected outputs without probabilities, got 'a/x:0\.5'; remove"),
        (("a/x:1", "b/x:1"), r"expected outputs, got probabilities as in 'a/x:1'; remove them"),
        (("a / push(x)", "b / pop(x)"), r"got 'a / push\(x\)', which changes a stack"),
        (("a|x", "b"), r"got 'a\|x', which may be one symbol or several parts"),
        (("λ", "b"), r"got 'λ', which may mean no symbol; write ε for no symbol, or"),
        (("epsilon", "b"), r"got 'epsilon', which may mean no symbol"),
        (("ε/x", "b/x"), r"expected a symbol before each output, got 'ε/x', which reads nothing"),
        ((r"a\nb/x", r"c/x"), r"expected a symbol and its output on each line, got 'a.*b/x'; write a, b/x for two"),
        (("a:1/x", "b/x"), r"got 'a:1/x', which may be one symbol or several parts; write \\: in a symbol"),
        (("a → x", "b → y"), r"got 'a → x', which may be one symbol or several parts; write \\→ in a symbol"),
        (("[a-z]", "0"), r"got '\[a-z\]', which may mean several symbols; list them with commas"),
        (("0-9", "a"), r"got '0-9', which may mean several symbols"),
        (("[^a]", "a"), r"got '\[\^a\]', which may mean several symbols"),
        (("else", "a"), r"got 'else', which may mean several symbols"),
        (("Σ", "a"), r"got 'Σ', which may mean several symbols"),
        (("&lt;", "a"), r"got the entity '&lt;' in the label '&lt;'; write the character, or \\& for an ampersand"),
        (("a/&gt;", "b/x"), r"got the entity '&gt;' in the label"),
        (("{a,b}", "c"), r"got the set '\{a,b\}'; write a, b for several symbols and"),
        ((r"\G", "c"), r"escapes for line breaks and names, got '\\\\G'"),
        (
            (r"in\nout", r"in\nno"),
            r"only the label .* of several parts; write a/x if a part is an output, or draw an edge for each symbol",
        ),
        (("in,out", "in,no"), r"the label 'in,out' of several parts; write a/x if a part is an output"),
    ],
)
def test_labels_of_edges_that_may_mean_two_things_are_refused(labels: tuple[str, str], message: str) -> None:
    edges = f'q0 -> q1 [label="{labels[0]}"];\nq1 -> q1 [label="{labels[1]}"];'
    with pytest.raises(ValueError, match=message):
        DOT.read(drawn(f"q0; q1;\n{edges}"))


OUTPUTS = 'q0 -> q1 [label="a/x"]; q1 -> q1 [label="a/y"]; '


@pytest.mark.parametrize(
    ("states", "seen"),
    [
        ("q0 [shape=doublecircle]; q1; ", r"also an accepting state \(node 'q0'\)"),
        ('q0 [label="q0/x"]; q1 [label="q1/y"]; ', r"also the label 'q0/x' of a state \(node 'q0'\)"),
        ('q0 [label="A/x"]; q1 [label="A/x"]; ', r"got the label 'A/x' \(node 'q0'\)"),
        (r'q0 [label="q0\nx"]; q1 [label="q1\ny"]; ', r"also the label 'q0.*x' of a state \(node 'q0'\)"),
        ('node [shape=record]; q0 [label="{q0|x}"]; q1 [label="{q1|y}"]; ', r"also the label '\{q0\|x\}' of a state"),
        ("q0 [label=x]; q1 [label=x]; ", r"got the label 'x' of several states, which may be an output"),
    ],
)
def test_outputs_of_states_are_never_dropped_next_to_outputs_of_edges(states: str, seen: str) -> None:
    """A subsequential transducer has both: it is no Mealy machine."""
    with pytest.raises(ValueError, match=seen):
        DOT.read(drawn(states + OUTPUTS))


def test_moore_machines_have_no_accepting_states() -> None:
    with pytest.raises(
        ValueError,
        match=r"expected either accepting states or outputs in states, got an accepting state .* \(node 'q1'\)",
    ):
        DOT.read(drawn('q0 [label="q0/0"]; q1 [label="q1/1" shape=doublecircle]; ' + FLIP))


def test_edge_labels_are_no_records_and_lines_list_symbols() -> None:
    edges = ['"{c}"', '"a\nb"', "<d<br/>&lt;e>", r'"f\lg\l"']
    lines = " ".join(f"q0 -> q1 [label={edge}];" for edge in edges)
    machine = DOT.read(drawn(f"q0; q1 [peripheries=2]; {lines}"))
    assert machine.symbols == ("{c}", "a", "b", "d", "<e", "f", "g")


def test_a_machine_has_a_title_and_parts_of_a_drawing() -> None:
    """A title in HTML, clusters, colors, positions and invisible edges say nothing of the machine."""
    machine = DOT.read(
        """digraph { label=<<b>My <i>machine</i></b>>; rankdir=LR; node [shape=circle fontsize=10 color=blue];
        subgraph cluster_a { style=dashed; color=grey; q0; q1 [shape=doublecircle pos="1,2!" tooltip=end]; }
        q0 -> q1 [style=invis]; "" [shape=none]; "" -> q0;
        q0 -> q1 [label=a color=red weight=2 lp="1,2" headport=n]; }"""
    )
    assert machine.dfa().accepts(np.array([[0]])).tolist() == [True]


def test_edges_lead_to_groups() -> None:
    machine = DOT.read(
        drawn("q0 -> {q1 q2} [label=a]; {q1 q2} -> q3 [label=b]; {rank=same q1 q2} q3 [shape=doublecircle]; q0; q1; q2")
    )
    assert machine.dfa().accepts(np.array([[0, 1], [0, 0], [1, 0]])).tolist() == [True, False, False]
    assert DOT.read(drawn("node [shape=circle]; q0 -> {q1} [label=a]; q1 -> {q0} [label=b]")).symbols == ("a", "b")


def test_several_states_may_be_initial() -> None:
    machine = DOT.read(
        "digraph { i, j [shape=point] }".replace(
            "i, j [shape=point]",
            """
        node [shape=circle]; i [shape=point]; j [shape=point]; i -> p; j -> q; p; q [shape=doublecircle];
        p -> q [label=a]; q -> p [label=b]""",
        )
    )
    accepts = {"": True, "a": True, "b": False, "ba": True, "ab": False, "bb": False, "aba": True}
    assert {text: machine.answer_to(tuple(text)) == "accept" for text in accepts} == accepts


def test_epsilon_reads_nothing_and_escaped_it_is_a_symbol() -> None:
    nothing = DOT.read(drawn('q0; q1 [shape=doublecircle]; q0 -> q1 [label="ε"]; q1 -> q1 [label=a]'))
    assert nothing.symbols == ("a",)
    assert nothing.answer_to(()) == nothing.answer_to(("a",)) == "accept"
    symbol = DOT.read(drawn(r'q0; q1 [shape=doublecircle]; q0 -> q1 [label="\ε"]; q1 -> q1 [label=a]'))
    assert symbol.symbols == ("ε", "a")
    assert symbol.answer_to(()) == "reject"


def test_a_mealy_machine_may_be_partial() -> None:
    """Strings for which an edge is missing have no answer, at any later length."""
    machine = DOT.read(drawn('q0; q1; q0 -> q1 [label="a/x"]; q1 -> q0 [label="a/y"]; q1 -> q1 [label="b/z"]'))
    strings = {"a": "x", "aa": "y", "ab": "z", "b": "", "ba": "", "aab": "", "aba": "y"}
    assert {text: machine.answer_to(tuple(text)) for text in strings} == strings


def test_a_moore_machine_may_be_partial() -> None:
    machine = DOT.read(drawn('q0 [label="q0/0"]; q1 [label="q1/1"]; q0 -> q1 [label=a]'))
    assert [machine.answer_to(("a",) * length) for length in range(4)] == ["0", "1", "", ""]


def test_symbol_and_output_may_be_two_lines_in_html() -> None:
    """If no other machine has these labels: two lines may also list two symbols."""
    edges = "q0 -> q0 [label=<a<br/>x>]; q0 -> q1 [label=<b<br/>x>]; q1 -> q0 [label=<a<br/>y>]"
    machine = DOT.read(drawn(f"q0; q1; {edges}; q1 -> q1 [label=<b<br/>y>]"))
    strings = {"": "", "a": "x", "b": "x", "ba": "y", "bb": "y", "baa": "x"}
    assert {text: machine.answer_to(tuple(text)) for text in strings} == strings
    for other in ("q1 -> q1 [label=<b<br/>a>]", "q0 -> q1 [label=<a<br/>y>]", "q1 -> q1 [label=<b>]"):
        with pytest.raises(ValueError, match=r"the label '.*' of several parts; write a/x if a part is an output"):
            DOT.read(drawn(f"q0; q1; {edges}; {other}"))
    with pytest.raises(ValueError, match=r"the label '.*' of several parts; write a/x if a part is an output"):
        DOT.read(drawn("q0; q1; q0 -> q1 [label=<a<br/>x>]; q1 -> q0 [label=<a<br/>y>]"))


@pytest.mark.parametrize(
    "html", ["<table><tr><td>a</td></tr></table>", "a <b>[<i>#1</i>]</b>", "<b>a</b> b", "<img src='x'/>"]
)
def test_html_that_is_more_than_lines_is_refused(html: str) -> None:
    with pytest.raises(
        ValueError, match=r"^line 1: expected a label in HTML whose lines are formatted as a whole, got"
    ):
        DOT.read(drawn(f"q0 [shape=doublecircle]; q0 -> q0 [label=<{html}>]"))


FST = """digraph FST {
rankdir = LR;
size = "8.5,11";
label = "";
center = 1;
orientation = Landscape;
ranksep = "0.4";
nodesep = "0.25";
0 [label = "0", shape = circle, style = bold, fontsize = 14]
	0 -> 1 [label = "FIRST", fontsize = 14];
1 [label = "1", shape = doublecircle, style = solid, fontsize = 14]
	1 -> 0 [label = "SECOND", fontsize = 14];
}
"""


@pytest.mark.parametrize(
    ("first", "second", "lines"),
    [
        ("a", "b", "0 1 a\n1 0 b\n1\n"),
        ("a,b", "<eps>", "0 1 a,b\n1 0 <eps>\n1\n"),
        ("a:a", "b:b", "0 1 a\n1 0 b\n1\n"),
        ("a:x", "a:<eps>", "0 1 a x\n1 0 a <eps>\n1\n"),
        (":", "b", "0 1 :\n1 0 b\n1\n"),
    ],
)
def test_drawings_of_openfst_are_read(first: str, second: str, lines: str) -> None:
    """The bold state is the initial one."""
    machine = DOT.read(FST.replace("FIRST", first).replace("SECOND", second))
    expected = ATT.read(lines)
    assert machine.symbols == expected.symbols
    assert machine.answer_names() == expected.answer_names()
    assert machine.machine.semiautomaton.table.tolist() == expected.machine.semiautomaton.table.tolist()
    renamed = FST.replace("FIRST", first).replace("SECOND", second).replace("digraph FST", "digraph another")
    assert DOT.read(renamed).machine.to_json() == machine.machine.to_json(), "one bold state among solid ones"


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("a/0.5", "b", r"^line 10: expected symbol or symbol:output, got 'a/0\.5', which may have a weight"),
        ("a:x/1", "b:y", r"^line 10: expected symbol or symbol:output, got 'a:x/1'"),
        ("a:b:c", "b:y", r"^line 10: expected symbol or symbol:output, got 'a:b:c'"),
        ("a:x", "b", r"^line 12: expected symbol:output on every arc or on no arc, got"),
        ("<eps>:x", "a:y", r"^line 10: expected a symbol, got <eps>; remove edges that read nothing"),
        ("97:98", "98:97", r"^expected outputs, got only numbers such as 98, which are read"),
    ],
)
def test_weights_in_drawings_of_openfst_are_refused(first: str, second: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DOT.read(FST.replace("FIRST", first).replace("SECOND", second))
    with pytest.raises(ValueError, match=r"^line 11: expected final states without weights, got the label '1/0\.5'"):
        DOT.read(FST.replace('label = "1"', 'label = "1/0.5"'))


def test_in_a_strict_graph_one_edge_replaces_another() -> None:
    with pytest.raises(ValueError, match=r"^line 1: expected one edge from 'q0' to 'q1' in a strict graph, got two"):
        DOT.read("strict " + drawn("q0; q1 [shape=doublecircle]; q0 -> q1 [label=a]; q0 -> q1 [label=b]"))


def moore(symbols: tuple[str, ...], classes: tuple[str, ...]) -> LabeledMachine:
    table = np.array([[(state + symbol + 1) % 3 for symbol in range(len(symbols))] for state in range(3)])
    return LabeledMachine(Transducer(Semiautomaton(table, symbols), 0, np.array([0, 1, 2]) % len(classes)), classes)


@pytest.mark.parametrize(
    "symbols",
    [
        ("ε", "λ"),
        ("eps", "lambda"),
        ("0.5", "1.0"),
        ("a:1", "b:0.5"),
        ("a|b", "{c}"),
        ("{a,b}", "50%"),
        ("&lt;", "a→b"),
        ("else", "[^a-z]"),
        ("N", "nl"),
    ],
)
def test_symbols_that_mean_something_else_come_back(symbols: tuple[str, str]) -> None:
    for classes in (
        ("x", "y", "z"),
        ("0.5", "0.1", "push(a)"),
        ("x:1", "y:1", "z:1"),
        ("a/b", "\\N", "ε"),
        ("&lt;", "&", "a → b"),
        ("accept", "reject"),
    ):
        machine = moore(symbols, classes)
        again, mealy = DOT.read(DOT.write(machine)), DOT.read(DOT.write_mealy(machine))
        assert set(again.symbols) == set(mealy.symbols) == set(symbols)
        assert difference(again, machine) is None
        assert difference(mealy, machine.without_empty_string()) is None


def test_missing_answers_are_none() -> None:
    machine = DOT.read(drawn('node [shape=record]; q0 [label="{q0|}"]; q1 [label="{q1|x}"]; ' + FLIP))
    assert machine.machine.outputs.tolist() == [IGNORE, 0]


def test_brackets_hold_a_list_together_unless_a_part_is_empty() -> None:
    for label, symbols in {
        "f(a,b)": ("f(a,b)",),
        "(,a)": ("(", "a)"),
        "(a,)": ("(a", ")"),
        "((a,b),c)": ("((a,b),c)",),
    }.items():
        assert symbols_of_label(label) == symbols
    with pytest.raises(ValueError, match=r"expected symbols between commas, got none in the label '\(a,,b\)'"):
        symbols_of_label("(a,,b)")


def test_a_group_at_an_edge_declares_no_state() -> None:
    with pytest.raises(ValueError, match=r"^state 'qq' is used, but not declared; declare it$"):
        DOT.read(drawn("q0; q1 [shape=doublecircle]; q0 -> {q1 qq} [label=a]"))


def test_a_drawing_of_openfst_may_have_one_state() -> None:
    text = 'digraph FST {\n0 [label = "0", shape = doublecircle, style = bold]\n\t0 -> 0 [label = "a"];\n}\n'
    assert DOT.read(text).answer_names() == ["accept"]
    with pytest.raises(ValueError, match=r"^expected an initial state, got none; mark a state as initial$"):
        DOT.read(text.replace("FST", "g"))
