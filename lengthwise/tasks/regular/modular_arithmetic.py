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
    """The value modulo `modulus` of digits below it joined by `+`, `-` and `*`, where `*` binds before `+` and `-`.

    Operands are at odd positions (counted from 1) and are asked the value of the expression that ends there;
    operators ask nothing, nor does anything from the first symbol that stands where it may not. Operands are
    independent and uniform over the digits, operators over the three. The classes are the remainders.

    A prefix of odd length is distributed as a sample of that length, so one pass over a long expression stands for
    every shorter odd length.

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
    Differs from the source: the code of Chi et al. puts a `+` before every expression, which makes lengths even; here
        they are odd, as in the other two. The alphabet has no unused symbol.
    """

    prefix_exchangeable: ClassVar[bool] = True

    modulus: Annotated[int, Field(ge=1, le=10)] = 5

    @property
    def symbols(self) -> tuple[str, ...]:
        """The digits below `modulus`, then + - *."""
        return (*"0123456789"[: self.modulus], "+", "-", "*")

    @property
    def classes(self) -> tuple[str, ...]:
        """The remainders."""
        return tuple(str(remainder) for remainder in range(self.modulus))

    @property
    def transducer(self) -> Transducer:
        """The total of the finished terms and the term that may still grow."""
        return library.modular_arithmetic(self.modulus)

    def is_legal_length(self, length: int) -> bool:
        """Odd lengths: an expression ends in an operand."""
        return length >= 1 and length % 2 == 1

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw independent operands and operators; every operand is asked."""
        self.check_length(length)
        inputs = torch.empty(batch_size, length, dtype=torch.int64)
        inputs[:, 0::2] = torch.randint(self.modulus, (batch_size, length // 2 + 1), generator=generator)
        inputs[:, 1::2] = torch.randint(3, (batch_size, length // 2), generator=generator) + self.modulus
        return Batch(inputs, self.solve(inputs))

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Value of the expression that ends at each operand: the finished terms plus the signed product in progress.

        Terms are computed as if the expression were well-formed; what depends on a misplaced symbol is `IGNORE`.
        """
        times, minus = self.modulus + 2, self.modulus + 1
        columns = inputs.T.contiguous()
        operands, operators = columns[0::2], columns[1::2][: (len(columns) - 1) // 2]
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

        is_operand = columns < self.modulus
        due = torch.arange(len(columns))[:, None] % 2 == 0
        well_formed = (is_operand == due).cumprod(dim=0)[0::2] == 1
        answers = torch.full_like(columns, IGNORE)
        answers[0::2] = torch.where(well_formed, values % self.modulus, IGNORE)
        return answers.T.contiguous()

    def baseline(self, length: int) -> float:
        """Probability of the likeliest value, from the powers of the Markov chain of operator and operand."""
        self.check_length(length)
        machine = self.transducer
        digit = np.arange(len(self.symbols)) < self.modulus
        after_operand = machine.semiautomaton.transition_matrix(digit / self.modulus)
        after_operator = machine.semiautomaton.transition_matrix(~digit / 3)
        final = after_operand[machine.start] @ np.linalg.matrix_power(after_operator @ after_operand, length // 2)
        asked = machine.outputs != IGNORE
        return float(np.bincount(machine.outputs[asked], weights=final[asked]).max())
