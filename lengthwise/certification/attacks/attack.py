"""The search for a short string that a model answers wrongly, in one family of strings after another."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, NamedTuple

import torch
from pydantic import Field

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.attacks.board import Batch, Board, Budget
from lengthwise.certification.attacks.climbing import hill_climbing
from lengthwise.certification.attacks.families import loops, powers, runs, short_strings, w_method
from lengthwise.certification.counterexample import grade
from lengthwise.certification.methods.base import finite_or_none
from lengthwise.certification.parts import Count, Part
from lengthwise.certification.searches import Outcome
from lengthwise.certification.subject import checked_subject
from lengthwise.devices import denormals_kept, one_thread
from lengthwise.display import counted, in_powers
from lengthwise.models.base import SequenceModel, check_is_model
from lengthwise.randomness import whole_seed
from lengthwise.tasks.base import MachineTask, Task, check_is_task
from lengthwise.validation import whole_number

DEFAULT_SECONDS = 5.0
"""The default budget of an attack, in CPU seconds."""

DEFAULT_LENGTH = 150
"""The default length of the longest strings that an attack tries, in symbols."""

MAX_LENGTH = 4_096
"""The largest `max_length` of an attack, in symbols.

It limits memory, because a transformer keeps a score for each pair of positions.
"""

MAX_SYMBOLS_IN_CERTIFY = 300_000
"""The largest number of symbols that a model reads in the attack of `certify`.

A small transformer needs a few seconds for them.
"""


class Family(NamedTuple):
    """A family of strings, with the name that reports give it.

    `batches` yields the strings in batches. A batch may depend on the answers to the previous batches.
    """

    name: str
    batches: Callable[[Board], Iterator[Batch]]


FAMILIES = (
    Family("all short strings", short_strings),
    Family("runs x^n w", runs),
    Family("W-method", w_method),
    Family("loops u v^n w of the machine", loops),
    Family("powers u v^n w", powers),
    Family("hill climbing", hill_climbing),
)
"""The families of strings, in the order in which they are tried: the cheapest first."""


class FamilyCount(Part):
    """The number of graded answers to the strings of one family, and whether all strings of this family were tried."""

    name: str
    num_answers: Count
    is_complete: bool


class Attack(Part):
    """The result of an attack: the shortest wrongly answered string that was found, or None.

    An attack shortens a wrongly answered string by leaving out parts of it. `string` is the shortened string. The model
    also answers this string wrongly when it reads the string alone, outside a batch. `found_length` and `found_margin`
    describe the string before it was shortened. A margin is the right logit minus the largest other logit. It is
    negative if another logit is larger, and None if a logit is not finite; `got` is then also None. `num_answers`
    counts graded strings, including repetitions. `num_symbols` counts the symbols that the model read.
    """

    string: tuple[str, ...] | None = None
    family: str | None = None
    expected: str | None = None
    got: str | None = None
    margin: float | None = None
    found_length: Count | None = None
    found_margin: float | None = None
    max_length: Count
    num_answers: Count
    num_symbols: Count
    seconds: Annotated[float, Field(ge=0)]
    families: tuple[FamilyCount, ...]

    @property
    def is_refuted(self) -> bool:
        """Return whether a wrong answer was found."""
        return self.string is not None

    def __str__(self) -> str:
        """Return the result as the command `attack` prints it."""
        return "\n".join(f"{name}: {sentence}" for name, sentence in self.lines())

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield the attack's result as pairs of a name and a sentence."""
        if self.string is None:
            yield "no wrong answer", f"among strings of up to {counted(self.max_length, 'symbol')}; nothing is proved"
        else:
            answer = "has a logit that is not finite" if self.got is None else f"says {self.got}"
            yield "wrong answer", f"{in_powers(self.string)}: the model {answer}, right is {self.expected}"
            yield "length", f"{counted(len(self.string), 'symbol')}; {self.found_length:,} before it was shortened"
            yield "family", str(self.family)
            margins = ["not finite" if one is None else f"{one:.3g}" for one in (self.margin, self.found_margin)]
            yield "logit margin", f"{margins[0]}; {margins[1]} before the string was shortened"
        counts = ", ".join(
            f"{family.name} {family.num_answers:,}{'' if family.is_complete else ' (not all)'}"
            for family in self.families
            if family.num_answers
        )
        yield "answers compared", counts
        yield "cost", f"{counted(self.num_symbols, 'symbol')}, {self.seconds:.1f} CPU s"


