"""Nondeterministic automata in files: each format reads the language that the sets of their states accept."""

import json
import random
from collections.abc import Callable

import numpy as np
import pytest
from automaton_strategies import all_strings

from lengthwise.automata.dfa import DFA
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats import draft as draft_module
from lengthwise.formats.att import ATT
from lengthwise.formats.dot import DOT
from lengthwise.formats.draft import Draft
from lengthwise.formats.jflap import JFLAP
from lengthwise.formats.json import JSON

Edges = list[tuple[int, str, int]]
"""Source, symbol and target; nothing is read where the symbol is empty."""


def drawn(seed: int, *, reads_nothing: bool) -> tuple[Edges, set[int]]:
    """The edges of a random automaton of five states, and the states in which it accepts."""
    chance = random.Random(seed)
    symbols = ["a", "b", *([""] if reads_nothing else [])]
    edges = {(chance.randrange(5), chance.choice(symbols), chance.randrange(5)) for _ in range(9)}
    edges |= {(0, "a", 1), (0, "a", 2), (1, "b", 0)}  # both symbols, and a choice
    return sorted(edges), {state for state in range(5) if chance.random() < 0.4}


def accepts(edges: Edges, accepting: set[int], string: str) -> bool:
    """Whether some walk along the edges reads the string and ends well; a search of walks, not of sets."""
    known, queue = {(0, 0)}, [(0, 0)]
    for state, read in queue:
        for source, symbol, target in edges:
            if source == state and string[read : read + len(symbol)] == symbol:
                after = (target, read + len(symbol))
                if after not in known:
                    known.add(after)
                    queue.append(after)
    return any((state, len(string)) in known for state in accepting)


def as_att(edges: Edges, accepting: set[int]) -> LabeledMachine:
    lines = [f"{source} {target} {symbol or '<eps>'}" for source, symbol, target in edges]
    return ATT.read("\n".join([*lines, *map(str, sorted(accepting))]))


def as_jflap(edges: Edges, accepting: set[int]) -> LabeledMachine:
    states = "".join(
        f'<state id="{state}">{"<initial/>" * (state == 0)}{"<final/>" * (state in accepting)}</state>'
        for state in range(5)
    )
    lines = "".join(
        f"<transition><from>{source}</from><to>{target}</to><read>{symbol}</read></transition>"
        for source, symbol, target in edges
    )
    return JFLAP.read(f"<structure><type>fa</type><automaton>{states}{lines}</automaton></structure>")


def as_automata_lib(edges: Edges, accepting: set[int]) -> LabeledMachine:
    transitions: dict[str, dict[str, list[str]]] = {}
    for source, symbol, target in edges:
        transitions.setdefault(str(source), {}).setdefault(symbol, []).append(str(target))
    content = {
        "states": list(map(str, range(5))),
        "input_symbols": ["a", "b"],
        "initial_state": "0",
        "final_states": list(map(str, accepting)),
        "transitions": transitions,
    }
    return JSON.read(json.dumps(content))


def as_dot(edges: Edges, accepting: set[int]) -> LabeledMachine:
    states = " ".join(f"s{state} [shape={'doublecircle' if state in accepting else 'circle'}];" for state in range(5))
    lines = " ".join(f"s{source} -> s{target} [label={symbol}];" for source, symbol, target in edges)
    return DOT.read(f"digraph {{ __start0 -> s0; {states} {lines} }}")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("read", [as_att, as_jflap, as_automata_lib, as_dot])
def test_the_language_is_that_of_all_walks(read: Callable[[Edges, set[int]], LabeledMachine], seed: int) -> None:
    edges, accepting = drawn(seed, reads_nothing=read is not as_dot)
    language = read(edges, accepting).dfa()
    order = [language.symbols.index(symbol) for symbol in "ab"]
    start = bool(language.accepting[language.start])
    assert start == accepts(edges, accepting, "")
    for length in range(1, 7):
        strings = all_strings(2, length)
        answers = language.accepts(np.array(order)[strings])
        expected = [accepts(edges, accepting, "".join("ab"[v] for v in string)) for string in strings]
        assert answers.tolist() == expected


def test_an_automaton_with_too_many_sets_is_named(monkeypatch) -> None:
    """Whether the tenth symbol from the end is a takes 1,024 sets of 11 states."""
    draft = Draft()
    for symbol in "ab":
        draft.add_edge("0", symbol, "0")
        for state in range(1, 10):
            draft.add_edge(str(state), symbol, str(state + 1))
    draft.add_edge("0", "a", "1")
    draft.set_start("0")
    assert draft.automaton({"10"}).machine.num_states == 1_024
    monkeypatch.setattr(draft_module, "MAX_SETS", 1_000)
    with pytest.raises(ValueError, match=r"a subset construction with at most 1,000 sets of states, got more"):
        draft.automaton({"10"})


def test_several_states_may_be_initial() -> None:
    """As in NFAs of PySimpleAutomata; a triple may lead to several states, too."""
    edges = [["s", "a", ["s", "t"]], ["u", "b", "t"]]
    content = {"alphabet": ["a", "b"], "states": ["s", "t", "u"], "initial_states": ["s", "u"], "transitions": edges}
    language = JSON.read(json.dumps({**content, "accepting_states": ["t"]})).dfa()
    for string, expected in {"": False, "a": True, "b": True, "aa": True, "ab": False, "ba": False}.items():
        assert accepts_text(language, string) == expected, string


def test_blanks_are_no_empty_edge_of_jflap() -> None:
    for read in ("<read>  </read>", ""):
        edge = f"<transition><from>0</from><to>0</to>{read}</transition>"
        with pytest.raises(
            ValueError,
            match=r"<read/> for no symbol, got blanks or no <read> on an edge from state '0'",
        ):
            JFLAP.read(f'<structure><type>fa</type><state id="0"><initial/></state>{edge}</structure>')


def test_acceptors_in_four_columns_may_have_edges_that_read_nothing() -> None:
    language = ATT.read("0 1 a a\n0 1 <eps> <eps>\n1 1 b b\n1\n").dfa()
    for string, expected in {"": True, "a": True, "b": True, "ab": True, "ba": False}.items():
        assert accepts_text(language, string) == expected, string


def accepts_text(language: DFA, string: str) -> bool:
    state = language.start
    for symbol in string:
        state = int(language.semiautomaton.table[state, language.symbols.index(symbol)])
    return bool(language.accepting[state])


@pytest.mark.parametrize("kind", ["moore", "mealy"])
def test_other_machines_are_deterministic(kind: str) -> None:
    draft = Draft()
    draft.add_edge("0", "a", "0", "x")
    draft.add_empty_edge("0", "0")
    draft.set_start("0")
    with pytest.raises(
        ValueError,
        match=r"expected a symbol on each edge of .*, got none on the edge from state '0' to '0'; add a symbol",
    ):
        _ = draft.mealy() if kind == "mealy" else draft.moore({"0": "x"})


def test_states_that_accept_are_declared() -> None:
    """In an automaton with choices, as in one without."""
    for targets in (("1",), ("1", "0")):
        draft = Draft()
        for target in targets:
            draft.add_edge("0", "a", target)
        draft.set_start("0")
        with pytest.raises(ValueError, match=r"^state '7' is used, but not declared; declare it$"):
            draft.automaton({"1", "7"})
