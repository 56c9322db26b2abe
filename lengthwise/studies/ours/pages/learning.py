"""The page about machines learned from examples: how many are right, compared with RPNI."""

from collections.abc import Sequence
from statistics import median

import altair as alt

from lengthwise.learning.held_out import SHARE_AT_RANDOM, SHARE_OF_LONGEST
from lengthwise.report.charts.colors import color_by
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import definitions, folded, markdown_table
from lengthwise.report.tables.numbers import NOTHING, span, whole_percent
from lengthwise.studies.ours.experiments.learning import Recoveries, Recovery, Size

LEARNERS = ("lengthwise learn", "RPNI")

COLUMNS = {
    "recovered": (
        "the number of languages for which the learned machine gives every nonempty string the same answer as the "
        "machine that labeled the strings"
    ),
    "proved": (
        "the number of recovered languages whose net is proved to answer like the learned machine at every length"
    ),
    "CPU s": "CPU seconds for a language on one core, including the certificate: median / maximum",
    "models": "the number of nets that were trained for a language: median",
    "RPNI": "the number of languages whose machine RPNI (AALpy) recovered from all examples",
    "RPNI's states": "the smallest and the largest number of states of the machines that RPNI found",
}
"""The meaning of columns of the first table."""


@STUDY_PAGES.register("learning/wrong-labels")
def learning_page(study: Recoveries, stem: str) -> StudyPage:
    """Return the study's page: a table of groups of languages, a table of all languages, and a chart."""
    size, recoveries = study.size, study.recoveries
    header = ["languages", "wrong labels", "recovered", "proved", "CPU s", "models", "RPNI", "RPNI's states"]
    sections = [
        f"![Recovered machines against wrong labels]({stem}.svg)",
        markdown_table(header, [_line(group) for group in _groups(recoveries)]),
        definitions(COLUMNS.items()),
        "## Protocol",
        _protocol(size),
        folded("Every language", [markdown_table(_DETAILS, [_detail(one) for one in recoveries])]),
    ]
    return StudyPage(sections, {f"{stem}.svg": recovery_chart(recoveries).to_dict()})


def _groups(recoveries: Sequence[Recovery]) -> list[list[Recovery]]:
    """Return the named languages as one group, then a group of random machines for each share of wrong labels."""
    keys = dict.fromkeys((one.name.split()[0], one.share_wrong) for one in recoveries)
    return [[one for one in recoveries if (one.name.split()[0], one.share_wrong) == key] for key in keys]


def _line(group: Sequence[Recovery]) -> list[str]:
    merged = [one for one in group if one.merged_states is not None]
    states = span([one.num_states for one in group])
    kind = "Tomita 1-7" if group[0].name.startswith("Tomita") else f"machines of {states} states"
    return [
        kind,
        whole_percent(group[0].share_wrong),
        f"{sum(one.recovered for one in group)} of {len(group)}",
        f"{sum(one.recovered and one.level == 'proved' for one in group)}",
        f"{median(one.seconds for one in group):.0f} / {max(one.seconds for one in group):.0f}",
        f"{median(one.num_attempts for one in group):.0f}",
        f"{sum(bool(one.merged_recovered) for one in merged)} of {len(merged)}" if merged else NOTHING,
        span([one.merged_states or 0 for one in merged]),
    ]


def _protocol(size: Size) -> str:
    return (
        f"For each language, {size.examples:,} strings of 1 to {size.longest} symbols are drawn, with one label each. "
        "Strings that are drawn more than once count as one example, with the most frequent label. For Tomita's "
        "languages, some strings are in the language, some are near misses (edits of strings in the language), and "
        "some are other strings outside the language. Random machines have two symbols and two answers. Transitions "
        "and answers are drawn uniformly until the machine is minimal and each answer belongs to more than 30 % of "
        "its states. For random machines, strings and their lengths are drawn uniformly, and each label is wrong "
        "with the probability in the table.\n"
        "\n"
        f"The longest {whole_percent(SHARE_OF_LONGEST)} of the examples and {whole_percent(SHARE_AT_RANDOM)} of the "
        "other examples are held out: training and the search never use them. The budget of the search is "
        f"{size.budget:.0f} CPU seconds. RPNI gets all examples. There is one seed, and the settings were chosen by "
        "trials on some of these machines."
    )


_DETAILS = ["language", "wrong labels", "states", "examples", "learned", "level", "models", "CPU s", "RPNI's states"]


def _detail(one: Recovery) -> list[str]:
    return [
        one.name,
        whole_percent(one.share_wrong),
        f"{one.num_states}",
        f"{one.num_examples:,}",
        "the right one" if one.recovered else f"another, {one.learned_states} states",
        one.level,
        f"{one.num_attempts}",
        f"{one.seconds:.0f}",
        NOTHING if one.merged_states is None else f"{one.merged_states}",
    ]


def recovery_chart(recoveries: Sequence[Recovery]) -> alt.Chart:
    """Draw the share of recovered random machines against the share of wrong labels, for `learn` and RPNI."""
    values = []
    for group in _groups(recoveries):
        if not group[0].name.startswith("Tomita"):
            merged = [one.merged_recovered for one in group if one.merged_recovered is not None]
            values += [
                {"wrong": f"{group[0].share_wrong:.0%}", "share": sum(flags) / len(flags), "learner": learner}
                for learner, flags in zip(LEARNERS, ([one.recovered for one in group], merged), strict=True)
                if flags
            ]
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=values), width=420, height=240)
        .mark_bar()
        .encode(
            x=alt.X("wrong:N", title="wrong labels", sort=None, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("learner:N", sort=[*LEARNERS]),
            y=alt.Y("share:Q", title="machines recovered", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
            color=color_by("learner", LEARNERS, legend=alt.Legend(orient="top")),
        )
    )
    return chart