@one_thread()
def attack(
    model: SequenceModel,
    task: Task,
    *,
    budget: float = DEFAULT_SECONDS,
    max_length: int = DEFAULT_LENGTH,
    seed: int = 0,
) -> Attack:
    """Search for the shortest string of at most `max_length` symbols that the model answers wrongly.

    The model answers all prefixes of a string at once. The families of strings in `FAMILIES` are tried in turn. First
    come all short strings, runs x^n w of one symbol x, and the W-method's strings (`families.w_method`). Then come
    strings u v^n w: first with a loop v of the task's machine, then with all short words u and v. In each form, n takes
    all values, and w is any short word. The last family changes strings by hill climbing on the logit margin. Each
    family gets half of the remaining budget. Families that still have strings then continue with the rest of the
    budget. A wrong answer counts only if the answer is also wrong when the model reads the string alone. The string is
    then shortened by leaving out parts. From then on, only shorter strings are tried.

    Args:
        model: any model of this package, or a wrapped net.
        task: a regular task.
        budget: the largest number of CPU seconds; a batch that has begun is always finished.
        max_length: the length of the longest strings tried, in symbols; if the model reads only shorter strings, its
            largest length is used instead.
        seed: the seed of the random strings with which hill climbing begins, and of the changes that it tries.

    Raises:
        ValueError: the task has no transducer, the budget or the length is out of range, or the model cannot be
            certified (`certify`).

    Example:
        >>> from lengthwise import make_model, make_task
        >>> result = attack(make_model("transformer", make_task("parity")), make_task("parity"))
        >>> result.is_refuted, result.family
        (True, 'all short strings')
    """
    check_is_model(model)
    check_is_task(task)
    if not isinstance(task, MachineTask) or not isinstance(task.reference, Transducer):
        raise ValueError(f"task: {task.name} has no transducer that gives the right answers; choose a regular task")
    max_length = whole_number("max_length", max_length, 1, MAX_LENGTH)
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget < float("inf"):
        raise ValueError(f"budget: expected CPU seconds above 0, got {budget!r}; try 5")
    seed = whole_seed(seed)
    with checked_subject(model, task):
        board = Board(model, task, task.reference, Budget(seconds=float(budget)), max_length, seed)
        reach = board.max_length
        counts = try_families(board, FAMILIES)
        return _result(board, counts, reach)


def search_families(model: SequenceModel, task: MachineTask, seed: int, max_seconds: float | None = None) -> Outcome:
    """Attack a model as `certify` does after the model has answered all short strings, and return the outcome.

    The budget is a number of symbols, so that a certificate does not depend on the speed of the computer. `equal` may
    also limit the CPU seconds. The model must be in evaluation mode.
    """
    if not isinstance(task.reference, Transducer):
        return Outcome(None)
    budget = Budget(max_seconds, MAX_SYMBOLS_IN_CERTIFY)
    board = Board(model, task, task.reference, budget, DEFAULT_LENGTH, seed)
    try_families(board, FAMILIES[1:])
    if board.shortest is None:
        return Outcome(None)
    return Outcome(board.shortest.string, found_by=board.shortest.family)


def try_families(board: Board, families: Sequence[Family]) -> list[FamilyCount]:
    """Grade the strings of all families within the board's budget; return the number of answers in each family."""
    strings: dict[str, Iterator[Batch] | None] = {family.name: family.batches(board) for family in families}
    num_answers = dict.fromkeys(strings, 0)
    # A family without an end would leave no budget for the other families. So each family first gets half of the
    # remaining budget.
    for share in (0.5, 1.0):
        for name, batches in strings.items():
            used = board.fraction_used()
            board.family, before = name, board.num_answers
            if batches is not None and not _is_shortest(board, strings):
                strings[name] = _grade_until(board, batches, used + share * (1 - used))
            num_answers[name] += board.num_answers - before
    return [
        FamilyCount(name=name, num_answers=count, is_complete=strings[name] is None)
        for name, count in num_answers.items()
    ]


def _grade_until(board: Board, batches: Iterator[Batch], limit: float) -> Iterator[Batch] | None:
    """Grade batches until a fraction of the budget is used; return the remaining batches, or None if there are none."""
    for batch in batches:
        if board.fraction_used() >= limit or not board.max_length:
            return chain([batch], batches)
        board.grade(batch)
    return None


def _is_shortest(board: Board, left: Mapping[str, Iterator[Batch] | None]) -> bool:
    """Return whether a wrong string was found and all shorter strings were tried."""
    is_tried = left.get(FAMILIES[0].name, FAMILIES) is None and board.max_length <= board.enumerated_length
    return board.shortest is not None and is_tried


def _result(board: Board, counts: list[FamilyCount], max_length: int) -> Attack:
    about = {
        "max_length": max_length,
        "num_answers": board.num_answers,
        "num_symbols": board.num_symbols,
        "seconds": round(board.seconds, 3),
        "families": tuple(counts),
    }
    shortest, first_form = board.shortest, board.first_form
    if shortest is None or first_form is None:
        return Attack.model_validate(about)
    with torch.no_grad(), denormals_kept():
        graded = grade(board.model, board.task, shortest.string[None])
    assert bool(graded.wrong), "a string is kept only if the answer is also wrong outside a batch"
    return Attack.model_validate(
        about
        | {
            "string": tuple(board.task.symbols[symbol] for symbol in shortest.string.tolist()),
            "family": shortest.family,
            "expected": board.task.classes[int(graded.expected)],
            "got": None if int(graded.answers) < 0 else board.task.classes[int(graded.answers)],
            "margin": finite_or_none(shortest.margin),
            "found_length": len(first_form.string),
            "found_margin": finite_or_none(first_form.margin),
        }
    )
