"""Comparison of a net with its quantized, pruned, exported or retrained twin: a proof, a difference, or neither."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch

from lengthwise.certification.attacks.attack import search_families
from lengthwise.certification.attacks.grading import margins_of
from lengthwise.certification.common_machine import Claim, Nets, are_identical, common_machine
from lengthwise.certification.counterexample import String, grade, max_enumerated_length, shortest_error, shrunk_error
from lengthwise.certification.equality import Difference, Equality
from lengthwise.certification.methods.base import finite_or_none
from lengthwise.certification.parts import Shortest
from lengthwise.certification.searches import Outcome, search_samples
from lengthwise.certification.step_budget import BudgetSpent, StepBudget
from lengthwise.certification.subject import checked_subject
from lengthwise.certification.traces import TracedStrings, draw_strings
from lengthwise.certification.twins import ANSWERS, Twins, twins_of
from lengthwise.certification.unknown import check_num_names, placeholder_task, sizes_of
from lengthwise.devices import denormals_kept, one_thread
from lengthwise.display import counted
from lengthwise.models.base import RecurrentModel, SequenceModel, check_is_model
from lengthwise.models.containers import first_line
from lengthwise.models.set_answers import classes_of
from lengthwise.ops.answers import answers_of
from lengthwise.randomness import whole_seed
from lengthwise.tasks.base import RegularTask
from lengthwise.validation import texts_of

MAX_SYMBOLS, MAX_PAIRS = 1_000_000, 1 << 27
"""The limits on the work for the strings of one length.

