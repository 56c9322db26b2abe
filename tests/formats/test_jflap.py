"""JFLAP's XML: files as JFLAP writes them, and faults in them."""

import numpy as np
import pytest

from lengthwise.automata.labeled import labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.formats.jflap import JFLAP

OF_JFLAP = """<?xml version="1.0" encoding="UTF-8" standalone="no"?><!--Created with JFLAP 7.1.--><structure>&#13;
	<type>fa</type>&#13;
	<automaton>&#13;
		<!--The list of states.-->&#13;
		<state id="0" name="q0">&#13;
			<x>79.0</x>&#13;
			<y>131.0</y>&#13;
			<initial/>&#13;
		</state>&#13;
		<state id="1" name="q1"><x>200.0</x><y>131.0</y><final/></state>&#13;
		<!--The list of transitions.-->&#13;
		<transition>&#13;
			<from>0</from>&#13;
			<to>1</to>&#13;
			<read>EDGE</read>&#13;
		</transition>&#13;
		<transition><from>1</from><to>1</to><read>c</read></transition>&#13;
	</automaton>&#13;
</structure>"""


@pytest.mark.parametrize("edge", ["a", "ab", "abab", "ccc"])
def test_edges_of_several_characters_are_split(edge: str) -> None:
    machine = JFLAP.read(OF_JFLAP.replace("EDGE", edge)).dfa()
    assert machine.equivalent(dfa_from_regex(f"{edge}c*", machine.symbols))


def test_edges_that_begin_alike_share_their_states() -> None:
    more = "<transition><from>0</from><to>0</to><read>abc</read></transition></automaton>"
    machine = JFLAP.read(OF_JFLAP.replace("EDGE", "abd").replace("</automaton>", more)).dfa()
    assert machine.equivalent(dfa_from_regex("(abc)*abdc*", machine.symbols))


def mealy(kind: str, output: str, transout: str) -> str:
    edges = [("0", "1", "a", "x"), ("0", "0", "b", "y"), ("1", "1", "a", "y"), ("1", "0", "b", "x")]
    return (
        f"<structure><type>{kind}</type><automaton>"
        + "".join(
            [
                f'<state id="{state}" name="q">{mark}{output.format(state)}</state>'
                for state, mark in (("0", "<initial/>"), ("1", ""))
            ]
            + [
                f"<transition><from>{source}</from><to>{to}</to><read>{read}</read>{transout.format(out)}</transition>"
                for source, to, read, out in edges
            ]
        )
        + "</automaton></structure>"
    )


def test_moore_and_mealy_machines_are_read() -> None:
    machine = JFLAP.read(mealy("moore", "<output>o{}</output>", "<transout>ignored</transout>"))
    assert machine.answer_names() == ["o0", "o1"]
    assert machine.machine.run(np.array([[0, 0, 1]])).tolist() == [[1, 1, 0]]
    machine = JFLAP.read(mealy("mealy", "", "<transout>{}</transout>"))
    answers = machine.machine.run(np.array([[0, 0, 1, 1]]))[0]
    assert [machine.classes[answer] for answer in answers] == ["x", "y", "x", "y"]
    assert machine.num_unanswered == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("<type>fa", "<type>pda"), r"^expected type fa, moore or mealy, got 'pda'; save a machine of one of"),
        (("<initial/>", ""), r"^expected an initial state, got none; mark a state as initial$"),
        (("<to>1</to>&#13;", "<to>7</to>"), r"^state '7' is used, but not declared; declare it$"),
        (
            ("<type>fa", "<type>moore"),
            r"^expected edges that read one character, got 'cd' from state '0'; split this edge$",
        ),
        (("</structure>", ""), r"^expected XML, got something else \("),
    ],
)
def test_faults_are_named(change: tuple[str, str], message: str) -> None:
    text = OF_JFLAP.replace(*change).replace("EDGE", "cd")
    with pytest.raises(ValueError, match=message):
        JFLAP.read(text)


def test_symbols_are_characters() -> None:
    from lengthwise.formats.att import ATT

    with pytest.raises(ValueError, match=r"^expected symbols of one character, got 'push'; rename this symbol$"):
        JFLAP.write(ATT.read("0 0 push\n0\n"))


