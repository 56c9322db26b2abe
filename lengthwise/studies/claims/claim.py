"""A claim of a paper, and the evidence for it: which number of which page, or which page and test."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from lengthwise.experiment import Scale
from lengthwise.registry import Registry

Verdict = Literal["reproduced", "contradicted", "not decided", "not run"]

RULES: Mapping[Verdict, str] = MappingProxyType(
    {
        "reproduced": (
            "A *score* is reproduced if our mean is at least the paper's, to the digits that it prints, whatever our "
            "size. If the paper reports that a net fails, our score must be at most the paper's highest. Such nets "
            "have the paper's size, or answer 99 % correctly at the training length. A *difference* is reproduced if "
            "it has the paper's sign and one of three tests decides it. The first is Holm's correction over a table. "
            "The second needs two columns of a row with at least four runs each: every run of one is above chance and "
            "better than all runs of the other. The third is a 95 % interval of the mean difference over all rows of a "
            "table, without 0. The net that is behind must not have trained for fewer steps. A *theorem, definition or "
            "construction* is reproduced if it is built as stated, and tested against its statement."
        ),
        "contradicted": (
            "At the paper's own size and protocol, a score is lower than the printed one, or a difference has the "
            "other sign. A mathematical statement about all sizes is contradicted by a counterexample."
        ),
        "not decided": (
            "Neither holds. Our nets are smaller, trained for less, or on another device, which could explain it."
        ),
        "not run": "No results are recorded. The column *ours* gives the reason, or what a run takes.",
    }
)
"""The condition of each verdict on a claim."""


class Entry(NamedTuple):
    """The scores of a cell of an experiment's table, next to the paper's entry.

    `figures` are columns of the table; the last one is compared. `fails` means that the paper reports a net that does
    not exceed its entry. Then `fits` names the column and figure of the same row with the score at the training length.
    `expected` is the lowest score at which a claim without a printed entry holds.
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
    """The first less the second column of a row, seed by seed, of an experiment that compares them.

    `better` is the column for which the paper reports an advantage.
    """

    experiment: str
    row: str
    first: str
    second: str
    better: str
    scale: Scale = "small"


class Contrast(NamedTuple):
    """Two columns of a row, the first of which is higher by the paper: decided where ranges of runs are disjoint."""

    experiment: str
    row: str
    first: str
    second: str
    scale: Scale = "small"


class Rows(NamedTuple):
    """Two columns in all rows, the first of which is higher by the paper: the mean difference of means over rows."""

    experiment: str
    first: str
    second: str
    scale: Scale = "small"


class TableNumber(NamedTuple):
    """A number in a table of a page that a benchmark or study wrote: the column, and the first cells of its line.

    `heading`: of the section that holds the table, where several have such a line.
    """

    page: str
    column: str
    line: tuple[str, ...]
    heading: str = ""


class Phrase(NamedTuple):
    """A number in a sentence of such a page: a regular expression, whose group is the number."""

    page: str
    pattern: str


class Parameters(NamedTuple):
    """The number of parameters of a cell's model at the paper's scale."""

    experiment: str
    row: str
    column: str


Number = TableNumber | Phrase | Parameters


class Stated(NamedTuple):
    """A statement of a page that a test or a command checks: a proposition, a construction, a benchmark or a study.

    `page` is below the folder of pages. `test` is a file of tests; `command` what else repeats it. `why` goes with the
    numbers, if any.
    """

    verdict: Verdict
    page: str
    test: str = ""
    command: str = ""
    numbers: tuple[Number, ...] = ()
    why: str = ""


class Unrun(NamedTuple):
    """Why nothing was run, or what it takes, and the experiment that would, if any."""

    why: str
    experiment: str = ""
    scale: Scale = "small"


Evidence = Entry | Effect | Contrast | Rows | Stated | Unrun


class Claim(NamedTuple):
    """A claim of a section of a paper, in our words, and the evidence.

    `published`: the paper's number, where it is not the entry of the cell.
    """

    section: str
    claim: str
    evidence: Evidence
    published: str = ""


class Paper(NamedTuple):
    """The claims of a paper, how the experiments on them are smaller than its own, and what its own sizes take.

    Both are by the name of the experiment; `takes` is of its scale `paper`, and follows "takes". `note`: what else the
    table of its claims needs.
    """

    title: str
    claims: Sequence[Claim]
    smaller: Mapping[str, str] = MappingProxyType({})
    takes: Mapping[str, str] = MappingProxyType({})
    note: str = ""


CLAIMS: Registry[Callable[[], Paper]] = Registry("paper", "lengthwise.studies.claims.papers")
"""By the name of the paper: what makes its claims. A folder of `studies` with a file `claims.toml` is a paper."""
