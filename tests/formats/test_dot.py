"""DOT, against AALpy and pydot, and in the idioms of others."""

import aalpy.utils
import numpy as np
import pydot
import pytest
from aalpy.automata import Dfa, MealyMachine, MooreMachine
from automaton_strategies import all_strings, checked_strategies, labeled_machines, transducers
from hypothesis import given, settings

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.automata.answers import REJECT_ACCEPT
from lengthwise.automata.labeled import LabeledMachine, difference, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.conventions import IGNORE
from lengthwise.formats.dot import DOT
from lengthwise.formats.files import write_machine

pytestmark = [checked_strategies, pytest.mark.unchecked]


def answers_of_aalpy(machine: Dfa | MooreMachine | MealyMachine, symbols: tuple[str, ...], length: int) -> list[str]:
    """Its last answers to all strings; symbols and answers that are numbers are numbers there."""
    ids = [int(symbol) if symbol.isdigit() else symbol for symbol in symbols]
    strings = all_strings(len(ids), length).tolist()
    return [str(machine.execute_sequence(machine.initial_state, [ids[v] for v in string])[-1]) for string in strings]


def our_answers(machine: LabeledMachine, length: int) -> list[str]:
    states = machine.machine.semiautomaton.final_states(
        all_strings(len(machine.symbols), length), machine.machine.start
    )
    if machine.is_automaton:
        return [str(answer == "accept") for answer in np.array(machine.answer_names())[states].tolist()]
    return np.array(machine.answer_names())[states].tolist()


def as_aalpy(machine: Transducer, kind: type[Dfa | MooreMachine | MealyMachine]) -> Dfa | MooreMachine | MealyMachine:
    """The machine as an object of AALpy; a Mealy machine answers each symbol by what the next state does."""
    setup = {}
    for state in sorted(range(machine.num_states), key=lambda state: state != machine.start):  # the initial one first
        row = zip(machine.symbols, machine.semiautomaton.table[state].tolist(), strict=True)
        if kind is MealyMachine:
            setup[f"s{state}"] = {symbol: (f"o{machine.outputs[to]}", f"s{to}") for symbol, to in row}
        else:
            output = bool(machine.outputs[state] == 1) if kind is Dfa else f"o{machine.outputs[state]}"
            setup[f"s{state}"] = (output, {symbol: f"s{to}" for symbol, to in row})
    return kind.from_state_setup(setup)


@pytest.mark.parametrize("kind", [Dfa, MooreMachine, MealyMachine])
@given(machine=transducers(symbols=("a", "b")))
def test_files_of_aalpy_are_read(kind: type[Dfa | MooreMachine | MealyMachine], machine: Transducer) -> None:
    theirs = as_aalpy(machine, kind)
    ours = DOT.read(aalpy.utils.save_automaton_to_file(theirs, file_type="string"))
    assert (ours.machine.outputs[ours.machine.start] == IGNORE) == (kind is MealyMachine)
    for length in range(1, 5):
        assert our_answers(ours, length) == answers_of_aalpy(theirs, ours.symbols, length)


@given(labeled_machines(symbols=("0", "b")))
def test_aalpy_reads_our_files(tmp_path_factory, machine: LabeledMachine) -> None:
    if not machine.is_automaton and ("" in machine.answer_names() or "{a" in "".join(machine.classes)):
        return  # it knows no state without an answer, and no escapes
    path = tmp_path_factory.mktemp("ours") / "ours.dot"
    write_machine(machine, path)
    theirs = aalpy.utils.load_automaton_from_file(path, "dfa" if machine.is_automaton else "moore")
    for length in range(1, 5):
        assert answers_of_aalpy(theirs, machine.symbols, length) == our_answers(machine, length)


