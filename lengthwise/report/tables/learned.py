"""A machine learned from examples, in sentences and in tables."""

from collections.abc import Iterator

from lengthwise.display import counted
from lengthwise.learning.baselines import Accuracy
from lengthwise.learning.learned import MAX_CONTRADICTING, Learned
from lengthwise.learning.search import NET
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.report.tables.table import Table

MAX_NAMED = 3

MAX_EXPRESSION = 100
"""The length of the longest regular expression that is printed, in characters."""

MAX_LISTED = 30
"""The largest number of states of a machine whose transitions are listed."""

PARTS = {"trained on": "trained on", "longest": "held out, the longest", "at random": "held out, at random"}


def learned_lines(learned: Learned) -> Iterator[tuple[str, str]]:
    """Yield pairs (name, sentence) about a learned machine: first the reason to doubt this machine, if there is one."""
    if learned.doubt:
        yield "NOT CONFIRMED", learned.doubt
    counts = learned.counts
    yield "examples", f"{counted(counts.num_rows, 'row')}; {left_out(learned)}"
    alike = f"{learned.search.num_alike} of {counted(len(learned.search.attempts), 'attempt')} found this machine"
    machine = learned.machine
    yield "machine", f"{counted(machine.num_states, 'state')}, {counted(len(machine.symbols), 'symbol')}; {alike}"
    yield from _choice(learned)
    yield from (("expression", " ".join(one)) for one in expressions(learned))
    for part, scores in learned.accuracies.items():
        shares = [
            f"{learner} {_share(score)}" + (f" of {score.num_labels:,}" if learner == "machine" else "")
            for learner, score in scores.items()
        ]
        nothing = f"{NOTHING}, because all of its labels were trained on"
        yield f"right, {PARTS[part]}", "; ".join(shares) if scores["machine"].num_labels else nothing
    if not learned.doubt:
        yield "held-out labels", learned.tested
    if learned.contradictions:
        named = "; ".join(
            f"{one.string!r} is labeled {one.label}, the machine answers {one.answer}"
            for one in learned.contradictions[:MAX_NAMED]
        )
        count = len(learned.contradictions)
        yield "contradicted", f"{counted(count, 'label')}{', for example' * (count > MAX_NAMED)}: {named}"
    yield from (("note", note) for note in learned.notes)
    yield learned.certificate.level, learned.claim


def _choice(learned: Learned) -> Iterator[tuple[str, str]]:
    """Yield the chosen attempt and the runner-up with their description lengths, and the share of wrong labels."""
    best, second = learned.search.best, learned.search.runner_up
    sentence = f"{best.method}, description of {best.num_bits:,.0f} bits"
    if second is not None:
        sentence += f"; runner-up: {second.method}, {counted(second.num_states, 'state')}, {second.num_bits:,.0f} bits"
    yield "chosen", sentence
    yield "wrong labels", f"about {percent(learned.share_wrong)} of the training labels, according to this machine"


def left_out(learned: Learned) -> str:
    """Return a sentence about the rows of examples on which no net was trained, and about unused columns."""
    answered = " (nets do not read the empty string; the machine gives its label)" if learned.answers_empty else ""
    unused = learned.counts.describe_unused_columns()
    return f"left out: {learned.counts.describe_omitted_rows()}{answered}{f'; {unused}' if unused else ''}"


def expressions(learned: Learned) -> Iterator[tuple[str, str]]:
    """Yield the second and third answer of a machine, each with a regular expression for the strings with this answer.

    An expression longer than `MAX_EXPRESSION` characters is left out.
    """
    machine = learned.machine
    given = set(machine.outputs[machine.semiautomaton.reachable(machine.start)].tolist())
    for index, answer in list(enumerate(learned.classes))[1:3]:
        if index not in given:  # an answer of held-out strings only: no training example supports an expression for it
            yield f"{answer}:", "no string"
            continue
        try:
            text = learned.expression(answer)
        except ValueError:  # the expression gets too long
            continue
        if len(text) <= MAX_EXPRESSION:
            yield f"{answer} if the string matches", text


def accuracy_table(learned: Learned) -> Table:
    """Return a table of accuracies, with a line for each learner and a column for each part of the examples."""
    learners = next(iter(learned.accuracies.values()))
    header = ("accuracy", *(PARTS[part] for part in learned.accuracies))
    lines = tuple(
        (learner, *(_share(scores[learner]) for scores in learned.accuracies.values())) for learner in learners
    )
    totals = (f"{scores['machine'].num_labels:,}" for scores in learned.accuracies.values())
    return Table(header, (*lines, ("number of labels", *totals)))


def _share(score: Accuracy) -> str:
    return NOTHING if score.share is None else percent(score.share)


def transition_table(learned: Learned) -> Table | None:
    """Return a line for each state: its answer, and its successor for each symbol. Large machines give None."""
    machine = learned.machine
    if max(machine.num_states, len(machine.symbols)) > MAX_LISTED:
        return None
    answers = learned.labeled.answer_names()
    lines = tuple(
        (f"{state}{' (start)' if state == machine.start else ''}", answers[state] or NOTHING, *map(str, row))
        for state, row in enumerate(machine.semiautomaton.table.tolist())
    )
    return Table(("state", "answer", *machine.symbols), lines)


def contradiction_table(learned: Learned) -> Table:
    """Return a table of the labels that the machine contradicts, shortest strings first."""
    return Table(("string", "label", "machine"), tuple(map(tuple, learned.contradictions[:MAX_CONTRADICTING])))


def attempt_table(learned: Learned) -> Table:
    """Return a table of the attempts to learn a machine: first settings of state merging, then trained nets."""
    lines = tuple(
        (
            *(
                attempt.method,
                *((f"{attempt.size}", f"{attempt.seed}") if attempt.method == NET else (NOTHING, NOTHING)),
            ),
            f"{attempt.num_states}",
            *(f"{attempt.num_errors:,}", f"{attempt.num_bits:,.0f}", f"{attempt.seconds:.1f}"),
        )
        for attempt in learned.search.attempts
    )
    return Table(
        ("method", "states of the net", "seed", "states of its machine", "errors", "description, bits", "CPU s"), lines
    )
