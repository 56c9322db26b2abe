"""The check that the methods of a task from another package agree with each other."""

from itertools import islice, product

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.conventions import IGNORE, PAD
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import Batch, OracleTask, RegularTask, SymbolTask

NUM_STRINGS, NUM_LENGTHS, MAX_LENGTH = 4, 5, 10_000
"""The number of strings drawn at a length, the number of legal lengths listed, and the largest length considered.

Only the first and the last listed length are tested.
"""

COUNTED, TOLERANCE = 1_024, 0.1
"""The number of strings that measure the score of the best constant answer, and the tolerance for `baseline`.

A task is rejected if `baseline` differs from the measured score by more than the tolerance. The tolerance exceeds six
standard errors of the measured score.
"""

ANSWERED, ANSWERED_LENGTH = 256, 4
"""The largest number of strings per length on which `solve` and the machine are compared, and the largest length."""


def check_task_consistent(task: SymbolTask) -> None:
    """Reject a task whose methods contradict each other.

    Callers pass only tasks of other packages, because the tests of Lengthwise check its own tasks.

    Raises:
        ValueError: the task lacks symbols, classes or strings; a symbol is not read back from its text; drawn strings
            or their answers have a wrong type, shape or id; the machine contradicts `solve`; or `baseline` is not the
            score of the best constant answer.
    """
    name = type(task).__name__
    for attribute, names in (("symbols", task.symbols), ("classes", task.classes)):
        if not names or len(set(names)) < len(names):
            got = "no names" if not names else "one name twice"
            raise ValueError(
                f"{name}.{attribute}: expected one or more different names, got {got}; list each name once, in the "
                "order of ids"
            )
    _check_text(task)
    lengths = list(islice(filter(task.is_legal_length, range(1, MAX_LENGTH + 1)), NUM_LENGTHS))
    if not lengths:
        raise ValueError(
            f"{name}.is_legal_length: expected True for some length of up to {MAX_LENGTH:,}, got False for all; return "
            "True for each length that has strings"
        )
    for length in {lengths[0], lengths[-1]}:
        batch = task.sample(NUM_STRINGS, length, generator_for(0, "consistency", length))
        _check_batch(task, batch, (NUM_STRINGS, length))
        if isinstance(task, OracleTask):
            _check_ids(f"{name}.solve", task.solve(batch.inputs), batch.inputs.shape, len(task.classes), IGNORE)
        _check_baseline(task, length)
    if isinstance(task, RegularTask):
        _check_machine(task)


def _check_text(task: SymbolTask) -> None:
    """Check that each symbol, written twice as text, is read back, because users enter and see strings as text."""
    for index, symbol in enumerate(task.symbols):
        try:
            read = task.encode(task.decode(torch.tensor([index, index]))).tolist()
        except ValueError:
            read = []
        if read != [index, index]:
            raise ValueError(
                f"{type(task).__name__}.symbols: expected characters, or words without spaces, got {symbol!r}; its "
                "text would be read as another string, so rename the symbol"
            )


def _check_batch(task: SymbolTask, batch: Batch, shape: tuple[int, int]) -> None:
    name = type(task).__name__
    if not isinstance(batch, Batch):
        raise ValueError(
            f"{name}.sample: expected a Batch of inputs and targets, got {type(batch).__name__}; return Batch(inputs, "
            "targets)"
        )
    _check_ids(f"{name}.sample, inputs", batch.inputs, shape, len(task.symbols), PAD)
    _check_ids(f"{name}.sample, targets", batch.targets, shape, len(task.classes), IGNORE)


def _check_baseline(task: SymbolTask, length: int) -> None:
    """Compare `baseline` with the most frequent answer's share of the final answers."""
    batch = task.sample(COUNTED, length, generator_for(0, "baseline", length))
    answers = batch.targets.gather(1, batch.last_supervised[:, None])
    answers = answers[answers != IGNORE]
    if not len(answers):
        return
    share, baseline = float(answers.bincount().max()) / len(answers), task.baseline(length)
    # `not ... <=` instead of `>`, so that a NaN is also reported.
    if not abs(share - baseline) <= TOLERANCE:
        raise ValueError(
            f"{type(task).__name__}.baseline: expected about {share:.2f} at length {length} (the most frequent "
            f"answer's share of {COUNTED:,} final answers), got {baseline:.2f}; correct the baseline, because reports "
            "print it as chance"
        )


def _check_ids(what: str, ids: object, shape: tuple[int, ...], count: int, none: int) -> None:
    """Raise a ValueError unless `ids` are int64 of this shape, each from 0 to `count` - 1 or equal to `none`."""
    if not isinstance(ids, Tensor) or ids.dtype != torch.int64 or ids.shape != torch.Size(shape):
        got = f"{ids.dtype}, {list(ids.shape)}" if isinstance(ids, Tensor) else type(ids).__name__
        raise ValueError(
            f"{what}: expected whole numbers (torch.int64) of shape {list(shape)}, got {got}; return one id for each "
            "string and position"
        )
    outside = (ids != none) & ((ids < 0) | (ids >= count))
    if outside.any():
        meaning = "a pad" if none == PAD else "no answer"
        raise ValueError(
            f"{what}: expected numbers from 0 to {count - 1}, or {none} for {meaning}, got {int(ids[outside][0])}; "
            "correct the numbers, or list the missing symbols or classes"
        )


def _check_machine(task: RegularTask) -> None:
    """Compare the machine's symbols with the task's, and its answers to short strings with `solve`."""
    name, machine = type(task).__name__, task.transducer
    if machine.symbols != task.symbols:
        raise ValueError(
            f"{name}.transducer: expected the symbols {', '.join(task.symbols)}, got {', '.join(machine.symbols)}; "
            "give the task and the machine the same symbols in the same order"
        )
    for length in range(1, ANSWERED_LENGTH + 1):
        strings = _short_strings(len(task.symbols), length)
        solved = task.solve(strings)
        answers = torch.from_numpy(machine.run(strings.numpy()))
        differs = (solved != answers).nonzero()
        if len(differs):
            row, column = differs[0].tolist()
            told = [_class_name(task, int(numbers[row, column])) for numbers in (solved, answers)]
            raise ValueError(
                f"{name}.transducer: expected the answer of solve, {told[0]}, after "
                f"{task.decode(strings[row, : column + 1])!r}, got {told[1]}; correct solve or the transducer"
            )


def _class_name(task: SymbolTask, answer: int) -> str:
    if answer == IGNORE:
        return "none"
    return repr(task.classes[answer]) if 0 <= answer < len(task.classes) else str(answer)


def _short_strings(num_symbols: int, length: int) -> Int64[Tensor, "N T"]:
    """Return all strings of a length, or only the first `ANSWERED` of them."""
    return torch.tensor(list(islice(product(range(num_symbols), repeat=length), ANSWERED)))
