"""Reverse string: the letters from the last to the first."""

from typing import Annotated

from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.tasks.algorithmic.string_answer import UniformStringTask
from lengthwise.tasks.base import TASKS

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class LetterTask(UniformStringTask):
    """A task on strings of the first `num_letters` letters of the alphabet."""

    num_letters: Annotated[int, Field(ge=2, le=26)] = 2

    @property
    def letters(self) -> tuple[str, ...]:
        """Return the first `num_letters` letters of the alphabet."""
        return tuple(LETTERS[: self.num_letters])


@TASKS.register("reverse-string")
class ReverseString(LetterTask):
    """The letters of a string from the last to the first, queried one by one (`StringAnswerTask`).

    Raises:
        ValueError: `num_letters` is not in 2 ... 26.

    Example:
        >>> task = ReverseString()
        >>> task.solve(task.encode("abb???")[None])[0, 3:].tolist()
        [1, 1, 0]

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Reverse String.
    Differs from the source: the field `num_letters` (2 there), and the ways that `StringAnswerTask` lists.
    """

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return the letters of each string in reverse order."""
        return strings.flip(1)