@given(labeled_machines(symbols=('"', "\\", "é")))
@settings(max_examples=5)
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pydot.dot_parser")
def test_pydot_reads_the_syntax(machine: LabeledMachine) -> None:
    (graph,) = pydot.graph_from_dot_data(DOT.write(machine))
    assert len(graph.get_edges()) == machine.machine.num_states * 3 + 1
    names = {node.get_name() for node in graph.get_nodes()}
    assert names == {"__start0", *(f"s{state}" for state in range(machine.machine.num_states))}


def test_idioms_of_others_are_read() -> None:
    """Defaults of nodes, points, chains, comments, ports, joined texts, subgraphs, keywords in capitals."""
    machine = DOT.read(
        """
        /* an automaton */ strict DiGraph "of others" { // as Graphviz's gallery draws them
        # a line of the preprocessor
        graph [rankdir=LR]; size="8,5"
        Node [shape = doublecircle]; even;
        node [shape = circle]; odd [label=o]
        "" [shape=point];
        "" -> even;
        subgraph inner { edge [label="b\\
" + ""]; even:n -> odd:s:e -> even }
        even -> even [label=a, color=red]; odd -> odd [label="a"; weight=2] }
        """
    )
    assert machine.machine.to_json() == {
        "symbols": ["b", "a"],
        "start": 0,
        "table": [[1, 0], [0, 1]],
        "outputs": [1, 0],
    }


def test_defaults_end_with_their_group() -> None:
    """A group takes those from around it, and changes them for its own nodes and edges."""
    machine = DOT.read(
        """digraph { __start0 -> p;
        node [shape=doublecircle]; edge [label=a];
        { node [shape=circle]; edge [label=b]; p; q; p -> q; { q -> p } }
        r; q -> r; r -> { p }; }"""
    )
    assert (machine.symbols, machine.answer_names()[:3]) == (("b", "a"), ["reject", "reject", "accept"])
    assert machine.machine.semiautomaton.table[:3].tolist() == [[1, 3], [0, 2], [3, 0]]


@given(transducers(symbols=("0", "b")))
def test_mealy_machines_are_written_as_the_smallest(tmp_path_factory, machine: Transducer) -> None:
    """They are read back, and AALpy, which reads them, too, makes no smaller ones of them."""
    outputs = machine.outputs - machine.outputs.min()
    ours = LabeledMachine(
        Transducer(machine.semiautomaton, machine.start, outputs), tuple(f"o{y}" for y in range(int(outputs.max()) + 1))
    )
    path = tmp_path_factory.mktemp("mealy") / "mealy.dot"
    write_machine(ours, path, mealy=True)
    read = DOT.read(path.read_text())
    theirs = aalpy.utils.load_automaton_from_file(path, "mealy")
    for length in range(1, 6):
        names = np.array(ours.answer_names())
        strings = all_strings(2, length)
        expected = names[ours.machine.semiautomaton.final_states(strings, ours.machine.start)].tolist()
        states = read.machine.semiautomaton.final_states(strings, read.machine.start)
        assert np.array(read.answer_names())[states].tolist() == expected
        assert answers_of_aalpy(theirs, ours.symbols, length) == expected
    num_states = theirs.size
    theirs.minimize()
    assert theirs.size == num_states


def test_a_mealy_machine_answers_every_string() -> None:
    machine = Transducer(Semiautomaton(np.array([[1], [0]]), ("a",)), 0, np.array([0, IGNORE]))
    with pytest.raises(
        ValueError, match=r"^expected an answer on every transition, got none for symbol 'a' from state s\d; write a"
    ):
        DOT.write_mealy(LabeledMachine(machine, ("x",)))