Recurrent nets read at most `MAX_SYMBOLS` symbols. Other nets process at most `MAX_PAIRS` pairs of positions.
"""


MIN_SECONDS = 1.0
"""The CPU seconds that the search among structured strings may take even if the budget has fewer seconds left."""


class Pair(NamedTuple):
    """Two checked nets in evaluation mode, joined into one model, with names, a seed and a budget.

    `names` contains the names of the symbols and answers of both nets.
    """

    twins: Twins
    names: RegularTask
    seed: int
    budget: StepBudget

    @property
    def nets(self) -> Nets:
        """Return the two nets that are compared."""
        return self.twins.net, self.twins.other

    @property
    def are_recurrent(self) -> bool:
        """Return whether both nets read symbol by symbol, in time that is proportional to the length."""
        return all(isinstance(net, RecurrentModel) for net in self.nets)

    @property
    def same_task(self) -> RegularTask:
        """Return the task whose right answer to every string is "same"."""
        return placeholder_task(self.names.symbols, ANSWERS)


@one_thread()
def equal(
    net: SequenceModel,
    other: SequenceModel,
    *,
    symbols: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    seed: int = 0,
    budget: float | int | None = None,
    report: Callable[[str], None] = lambda sentence: None,
) -> Equality:
    """Compare two nets on all strings: prove that their answers are equal, or search for a string on which they differ.

    The nets may be of different kinds, and no task is needed. Symbols and answers are matched by their ids.

    1. Both nets answer all short strings. If they agree and have the same class, settings and weights, they are equal.
    2. Both nets answer the strings that `attack` tries, in which words are repeated.
    3. A machine is extracted from the answers or the states of the nets, and both nets are certified for this machine
       (`certify`). If both levels are ``proved``, the float32 nets give the same answer to every string. If the lower
       of the two levels is ``bounded``, this holds up to a length. If it is ``extracted``, both nets followed the
       machine wherever they were observed, which is not a proof.
    4. Without a proof for all lengths, both nets answer random and structured strings of 40, 500 and 10,000 symbols.

    A difference counts only if the nets give different answers when each reads the string alone. Parts of the string
    are then left out as long as the nets still differ.

    Args:
        net: any model of this package, or a wrapped net.
        other: the other net, with the same number of symbols and the same number of answers.
        symbols: the names of all symbols, in the order of their ids; by default their numbers.
        classes: the names of the answers, in the order of the logits; by default their numbers.
        seed: the seed that draws the strings.
        budget: the largest number of CPU seconds; None means no limit. Step 1, the first second of step 2, and parts of
            later steps that have begun are always finished. Step 3 reads strings of 500 and more symbols only if the
            time for them is likely to suffice. If the budget ends before a proof, the level is ``tested``, or
            ``extracted`` if a machine was found before. Then `reason` names the parts that were left out.
        report: a function that is called with a sentence when a part of steps 2 to 4 begins.

    Raises:
        ValueError: the numbers of symbols, answers or names differ, a net cannot be certified, or the budget is wrong.

    Example:
        >>> from lengthwise import construct, make_task
        >>> first = construct("rnn", make_task("regex", pattern="(a|b)*abb")).model
        >>> second = construct("rnn", make_task("regex", pattern="(a|b)*bb")).model
        >>> result = equal(first, second, symbols="ab", classes=("no", "yes"))
        >>> print(result)
        different: on bb, the first net answers no, the second net answers yes

    Source: ours; machines are compared as by Hopcroft and Karp (1971), see `first_difference`.
    """
    steps = StepBudget(budget, report)
    check_is_model(net, "net")
    check_is_model(other, "other")
    seed = whole_seed(seed)
    names = _names_of((net, other), symbols, classes)
    with ExitStack() as stack:
        for argument, model in (("net", net), ("other", other)):
            _enter_checked(stack, argument, model, names)
        result = _compare(Pair(twins_of(net, other, len(names.classes)), names, seed, steps))
    return result.model_copy(update={"seconds": round(steps.used, 3)})


def _enter_checked(stack: ExitStack, argument: str, model: SequenceModel, names: RegularTask) -> None:
    """Check a net and keep it in evaluation mode until the stack ends; errors name the argument."""
    try:
        stack.enter_context(checked_subject(model, names))
    except ValueError as problem:
        raise ValueError(f"{argument}: {str(problem).removeprefix('model: ')}") from problem
    except Exception as problem:
        raise ValueError(
            f"{argument}: expected a net that reads strings, got an error ({first_line(problem)}); correct its cause"
        ) from problem


def _compare(pair: Pair) -> Equality:
    twins = pair.twins
    enumerated = max_enumerated_length(twins, pair.same_task)
    about: dict[str, Any] = {"enumerated_length": enumerated, "max_length": twins.max_length}
    # The first difference among all short strings is a shortest difference. A difference from a later step may not be.
    string = shortest_error(twins, pair.same_task)
    if string is not None and (difference := _difference(pair, string, "of all strings")):
        return Equality(level="refuted", counterexample=difference, decided_by="all short strings", **about)
    if string is not None:  # the nets differ on this string only when they read it in a batch
        about["enumerated_length"] = len(string) - 1
    # Nets that change between calls may give different answers although they are identical. So this step comes after
    # the short strings, which may show such differences.
    if are_identical(*pair.nets):
        return Equality(level="proved", decided_by="the same class, settings and weights, bit for bit", **about)
    claim = Claim()
    try:
        pair.budget.report("testing both nets on structured strings")
        # Structured strings refute most unequal nets within two seconds, and a proof may take a minute.
        left = pair.budget.left
        outcome = search_families(twins, pair.same_task, pair.seed, left if left is None else max(left, MIN_SECONDS))
        if outcome.wrong is None:
            claim, error = common_machine(pair.nets, pair.names, pair.seed, pair.budget)
            if claim.level == "proved":
                return Equality(**claim._asdict(), **about)
            outcome = _search(pair, error)
            about["tested"] = outcome.tested
    except BudgetSpent as problem:
        outcome = Outcome(None)
        claim = claim._replace(reason="; ".join(filter(None, (claim.reason, str(problem)))))
    if outcome.wrong is None:
        return Equality(**claim._asdict(), **about)
    if (difference := _shrunk_difference(pair, outcome.wrong)) is None:
        length = counted(len(outcome.wrong), "symbol")
        reason = f"the nets differ on a string of {length} that they read in a batch, and agree when they read it alone"
        return Equality(**claim._replace(reason=reason)._asdict(), **about)
    assert len(difference.string) > (claim.up_to or 0), "a proof covers this string"
    return Equality(level="refuted", counterexample=difference, decided_by=outcome.found_by, **about)


def _search(pair: Pair, error: tuple[str, ...] | None) -> Outcome:
    """Return the first string on which the nets differ: `error` or a sample.

    If `error` is not None, the second net and a machine of the first net answer this string differently.
    """
    twins, task = pair.twins, pair.same_task
    if error is not None and len(error) <= (twins.max_length or len(error)):
        string = task.encode(error)
        if bool(grade(twins, task, string[None]).wrong):
            return Outcome(string, found_by="the machine of the first net")
    pair.budget.begin("testing both nets on random strings")
    lengths = []
    for strings in draw_strings(twins, task, pair.seed) or []:
        max_symbols = MAX_SYMBOLS if pair.are_recurrent else MAX_PAIRS // strings.shape[1]
        lengths.append(TracedStrings(strings[:: -(-strings.numel() // max_symbols)], None))
    return search_samples(twins, task, lengths)._replace(found_by="samples")


def _shrunk_difference(pair: Pair, string: String) -> Difference | None:
    """Return the difference on a shortened string, or None if the nets agree when they read the whole string alone."""
    if (difference := _difference(pair, string, "as found")) is None:
        return None
    shrunk = shrunk_error(pair.twins, pair.same_task, string, max_pairs=None if pair.are_recurrent else MAX_PAIRS)
    # Batches may round differently from single strings, so the shrunk string is also read alone.
    return _difference(pair, shrunk, "as found") or difference


@torch.no_grad()
def _difference(pair: Pair, string: String, shortest: Shortest) -> Difference | None:
    """Return both nets' answers to a string, or None if the answers are equal; each net reads the string alone."""
    with denormals_kept():  # as users run the nets
        logits = [net.last(string[None])[0] for net in pair.nets]
    answers = [int(answers_of(one)) for one in logits]
    if answers[0] == answers[1]:
        return None
    leads = [float(margins_of(one, torch.tensor(answer))) for one, answer in zip(logits, answers, strict=True)]
    first, second = (None if answer < 0 else pair.names.classes[answer] for answer in answers)
    margins = finite_or_none(leads[0]), finite_or_none(leads[1])
    symbols = tuple(pair.names.symbols[symbol] for symbol in string.tolist())
    return Difference(string=symbols, answers=(first, second), margins=margins, shortest=shortest)


