"""Which lengths are measured, with how many strings, by which protocol."""

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint, Protocol, length_curve
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import OracleTask, RegularTask, SymbolTask

LongLength = tuple[int, int]
"""A length and the number of strings measured at it."""


class EvaluationPlan(BaseModel):
    """A range measured densely, a few long lengths, and structured strings.

    The dense range is measured in one pass where the task is `prefix_exchangeable`, with independent strings
    otherwise; long lengths always with independent strings. Strings are drawn from `seed`, the same for every run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dense: tuple[int, int] = (41, 500)
    dense_strings: int = Field(256, ge=1)
    long: tuple[LongLength, ...] = ((1_000, 256), (10_000, 256), (100_000, 32))
    structured: tuple[LongLength, ...] = ((500, 32), (10_000, 16))
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _dense_in_order(self) -> "EvaluationPlan":
        if not 1 <= self.dense[0] <= self.dense[1]:
            raise ValueError(f"dense: wanted two lengths in order, got {self.dense}")
        return self

    def measure(self, model: SequenceModel, task: SymbolTask) -> Iterator[LengthCurve]:
        """The curves of the plan, one after the other; lengths that the task does not have are left out."""
        low, high = self.dense
        exchangeable = isinstance(task, RegularTask) and task.prefix_exchangeable
        protocol: Protocol = "one-pass" if exchangeable else "independent"
        lengths = [length for length in range(low, high + 1) if task.is_legal_length(length)]
        if lengths:
            yield length_curve(model, task, lengths, num_strings=self.dense_strings, seed=self.seed, protocol=protocol)
        yield from self._long(model, task, self.long, "independent")
        if isinstance(task, OracleTask):
            yield from self._long(model, task, self.structured, "structured")

    def _long(
        self, model: SequenceModel, task: SymbolTask, lengths: tuple[LongLength, ...], protocol: Protocol
    ) -> Iterator[LengthCurve]:
        points: list[LengthPoint] = []
        for length, num_strings in lengths:
            nearest = length if task.is_legal_length(length) else length - 1
            if task.is_legal_length(nearest):
                curve = length_curve(model, task, [nearest], num_strings=num_strings, seed=self.seed, protocol=protocol)
                points.extend(curve.points)
        if points:
            yield LengthCurve(protocol=protocol, points=tuple(points))


def parse_lengths(text: str) -> list[int]:
    """Lengths from words like ``41-500,1000``; anything else is a ValueError.

    Example:
        >>> parse_lengths("2-4,10")
        [2, 3, 4, 10]
    """
    lengths: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise ValueError(f"--lengths: wanted lengths and ranges such as 41-500,1000, got {part.strip()!r}")
        if dash and int(low) > int(high):
            raise ValueError(f"--lengths: wanted a range in order, got {part.strip()}; write {high}-{low}")
        lengths.extend(range(int(low), int(high or low) + 1))
    return lengths