@pytest.mark.parametrize("answer", ["x\x07", " x", "x "])
def test_answers_can_be_printed(answer: str) -> None:
    """A reader leaves out blanks around an answer."""
    machine = JFLAP.read(mealy("moore", "<output>o{}</output>", "")).renamed({"o0": answer})
    with pytest.raises(ValueError, match=r"^expected printable symbols and answers .*, got '.*'; change this text$"):
        JFLAP.write(machine)


def automaton(*edges: tuple[str, str, str], states: str = '<state id="0"><initial/></state>') -> str:
    text = "".join(f"<transition><from>{p}</from><to>{q}</to>{read}</transition>" for p, read, q in edges)
    return f"<structure><type>fa</type><automaton>{states}{text}</automaton></structure>"


def test_an_automaton_may_begin_in_several_states() -> None:
    states = "".join(f'<state id="{state}"><initial/>{mark}</state>' for state, mark in (("0", ""), ("1", "<final/>")))
    edges = [("0", "<read>a</read>", "1"), ("1", "<read>b</read>", "1")]
    machine = JFLAP.read(automaton(*edges, states=states)).dfa()
    assert machine.equivalent(dfa_from_regex("a?b*"))
    with pytest.raises(ValueError, match=r"^expected one initial state, got '0' and '1'; choose one$"):
        JFLAP.read(mealy("moore", "<output>o{}</output>", "").replace('name="q"><output>', "><initial/><output>"))


@pytest.mark.parametrize("sign", ["λ", "ε"])
def test_what_jflap_shows_for_the_empty_string_reads_nothing(sign: str) -> None:
    states = '<state id="0"><initial/></state><state id="1"><final/></state>'
    text = automaton(("0", f"<read>{sign}</read>", "1"), ("1", "<read>b</read>", "1"), states=states)
    assert JFLAP.read(text).symbols == ("b",)
    assert JFLAP.read(text).dfa().equivalent(dfa_from_regex("b*"))
    with pytest.raises(ValueError, match=f"^expected {sign}, the empty string, alone on an edge, got 'a{sign}' from"):
        JFLAP.read(text.replace("<read>b", f"<read>a{sign}"))
    with pytest.raises(
        ValueError,
        match=f"^expected symbols of one character, got '{sign}', which means the empty string; rename",
    ):
        JFLAP.write(labeled_dfa(dfa_from_regex(f"{sign}*")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("<final/>", "<fnal/>"),
            r"^expected <state> with the elements initial, final, x, .*, got <fnal>; leave this element out",
        ),
        (("<final/>", "<final>no</final>"), r"^expected only elements in <state>, got the text 'no'; leave this text"),
        (("<final/>", "<output>x</output>"), r"^expected <state> with the elements .*, got <output>"),
        (("<final/>", "<final/><final/>"), r"^expected one <final> in <state>, got 2; keep one$"),
        (("<final/>", "</state><state id='0'>"), r"^expected a different printable id of .* for each state, got '0'"),
        (("<final/>", "</state><state>"), r"^expected a different printable id of .* for each state, got ''"),
        (("name=", "final="), r"^expected <state> without the attribute 'final'; write the attribute as an element$"),
        (("<type>fa", "<type>moore"), r"^expected <state> with the elements initial, output, .*, got <final>"),
        (("<read>", "<pop>x</pop><read>"), r"^expected <transition> with the elements .*, got <pop>"),
        (("<read>", "<read>d</read><read>"), r"^expected one <read> in <transition>, got 2; keep one$"),
        (("<to>1", "<to><b>0</b>1"), r"^expected <to> without elements inside, got <b>; leave <b> out$"),
        (("<!--The list of states.-->", "<block/>"), r"^expected <automaton> with the elements .*, got <block>"),
        (("<!--The list of states.-->", "final: 0"), r"^expected only elements in <automaton>, got the text"),
        (("<!--Created", "<!DOCTYPE s><!--"), r"^expected XML without a document type, got <!DOCTYPE; remove it"),
    ],
)
def test_parts_that_would_be_lost_are_named(change: tuple[str, str], message: str) -> None:
    assert change[0] in OF_JFLAP
    with pytest.raises(ValueError, match=message):
        JFLAP.read(OF_JFLAP.replace(*change).replace("EDGE", "c"))
