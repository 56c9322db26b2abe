"""The result of learning from examples: a machine, a net that computes it, and accuracies on held-out strings."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lengthwise.automata.dfa import DFA
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.state_elimination import regex_from_dfa
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.constructions.base import Construction, Target
from lengthwise.devices import one_thread
from lengthwise.display import counted, csv_text, percent
from lengthwise.evaluation.interval import error_bound, wilson_interval
from lengthwise.files import write_by_rename
from lengthwise.learning.baselines import (
    Accuracy,
    Answers,
    accuracy,
    answers_of_machine,
    last_symbols,
    majority_answer,
    merged_states,
)
from lengthwise.learning.contradictions import Contradiction, contradictions_of
from lengthwise.learning.folder import CONTRADICTED, save_learned
from lengthwise.learning.held_out import Part, split_parts
from lengthwise.learning.merging_search import unseen_transitions
from lengthwise.learning.notes import notes_on_search
from lengthwise.learning.prefix_tree import prefix_tree
from lengthwise.learning.search import RPNI, Attempt, SearchResult, attempt_of, compiled_model, rank, search
from lengthwise.learning.separators import are_characters, warn_of_likely_separator
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.randomness import whole_seed
from lengthwise.registry import check_known
from lengthwise.tasks.base import RegularTask
from lengthwise.tasks.given.examples import Counts, Examples, Supervision
from lengthwise.tasks.given.reading import read_examples
from lengthwise.tasks.regular.machine import machine_task
from lengthwise.validation import check_function, check_kind, path_of

MAX_CONTRADICTING = 20
"""The largest number of contradicted examples in `learned.json` and on the page, shortest first."""

MIN_HELD_OUT = 10
"""The smallest number of held-out labels that confirms a machine.

