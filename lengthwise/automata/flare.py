"""The seven regular languages of FLaRe, a benchmark of formal languages."""

from collections.abc import Mapping
from functools import cache
from typing import Literal, get_args

import numpy as np

from lengthwise.automata import library
from lengthwise.automata.dfa import DFA
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.registry import check_known

BRACKETS = {"(": "(0", ")": ")0", "[": "(1", "]": ")1"}
"""The names that FLaRe gives to two kinds of brackets."""

_PATTERNS = {
    "even-pairs": "(0(0|1)*0|1(0|1)*1)|0|1|()",
    "repeat-01": "(01)*",
    "parity": "0*1(0*10*1)*0*",
    "first": "1(0|1)*",
    "dyck-2-3": r"(\((\((\(\)|\[\])*\)|\[(\(\)|\[\])*\])*\)|\[(\((\(\)|\[\])*\)|\[(\(\)|\[\])*\])*\])*",
}
"""Regular expressions of the languages whose strings do not end in a computed answer."""

Problem = Literal[
    "even-pairs", "repeat-01", "parity", "first", "dyck-2-3", "cycle-navigation", "modular-arithmetic-simple"
]
"""The names of the regular languages in FLaRe."""

PROBLEMS: tuple[Problem, ...] = get_args(Problem)


@cache
def flare(problem: Problem) -> DFA:
    """Return the smallest automaton of a regular language of FLaRe, over FLaRe's symbols.

    - ``even-pairs``: the first symbol equals the last; the empty string also belongs to the language
    - ``repeat-01``: repetitions of 01
    - ``parity``: an odd number of 1s
    - ``first``: the first symbol is 1
    - ``dyck-2-3``: balanced brackets of two kinds, nested at most three deep
    - ``cycle-navigation``: moves > (up), < (down) and = (stay) on a cycle of 5, then the position that they lead to
    - ``modular-arithmetic-simple``: an expression of digits below 5 with + - *, applied from left to right; then = and
      the value modulo 5

    Raises:
        ValueError: the problem is unknown.

    Example:
        >>> [flare(problem).num_states for problem in PROBLEMS]
        [5, 3, 2, 3, 16, 7, 25]

    Source: Butoi et al., "Training Neural Networks as Recognizers of Formal Languages" (arXiv 2411.07107), section 4
        and the code of its languages.
    Differs from the source: no difference.
    """
    check_known("problem", problem, PROBLEMS)
    if problem == "cycle-navigation":
        return _then_answer(library.cycle(5), {"0": "=", "1": ">", "2": "<"}, "")
    if problem == "modular-arithmetic-simple":
        return _then_answer(library.left_to_right_arithmetic(5), {}, "=")
    language = dfa_from_regex(_PATTERNS[problem]).minimize()
    names = tuple(BRACKETS.get(symbol, symbol) for symbol in language.symbols)
    return DFA(Semiautomaton(language.semiautomaton.table, names), language.start, language.accepting)


def _then_answer(machine: Transducer, names: Mapping[str, str], marker: str) -> DFA:
    """Return the automaton of all strings that have an answer, each followed by the marker and the answer's digit.

    `names` renames symbols of the machine. Without a marker, digits must not be symbols of the renamed machine.
    """
    renamed = [names.get(symbol, symbol) for symbol in machine.symbols]
    answers = [str(number) for number in range(machine.outputs.max() + 1)]
    symbols = [*renamed, *(symbol for symbol in [*answers, marker] if symbol and symbol not in renamed)]
    num_states = machine.num_states
    # After the machine's states come the states that wait for an answer, then the accepting state and the sink.
    accept, sink = num_states + len(answers), num_states + len(answers) + 1
    table = np.full((sink + 1, len(symbols)), sink)
    table[:num_states, : len(renamed)] = machine.semiautomaton.table
    waiting = num_states + np.arange(len(answers))
    digits = np.array([symbols.index(answer) for answer in answers])
    table[waiting, digits] = accept
    answered = np.flatnonzero(machine.outputs >= 0)
    given = machine.outputs[answered]
    if marker:
        table[answered, symbols.index(marker)] = waiting[given]
    else:
        table[answered, digits[given]] = accept
    return DFA(Semiautomaton(table, tuple(symbols)), machine.start, np.arange(sink + 1) == accept).minimize()
