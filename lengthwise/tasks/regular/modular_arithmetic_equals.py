"""Modular arithmetic whose expressions end with an =."""

from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.automata import Transducer, library
from lengthwise.conventions import IGNORE
from lengthwise.tasks.base import TASKS, Batch
from lengthwise.tasks.regular.modular_arithmetic import ModularArithmetic


@TASKS.register("modular-arithmetic-equals")
class ModularArithmeticEquals(ModularArithmetic):
    """The value modulo `modulus` of an expression, answered at the = that ends it.

    The answer at the = is the answer at the operand before it. Operands also have answers, and nothing is supervised
    after an =. All else is as in `modular-arithmetic`, except that a prefix of a sample lacks the = and is not a
    sample.

    Example:
        >>> task = ModularArithmeticEquals(modulus=5)
        >>> task.solve(task.encode("3-2*4=")[None]).tolist()
        [[3, -100, 1, -100, 0, 0]]

    Source: Beck et al., "xLSTM: Extended Long Short-Term Memory" (NeurIPS 2024), Modular Arithmetic (without brackets),
        as Grazzi et al. (ICLR 2025) and Terzić et al. (NeurIPS 2025) use it.
    Differs from the source: if all prefixes are supervised, operands have answers as well. There are no unused symbols.
    """

    prefix_exchangeable: ClassVar[bool] = False

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the digits below `modulus`, then + - * =."""
        return (*super().symbols, "=")

    @property
    def transducer(self) -> Transducer:
        """Return the machine of `modular-arithmetic`, extended by the answers after an =."""
        return library.modular_arithmetic_equals(self.modulus, self.leading_plus)

    def is_legal_length(self, length: int) -> bool:
        """Return whether the length is even, or odd with `leading_plus`."""
        return super().is_legal_length(length - 1)

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw expressions, and append an = to each expression."""
        expressions = self._expression.sample(batch_size, length - 1, generator).inputs
        inputs = torch.nn.functional.pad(expressions, (0, 1), value=self.modulus + 3)
        return Batch(inputs, self.solve(inputs))

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return answers: the first = gets the answer of the position before it, and later positions get `IGNORE`."""
        values = super().solve(inputs)
        before = torch.nn.functional.pad(values, (1, -1), value=IGNORE)
        ends = inputs == self.modulus + 3
        num_ends = ends.cumsum(1)
        return torch.where(num_ends == 0, values, torch.where(ends & (num_ends == 1), before, IGNORE))

    def baseline(self, length: int) -> float:
        """Return the baseline of `modular-arithmetic` for the expression before the =."""
        return self._expression.baseline(length - 1)

    @property
    def _expression(self) -> ModularArithmetic:
        return ModularArithmetic(modulus=self.modulus, leading_plus=self.leading_plus)
