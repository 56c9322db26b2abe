"""Sum: the sum of the digits modulo a small number."""

from typing import Annotated

from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.automata import Transducer, library
from lengthwise.tasks.base import TASKS, UniformTask


@TASKS.register("sum")
class Sum(UniformTask):
    """The sum modulo `modulus` of digits below `modulus`; the digits are independent and uniform.

    ``answer_t = (symbol_1 + ... + symbol_t) mod modulus``; the classes are the remainders. With modulus 2, the task is
    parity.

    Raises:
        ValueError: `modulus` is not in 1 ... 10 (digits are single symbols).

    Example:
        >>> task = Sum(modulus=5)
        >>> task.solve(task.encode("0324")[None]).tolist()
        [[0, 3, 0, 4]]

    Source: Fan et al., "Advancing Regular Language Reasoning in Linear Recurrent Neural Networks" (arXiv 2309.07412),
        section 4.1, Sum(M).
    Differs from the source: no difference.
    """

    modulus: Annotated[int, Field(ge=1, le=10)] = 5

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the digits below `modulus`."""
        return tuple(map(str, range(self.modulus)))

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the remainders modulo `modulus`."""
        return self.symbols

    @property
    def transducer(self) -> Transducer:
        """Return the machine whose states are the remainders; the answer is the state."""
        return library.digit_sum(self.modulus)

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return for each prefix the sum of its digits modulo `modulus`."""
        return inputs.cumsum(dim=1) % self.modulus

    def baseline(self, length: int) -> float:
        """Return ``1 / modulus``, since all remainders are equally likely at every length."""
        return 1 / self.modulus