def test_mealy_machines_of_learnlib_are_read() -> None:
    machine = DOT.read(
        """digraph g {
        s0 [shape="circle" label="0"];
        s1 [shape="circle" label="1"];
        s0 -> s1 [label="coin / ok"];
        s0 -> s0 [label="push / void / void"];
        s1 -> s1 [label="coin / ok"];
        s1 -> s0 [label="push / tea"];
        __start0 [label="" shape="none" width="0" height="0"];
        __start0 -> s0; }"""
    )
    assert machine.symbols == ("coin", "push")
    answers = machine.machine.run(np.array([[1, 0, 0, 1]]))[0]
    assert [machine.classes[answer] for answer in answers] == ["void / void", "ok", "ok", "tea"]
    assert machine.machine.outputs[machine.machine.start] == IGNORE


def test_moore_machines_of_learnlib_are_read() -> None:
    """AutomataLib's DEFAULT_MOORE_NODE_PARSER takes what stands behind the slash of a node's label for its output."""
    machine = DOT.read(
        """digraph g {
        s0 [shape="circle" label="0 / closed"];
        s1 [shape="circle" label="1 / open"];
        s0 -> s1 [label="turn"]; s1 -> s0 [label="turn"];
        __start0 [label="" shape="none"]; __start0 -> s0; }"""
    )
    assert machine.classes == ("closed", "open")
    assert machine.machine.outputs.tolist() == [0, 1]


def test_an_edge_may_have_several_symbols() -> None:
    """Commas outside of brackets separate, and line breaks; an escaped comma, and one in brackets, is a character."""
    machine = DOT.read(
        r"""digraph { __start0 -> s; s; t [shape=box, peripheries=2];
        s -> t [label="a, b\nACK(V,V)"]; s -> s [label="c\,d"]; t -> t [label="a,b,ACK(V,V),c\,d"] }"""
    )
    assert machine.symbols == ("a", "b", "ACK(V,V)", "c,d")
    assert machine.machine.semiautomaton.table.tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert machine.answer_names() == ["reject", "accept"]


def test_an_edge_of_a_mealy_machine_may_have_several_pairs() -> None:
    """Or symbols that share an output, which may have commas and slashes."""
    edges = ["a/x, b/y", "FIN(1,2),c/z", "in/x=1/2,y=3/4", "ACK+RST(V,V,0) / TIMEOUT"]
    lines = " ".join(f's -> s [label="{edge}"];' for edge in edges)
    machine = DOT.read(f"digraph {{ __start0 -> s; s; {lines} }}")
    states = machine.machine.semiautomaton.table[machine.machine.start]
    assert dict(zip(machine.symbols, (machine.answer_names()[state] for state in states), strict=True)) == {
        "a": "x",
        "b": "y",
        "FIN(1,2)": "z",
        "c": "z",
        "in": "x=1/2,y=3/4",
        "ACK+RST(V,V,0)": "TIMEOUT",
    }


def test_states_with_names_of_two_parts_are_no_moore_machine() -> None:
    accepting = DOT.read('digraph { __start0 -> p; p [label="q0/r0" shape=doublecircle]; p -> p [label="a"] }')
    assert accepting.answer_names() == ["accept"]
    with pytest.raises(
        ValueError, match=r"^line 1: expected a label with the name .* got the label 'q0/r0' \(node 'p'\)"
    ):
        DOT.read('digraph { __start0 -> p; p [label="q0/r0"]; p -> p [label="a"] }')


@pytest.mark.parametrize(
    "symbols", [(",", "a"), ("a,b", "c"), ("a, ", "(,"), (r"\n", "n"), ("a,", "f(x,y)"), (",)", "()")]
)
def test_symbols_with_commas_come_back(symbols: tuple[str, str]) -> None:
    flip = Transducer(Semiautomaton(np.array([[0, 1], [1, 0]]), symbols), 0, np.array([0, 1]))
    assert DOT.read(DOT.write(LabeledMachine(flip, REJECT_ACCEPT))).symbols == symbols


