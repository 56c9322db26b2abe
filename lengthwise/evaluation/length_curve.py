"""Measurements of the accuracy of the final answer against length."""

from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import NamedTuple, TypeGuard, cast, get_args

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.devices import device_of, moved, one_thread
from lengthwise.evaluation.curve import LengthCurve as LengthCurve
from lengthwise.evaluation.curve import LengthPoint as LengthPoint
from lengthwise.evaluation.curve import Protocol as Protocol
from lengthwise.evaluation.curve import best_known as best_known
from lengthwise.evaluation.structured import STRUCTURED
from lengthwise.models.base import RecurrentModel, SequenceModel, check_is_model, eval_mode
from lengthwise.models.consistency import check_consistent, check_sizes
from lengthwise.ops.answers import answers_of
from lengthwise.randomness import generator_for, whole_seed
from lengthwise.registry import check_known, is_of_package
from lengthwise.tasks.algorithmic.string_answer import StringAnswerTask
from lengthwise.tasks.base import MAX_SYMBOLS, Batch, OracleTask, RegularTask, SymbolTask, Task, check_is_task
from lengthwise.tasks.consistency import check_task_consistent
from lengthwise.validation import check_function, whole_number

SetProgress = Callable[[float], None]
"""A function that is called with the fraction of the work that is done, up to 1."""

MAX_STRINGS, MAX_LENGTH = 1_000_000, 10_000_000
"""The largest number of strings of one length, and the largest length; more are probably a mistake."""

MAX_SYMBOLS_DRAWN = 1 << 19
"""The largest number of symbols that are drawn at once. Drawing stores about five numbers for each symbol, including
the answers to all prefixes."""

MAX_SYMBOLS_PER_CHUNK = 1 << 18
"""The largest number of symbols that are read at once, so that memory does not grow with the number of strings."""

MIN_STRINGS_PER_CHUNK = 256
"""The smallest number of strings that a recurrent model reads at once.

Memory does not limit this number, because a recurrent model reads a few positions at a time at any length.
"""


def parse_protocol(name: str) -> Protocol:
    """Return the protocol of this name; raise a ValueError with the nearest known name if this name is unknown."""
    check_known("protocol", name, [protocol for protocol in get_args(Protocol) if protocol != "labeled"])
    return cast(Protocol, name)


def has_structured(task: Task) -> TypeGuard[OracleTask]:
    """Return whether a task answers structured strings; a `StringAnswerTask` (strings with queries) does not."""
    return isinstance(task, OracleTask) and not isinstance(task, StringAnswerTask)


def max_legal_length(task: Task, maximum: int) -> int | None:
    """Return the largest length up to `maximum` at which the task has strings (`is_legal_length`), or None."""
    return next((length for length in range(maximum, 0, -1) if task.is_legal_length(length)), None)


