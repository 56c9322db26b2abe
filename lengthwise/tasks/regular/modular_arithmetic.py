"""Modular arithmetic: the value of an expression with precedence, modulo a small number."""

from typing import Annotated, ClassVar

import numpy as np
import torch
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.automata import Transducer, library
from lengthwise.conventions import IGNORE
from lengthwise.tasks.base import TASKS, Batch, RegularTask


@TASKS.register("modular-arithmetic")
class ModularArithmetic(RegularTask):
    """The value modulo `modulus` of an expression of digits with `+`, `-` and `*`, in which `*` has precedence.

    Operands are the digits below `modulus`, at odd positions (counted from 1). Operands are supervised: the answer at
    an operand is the value of the expression that ends there. Operators are not supervised, and neither is any position
    from the first misplaced symbol on. Operands and operators are independent and uniform. The classes are the
    remainders.

    A prefix that ends in an operand has the same distribution as a sample of its length. One pass over a long
    expression therefore also measures shorter expressions. With `leading_plus`, every expression begins with a `+` that
    has no effect on values. This `+` makes lengths even, and pairs each operand with the operator before it.

    Raises:
        ValueError: `modulus` is not in 1 ... 10 (digits are single symbols).

    Example:
        >>> task = ModularArithmetic(modulus=5)
        >>> task.solve(task.encode("3-2*4")[None]).tolist()
        [[3, -100, 1, -100, 0]]

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (arXiv 2207.02098), Modular Arithmetic
        (Simple), as their code defines it (with precedence); used by Chi et al., "Transformer Working Memory Enables
        Regular Language Reasoning and Natural Language Length Extrapolation" (arXiv 2305.03796), section 5, and by Fan
        et al., "Advancing Regular Language Reasoning in Linear Recurrent Neural Networks" (arXiv 2309.07412).
    Differs from the source: the `+` that the code of Chi et al. puts in front is optional; without it lengths are odd,
        as in the other two sources. The alphabet has no unused symbol.
    """

    prefix_exchangeable: ClassVar[bool] = True

    modulus: Annotated[int, Field(ge=1, le=10)] = 5
    leading_plus: bool = False

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the digits below `modulus`, then + - *."""
        return (*"0123456789"[: self.modulus], "+", "-", "*")

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the remainders modulo `modulus`."""
        return tuple(str(remainder) for remainder in range(self.modulus))

    @property
    def transducer(self) -> Transducer:
        """Return a machine whose state is the total of the finished terms and the term that may still grow."""
        return library.modular_arithmetic(self.modulus, self.leading_plus)

    def is_legal_length(self, length: int) -> bool:
        """Return whether an expression of this length can end in an operand: odd, or even with `leading_plus`."""
        return length >= 1 and length % 2 == (0 if self.leading_plus else 1)

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw independent operands and operators; every operand is supervised."""
        inputs = torch.empty(batch_size, length, dtype=torch.int64)
        operands = inputs[:, self.leading_plus :: 2]
        operators = inputs[:, 1 + self.leading_plus :: 2]
        operands.copy_(torch.randint(self.modulus, operands.shape, generator=generator))
        operators.copy_(torch.randint(3, operators.shape, generator=generator) + self.modulus)
        if self.leading_plus:
            inputs[:, 0] = self.modulus
        return Batch(inputs, self.solve(inputs))

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return the value of the expression that ends at each operand: the finished terms plus the current product.

        Terms are computed as if the expression were well-formed. Answers from the first misplaced symbol on are then
        replaced by `IGNORE`.
        """
        if self.leading_plus:
            answers = torch.full_like(inputs, IGNORE)
            if inputs.shape[1] > 1:
                led = inputs[:, :1] == self.modulus
                answers[:, 1:] = torch.where(led, self._solve_unled(inputs[:, 1:]), IGNORE)
            return answers
        return self._solve_unled(inputs)

    def _solve_unled(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        columns = inputs.T.contiguous()
        values = self._values(columns[0::2], columns[1::2][: (len(columns) - 1) // 2])
        is_due = torch.arange(len(columns))[:, None] % 2 == 0
        well_formed = ((columns < self.modulus) == is_due).cumprod(dim=0)[0::2] == 1
        answers = torch.full_like(columns, IGNORE)
        answers[0::2] = torch.where(well_formed, values % self.modulus, IGNORE)
        return answers.T.contiguous()

    def _values(self, operands: Int64[Tensor, "N B"], operators: Int64[Tensor, "N1 B"]) -> Int64[Tensor, "N B"]:
        """Return the value of the expression that ends at each operand, as if all symbols were well placed."""
        times, minus = self.modulus + 2, self.modulus + 1
        continues = operators == times
        term = operands[0]
        terms = [term]
        starts = torch.where(operators == minus, -operands[1:], operands[1:])
        for operand, grows, start in zip(operands[1:], continues, starts, strict=True):
            term = torch.where(grows, term * operand % self.modulus, start)
            terms.append(term)
        products = torch.stack(terms)
        values = products.clone()
        values[1:] += torch.where(continues, 0, products[:-1]).cumsum(dim=0)
        return values

    def baseline(self, length: int) -> float:
        """Return the probability of the likeliest value at this length, computed with powers of a transition matrix."""
        machine = self.transducer
        digit = np.arange(len(self.symbols)) < self.modulus
        after_operand = machine.semiautomaton.transition_matrix(digit / self.modulus)
        after_operator = machine.semiautomaton.transition_matrix(~digit / 3)
        start = machine.semiautomaton.table[machine.start, self.modulus] if self.leading_plus else machine.start
        num_operators = (length - 1 - self.leading_plus) // 2
        final = after_operand[start] @ np.linalg.matrix_power(after_operator @ after_operand, num_operators)
        supervised = machine.outputs != IGNORE
        return float(np.bincount(machine.outputs[supervised], weights=final[supervised]).max())
