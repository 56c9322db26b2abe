"""Which lengths are measured, with how many strings, by which protocol."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from lengthwise.evaluation.error_curve import ErrorCurve, error_curve
from lengthwise.evaluation.length_curve import (
    MAX_LENGTH,
    LengthCurve,
    LengthPoint,
    Protocol,
    SetProgress,
    has_structured,
    length_curve,
    max_legal_length,
)
from lengthwise.evaluation.perplexity import PerplexityCurve, perplexity_curve
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import RegularTask, SymbolTask, Task, VectorTask
from lengthwise.text.language import LanguageTask
from lengthwise.validation import Description, truncate

Part = Literal["dense", "long", "structured"]

CHUNKS = ("chunk_lengths", "num_chunks")
"""What a plan says of texts alone."""

LongLength = tuple[PositiveInt, PositiveInt]
"""A length and the number of strings measured at it."""

CHUNK_LENGTHS, NUM_CHUNKS = (128, 256, 512, 1_024, 2_048), 256
"""The chunks of a text whose perplexity is measured where nothing else is said."""


class EvaluationPlan(Description):
    """A range measured densely, a few long lengths, and structured strings.

    The dense range is measured in one pass where the task is `prefix_exchangeable`, with independent strings
    otherwise; long lengths always with independent strings. With `dense_every`, only lengths of the dense range that
    are so far apart are measured. Strings are drawn from `seed`, the same for every run.
    With `certificate`, whoever runs the plan also certifies the model. Language models are measured by
    perplexity instead: of `num_chunks` chunks of the test split at each of `chunk_lengths`.
    """

    dense: tuple[int, int] = (41, 500)
    dense_every: int = Field(1, ge=1, exclude_if=lambda every: every == 1)
    dense_strings: int = Field(256, ge=1)
    long: tuple[LongLength, ...] = ((1_000, 256), (10_000, 256), (100_000, 32))
    structured: tuple[LongLength, ...] = ((500, 32), (10_000, 16))
    certificate: bool = False
    chunk_lengths: tuple[int, ...] = Field(CHUNK_LENGTHS, exclude_if=lambda lengths: lengths == CHUNK_LENGTHS)
    num_chunks: int = Field(NUM_CHUNKS, ge=1, exclude_if=lambda count: count == NUM_CHUNKS)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _dense_in_order(self) -> "EvaluationPlan":
        if not 1 <= self.dense[0] <= self.dense[1]:
            raise ValueError(f"dense: expected two lengths in order, got {self.dense}")
        return self

    def up_to(self, max_length: int, task: Task | None = None) -> "EvaluationPlan":
        """The plan without what is longer than `max_length`; of a text chunks of two tokens are the shortest."""
        low, high = self.dense
        first = 2 if isinstance(task, LanguageTask) else low
        if max_length < first:
            raise ValueError(
                f"max_length: expected at least {first}, the first length that is measured, got {max_length}"
            )
        return self.model_copy(
            update={
                "dense": (low, max(low, min(high, max_length))),
                "long": tuple(pair for pair in self.long if pair[0] <= max_length),
                "structured": tuple(pair for pair in self.structured if pair[0] <= max_length),
                "chunk_lengths": tuple(length for length in self.chunk_lengths if length <= max_length)
                or (max_length,),
            }
        )

    def about(self, task: Task) -> "EvaluationPlan":
        """The plan as it is for this task: what is not measured of such tasks is as by default."""
        is_text = isinstance(task, LanguageTask)
        unused = ("dense", "dense_every", "dense_strings", "long", "structured") if is_text else CHUNKS
        default = EvaluationPlan()
        return self.model_copy(update={name: getattr(default, name) for name in unused})

    def chunk_lengths_within(self, size: int) -> list[int]:
        """Those of the lengths of chunks that a text of this many tokens has, or its own where it has none of them."""
        return [length for length in self.chunk_lengths if length <= size] or [size]

    def within(self, low: int, high: int) -> "EvaluationPlan":
        """The plan with what its dense range shares with another range; unchanged where that is nothing.

        Example:
            >>> EvaluationPlan(dense=(41, 500)).within(51, 100).dense
            (51, 100)
        """
        shared = max(low, self.dense[0]), min(high, self.dense[1])
        return self if shared[0] > shared[1] else self.model_copy(update={"dense": shared})

    def covers(self, other: "EvaluationPlan") -> bool:
        """Whether a result under this plan has all that one under the other would have.

        It may have more lengths, and a certificate that the other does not ask for. Where lengths of the dense range
        are left out, both have to begin with the same one.

        Example:
            >>> wide, narrow = EvaluationPlan(), EvaluationPlan().up_to(1_000)
            >>> wide.covers(narrow), narrow.covers(wide)
            (True, False)
        """
        (low, high), (other_low, other_high) = self.dense, other.dense
        is_dense = low == other_low if self.dense_every > 1 else low <= other_low
        listed = ("long", "structured", "chunk_lengths")
        has_listed = all(set(getattr(other, name)) <= set(getattr(self, name)) for name in listed)
        more = {name: getattr(self, name) for name in ("dense", *listed)}
        more["certificate"] = self.certificate or other.certificate
        return is_dense and other_high <= high and has_listed and self == other.model_copy(update=more)

    def measure(
        self, model: SequenceModel, task: SymbolTask, set_progress: SetProgress = lambda fraction: None
    ) -> Iterator[tuple[Part, LengthCurve]]:
        """The parts, one after the other; lengths that the task does not have are left out, so a part may be empty.

        Where the task has none of the dense range, its longest length below stands for that. `set_progress` is called
        with the fraction of each part that is done.
        """
        yield "dense", self.measure_dense(model, task, set_progress)
        yield "long", self._at(self.long, model, task, "independent", set_progress)
        structured = self.structured if has_structured(task) else ()
        yield "structured", self._at(structured, model, task, "structured", set_progress)

    def measure_dense(
        self, model: SequenceModel, task: SymbolTask, set_progress: SetProgress = lambda fraction: None
    ) -> LengthCurve:
        """The first part of `measure` alone."""
        low, high = self.dense
        exchangeable = isinstance(task, RegularTask) and task.prefix_exchangeable
        protocol: Protocol = "one-pass" if exchangeable else "independent"
        lengths: list[int] = []
        for length in range(low, high + 1):
            is_next = not lengths or length >= lengths[-1] + self.dense_every
            if is_next and task.is_legal_length(length):
                lengths.append(length)
        if not lengths and (longest := max_legal_length(task, low)):
            lengths = [longest]
        if not lengths:
            return LengthCurve(protocol=protocol, points=())
        return length_curve(
            model,
            task,
            lengths,
            num_strings=self.dense_strings,
            seed=self.seed,
            protocol=protocol,
            set_progress=set_progress,
        )

    def measure_errors(self, model: SequenceModel, task: VectorTask) -> ErrorCurve:
        """The errors on prompts of the longest length that the task has in the dense range or below."""
        longest = max_legal_length(task, self.dense[1])
        assert longest is not None  # one example is a prompt of every such task
        return error_curve(model, task, longest, num_prompts=self.dense_strings, seed=self.seed)

    def measure_perplexity(
        self, model: SequenceModel, task: LanguageTask, set_progress: SetProgress = lambda fraction: None
    ) -> PerplexityCurve:
        """The perplexities at those lengths that the test split has; where it has none, at its whole length."""
        size = len(task.tokens("test"))
        lengths = self.chunk_lengths_within(size)
        return perplexity_curve(
            model, task, lengths, num_chunks=self.num_chunks, seed=self.seed, set_progress=set_progress
        )

    def _at(
        self,
        lengths: tuple[LongLength, ...],
        model: SequenceModel,
        task: SymbolTask,
        protocol: Protocol,
        set_progress: SetProgress,
    ) -> LengthCurve:
        """The points at some lengths; where the task has no strings of one, one symbol less."""
        points: list[LengthPoint] = []
        for length, num_strings in lengths:
            nearest = length if task.is_legal_length(length) else length - 1
            if task.is_legal_length(nearest):
                curve = length_curve(model, task, [nearest], num_strings=num_strings, seed=self.seed, protocol=protocol)
                points.extend(curve.points)
            set_progress(sum(other for other, _ in lengths if other <= length) / sum(other for other, _ in lengths))
        return LengthCurve(protocol=protocol, points=tuple(points))


MAX_LENGTHS = 100_000
"""More lengths are taken for a slip."""


def parse_lengths(text: str) -> list[int]:
    """Lengths from words like ``41-500,1000``, in order and each once; anything else is a ValueError.

    Example:
        >>> parse_lengths("10,2-4,3")
        [2, 3, 4, 10]
    """
    ranges = [_parse_range(part.strip()) for part in text.split(",")]
    if (count := sum(map(len, ranges))) > MAX_LENGTHS:
        raise ValueError(f"lengths: expected at most {MAX_LENGTHS:,}, got {count:,}; write a shorter range")
    return sorted(set().union(*ranges))


def _parse_range(part: str) -> range:
    low, dash, high = part.partition("-")
    digits = len(str(MAX_LENGTH))
    if not low.isdecimal() or (dash and not high.isdecimal()):
        raise ValueError(f"lengths: expected lengths and ranges such as 41-500,1000, got {truncate(repr(part))}")
    if max(len(low), len(high)) > digits or int(high or low) > MAX_LENGTH:
        raise ValueError(f"lengths: expected lengths of at most {MAX_LENGTH:,}, got {truncate(part)}")
    if dash and int(low) > int(high):
        raise ValueError(f"lengths: expected a range in order, got {part}; write {high}-{low}")
    return range(int(low), int(high or low) + 1)