@one_thread()
def length_curve(
    model: SequenceModel,
    task: Task,
    lengths: Iterable[int],
    *,
    num_strings: int = 256,
    seed: int = 0,
    protocol: Protocol = "independent",
    set_progress: SetProgress = lambda fraction: None,
) -> LengthCurve:
    """Measure the accuracy of final answers at each length, on strings that do not depend on the model.

    Each length is measured once, in ascending order. The strings depend on `seed`, `num_strings` and their length.
    Under `"one-pass"`, strings are prefixes of the longest strings, and depend on the longest length. An answer counts
    as wrong if the model's states overflow. `set_progress` is called with the fraction of the work that is done.

    Raises:
        ValueError: the task has no strings of a length (`is_legal_length`), or no length is given. The task does not
            allow the protocol, or its answers are numbers.
    """
    check_is_model(model)
    check_is_task(task)
    if not isinstance(task, SymbolTask):
        raise ValueError(
            f"task: expected a task whose answers are classes, got {task.name}, whose answers are numbers; "
            "use error_curve"
        )
    in_order = ascending(lengths)
    num_strings = whole_number("num_strings", num_strings, 1, MAX_STRINGS)
    if in_order[-1] > (longest := min(MAX_LENGTH, MAX_SYMBOLS // num_strings)):
        got = f"symbols in each of {num_strings:,} strings, got {in_order[-1]:,}; measure shorter or fewer strings"
        raise ValueError(f"lengths: expected at most {longest:,} {got}")
    check_function("set_progress", set_progress)
    seed = whole_seed(seed)
    if not is_of_package(type(task)):
        check_task_consistent(task)
    check_consistent(model, task)
    check_sizes(model, task)
    parse_protocol(protocol)
    measure = _structured if protocol == "structured" else _independent
    points: list[LengthPoint] = []
    with eval_mode(model):
        if protocol == "one-pass":
            points = _one_pass(model, task, in_order, num_strings, seed, set_progress)
        else:
            for number, length in enumerate(in_order, start=1):
                task.check_length(length)
                points += measure(model, task, length, num_strings, seed)
                set_progress(sum(in_order[:number]) / sum(in_order))
    return LengthCurve(protocol=protocol, points=tuple(points))


def ascending(lengths: Iterable[int]) -> list[int]:
    """Return each length once, in ascending order.

    Raises:
        ValueError: no length is given, or a length is not a whole number.
    """
    if isinstance(lengths, str | bytes) or not isinstance(lengths, Iterable):
        raise ValueError(
            f"lengths: expected a list of lengths, such as [41, 100], got {lengths!r}; put the length in brackets, "
            "as a number"
        )
    lengths = list(lengths)
    if others := [length for length in lengths if not isinstance(length, Integral) or isinstance(length, bool)]:
        raise ValueError(f"lengths: expected whole numbers, got {others[0]!r}; give numbers such as 41")
    if not lengths:
        raise ValueError("lengths: expected at least one length, got none; give numbers such as 41")
    return sorted({int(length) for length in lengths})


def final_answers(model: SequenceModel, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, " B"]:
    """Return the model's answer to each whole string, or -1 if the model's states overflow on the string.

    The strings are read in parts of bounded size. The answers are on the device of the strings, which may differ from
    the model's device.
    """
    minimum = MIN_STRINGS_PER_CHUNK if isinstance(model, RecurrentModel) else 1
    chunk_size = max(minimum, MAX_SYMBOLS_PER_CHUNK // inputs.shape[1])
    device = device_of(model)
    parts = (moved(part, device) for part in inputs.split(chunk_size))
    return torch.cat([answers_of(model.last(part)).to(inputs.device) for part in parts])


class LabeledStrings(NamedTuple):
    """Strings of one length, the last supervised position of each string, and the right answer at this position."""

    inputs: Int64[Tensor, "B T"]
    positions: Int64[Tensor, " B"]
    targets: Int64[Tensor, " B"]


def labeled(batch: Batch) -> LabeledStrings:
    """Return the strings of a batch, each with its last supervised answer, and without answers to other prefixes."""
    positions = batch.last_supervised
    return LabeledStrings(batch.inputs, positions, batch.targets.gather(1, positions[:, None])[:, 0])


def sample_in_parts(
    task: SymbolTask, num_strings: int, length: int, generator: torch.Generator
) -> Iterator[tuple[slice, Batch]]:
    """Draw strings in batches of at most `MAX_SYMBOLS_DRAWN` symbols; yield each batch with the slice of its rows.

    All batches together would take more memory than all strings, because a batch also contains the answers to prefixes.
    """
    size = max(1, MAX_SYMBOLS_DRAWN // length)
    for start in range(0, num_strings, size):
        stop = min(start + size, num_strings)
        yield slice(start, stop), task.sample(stop - start, length, generator)


def draw_labeled(task: SymbolTask, num_strings: int, length: int, generator: torch.Generator) -> LabeledStrings:
    """Draw strings by `sample_in_parts`, and keep only the last supervised answer to each string."""
    inputs = torch.empty(0, 0, dtype=torch.int64)
    positions, targets = [], []
    for rows, batch in sample_in_parts(task, num_strings, length, generator):
        part = labeled(batch)
        if not rows.start:
            # Joining a list of parts would hold all strings twice.
            inputs = part.inputs.new_empty(num_strings, part.inputs.shape[1])
        inputs[rows] = part.inputs
        positions.append(part.positions)
        targets.append(part.targets)
    return LabeledStrings(inputs, torch.cat(positions), torch.cat(targets))


def supervised_answers(
    model: SequenceModel, inputs: Int64[Tensor, "B T"], positions: Int64[Tensor, " B"]
) -> Int64[Tensor, " B"]:
    """Return the model's answer at one position of each row, or -1 if the states overflow up to this position."""
    length = inputs.shape[1]
    if bool((positions == length - 1).all()):
        return final_answers(model, inputs)
    parts = inputs.split(max(1, MAX_SYMBOLS_PER_CHUNK // (8 * length)))  # all prefixes need more memory
    return torch.cat([prefix_answers(model, part) for part in parts]).gather(1, positions[:, None])[:, 0]


def answered_point(model: SequenceModel, task: SymbolTask, strings: LabeledStrings, length: int) -> LengthPoint:
    """Return the point of a curve for strings of one length, graded at the last supervised position of each string.

    Example:
        >>> import torch
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> task = make_task("parity")
        >>> strings = draw_labeled(task, 16, 4, torch.Generator().manual_seed(0))
        >>> answered_point(make_model("gru", task), task, strings, 4).num_strings
        16
    """
    return graded_point(task, length, supervised_answers(model, strings.inputs, strings.positions), strings.targets)


def prefix_answers(model: SequenceModel, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
    """Return the model's answers to all prefixes; from the first overflow of the model's states on, answers are -1."""
    return answers_of(model(moved(inputs, device_of(model)))).to(inputs.device)


def _independent(model: SequenceModel, task: SymbolTask, length: int, num_strings: int, seed: int) -> list[LengthPoint]:
    strings = draw_labeled(task, num_strings, length, generator_for(seed, "evaluation", length))
    return [answered_point(model, task, strings, length)]


def _one_pass(
    model: SequenceModel, task: SymbolTask, lengths: list[int], num_strings: int, seed: int, set_progress: SetProgress
) -> list[LengthPoint]:
    if not (isinstance(task, RegularTask) and task.prefix_exchangeable):
        raise ValueError(
            "protocol: expected 'independent', because prefixes of strings are not distributed like shorter strings in "
            f"the task {task.name}, got 'one-pass'; choose 'independent'"
        )
    for length in lengths:
        task.check_length(length)
    longest = lengths[-1]
    batch = task.sample(num_strings, longest, generator_for(seed, "evaluation", longest))
    columns = torch.tensor(lengths) - 1
    parts = batch.inputs.split(max(1, MAX_SYMBOLS_PER_CHUNK // (8 * longest)))
    answered = []
    for part in parts:
        answered.append(prefix_answers(model, part)[:, columns])
        set_progress(len(answered) / len(parts))
    answers = torch.cat(answered)
    targets = batch.targets[:, columns]
    return [graded_point(task, length, answers[:, index], targets[:, index]) for index, length in enumerate(lengths)]


def _structured(model: SequenceModel, task: SymbolTask, length: int, num_strings: int, seed: int) -> list[LengthPoint]:
    if not has_structured(task):
        raise ValueError(
            f"protocol: expected 'independent', because the task {task.name} does not answer arbitrary strings, got "
            "'structured'; choose 'independent'"
        )
    points = []
    for family, draw in STRUCTURED.items():
        drawn = draw(len(task.symbols), num_strings, length, generator_for(seed, family, length))
        inputs = drawn.unique(dim=0)  # some families have only a few strings, and each counts once
        targets = task.solve(inputs)[:, -1]
        supervised = targets != IGNORE
        if not supervised.any():
            continue  # no string of this family is well-formed for the task
        inputs, targets = inputs[supervised], targets[supervised]
        answers = final_answers(model, inputs)
        majority = targets.bincount().max().item() / len(targets)
        points.append(graded_point(task, length, answers, targets, baseline=majority, family=family))
    return points


def graded_point(
    task: SymbolTask,
    length: int,
    answers: Int64[Tensor, " B"],
    targets: Int64[Tensor, " B"],
    *,
    baseline: float | None = None,
    balanced: bool | None = None,
    family: str = "random",
) -> LengthPoint:
    """Compare answers to strings of one length with `targets`, and return the point of a length curve.

    If `baseline` or `balanced` is None, the task computes it for this length.
    """
    return LengthPoint(
        length=length,
        num_strings=len(answers),
        num_correct=int((answers == targets).sum()),
        baseline=task.baseline(length) if baseline is None else baseline,
        balanced=task.is_balanced_length(length) if balanced is None else balanced,
        family=family,
        num_overflowed=int((answers < 0).sum()),
    )
