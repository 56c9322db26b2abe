"""Evaluation plans: the lengths that are measured, the number of strings at each length, and the protocol."""

from collections.abc import Iterator
from numbers import Integral
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
from lengthwise.evaluation.perplexity import CURVES_OF_ANSWERS, PerplexityCurve, perplexity_curve
from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import RegularTask, SymbolTask, Task, VectorTask, check_is_task
from lengthwise.text.language import LanguageTask, check_is_text
from lengthwise.validation import Description, check_kind, truncate

Part = Literal["dense", "long", "structured"]

TEXT_FIELDS = ("chunk_lengths", "num_chunks")
"""The fields of a plan that apply only to texts."""

LongLength = tuple[PositiveInt, PositiveInt]
"""A length, and the number of strings that are measured at this length."""

CHUNK_LENGTHS, NUM_CHUNKS = (128, 256, 512, 1_024, 2_048), 256
"""The default lengths of a text's chunks, in tokens, and the default number of chunks of each length."""


class EvaluationPlan(Description):
    """A plan of what is measured: a dense range of lengths, a few long lengths, and structured strings.

    The dense range is measured with protocol `one-pass` if the task is `prefix_exchangeable`, and otherwise with
    independent strings. Long lengths always have independent strings. `dense_every` is the distance from one measured
    length of the dense range to the next. The strings are drawn from `seed`, and are the same for every run. With
    `certificate`, the model is also certified. Language models are measured by their perplexity instead, on
    `num_chunks` chunks of the test split at each of `chunk_lengths`.
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
            low, high = sorted(max(1, length) for length in self.dense)
            raise ValueError(
                f"dense: expected two lengths of at least 1, in order, got {self.dense}; write for example ({low}, "
                f"{high})"
            )
        return self

    def limit_lengths(self, max_length: int, task: Task | None = None) -> "EvaluationPlan":
        """Return the plan without lengths above `max_length`.

        If all chunk lengths are above `max_length`, then `max_length` becomes the only chunk length. Long lengths at
        which the task cannot draw strings are also left out.

        Raises:
            ValueError: `max_length` is below the dense range or, for a text, below two tokens.
        """
        check_kind("max_length", max_length, Integral, "a whole number")
        low, high = self.dense
        first = 2 if isinstance(task, LanguageTask) else low
        if max_length < first:
            raise ValueError(
                f"max_length: expected at least {first}, the first length that is measured, got {max_length}; give a "
                "larger length"
            )
        drawn = task.max_drawn_length if isinstance(task, SymbolTask) else None
        longest = max_length if drawn is None else min(max_length, drawn)
        return self.model_copy(
            update={
                "dense": (low, max(low, min(high, max_length))),
                "long": tuple(pair for pair in self.long if pair[0] <= longest),
                "structured": tuple(pair for pair in self.structured if pair[0] <= max_length),
                "chunk_lengths": tuple(length for length in self.chunk_lengths if length <= max_length)
                or (max_length,),
            }
        )

    def reset_unused(self, task: Task) -> "EvaluationPlan":
        """Return the plan with defaults in the fields that this task does not use, so that equivalent plans are equal.

        Example:
            >>> from lengthwise.tasks.base import make_task
            >>> EvaluationPlan(num_chunks=7).reset_unused(make_task("parity")).num_chunks
            256
        """
        check_is_task(task)
        is_text = isinstance(task, LanguageTask)
        unused = ("dense", "dense_every", "dense_strings", "long", "structured") if is_text else TEXT_FIELDS
        default = EvaluationPlan()
        return self.model_copy(update={name: getattr(default, name) for name in unused})

    def usable_chunk_lengths(self, size: int) -> list[int]:
        """Return the chunk lengths that fit in a text of `size` tokens, or only `size` if no chunk length fits."""
        return [length for length in self.chunk_lengths if length <= size] or [size]

    def restrict_dense(self, low: int, high: int) -> "EvaluationPlan":
        """Return the plan with its dense range cut to another range, or unchanged if the two ranges do not overlap.

        Example:
            >>> EvaluationPlan(dense=(41, 500)).restrict_dense(51, 100).dense
            (51, 100)
        """
        shared = max(low, self.dense[0]), min(high, self.dense[1])
        return self if shared[0] > shared[1] else self.model_copy(update={"dense": shared})

    def covers(self, other: "EvaluationPlan") -> bool:
        """Return whether a result of this plan contains every measurement of the other plan.

        This plan may have more lengths than the other plan, and a certificate that the other plan does not need. If
        `dense_every` skips lengths of the dense range, both dense ranges must begin with the same length.

        Example:
            >>> wide, narrow = EvaluationPlan(), EvaluationPlan().limit_lengths(1_000)
            >>> wide.covers(narrow), narrow.covers(wide)
            (True, False)
        """
        check_kind("other", other, EvaluationPlan, "an EvaluationPlan")
        (low, high), (other_low, other_high) = self.dense, other.dense
        is_dense = low == other_low if self.dense_every > 1 else low <= other_low
        listed = ("long", "structured", "chunk_lengths")
        has_listed = all(set(getattr(other, name)) <= set(getattr(self, name)) for name in listed)
        # All other fields must be equal: they change which strings are drawn.
        covered = {name: getattr(self, name) for name in ("dense", *listed)}
        covered["certificate"] = self.certificate or other.certificate
        return is_dense and other_high <= high and has_listed and self == other.model_copy(update=covered)

    def measure(
        self, model: SequenceModel, task: SymbolTask, set_progress: SetProgress = lambda fraction: None
    ) -> Iterator[tuple[Part, LengthCurve]]:
        """Yield the plan's measurements, part by part; a part without lengths that the task allows is empty.

        If the task has no strings with lengths in the dense range, the task's longest length below the range is
        measured. `set_progress` is called with the fraction of each part that is done.
        """
        yield "dense", self.measure_dense(model, task, set_progress)
        yield "long", self._at(self.long, model, task, "independent", set_progress)
        structured = self.structured if has_structured(task) else ()
        yield "structured", self._at(structured, model, task, "structured", set_progress)

    def measure_dense(
        self, model: SequenceModel, task: SymbolTask, set_progress: SetProgress = lambda fraction: None
    ) -> LengthCurve:
        """Return the accuracies in the dense range, the first part of `measure`."""
        low, high = self.dense
        exchangeable = isinstance(task, RegularTask) and task.prefix_exchangeable
        protocol: Protocol = "one-pass" if exchangeable else "independent"
        lengths: list[int] = []
        for length in range(low, high + 1):
            is_next = not lengths or length >= lengths[-1] + self.dense_every
            if is_next and task.is_legal_length(length):
                lengths.append(length)
        # Some tasks have only short strings, so their longest strings are measured instead.
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
        """Return the errors on the task's longest prompts whose length is at most the end of the dense range."""
        longest = max_legal_length(task, self.dense[1])
        assert longest is not None  # every such task has prompts of one example
        return error_curve(model, task, longest, num_prompts=self.dense_strings, seed=self.seed)

    def measure_perplexity(
        self, model: SequenceModel, task: LanguageTask, set_progress: SetProgress = lambda fraction: None
    ) -> PerplexityCurve:
        """Return the perplexities of the test split at the plan's chunk lengths (`usable_chunk_lengths`)."""
        check_is_text(task, CURVES_OF_ANSWERS)
        size = len(task.tokens("test"))
        lengths = self.usable_chunk_lengths(size)
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
        """Return the points at some lengths; a length without strings is replaced by length - 1, or left out."""
        points: list[LengthPoint] = []
        for length, num_strings in lengths:
            nearest = length if task.is_legal_length(length) else length - 1
            if task.is_legal_length(nearest):
                curve = length_curve(model, task, [nearest], num_strings=num_strings, seed=self.seed, protocol=protocol)
                points.extend(curve.points)
            set_progress(sum(other for other, _ in lengths if other <= length) / sum(other for other, _ in lengths))
        return LengthCurve(protocol=protocol, points=tuple(points))