def _names_of(nets: Nets, symbols: Sequence[str] | None, classes: Sequence[str] | None) -> RegularTask:
    """Return a task with the names of symbols and answers; by default the names are numbers.

    Raises:
        ValueError: the nets have different numbers of symbols or answers, or answer with different sets of symbols. Or
            there is not exactly one name for each symbol and each answer.
    """
    sets = [named for net in nets if (named := classes_of(net)) is not None]
    if len(set(sets)) > 1:
        raise ValueError(
            f"other: expected a model that answers with the same sets of symbols as `net` ({'; '.join(sets[0])}), got "
            f"a model with other sets ({'; '.join(sets[1])}); use models of one task"
        )
    sizes = [sizes_of(argument, net) for argument, net in zip(("net", "other"), nets, strict=True)]
    counts = [num_symbols for num_symbols, _ in sizes if num_symbols is not None]
    if symbols is not None:
        symbols = texts_of("symbols", symbols)
    elif len(counts) < len(nets):
        raise ValueError(
            "symbols: expected the names of all symbols, because a net that rejects no symbol id does not show how "
            "many symbols it reads, got none; name all symbols"
        )
    numbers = _numbers("symbols", counts)
    if symbols is not None and counts:
        check_num_names("symbols", "symbol of the nets", len(numbers), symbols)
    answers = _numbers("answers", [num_answers for _, num_answers in sizes])
    classes = (sets[0] if sets else answers) if classes is None else texts_of("classes", classes)
    if len(answers) > 1:  # `check_sizes` gives advice on nets with one logit
        check_num_names("classes", "answer of the nets", len(answers), classes)
    return placeholder_task(numbers if symbols is None else symbols, tuple(classes))


def _numbers(what: str, counts: Sequence[int]) -> tuple[str, ...]:
    """Return "0", "1", ... as names. `counts` contains the number of names for each net; all must be equal."""
    if len(set(counts)) > 1:
        raise ValueError(
            f"other: expected {counts[0]:,} {what}, as many as `net` has, got {counts[1]:,}; compare nets of one task"
        )
    return tuple(map(str, range(max(counts, default=0))))
