"""Named machines. Each function documents the meaning of its machine's states."""

from functools import cache
from numbers import Integral

import numpy as np

from lengthwise.automata.dfa import DFA
from lengthwise.automata.semiautomaton import Semiautomaton, explore
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.validation import check_kind, check_sizes, whole_number

BINARY = ("0", "1")


@cache
def parity() -> Transducer:
    """Return the machine that counts `b` modulo 2 in strings of a and b; the state is the answer."""
    return Transducer(Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b")), 0, np.array([0, 1]))


@cache
def even_pairs() -> Transducer:
    """Return the machine that counts the occurrences of `ab` and `ba` together, modulo 2.

    A state consists of the last symbol and the answer so far.
    """

    def step(state: tuple[str, int], symbol: str) -> tuple[str, int]:
        last, answer = state
        return symbol, answer ^ (last not in ("", symbol))

    machine, states = explore(("a", "b"), ("", 0), step)
    return Transducer(machine, 0, np.array([answer for _, answer in states]))


@cache
def cycle(size: int) -> Transducer:
    """Return the machine whose answer is a position on a cycle: symbol 0 stays, 1 moves up, and 2 moves down.

    The cycle has `size` positions, and the state is the position.

    Raises:
        ValueError: `size` is below 1.
    """
    check_sizes(size=size)
    index = np.arange(size)
    table = np.stack([index, (index + 1) % size, (index - 1) % size], axis=1)
    return Transducer(Semiautomaton(table, ("0", "1", "2")), 0, index)


@cache
def digit_sum(modulus: int) -> Transducer:
    """Return the machine for the sum, modulo `modulus`, of all digits so far; digits are below `modulus`.

    The state is the answer.

    Raises:
        ValueError: `modulus` is not in 1 ... 10 (each digit is one character).
    """
    whole_number("modulus", modulus, 1, 10)
    digits = np.arange(modulus)
    table = (digits[:, None] + digits[None, :]) % modulus
    return Transducer(Semiautomaton(table, tuple(map(str, digits))), 0, digits)


@cache
def equal_ends(num_digits: int) -> Transducer:
    """Return the machine that answers 1 if the last digit equals the first digit, else 0.

    A state consists of the first digit and the answer. The start has no digit.

    Raises:
        ValueError: `num_digits` is not in 1 ... 10 (each digit is one character).
    """
    whole_number("num_digits", num_digits, 1, 10)

    def step(state: tuple[str, int], symbol: str) -> tuple[str, int]:
        first = state[0] or symbol
        return first, int(symbol == first)

    machine, states = explore(tuple(map(str, range(num_digits))), ("", IGNORE), step)
    return Transducer(machine, 0, np.array([answer for _, answer in states]))


@cache
def modular_arithmetic(modulus: int, leading_plus: bool = False) -> Transducer:
    """Return the machine for the value of an expression modulo `modulus`, where * binds more tightly than + and -.

    Expressions consist of digits below `modulus` and the operators + - *. After an operand, a state consists of two
    numbers: the total of the finished terms, and the signed product of the current term. The answer is the sum of these
    two numbers. After an operator, a state consists of the numbers that the next operand needs, and the answer is
    `IGNORE`. Malformed expressions, with two operands or two operators in a row, lead to a sink.

    The machine has modulus**2 states after operands and modulus**2 states after *. It has `modulus` states after + and
    `modulus` states after -, and one sink. The start is the state after "0+". With `leading_plus`, expressions begin
    with a +, which needs one more state.

    Raises:
        ValueError: `modulus` is not in 1 ... 10 (each digit is one character).
    """
    whole_number("modulus", modulus, 1, 10)
    digits = tuple("0123456789"[:modulus])
    malformed = ("malformed", 0, 0)

    def step(state: tuple[str, int, int], symbol: str) -> tuple[str, int, int]:
        due, total, term = state
        if due == "leading +" and symbol == "+":
            return "+", 0, 0
        if due == "operator" and symbol == "*":
            return "factor", total, term
        if due == "operator" and symbol in "+-":
            return symbol, (total + term) % modulus, 0
        if due in ("+", "-", "factor") and symbol in digits:
            # The sign is part of the product of the term, so the answer is a sum of two numbers.
            factor = {"+": 1, "-": -1, "factor": term}[due]
            return "operator", total, factor * int(symbol) % modulus
        return malformed

    start = ("leading +" if leading_plus else "+", 0, 0)
    machine, states = explore((*digits, "+", "-", "*"), start, step)
    answers = [(total + term) % modulus if due == "operator" else IGNORE for due, total, term in states]
    return Transducer(machine, 0, np.array(answers))


@cache
def modular_arithmetic_equals(modulus: int, leading_plus: bool = False) -> Transducer:
    """Return the machine of `modular_arithmetic`, extended to expressions that may end with an =.

    The answer at the = equals the answer at the operand before it.

    The machine has a state after = for each answer. Every symbol after an =, or an = that does not follow an operand,
    leads to the sink.

    Raises:
        ValueError: `modulus` is not in 1 ... 10 (each digit is one character).
    """
    expression = modular_arithmetic(modulus, leading_plus)
    table = expression.semiautomaton.table
    num_states, num_symbols = expression.semiautomaton.table.shape
    # The sink is the only state from which every symbol leads back to the state itself.
    (sink,) = np.flatnonzero((table == np.arange(num_states)[:, None]).all(1))
    ended = np.where(expression.outputs == IGNORE, sink, num_states + expression.outputs)
    grown = np.full((num_states + modulus, num_symbols + 1), sink)
    grown[:num_states] = np.column_stack([table, ended])
    machine = Semiautomaton(grown, (*expression.semiautomaton.symbols, "="))
    return Transducer(machine, expression.start, np.concatenate([expression.outputs, np.arange(modulus)]))


@cache
def left_to_right_arithmetic(modulus: int, leading_plus: bool = False) -> Transducer:
    """Return the machine for the value of an expression modulo `modulus`, with operators applied from left to right.

    After an operand, the state is the value, which is also the answer. After an operator, a state consists of the value
    and the operator. Malformed expressions lead to a sink, as in `modular_arithmetic`.

    Raises:
        ValueError: `modulus` is not in 1 ... 10 (each digit is one character).
    """
    whole_number("modulus", modulus, 1, 10)
    digits = tuple("0123456789"[:modulus])
    malformed = ("malformed", 0)

    def step(state: tuple[str, int], symbol: str) -> tuple[str, int]:
        due, value = state
        if (due == "operator" and symbol in "+-*") or (due == "leading +" and symbol == "+"):
            return symbol, value
        if due in ("+", "-", "*") and symbol in digits:
            operand = int(symbol)
            return "operator", {"+": value + operand, "-": value - operand, "*": value * operand}[due] % modulus
        return malformed

    machine, states = explore((*digits, "+", "-", "*"), ("leading +" if leading_plus else "+", 0), step)
    return Transducer(machine, 0, np.array([value if due == "operator" else IGNORE for due, value in states]))


@cache
def bounded_dyck(depth: int) -> DFA:
    """Return the automaton of D_n: balanced strings of one kind of bracket with a nesting depth of at most n = `depth`.

    The state is the number of open brackets. State -1 is the sink for strings without any continuation in D_n.

    Raises:
        ValueError: `depth` is negative.
    """
    check_kind("depth", depth, Integral, "a whole number")
    if depth < 0:
        raise ValueError(f"depth: expected a nesting depth of at least 0, got {depth}; 0 gives only the empty string")

    def step(height: int, symbol: str) -> int:
        new_height = height + (1 if symbol == "(" else -1)
        return new_height if height >= 0 and 0 <= new_height <= depth else -1

    machine, heights = explore(("(", ")"), 0, step)
    return DFA(machine, 0, np.array([height == 0 for height in heights]))


@cache
def exact_depth_dyck(depth: int) -> DFA:
    """Return the automaton of balanced strings with a nesting depth of exactly `depth`, which must be 1 or more."""
    check_kind("depth", depth, Integral, "a whole number")
    if depth < 1:
        raise ValueError(f"depth: expected a nesting depth of at least 1, got {depth}; choose 1 or more")
    # D_n contains D_(n-1), so the strings of depth exactly n are the difference of the two languages.
    return bounded_dyck(depth) - bounded_dyck(depth - 1)


_TOMITA: dict[int, tuple[list[list[int]], list[int]]] = {
    1: ([[1, 0], [1, 1]], [0]),
    2: ([[2, 1], [0, 2], [2, 2]], [0]),
    # State 0: an even number of 1s in the last run (or no 1). State 1: an odd number of 1s in the last run. States 2
    # and 3: an odd and an even number of 0s after an odd number of 1s. State 4: the sink.
    3: ([[0, 1], [2, 0], [3, 4], [2, 1], [4, 4]], [0, 1, 3]),
    4: ([[1, 0], [2, 0], [3, 0], [3, 3]], [0, 1, 2]),
    5: ([[2, 1], [3, 0], [0, 3], [1, 2]], [0]),
    6: ([[1, 2], [2, 0], [0, 1]], [0]),
    7: ([[0, 1], [2, 1], [2, 3], [4, 3], [4, 4]], [0, 1, 2, 3]),
}
"""The automaton of each language: the next states on 0 and 1 for each state, and the accepting states; state 0 is the
start."""


@cache
def tomita(index: int) -> DFA:
    """Return the automaton of Tomita's language 1 to 7 over 0 and 1 (defined in `lengthwise.tasks.regular.tomita`).

    Raises:
        ValueError: the index is not in 1 ... 7.
    """
    if index not in _TOMITA:
        raise ValueError(f"index: expected one of Tomita's languages 1 to 7, got {index}; choose one of them")
    table, accepting = _TOMITA[index]
    return DFA(Semiautomaton(np.array(table), BINARY), 0, np.isin(np.arange(len(table)), accepting))
