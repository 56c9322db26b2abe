"""Solve equation: the value of the unknown digit in an expression with brackets."""

from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.tasks.algorithmic.modular_arithmetic_brackets import ModularTask, draw_expressions, evaluate
from lengthwise.tasks.base import TASKS

NUM_OPERATORS = 2
"""The number of operators, + and -. With *, an equation could have several solutions."""

SIGNS = ("+", "-", "(", ")", "x", "=")
"""The signs in equations, in the order of their ids, which follow the ids of the digits."""


@TASKS.register("solve-equation")
class SolveEquation(ModularTask):
    """The digit x that solves an equation modulo `modulus`, queried at its end (`StringAnswerTask`).

    An equation is an expression as in `ModularArithmeticBrackets`, with + and - only, followed by ``=`` and its value.
    In the expression, x hides one digit. The hidden digit is the first digit at or after a uniform position,
    cyclically.

    Raises:
        ValueError: `modulus` is not in 2 ... 10.

    Example:
        >>> task = SolveEquation()
        >>> task.solve(task.encode("(2-x)=4?")[None])[0, 7:].tolist()
        [3]

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Solve Equation.
    Differs from the source: here, the answer is given after a query.
    """

    signs: ClassVar[tuple[str, ...]] = SIGNS

    def is_legal_length(self, length: int) -> bool:
        """Return whether the length suffices for an unknown, ``=`` and a value."""
        return length >= 3

    def draw_strings(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N n"]:
        """Draw expressions, hide one digit of each expression, and append ``=`` and the expression's value."""
        size, unknown = length - 2, self.modulus + SIGNS.index("x")
        drawn = draw_expressions(count, size, self.modulus, NUM_OPERATORS, generator)
        values = evaluate(drawn, self.modulus)
        # Equations have no `*`, so the ids of their brackets are lower by 1 than in expressions.
        expressions = torch.where(drawn > self.modulus + NUM_OPERATORS, drawn - 1, drawn)
        starts = torch.randint(size, (count, 1), generator=generator)
        steps = (torch.arange(size) - starts) % size
        hidden = torch.where(expressions < self.modulus, steps, size).argmin(1, keepdim=True)
        sign = torch.full_like(hidden, self.modulus + SIGNS.index("="))
        return torch.cat([expressions.scatter(1, hidden, unknown), sign, values[:, None]], 1)

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return the solution x.

        The left side of an equation has the value a + x or a - x, where a is the left side's value for x = 0.
        """
        if strings.shape[1] < 3:
            return torch.full((len(strings), 1), IGNORE)
        unknown, equals = (self.modulus + SIGNS.index(sign) for sign in "x=")
        left, value = strings[:, :-2], strings[:, -1]
        is_unknown = left == unknown
        # An = on the left becomes a letter that no expression has, so `evaluate` rejects it.
        known = torch.where(left >= self.modulus + NUM_OPERATORS, left + 1, left)
        at_zero, at_one = (evaluate(known.masked_fill(is_unknown, digit), self.modulus) for digit in (0, 1))
        difference = value - at_zero
        solutions = torch.where((at_one - at_zero) % self.modulus == 1, difference, -difference) % self.modulus
        is_equation = (
            (is_unknown.sum(1) == 1) & (strings[:, -2] == equals) & (value < self.modulus) & (at_zero != IGNORE)
        )
        return torch.where(is_equation, solutions, IGNORE)[:, None]

    def baseline(self, length: int) -> float:
        """Return 1 / `modulus`, because each of the `modulus` digits is hidden with equal probability."""
        return 1 / self.modulus