def test_states_that_do_not_accept_need_no_declaration_where_defaults_give_their_shape() -> None:
    """As is customary in Graphviz; in other files a name that is used alone is a misspelled one."""
    text = """digraph finite_state_machine {
        rankdir=LR;
        node [shape = point]; start;
        node [shape = doublecircle]; q2;
        node [shape = circle];
        start -> q0;
        q0 -> q1 [label = "a"]; q1 -> q2 [label = "b"]; q2 -> q1 [label = "a"];
    }"""
    assert difference(DOT.read(text), labeled_dfa(dfa_from_regex("(ab)+", "ab"))) is None


def test_missing_edges_of_automata_lead_to_a_sink() -> None:
    machine = DOT.read('digraph { __start0 -> a; b [shape=doublecircle] a a -> b [label="x"]; a -> a [label="y"] }')
    assert machine.machine.num_states == 3
    assert machine.dfa().accepts(np.array([[0], [1]])).tolist() == [True, False]
    assert not machine.dfa().accepts(np.array([[0, 0], [0, 1]])).any()


START = "__start0 -> a; "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph { a -- b }", r"^line 1: expected a directed graph, which begins with digraph, got graph; correct"),
        ('digraph { a -> b [label="x"] }', r"^expected an initial state, got none; mark a state as initial$"),
        ('digraph { __start0 -> a; __start1 -> b; a -> b [label="x/1"] }', r"one initial state, got 'a' and 'b'; choo"),
        (
            f'digraph {{ {START} a -> b [label="x/1"]; a -> a [label="x/2"] }}',
            r"two for state 'a' and symbol 'x'; remove one of them",
        ),
        (
            f'digraph {{ {START} a -> a [label="x,"] }}',
            r"^line 1: expected symbols between commas, got none in the label",
        ),
        (
            f'digraph {{ {START} a -> a [label="x/1"]; a -> a [label="y"] }}',
            r"an output on each edge of a Mealy machine, got none on the edge 'y' from state 'a'; add an output or",
        ),
        (
            f"digraph {{ {START} a -> b }}",
            r"^expected a symbol on each edge, got no symbol on an edge from state 'a'; give this edge a symbol$",
        ),
        (f"digraph {{ {START} }}", r"^expected edges with symbols, got no such edge; give at least one edge a symbol$"),
        (
            f'digraph {{ {START} a [shape=doublecircle]; a -> b [label="x"] }}',
            r"^state 'b' is used, but not declared",
        ),
        (f'digraph {{ {START} a; a -> b [label="x"] }}', r"^state 'b' is used, but not declared; declare it$"),
        (
            f'digraph {{ {START} a [shape=record label="{{a|{{x|y}}}}"]; a -> a [label="x"] }}',
            r"expected a label {state\|answer}, got nested fields in '{a\|{x\|y}}'; remove the inner braces$",
        ),
        (
            "digraph { __start0 -> __start1; }",
            r"^line 1: expected edges between states, got an edge to '__start1', which",
        ),
        (f'digraph {{ {START} a [shape=record]; a -> a [label="x"] }}', r"label {state\|answer} for each state, got n"),
        (f'digraph {{ {START} a -> __start0 [label="x"] }}', r"between states, got an edge to '__start0', which marks"),
        ('digraph { __start0 -> a [label="x"]; a -> a [label="y"] }', r"no label on the edge from '__start0'"),
        (
            'digraph { a [label="x }',
            r"^line 1: expected names, quoted .* of DOT, got '\"'; close this text with a second quote$",
        ),
        ("digraph { a [label=x", r"^line 1: expected '\]', got the end of the file; correct"),
        ("digraph { a } b", r"^line 1: expected the end of the file, got b; correct"),
    ],
)
def test_faults_are_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DOT.read(text)


def test_what_cannot_be_printed_is_refused() -> None:
    machine = Transducer(Semiautomaton(np.array([[0]]), ("\n",)), 0, np.array([0]))
    with pytest.raises(ValueError, match=r"symbols and answers that can be printed, got '\\n'; rename it"):
        DOT.write(LabeledMachine(machine, REJECT_ACCEPT))
