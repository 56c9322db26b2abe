"""Random machines in the conventions of other tools: each file is read as the machine that it draws, or refused."""

import random
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import drawn_machines as tools
import pytest
from drawn_machines import Drawn

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.att import ATT
from lengthwise.formats.dot import DOT

ALPHABETS = (("a", "b"), ("0", "1"), ("push", "pop"), ("x", "y", "z"), ("(1,2)", "f"), ("a b", "c"), ("{c}", "d"))
ODD = (("x:1", "y"), ("a|b", "c"), ("$", "#"), ("0.5", "1"), ("a+", "a?"), ("[a-z]", "[0-9]"))
ANSWERS = (("0", "1"), ("no", "si", "ack(1,2)"), ("OK", "x=1/2"))

Meaning = Callable[[Drawn, tuple[str, ...]], str]
Convention = Callable[[Drawn, random.Random], str]


def accepted(machine: Drawn, string: tuple[str, ...]) -> str:
    return "accept" if machine.states_after(string) & machine.accepting else "reject"


def of_state(machine: Drawn, string: tuple[str, ...]) -> str:
    states = machine.states_after(string)
    return machine.outputs[min(states)] if states else ""


def of_edge(machine: Drawn, string: tuple[str, ...]) -> str:
    """The output of the last edge; of a transducer with final states (`of_final_edge`) only in these."""
    before = machine.states_after(string[:-1])
    outputs = [output for source, read, _, output in machine.edges if source in before and (read,) == string[-1:]]
    return outputs[0] if outputs else ""


def of_final_edge(machine: Drawn, string: tuple[str, ...]) -> str:
    return of_edge(machine, string) if machine.states_after(string) & machine.accepting else ""


class Style(NamedTuple):
    """A convention, what its files mean, and which machines it draws; `share` is the part that is read at least."""

    write: Convention
    meaning: Meaning | None
    kind: str
    share: float = 0.0


STYLES = {
    style.write.__name__: style
    for style in (
        Style(tools.aalpy_dfa, accepted, "deterministic", 0.5),
        Style(tools.aalpy_moore, of_state, "deterministic", 0.5),
        Style(tools.aalpy_mealy, of_edge, "deterministic", 0.5),
        Style(tools.aalpy_mdp, None, "deterministic"),
        Style(tools.aalpy_stochastic_mealy, None, "deterministic"),
        Style(tools.aalpy_nondeterministic_moore, None, "deterministic"),
        Style(tools.aalpy_visibly_pushdown, None, "deterministic"),
        Style(tools.learnlib_dfa, accepted, "deterministic", 0.5),
        Style(tools.learnlib_moore, of_state, "deterministic", 0.5),
        Style(tools.learnlib_mealy, of_edge, "deterministic", 0.5),
        Style(tools.automata_lib, accepted, "nondeterministic", 0.5),
        Style(tools.gallery, accepted, "nondeterministic", 0.3),
        Style(tools.peripheries, accepted, "nondeterministic", 0.3),
        Style(tools.by_appearance, accepted, "deterministic"),
        Style(tools.textbook_moore, of_state, "deterministic", 0.3),
        Style(tools.textbook_mealy, of_edge, "deterministic", 0.2),
        Style(tools.subsequential, None, "deterministic"),
        Style(tools.openfst_acceptor, accepted, "one start", 0.5),
        Style(tools.openfst_numbers, accepted, "one start", 0.1),
        Style(tools.openfst_weights, None, "deterministic"),
        Style(tools.openfst_transducer, of_final_edge, "one start", 0.1),
        Style(tools.fstdraw_acceptor, accepted, "one start", 0.5),
        Style(tools.fstdraw_transducer, of_final_edge, "one start", 0.1),
        Style(tools.fstdraw_weights, None, "deterministic"),
    )
}


def drawn_machine(kind: str, chance: random.Random, *, may_have_spaces: bool = True) -> Drawn:
    """A machine of one to five states with at least one edge of each symbol."""
    num_states = chance.randint(1, 5)
    alphabets = [symbols for symbols in ALPHABETS if may_have_spaces or " " not in "".join(symbols)]
    symbols = chance.choice(alphabets if chance.random() < 0.8 else ODD)
    answers = chance.choice(ANSWERS)
    is_partial = chance.random() < 0.5
    edges: dict[tuple[int, str, int], str] = {}
    for state, symbol in product(range(num_states), symbols):
        if not is_partial or chance.random() < 0.7 or state == 0:
            edges[state, symbol, chance.randrange(num_states)] = chance.choice(answers)
    starts = [0]
    if kind != "deterministic" and chance.random() < 0.5:
        for _ in range(chance.randint(1, 4)):
            symbol = chance.choice([*symbols, ""])
            edges[chance.randrange(num_states), symbol, chance.randrange(num_states)] = chance.choice(answers)
        starts = sorted({0, chance.randrange(num_states)}) if kind == "nondeterministic" else starts
    accepting = {state for state in range(num_states) if chance.random() < chance.choice([0.0, 0.4, 1.0])}
    outputs = [chance.choice(answers) for _ in range(num_states)]
    return Drawn(num_states, symbols, [(p, a, q, y) for (p, a, q), y in edges.items()], starts, accepting, outputs)


def is_documented_exception(style: Style, machine: Drawn) -> bool:
    """Whether a file also means another machine, and `ATT` says which it is read as.

    A transducer that repeats all symbols is an acceptor. The numbers 0, 1, 2, ... are symbols, though there is no table
    of them, if each state has one edge of each.
    """
    pairs = {(p, a) for p, a, _, _ in machine.edges}
    is_complete = len(pairs) == len(machine.edges) == machine.num_states * (len(machine.symbols) + 1)
    is_identity = all(a == y for _, a, _, y in machine.edges)
    return (style.write is tools.openfst_numbers and is_complete) or (style.meaning is of_final_edge and is_identity)


def check(name: str, seed: int) -> bool:
    """Whether the machine of a seed is read; a ValueError refuses it, and another machine is a failure."""
    style, chance = STYLES[name], random.Random(f"{name} {seed}")
    machine = drawn_machine(style.kind, chance, may_have_spaces=not name.startswith("openfst"))
    if is_documented_exception(style, machine):
        return True
    text = style.write(machine, chance)
    read = (ATT if name.startswith("openfst") else DOT).read
    try:
        given: LabeledMachine = read(text)
    except ValueError:
        return False
    assert style.meaning is not None, text
    names = dict(zip(machine.symbols, machine.symbols, strict=True))
    if style.write is tools.openfst_numbers:
        numbers = sorted(given.symbols, key=int)
        assert len(numbers) == len(machine.symbols), text
        names = dict(zip(machine.symbols, numbers, strict=True))
    assert set(given.symbols) == set(names.values()), text
    for length in range(5 if len(names) < 3 else 4):
        for string in product(machine.symbols, repeat=length):
            if length or style.meaning is accepted:
                expected = style.meaning(machine, string)
                assert given.answer_to([names[symbol] for symbol in string]) == expected, (text, string)
    return True


@pytest.mark.parametrize("name", STYLES)
def test_files_are_read_as_they_are_meant_or_refused(name: str) -> None:
    read = Counter(check(name, seed) for seed in range(10))
    assert read[True] or STYLES[name].share < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("name", STYLES)
def test_many_files_are_read_as_they_are_meant_or_refused(name: str) -> None:
    num_files = 450
    read = Counter(check(name, seed) for seed in range(10, 10 + num_files))
    assert read[True] >= STYLES[name].share * num_files
