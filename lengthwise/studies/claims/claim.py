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
            "a score: our mean is at least the paper's, to the digits that it prints, whatever our size (where the "
            "paper says that a net fails: it is at most the paper's highest, measured as that is, by nets of the "
            "paper's size or by nets that answer 99 % at the training length); a difference: it has the paper's sign "
            "and is decided after Holm's correction, or, between two columns of one row, every run of one, above "
            "chance, is better than all of the other, of four or more each, or, over all rows of a table, the 95 % "
            "interval of the mean difference holds no 0, and what is behind was not trained for fewer steps; a "
            "theorem, definition or construction: built as stated, and tested against its statement"
        ),
        "contradicted": (
            "at the paper's own size and protocol a score falls short of what is printed or a difference has the other "
            "sign, or a statement about all sizes is false, with a counterexample where it is mathematics"
        ),
        "not decided": "neither: our nets are smaller, trained for less, or on another device, which could explain it",
        "not run": "no results are recorded; *ours* says what it takes, that there is nothing to run, or not run yet",
    }
)
"""When a claim has a verdict."""


class Entry(NamedTuple):
    """The scores of a cell of an experiment's table, next to the paper's entry.

    `figures` are columns of the table, the last of which is compared. `fails`: the paper reports that the net does no
    better than its entry; `fits` is then the column and figure of the same row that say how well it does at its
    training length. `expected`: the score from which on a claim without a printed entry holds.
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
    """How many parameters the model of a cell has at the paper's scale."""

    experiment: str
    row: str
    column: str


Number = TableNumber | Phrase | Parameters


class Stated(NamedTuple):
    """What a page says and a test or a command checks: of propositions, constructions, benchmarks and studies.

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
    """What a section of a paper claims, in our words, and the evidence.

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
