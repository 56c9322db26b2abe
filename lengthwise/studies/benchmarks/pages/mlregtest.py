"""The page about machines learned from MLRegTest: accuracy on the four test sets, by class."""

from collections.abc import Sequence
from statistics import fmean

from lengthwise.display import percent
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import folded, markdown_table
from lengthwise.studies.benchmarks.experiments.mlregtest import TESTS, LearnedLanguage, LearnedLanguages


@STUDY_PAGES.register("bench/mlregtest")
def mlregtest_page(study: LearnedLanguages, stem: str) -> StudyPage:
    """Return the study's page: tables by number of training strings, by doubt of `learn`, by class, and by language."""
    results = study.results
    by_size = {size: [one for one in results if one.size == size] for size in {one.size: None for one in results}}
    classes = {(one.language_class, one.size): None for one in results}
    header = ["languages", *TESTS, "machine is right", "confirmed", "proved", "mean CPU s"]
    sections = [
        markdown_table(["strings", *header], [[f"{size:,}", *_line(part)] for size, part in by_size.items()]),
        "*Strings* is the number of training strings. *TestSR* to *TestLA* are mean accuracies on the test sets: S "
        "for strings of 20-29 symbols, L for 31-50 symbols, R for random strings, and A for pairs of strings that "
        "differ by one symbol. *Machine is right* counts learned machines that accept exactly the nonempty strings "
        "of the language. *Confirmed* counts machines that held-out training strings confirm: a machine is right on "
        "all of them, or its accuracy on them is clearly above a threshold. The threshold is halfway from the "
        "accuracy of the best simple baseline on these strings to the machine's accuracy in training. `learn` also "
        "returns a net that computes the machine. *Proved* counts nets that are proved to answer every string like "
        "the machine.",
        "## By the learner's own doubt",
        "`learn` reports a doubt if held-out training strings do not confirm its machine.",
        markdown_table(
            ["doubt", "strings", *header],
            [
                ["no" if is_confirmed else "yes", f"{size:,}", *_line(part)]
                for size in by_size
                for is_confirmed in (True, False)
                if (part := [one for one in by_size[size] if one.is_confirmed == is_confirmed])
            ],
        ),
        "## Classes",
        markdown_table(
            ["class", "strings", *header],
            [
                [kind, f"{size:,}", *_line([one for one in results if (one.language_class, one.size) == (kind, size)])]
                for kind, size in classes
            ],
        ),
        "## Protocol",
        "Languages are drawn from all 16 classes of MLRegTest. Training and test sets are drawn from the languages' "
        "automata by the protocol of MLRegTest (van der Poel et al., JMLR 25(283), 2024). Strings have 20-29 symbols "
        "in Train, TestSR and TestSA, and 31-50 in TestLR and TestLA. Half of the strings in each set are in the "
        "language. TestSA and TestLA have pairs of strings that differ by one symbol. "
        "`lengthwise.tasks.given.mlregtest_sampler` describes the differences from this protocol. MLRegTest's set "
        "Dev is not used. `learn` makes several attempts to find a machine, and begins no further attempt after "
        f"{study.budget:g} CPU seconds. The page has no accuracies of the nets of van der Poel et al., because their "
        "averages were not available. In the folded table, *states* counts the states of the language's minimal "
        "machine, and *its states* the states of the learned machine.",
        folded("Every language", [markdown_table(_DETAILS, [_detail(one) for one in results])]),
    ]
    return StudyPage(sections, {}, headline=_headline(max(by_size), by_size[max(by_size)]))


def _headline(size: int, results: Sequence[LearnedLanguage]) -> str:
    """Return how many machines learned from `size` strings are right, and their mean accuracy on two test sets."""
    short, pairs = (fmean(one.accuracies[TESTS.index(test)] for one in results) for test in ("TestSR", "TestSA"))
    return (
        f"From {size:,} strings of each language, `lengthwise learn` finds the right machine for "
        f"{sum(one.is_right for one in results)} of {len(results)} languages of MLRegTest.\n"
        f"On random strings of 20-29 symbols, the machines have a mean accuracy of {percent(short)}. On pairs of "
        f"strings that differ by one symbol and also have 20-29 symbols, it is {percent(pairs)}."
    )


def _line(results: Sequence[LearnedLanguage]) -> list[str]:
    return [
        f"{len(results)}",
        *(percent(fmean(one.accuracies[index] for one in results)) for index in range(len(TESTS))),
        f"{sum(one.is_right for one in results)}",
        f"{sum(one.is_confirmed for one in results)}",
        f"{sum(one.level == 'proved' for one in results)}",
        f"{fmean(one.seconds for one in results):.1f}",
    ]


_DETAILS = ["language", "states", "strings", *TESTS, "machine is right", "its states", "level", "CPU s"]


def _detail(one: LearnedLanguage) -> list[str]:
    return [
        one.name,
        f"{one.num_states}",
        f"{one.size:,}",
        *map(percent, one.accuracies),
        "yes" if one.is_right else "no",
        f"{one.learned_states}",
        one.level,
        f"{one.seconds:.1f}",
    ]
