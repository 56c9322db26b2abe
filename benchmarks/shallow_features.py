"""Scores of shallow features of a string on the recognition tasks, under both ways of drawing strings.

python benchmarks/shallow_features.py [--quick] [--save]

For each feature, predict the most frequent answer to strings with the same length and the same value of the feature. It
is counted on as many other strings. Another prediction comes from a logistic regression on the counts of symbols and of
pairs of neighbors.
"""

import math
from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple

from speed_page import ROOT, environment, parse_options, provenance, write_files

from lengthwise import make_task
from lengthwise.report.tables.markdown import folded, markdown_table
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.runs.spec import merge
from lengthwise.studies.languages import LANGUAGES, Language
from lengthwise.tasks.regular.recognition import RecognitionTask

UNPUBLISHED = [(f"Tomita {index}", "chi2023") for index in (1, 2, 7)]
"""The languages that are not in the paper's table."""

LENGTHS = range(51, 101)
"""The lengths at which Chi et al. (2023) score D_n and Tomita languages, in symbols."""

SAMPLINGS = {"chi2023": "the published strings", "near-miss": "near misses, our default"}

PAPER_COLUMNS = ("Chi et al., C=2 (max / mean)", "Chi et al., C=3 (max / mean)")

NUM_COUNTED = RecognitionTask.num_counted // 2


class Score(NamedTuple):
    """The accuracy of predictions from one feature, averaged over lengths."""

    row: str
    sampling: str
    feature: str
    accuracy: float


def main() -> None:
    options = parse_options(__doc__)
    lengths = LENGTHS[:3] if options.quick else LENGTHS
    scores = [
        score
        for language in LANGUAGES
        if language.task in ("bounded-dyck", "tomita")
        for sampling in SAMPLINGS
        if (language.row, sampling) not in UNPUBLISHED
        for score in feature_scores(language, sampling, lengths)
    ]
    for row, sampling, feature, accuracy in scores:
        print(f"{row}, {sampling}, {feature}: {percent(accuracy)}")
    if options.save:
        write_files({ROOT / "docs" / "results" / "shallow-features.md": page(scores)})


def feature_scores(language: Language, sampling: str, lengths: Iterable[int]) -> list[Score]:
    """Return the score of each feature on strings of a language, averaged over lengths."""
    task = make_task(language.task, **merge(language.fields, {"sampling": sampling}))
    assert isinstance(task, RecognitionTask)
    rates = [task.base_rates(n) for n in lengths if sampling == "chi2023" or task.is_balanced_length(n)]
    return [Score(language.row, sampling, name, fmean(rate[name] for rate in rates)) for name in rates[0]]


def page(scores: list[Score]) -> str:
    """Return the page: for each language, the best feature under both samplings, next to the paper's nets."""
    published = {language.row: language.published for language in LANGUAGES}
    by_cell: dict[tuple[str, str], list[Score]] = {}
    for score in scores:
        by_cell.setdefault((score.row, score.sampling), []).append(score)
    lines = []
    for row in dict.fromkeys(score.row for score in scores):
        cells = []
        for sampling in SAMPLINGS:
            scored = by_cell.get((row, sampling), [])
            best = max(scored, key=lambda score: score.accuracy, default=Score(row, sampling, NOTHING, math.nan))
            cells += [percent(best.accuracy), best.feature]
        lines.append((row, *cells, published[row].chunks_of_2, published[row].chunks_of_3))
    header = ("row", *(name for what in SAMPLINGS.values() for name in (what, "best feature")), *PAPER_COLUMNS)
    details = [(row, feature, sampling, percent(accuracy)) for row, sampling, feature, accuracy in scores]
    parts = [
        "# What shallow features score on recognition tasks",
        "A net that has not learned a language can still answer most of its strings by a shallow feature.\n"
        "\n"
        "- On the strings of Chi et al. (2023), the best feature is right on more than 99 % of the strings in five "
        "rows of the paper's Table 1: D_n and Tomita 3. In these rows, a net has to score higher than this feature "
        "to show that it has learned the language.\n"
        "- If most strings outside the language are near misses, the score of the best feature is lower than on the "
        "published strings for seven of eight languages. For Tomita 6, this score is slightly higher. Tomita 1, 2 "
        "and 7, which are not in the paper's table, are so simple that one feature is right on 99 % or more.",
        markdown_table(header, lines),
        "Entries are the score of the best feature, and its name; all features are listed below. The last two columns "
        "contain the scores of the paper's nets, measured at the same lengths, 51-100. The first number is the "
        "maximum over runs of training and the second the mean. For Tomita 1, 2 and 7, only near misses have entries, "
        "because the paper's table has no such rows. *Number of runs*: the number of runs of equal symbols in the "
        "string.",
        "```console\npython benchmarks/shallow_features.py --save\n```",
        f"At each length, {NUM_COUNTED:,} strings are drawn. The prediction for a value of a feature is the most "
        f"frequent answer of the strings with this value. The logistic regression is fitted to these {NUM_COUNTED:,} "
        f"strings. The score is the accuracy of these predictions on {NUM_COUNTED:,} other strings. Scores are means "
        f"over lengths {LENGTHS[0]}-{LENGTHS[-1]}. At some lengths, all strings have the same answer. The published "
        "sampling (*chi2023*) includes these lengths, as in the paper. Our sampling (*near-miss*) leaves them out. "
        "No net is trained. The same scores select the best feature, so its score is slightly too high if several "
        "features have similar scores.",
        folded("All features", [markdown_table(("row", "feature", "sampling", "score"), details)]),
        provenance(environment()),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
