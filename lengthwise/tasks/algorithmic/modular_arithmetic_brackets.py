"""Modular arithmetic with brackets: the value of an expression."""

from typing import Annotated, ClassVar

import torch
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.tasks.algorithmic.string_answer import StringAnswerTask
from lengthwise.tasks.base import TASKS

OPERATORS = "+-*"
SIGNS = (*OPERATORS, "(", ")")
"""The signs in expressions, in the order of their ids, which follow the ids of the digits."""

CLOSE, OPERATOR = -1, -2
"""Entries of the stack in `draw_expressions` that represent a closing bracket and an operator."""

FIRST, AFTER_FIRST, SECOND, AFTER_SECOND = 0, 1, 2, 3
"""The states of an open bracket, by what may come next: the first operand, an operator, the second operand, the end."""


class ModularTask(StringAnswerTask):
    """A task on strings of digits and `signs`, whose answers are remainders modulo `modulus`."""

    signs: ClassVar[tuple[str, ...]]

    modulus: Annotated[int, Field(ge=2, le=10)] = 5

    @property
    def letters(self) -> tuple[str, ...]:
        """Return the digits below `modulus`, and the operators and other characters in `signs`."""
        return (*self.classes, *self.signs)

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the remainders modulo `modulus`, which are also the digits."""
        return tuple("0123456789"[: self.modulus])


@TASKS.register("modular-arithmetic-brackets")
class ModularArithmeticBrackets(ModularTask):
    """The value modulo `modulus` of an expression with brackets, queried at its end (`StringAnswerTask`).

    An expression is a digit d, ``-d``, ``(d)``, ``(-d)``, or ``(e+f)``, ``(e-f)`` or ``(e*f)`` for expressions e and f.
    An expression of more than 4 letters is ``(e+f)``, ``(e-f)`` or ``(e*f)``: the length of e is uniform among the
    possible lengths, and the operator is uniform.

    Raises:
        ValueError: `modulus` is not in 2 ... 10.

    Example:
        >>> task = ModularArithmeticBrackets()
        >>> task.solve(task.encode("(2*(-1))?")[None])[0, 8:].tolist()
        [3]

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Modular Arithmetic.
    Differs from the source: here, the answer is given after a query, and the alphabet has no unused symbol.
    """

    num_counted: ClassVar[int] = 1 << 12  # expressions are read letter by letter, which is slow
    signs: ClassVar[tuple[str, ...]] = SIGNS

    def draw_strings(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N n"]:
        """Draw expressions with the operators `+`, `-` and `*`."""
        return draw_expressions(count, length, self.modulus, len(OPERATORS), generator)

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return the value of each expression."""
        return evaluate(strings, self.modulus)[:, None]


def draw_expressions(
    count: int, length: int, modulus: int, num_operators: int, generator: torch.Generator
) -> Int64[Tensor, "N n"]:
    """Draw expressions with the first `num_operators` of `OPERATORS`, letter by letter from the left.

    A stack contains the rest of each expression: the lengths of parts that are not drawn yet, `CLOSE` and `OPERATOR`.
    """
    minus = modulus + SIGNS.index("-")
    opening, closing = (modulus + SIGNS.index(sign) for sign in "()")
    letters = torch.empty(count, length, dtype=torch.int64)
    # Each letter of an expression adds at most three parts to the stack.
    stack = torch.zeros(count, 3 * length + 1, dtype=torch.int64)
    stack[:, 0] = length
    size, rows = torch.ones(count, dtype=torch.int64), torch.arange(count)
    for column in letters.unbind(1):
        top = stack[rows, size - 1]
        digits = torch.randint(modulus, (count,), generator=generator)
        operators = modulus + torch.randint(num_operators, (count,), generator=generator)
        share = torch.rand(count, generator=generator, dtype=torch.float64)
        left = 1 + (share * (top - 4)).long()  # uniform in 1 ... top - 4, if top is at least 5
        column.copy_(torch.where(top == 1, digits, opening))
        column.copy_(torch.where(top == 2, minus, column))
        column.copy_(torch.where(top == OPERATOR, operators, torch.where(top == CLOSE, closing, column)))
        # The parts that follow this letter are pushed in reverse, so that the next part is on top of the stack.
        is_pair, is_bracket = top > 4, top > 2
        parts = (
            (torch.full_like(top, CLOSE), is_bracket),
            (torch.where(is_pair, top - 3 - left, top - 2), is_bracket),
            (torch.full_like(top, OPERATOR), is_pair),
            (left, is_pair),
            (torch.ones_like(top), top == 2),
        )
        size = size - 1
        for part, is_pushed in parts:
            pushed = rows[is_pushed]
            stack[pushed, size[pushed]] = part[is_pushed]
            size = size + is_pushed
    return letters


def evaluate(strings: Int64[Tensor, "N n"], modulus: int) -> Int64[Tensor, " N"]:
    """Return the value of each expression, read letter by letter from the left; `IGNORE` for malformed expressions.

    For each open bracket, the loop keeps a state (`FIRST` to `AFTER_SECOND`), the operator, and a value. The value is
    the first operand or, after the second operand, the value of the bracket. The loop also keeps whether the last
    operand is a digit with or without a minus.
    """
    minus, times = (modulus + SIGNS.index(sign) for sign in "-*")
    opening, closing = (modulus + SIGNS.index(sign) for sign in "()")
    count, length = strings.shape
    rows, depth = torch.arange(count), torch.zeros(count, dtype=torch.int64)
    expects = torch.full((count, length + 1), FIRST)
    values, operators = torch.zeros(2, count, length + 1, dtype=torch.int64)
    is_plain = torch.zeros(count, length + 1, dtype=torch.bool)
    is_negative, is_wrong = torch.zeros(2, count, dtype=torch.bool)
    for letter in strings.unbind(1):
        state = expects[rows, depth]
        takes_operand, is_digit = (state == FIRST) | (state == SECOND), letter < modulus
        opens = takes_operand & (letter == opening) & ~is_negative
        negates = takes_operand & (letter == minus) & ~is_negative
        is_operand = takes_operand & is_digit
        is_operator = (state == AFTER_FIRST) & (depth > 0) & (letter >= modulus) & (letter <= times)
        closes = (letter == closing) & (depth > 0)
        closes &= (state == AFTER_SECOND) | ((state == AFTER_FIRST) & is_plain[rows, depth])
        is_wrong |= ~(opens | negates | is_operand | is_operator | closes)
        operators[rows[is_operator], depth[is_operator]] = letter[is_operator]
        expects[rows[is_operator], depth[is_operator]] = SECOND
        operand = torch.where(is_digit, torch.where(is_negative, -letter, letter), values[rows, depth])
        is_negative = negates | (is_negative & ~is_operand)
        depth = depth - closes.long()
        is_taken = is_operand | closes
        taken = rows[is_taken], depth[is_taken]
        first, second = values[taken], operand[is_taken]
        both = torch.where(operators[taken] == minus, first - second, first + second)
        both = torch.where(operators[taken] == times, first * second, both) % modulus
        is_second = expects[taken] == SECOND
        values[taken] = torch.where(is_second, both, second)
        expects[taken] = torch.where(is_second, AFTER_SECOND, AFTER_FIRST)
        is_plain[taken] = is_operand[is_taken]
        depth = torch.where(is_wrong, 0, depth + opens.long())
        expects[rows[opens], depth[opens]] = FIRST
    is_whole = ~is_wrong & (depth == 0) & (expects[:, 0] == AFTER_FIRST)
    return torch.where(is_whole, values[:, 0] % modulus, IGNORE)