Even with 9 of 9 labels right, up to 28 % of all answers may be wrong.
"""

SHALLOW = ("majority answer", "last 3 symbols")
"""The shallow baselines, whose accuracy on held-out labels a machine has to exceed."""


class Learned(NamedTuple):
    """A machine learned from examples.

    The net `model` answers only nonempty strings. If the empty string has a label in the examples, the machine gives
    this label. Otherwise, the empty string gets the answer of a state with the same next states as the start, if there
    is such a state.

    `accuracies` contains an accuracy for each part ("trained on", "longest", "at random") and each method ("machine",
    "majority answer", "last 3 symbols", "RPNI"). The two held-out parts did not influence any choice. Labels of
    prefixes that were also trained on do not count in these parts; if no label is left, `num_labels` is 0.

    `search` contains the attempts, and its `best` is the attempt that found the machine. `share_wrong` is the share of
    training labels that the machine contradicts, which estimates the share of wrong labels. `unseen` contains the state
    and the symbol of each transition that no training example takes. The target of such a transition is a guess. If
    states were merged, the guess is the state to which the symbol leads most often.

    The certificate is only about the net and this machine. At level `proved`, it proves that the net answers like the
    machine. It proves nothing about the world.
    """

    machine: Transducer
    classes: tuple[str, ...]
    certificate: Certificate
    counts: Counts
    accuracies: dict[str, dict[str, Accuracy]]
    contradictions: tuple[Contradiction, ...]
    search: SearchResult
    notes: tuple[str, ...]
    answers_empty: bool
    share_wrong: float
    unseen: tuple[tuple[int, str], ...]

    @property
    def model(self) -> BlockLinearRNN:
        """The net that the certificate compares with the machine."""
        return self.search.model

    @property
    def task(self) -> RegularTask:
        """The task that the machine solves; other models can be trained on this task, and certified for it."""
        return machine_task(self.labeled)

    @property
    def doubt(self) -> str | None:
        """The reason why held-out labels do not confirm the machine, in a sentence; None if they confirm it.

        At least `MIN_HELD_OUT` held-out labels are required. They confirm a machine that is right on all of them. They
        also confirm a machine if the lower end of Wilson's 95 % interval of its accuracy is above both b and (a + b) /
        2. Here b is the accuracy of the best shallow baseline on the same labels, and a is the machine's accuracy in
        training. A machine that memorized labels stays near the baseline.
        """
        correct = {who: self.held_out(who).num_correct for who in SHALLOW}
        ours, total = self.held_out()
        if not total:
            return "no label was left to hold out, so nothing shows whether the machine is right on other strings"
        if total < MIN_HELD_OUT:
            return f"only {counted(total, 'label')} could be held out: {self.tested}; give more examples"
        best = max(SHALLOW, key=correct.__getitem__)
        baseline = correct[best] / total
        trained = self.accuracies["trained on"]["machine"].share or 0.0
        if ours == total or wilson_interval(ours, total)[0] > max(baseline, (baseline + trained) / 2):
            return None
        return (
            f"on {total:,} held-out labels the machine is right on {percent(ours / total)}, which is not clearly above "
            f"the midpoint between the baseline {best!r} ({percent(baseline)}) and the machine's accuracy in training "
            f"({percent(trained)}); give more examples, or check separator and labels"
        )

    def held_out(self, method: str = "machine") -> Accuracy:
        """Return the accuracy of a method on the labels of all held-out parts together."""
        scores = [of_part[method] for part, of_part in self.accuracies.items() if part != "trained on"]
        return Accuracy(sum(score.num_correct for score in scores), sum(score.num_labels for score in scores))

    @property
    def tested(self) -> str:
        """A text with the number of correctly predicted held-out labels, and a bound on the error rate of the machine.

        The bound (`error_bound`) is about strings that are drawn like the held-out strings. It assumes that labels are
        independent.
        """
        right, total = self.held_out()
        if not total:
            return "nothing was tested, because no label was held out"
        bound = math.ceil(100 * error_bound(total - right, total))
        return (
            f"{right:,} of {total:,} right; up to {bound} % of answers to similar strings may be wrong "
            "(95 % confidence)"
        )

    @property
    def claim(self) -> str:
        """The claim of the certificate about this machine."""
        if self.certificate.level == "proved":
            return "the net answers like this machine at every length; nothing is proved about the world"
        return f"about the net and this machine: {self.certificate.claim} Not proved, because {self.certificate.reason}"

    def __repr__(self) -> str:
        """Return in plain sentences whether the machine is confirmed, its size, and what is proved."""
        size = f"{counted(self.machine.num_states, 'state')} over {counted(len(self.machine.symbols), 'symbol')}"
        doubt = f"NOT CONFIRMED: {self.doubt}. " if self.doubt else ""
        rows = counted(self.counts.num_rows, "row")
        tested = "" if self.doubt else f" On held-out labels: {self.tested}."
        return f"{doubt}A machine of {size}, learned from {rows}.{tested} {self.certificate.level}: {self.claim}."

    @property
    def labeled(self) -> LabeledMachine:
        """The machine with the names of its answers."""
        return LabeledMachine(self.machine, self.classes)

    def expression(self, answer: str) -> str:
        """Return a regular expression for the strings to which the machine gives this answer.

        Raises:
            ValueError: the machine does not have this answer, or the expression is too large (`regex_from_dfa`).

        Example:
            >>> strings = [f"{number:b}" for number in range(1, 400)]
            >>> learned = learn([(text, "even" if text.endswith("0") else "odd") for text in strings], budget=0.0)
            >>> learned.expression("odd")
            '(0*1)+'
        """
        check_known("answer", answer, self.classes)
        accepting = self.machine.outputs == self.classes.index(answer)
        return regex_from_dfa(DFA(self.machine.semiautomaton, self.machine.start, accepting))

    def save(self, folder: str | Path) -> None:
        """Write the machine, its net and certificate, the statistics, and any contradicted labels to a folder.

        The machine is written as JSON and DOT, and also as a picture if it is small.

        `load_compiled` reads the net back, and commands accept the folder like the folder of a compiled model.
        """
        folder = path_of("folder", folder)
        net = _as_construction(self.model, self.labeled, self.counts)
        save_learned(folder, self.labeled, self.to_json(), (net, self.certificate))
        if self.contradictions:
            rows = csv_text([("string", "label", "machine"), *self.contradictions])
            write_by_rename(folder / CONTRADICTED, rows.encode())

    def to_json(self) -> dict[str, Any]:
        """Return the statistics (counts, accuracies, attempts, notes) as plain data for `learned.json`."""
        result = self.search
        return {
            "num_states": self.machine.num_states,
            "level": self.certificate.level,
            "doubt": self.doubt,
            "counts": self.counts._asdict(),
            "accuracies": {
                part: {who: list(score) for who, score in scores.items()} for part, scores in self.accuracies.items()
            },
            "contradictions": [list(one) for one in self.contradictions[:MAX_CONTRADICTING]],
            "num_contradictions": len(self.contradictions),
            "attempts": [attempt._asdict() for attempt in result.attempts],
            "num_alike": result.num_alike,
            "notes": list(self.notes),
            "answers_empty": self.answers_empty,
            "best": result.best._asdict(),
            "runner_up": result.runner_up and result.runner_up._asdict(),
            "share_wrong": self.share_wrong,
            "unseen": [list(one) for one in self.unseen],
        }


def _as_construction(model: BlockLinearRNN, labeled: LabeledMachine, counts: Counts) -> Construction:
    """Return a net with the task that it solves at every length."""
    target = Target(labeled.machine, labeled.classes, machine_task(labeled))
    about = (f"learned from {counts.num_rows:,} rows of examples",)
    return Construction(model, target, None, "learned from examples", about)


@one_thread()
def learn(
    source: Any,
    *,
    separator: str = "",
    string: str | None = None,
    label: str | None = None,
    supervision: Supervision = "last",
    budget: float = 60.0,
    seed: int = 0,
    exact: bool = False,
    report: Callable[[Attempt], None] = lambda attempt: None,
    keep: Callable[[Construction], None] = lambda best: None,
) -> Learned:
    """Learn the machine behind labeled strings, and prove that a net answers like this machine at every length.

    Some examples are held out: the longest examples, and about a tenth of the others. At most a fifth of the examples
    count as longest. If all examples have the same length, none of them counts as longest. The search uses the
    remaining examples. It merges states, and trains models only if no merged machine is trusted (`search`). The result
    is the machine with the shortest description; a description includes the labels that its machine gets wrong. RPNI's
    machine is also a candidate. With `exact` labels, machines that get every label right are preferred to all others.
    If training did not give a net for the machine, a net is compiled from the machine.

    The `budget` is in CPU seconds. `report` is called with each attempt that gave a machine, and `keep` with each net
    that is better than all before it. `source` and the arguments up to `supervision` are passed to `read_examples`.

    Raises:
        ValueError: `read_examples` rejects `source`; fewer than eight examples are left for training; a string is too
            long; a symbol or label cannot be printed; no machine was found; or `budget` or `seed` is out of range.

    Example:
        >>> strings = [f"{number:b}" for number in range(1, 400)]
        >>> pairs = [(text, "even" if text.count("1") % 2 == 0 else "odd") for text in strings]
        >>> learned = learn(pairs, budget=0.0)  # one attempt
        >>> learned.machine.num_states, learned.certificate.level
        (2, 'proved')
    """
    _check_options(exact, report, budget, seed)
    examples = read_examples(source, separator=separator, string=string, label=label, supervision=supervision)
    _check_names(examples)
    if not separator:
        warn_of_likely_separator(examples)
    parts = split_parts(examples, seed)
    result = _best_of(examples, parts["trained on"], exact, keep, budget=budget, seed=seed, report=report)
    labeled = _labeled(result.machine, examples)
    machine = labeled.machine
    wrong = contradictions_of(machine, examples, separator or ("" if are_characters(examples) else " "))
    return Learned(
        machine,
        examples.classes,
        certify(result.model, machine_task(labeled)),
        examples.counts,
        _accuracies(machine, parts),
        tuple(wrong),
        result,
        notes_on_search(parts, result, separator, exact),
        examples.empty_label in examples.classes,
        result.best.num_errors / len(prefix_tree(parts["trained on"]).labels),
        tuple(unseen_transitions(machine, parts["trained on"])),
    )


def _check_options(exact: object, report: object, budget: object, seed: object) -> None:
    check_kind("exact", exact, bool, "True or False")
    check_function("report", report)
    if not isinstance(budget, int | float) or isinstance(budget, bool) or not 0 <= budget < math.inf:
        raise ValueError(f"budget: expected a number of CPU seconds, 0 or more, got {budget!r}; try 60")
    whole_seed(seed)


def _labeled(machine: Transducer, examples: Examples) -> LabeledMachine:
    """Return the machine with the names of its answers, and with the empty string's label if the examples have one."""
    if examples.empty_label in examples.classes:
        machine = machine.with_empty_answer(examples.classes.index(examples.empty_label))
    return LabeledMachine(machine, examples.classes)


