"""Claims of papers and their evidence: a number on a page, or a page and a test."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from lengthwise.experiment import Scale
from lengthwise.registry import Registry

Verdict = Literal["reproduced", "contradicted", "not decided", "not run"]

RULES: Mapping[Verdict, str] = {
    "reproduced": (
        "A *score* is reproduced if our mean is at least the paper's mean, to the digits that the paper prints. "
        "This rule also applies if our nets are smaller. If the paper reports that a net fails (*no more than "
        "printed*), our score must be at most the paper's highest score. In this case, our net must have the "
        "paper's size, or answer 99 % correctly at the training length. A *difference* is reproduced if it has the "
        "paper's sign and one of three tests decides it. The first test is Student's test with Holm's correction "
        "over a table. The second test needs at least four runs in each of two columns: every run of one column is "
        "above chance and better than all runs of the other. The third test takes the mean difference over all "
        "rows of a table; its 95 % interval must exclude 0. In the second and third test, the worse net must have "
        "trained for at least as many steps as the better net. A *theorem, definition or construction* is "
        "reproduced if it is implemented as stated, and tested against its statement."
    ),
    "contradicted": (
        "At the paper's own size and protocol, a score is lower than the printed score, or a difference has the "
        "other sign. If the paper reports that a net fails, a higher score contradicts it. A "
        "mathematical statement about all sizes is contradicted by a counterexample."
    ),
    "not decided": (
        "The claim is neither reproduced nor contradicted. Our nets are smaller, trained for fewer steps, or run "
        "on another device, and this could explain the result."
    ),
    "not run": "No results are recorded. The column *ours* gives the reason, or the cost of a run.",
}
"""The condition of each verdict on a claim."""


class Entry(NamedTuple):
    """A comparison of a cell of an experiment's table with the entry that the paper prints for this cell.

    `figures` are columns of the table. All of them are shown, and the last one is compared. If `fails` is True, the
    paper reports that the net fails, and the net's score must be at most the paper's entry. In this case, `fits` names
    a column and a figure in the cell's row: this figure is the score at the training length. `expected` is the lowest
    score at which a claim without a printed entry holds.
    """

    experiment: str
    row: str
    column: str
    figures: tuple[str, ...] = ("mean",)
    fails: bool = False
    fits: tuple[str, str] | None = None
    expected: float | None = None
    scale: Scale = "small"


class Effect(NamedTuple):
    """The difference of two columns of a row (first - second), seed by seed.

    The experiment has to compare these columns.
    `better` is the column for which the paper reports an advantage.
    """

    experiment: str
    row: str
    first: str
    second: str
    better: str
    scale: Scale = "small"


class Contrast(NamedTuple):
    """Two columns of a row; the paper ranks the first higher. If their scores overlap, the claim is not decided."""

    experiment: str
    row: str
    first: str
    second: str
    scale: Scale = "small"


class Rows(NamedTuple):
    """Two columns of an experiment; the paper ranks the first higher.

    The mean over rows of the difference between the two columns decides the claim.
    """

    experiment: str
    first: str
    second: str
    scale: Scale = "small"


class TableNumber(NamedTuple):
    """A number in a table on the page of a benchmark or study, found by its column and the first cells of its line.

    `heading` is the heading of the table's section. It is needed if several tables of the page have this column and
    line.
    """

    page: str
    column: str
    line: tuple[str, ...]
    heading: str = ""


class Phrase(NamedTuple):
    """A number in a sentence of a page; `pattern` is a regular expression whose only group matches the number."""

    page: str
    pattern: str


class Parameters(NamedTuple):
    """The number of parameters of a cell's model at the paper's scale."""

    experiment: str
    row: str
    column: str


Number = TableNumber | Phrase | Parameters


class Stated(NamedTuple):
    """A statement on a page that a test or a command checks: a proposition, a construction, a benchmark or a study.

    `page` is a path below the folder of pages. `test` is a file of tests. If `command` is not empty, this command,
    not the test, repeats the evidence. `why` explains the numbers. Without numbers, `why` is shown alone.
    """

    verdict: Verdict
    page: str
    test: str = ""
    command: str = ""
    numbers: tuple[Number, ...] = ()
    why: str = ""


class Unrun(NamedTuple):
    """The note on a claim that was not tested: the reason or the cost, and an experiment that would test it, if any."""

    why: str
    experiment: str = ""
    scale: Scale = "small"


Evidence = Entry | Effect | Contrast | Rows | Stated | Unrun


class Claim(NamedTuple):
    """A claim of a section of a paper, in our words, and the evidence.

    `published` is the paper's number. It is empty if the evidence is a cell of an experiment that already contains this
    number.
    """

    section: str
    claim: str
    evidence: Evidence
    published: str = ""


class Paper(NamedTuple):
    """The claims of a paper, and explanations of our experiments.

    `smaller` describes, by experiment name, how our experiment is smaller than the paper's. `takes` gives the cost of
    an experiment at scale `paper`, as a phrase that follows "takes". `note` is a further explanation of the table of
    claims.
    """

    title: str
    claims: Sequence[Claim]
    smaller: Mapping[str, str] = MappingProxyType({})
    takes: Mapping[str, str] = MappingProxyType({})
    note: str = ""


CLAIMS: Registry[Callable[[], Paper]] = Registry("paper", "lengthwise.studies.claims.papers")
"""Functions that return the claims of a paper, by the paper's name: a folder of `studies` with a `claims.toml`."""
