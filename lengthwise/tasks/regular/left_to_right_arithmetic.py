"""Arithmetic without precedence: the value of an expression read from left to right, modulo a small number."""

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.automata import Transducer, library
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.regular.modular_arithmetic import ModularArithmetic


@TASKS.register("left-to-right-arithmetic")
class LeftToRightArithmetic(ModularArithmetic):
    """The value modulo `modulus` of digits joined by `+`, `-` and `*`, each applied to the value so far.

    Everything else is as in `modular-arithmetic`, which multiplies before it adds: 1+2*3 is 7 there and 9 here. Each
    operator with its operand is a map v -> a v + b. The machine therefore stores no separate term, and is smaller than
    the machine of `modular-arithmetic`.

    Example:
        >>> task = LeftToRightArithmetic(modulus=5)
        >>> task.solve(task.encode("3-2*4")[None]).tolist()
        [[3, -100, 1, -100, 4]]

    Source: Butoi et al., "Training Neural Networks as Recognizers of Formal Languages" (arXiv 2411.07107), Modular
        Arithmetic, whose answers are the symbols after an =.
    Differs from the source: the answer is a class instead of a symbol of a recognized string; nothing marks the end.
    """

    @property
    def transducer(self) -> Transducer:
        """Return a machine whose state is the value so far, and the operator that waits for its operand."""
        return library.left_to_right_arithmetic(self.modulus, self.leading_plus)

    def _values(self, operands: Int64[Tensor, "N B"], operators: Int64[Tensor, "N1 B"]) -> Int64[Tensor, "N B"]:
        value = operands[0]
        values = [value]
        for operator, operand in zip(operators, operands[1:], strict=True):
            total = torch.where(operator == self.modulus + 1, value - operand, value + operand)
            value = torch.where(operator == self.modulus + 2, value * operand, total) % self.modulus
            values.append(value)
        return torch.stack(values)