def _best_of(
    examples: Examples, trained_on: Examples, exact: bool, keep: Callable[[Construction], None], **settings: Any
) -> SearchResult:
    """Return the result of the search with these `settings`, or RPNI's machine if that machine is better."""

    def keep_best(model: BlockLinearRNN, machine: Transducer) -> None:
        keep(_as_construction(model, _labeled(machine, examples), examples.counts))

    return _better_of_rpni(trained_on, search(trained_on, exact=exact, keep=keep_best, **settings), exact)


def _better_of_rpni(examples: Examples, result: SearchResult, exact: bool) -> SearchResult:
    """Return the result, or RPNI's machine with a net if this machine ranks first and is not too large for a net."""
    if (merged := merged_states(examples)) is None:
        return result
    machine = merged.minimize_nonempty()
    best = attempt_of(machine, examples, RPNI)
    if rank(best, exact) >= rank(result.best, exact):
        return result
    try:
        model = compiled_model(machine, examples)
    except ValueError:  # the machine's table is too large for a net
        return result
    best = best._replace(size=model.config.d_model)
    # No other attempt found this machine, so `num_alike` is 0; the notes recognize RPNI's machine by this 0.
    return result._replace(model=model, machine=machine, best=best, num_alike=0, runner_up=result.best)


def _check_names(examples: Examples) -> None:
    """Reject names that no machine's file can contain, before time is spent on training."""
    are_words = not are_characters(examples)
    for what, names in (("symbol", examples.symbols), ("label", examples.classes)):
        for name in names:
            if not name.isprintable() or (what == "symbol" and are_words and name.split() != [name]):
                raise ValueError(
                    f"examples: expected printable {what}s"
                    f"{' without blanks' * (what == 'symbol' and are_words)}, got {name!r}; rename this {what}, or "
                    "change the separator"
                )


def _accuracies(machine: Transducer, parts: dict[Part, Examples]) -> dict[str, dict[str, Accuracy]]:
    trained_on = parts["trained on"]
    answers: dict[str, Answers] = {
        "machine": answers_of_machine(machine),
        "majority answer": majority_answer(trained_on),
        "last 3 symbols": last_symbols(trained_on),
    }
    if (merged := merged_states(trained_on)) is not None:
        answers["RPNI"] = answers_of_machine(merged)
    return {
        part: {who: accuracy(answer, examples) for who, answer in answers.items()} for part, examples in parts.items()
    }
