"""The page about state merging by description length: exact machines, compared with RPNI and EDSM."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import definitions, folded, markdown_table
from lengthwise.report.tables.numbers import NOTHING, span, whole_percent
from lengthwise.studies.ours.experiments.state_merging import (
    BASELINE_SECONDS,
    BASELINES,
    LONGEST,
    MAX_TRANSITIONS,
    SHARE_REJECTED,
    TRACE_LENGTHS,
    LearnedBy,
    Outcome,
    Outcomes,
    Size,
)

COLUMNS = {
    "exact": (
        "machines that answer like the target. On a string with a transition of the target that no example takes, "
        "another answer is allowed. A search decides this: it visits all pairs of states that the machine and the "
        "target reach together"
    ),
    "indistinguishable": (
        "other machines that answer every example like the target, and whose description in bits is not longer than "
        "the target's. So the examples do not favor the target"
    ),
    "shorter": (
        "other machines whose description, together with the labels that they contradict, is shorter than the "
        "target's. Wrong labels, or too few labels, favor such machines"
    ),
    "wrong on fresh": (
        "wrong answers to 2,000 fresh strings with right labels: median / maximum, over the cases in which the learner "
        "was not stopped"
    ),
    "CPU s": (
        "CPU seconds on one core: median / maximum. For `learn`, only the search is run, without held-out strings and "
        "without a certificate"
    ),
}
"""The meaning of columns of the first table."""

_ABOUT_DETAILS = (
    "*Learned by*: the method with which `learn` found its machine. *Noise* is the share of wrong labels that state "
    "merging assumes. *Learned*: the result of `learn`. Results contain the number of states of the machine, the "
    "number of wrong answers to fresh strings, and CPU seconds. *Wrong*: neither exact, nor indistinguishable, nor "
    "shorter."
)


@STUDY_PAGES.register("learning/state-merging")
@STUDY_PAGES.register("learning/state-merging-70")
def merging_page(study: Outcomes, stem: str) -> StudyPage:
    """Return the study's page: lines by kind of machine, share of wrong labels and learner, then every machine."""
    header = ["examples", "wrong labels", "learner", "exact", "indistinguishable", "shorter", "wrong on fresh", "CPU s"]
    lines = [line for group in _groups(study.outcomes) for line in _lines(group)]
    details = ["target", "wrong labels", "states", "symbols", "learned by", "learned", *BASELINES]
    return StudyPage(
        [
            markdown_table(header, lines),
            definitions(COLUMNS.items()),
            "## Protocol",
            _protocol(study.size),
            folded(
                "Every machine", [_ABOUT_DETAILS, markdown_table(details, [_detail(one) for one in study.outcomes])]
            ),
        ],
        {},
        headline=_headline([one for one in study.outcomes if one.share_wrong <= 0.05]),
    )


def _headline(outcomes: Sequence[Outcome]) -> str:
    """Return sentences on how often each learner finds the target."""
    verdicts = [Counter(one.learners[number].verdict for one in outcomes) for number in range(1 + len(BASELINES))]
    undecided = verdicts[0]["indistinguishable"] + verdicts[0]["shorter"]
    others = " and ".join(f"{name} in {counts['exact']}" for name, counts in zip(BASELINES, verdicts[1:], strict=True))
    return (
        f"In {verdicts[0]['exact']} of {len(outcomes)} cases with up to 5 % wrong labels, `lengthwise learn` finds the "
        f"machine that labeled the strings ({others}).\n"
        f"In {undecided} other cases, `learn` finds another machine that explains the examples at least as well as "
        "the machine that labeled the strings."
    )


def _groups(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    keys = dict.fromkeys((one.kind, one.share_wrong) for one in sorted(outcomes, key=lambda one: one.kind))
    return [[one for one in outcomes if (one.kind, one.share_wrong) == key] for key in keys]


def _lines(group: Sequence[Outcome]) -> list[list[str]]:
    lines = []
    for number, learner in enumerate(("learn", *BASELINES)):
        learned = [one.learners[number] for one in group]
        done = [one for one in learned if one.num_states is not None]
        stopped = f", {len(learned) - len(done)} stopped" if len(done) < len(learned) else ""
        lines.append(
            [
                group[0].kind,
                whole_percent(group[0].share_wrong),
                f"`{learner}`" if learner == "learn" else learner,
                f"{sum(one.verdict == 'exact' for one in learned)} of {len(learned)}{stopped}",
                f"{sum(one.verdict == 'indistinguishable' for one in learned)}",
                f"{sum(one.verdict == 'shorter' for one in learned)}",
                f"{median(one.num_wrong for one in done):.0f} / {max(one.num_wrong for one in done)}"
                if done
                else NOTHING,
                f"{median(one.seconds for one in learned):.1f} / {max(one.seconds for one in learned):.1f}",
            ]
        )
    return lines


def _protocol(size: Size) -> str:
    return (
        "Random machines have 5 to 30 states and 2 to 12 symbols, both drawn uniformly. The number of states times "
        f"the number of symbols is at most {MAX_TRANSITIONS}, because larger machines have too few labels for each "
        "transition. There are two answers. Each answer belongs to more than 30 % of the states. The examples are "
        f"{size.examples:,} uniform strings of 1 to {LONGEST} symbols with one label each, or {size.traces} such "
        f"strings with a label for each symbol. Fresh strings have 1 to {2 * LONGEST} symbols.\n"
        "\n"
        "Protocols have 5 to 12 states, 6 to 12 tokens, and a state for errors. Each state allows 2 to 4 tokens. The "
        f"examples are {size.examples:,} traces of {TRACE_LENGTHS[0]} to {TRACE_LENGTHS[1]} tokens with one label "
        f"each. In {whole_percent(SHARE_REJECTED)} of the traces, an error occurs at a uniformly drawn position, and "
        "uniformly drawn tokens follow it.\n"
        "\n"
        "Each label is wrong with the probability in the table. Each learner gets all examples, and a repeated "
        f"string only once. The search has a budget of {size.budget:.0f} CPU seconds. It may take longer, because it "
        f"finishes a step that it has begun. RPNI and EDSM are stopped after about {BASELINE_SECONDS:.0f} CPU "
        "seconds. If a machine of RPNI or EDSM lacks a transition for a symbol, it gives the most frequent answer "
        "from this symbol on. There is one seed. Settings were chosen by trials on machines from the same "
        "distributions."
    )


def _detail(one: Outcome) -> list[str]:
    return [
        f"{one.kind}, {one.number}",
        whole_percent(one.share_wrong),
        f"{one.num_states}",
        f"{one.num_symbols}",
        one.method,
        *(_result(machine) for machine in one.learners),
    ]


def _result(one: LearnedBy) -> str:
    if one.num_states is None:
        return "stopped"
    return f"{one.verdict}, {span([one.num_states])} states, {one.num_wrong} wrong, {one.seconds:.1f} s"