MAX_LENGTHS = 100_000
"""The largest number of lengths in the text that `parse_lengths` reads; more are probably a mistake."""


def parse_lengths(text: str) -> list[int]:
    """Return the lengths in a text such as ``41-500,1000``, in order, each once; raise a ValueError for other texts.

    Example:
        >>> parse_lengths("10,2-4,3")
        [2, 3, 4, 10]
    """
    check_kind("lengths", text, str, "a text such as 41-500,1000")
    ranges = [_parse_range(part.strip()) for part in text.split(",")]
    if (count := sum(map(len, ranges))) > MAX_LENGTHS:
        raise ValueError(f"lengths: expected at most {MAX_LENGTHS:,} lengths, got {count:,}; write a shorter range")
    return sorted(set().union(*ranges))


def _parse_range(part: str) -> range:
    low, dash, high = part.partition("-")
    digits = len(str(MAX_LENGTH))
    if not low.isdecimal() or (dash and not high.isdecimal()):
        raise ValueError(
            f"lengths: expected lengths and ranges such as 41-500,1000, got {truncate(repr(part))}; write such a list"
        )
    if max(len(low), len(high)) > digits or int(high or low) > MAX_LENGTH:
        raise ValueError(
            f"lengths: expected lengths of at most {MAX_LENGTH:,}, got {truncate(part)}; give smaller lengths"
        )
    if dash and int(low) > int(high):
        raise ValueError(f"lengths: expected ranges that begin with the smaller length, got {part}; write {high}-{low}")
    return range(int(low), int(high or low) + 1)
