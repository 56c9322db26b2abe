"""Dynamic programming by grid recurrences that are trained on short strings."""

from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs, Scoring
from lengthwise.runs.spec import Settings

BUDGET = 300.0
"""The CPU seconds after which no further attempt of a run begins."""

MAX_LETTERS = 100
"""The longest measured string, in letters. Training strings have up to 12 letters."""


class _Problem(NamedTuple):
    """A row: the task, its fields, the number of different messages, and published entries of looped transformers."""

    row: str
    task: str
    fields: Settings
    num_messages: int
    published: str


_PROBLEMS = (
    _Problem("LCS", "longest-common-subsequence", {"max_shorter": 3}, 4, "68.5 (5 loops), 99.3 (50 loops), both at 60"),
    _Problem("Levenshtein", "levenshtein-distance", {}, 8, "26.6 (5 loops), 88.3 (100 loops), both at 60"),
)


def _cell(scale: Scale, problem: _Problem) -> Cell:
    specs = ScaledSpecs(scale, seeds=(0, 1, 2), model="grid-recurrence", goal="proved", budget=BUDGET)
    max_letters = 24 if scale == "smoke" else MAX_LETTERS
    settings: Settings = {
        "task": {"alphabet": 4, "max_length": max_letters, **problem.fields},
        "model": {"num_messages": problem.num_messages},
    }
    return Cell(problem.row, "", specs(problem.task, settings), problem.published)


@EXPERIMENTS.register("grid/dynamic-programming")
def dynamic_programming(scale: Scale = "small") -> Experiment:
    """Train grid recurrences on the longest common subsequence and the Levenshtein distance, and certify them."""
    long = () if scale == "smoke" else ((20, 1_000), (40, 1_000), (60, 1_000), (MAX_LETTERS, 200))
    return Experiment(
        title="Dynamic programming, learned from final answers and proved",
        about=(
            "A grid recurrence learns dynamic programming over two strings from final answers, until it is *proved* "
            "right at every length.\n"
            "Dynamic programming fills a table of two strings cell by cell. The net learns the rule of a cell. Cells "
            "pass messages to their neighbors. At the end of training, the rule is finite: a table over a few "
            "classes of messages.\n"
            "Training uses strings of up to 12 letters (Levenshtein: 14) from an alphabet of 4, with preset "
            "`growing-grid` and three seeds."
        ),
        notes=(
            "An attempt trains one net. The attempt ends without a certificate if its loss stays high, or if the "
            "finite rule makes an error on a training string. After an attempt without a certificate, or with a "
            "certificate below *proved*, another attempt follows. A certificate uses more information than the "
            "training strings contain, because it compares the net with the right rule. No attempt begins after 300 "
            "CPU seconds. Column *steps* counts the steps of all attempts of a run, and *CPU s* includes their "
            "certificates.",
            "*paper*: Xu and Sato (2024), Table 1, with timestep encoding, by number of loops. Their looped "
            "transformers are trained for 781,250 steps on strings of 60 letters from an alphabet of 26, and "
            "measured on such strings. Looped transformers have no built-in table. The grid recurrence has the table "
            "built in, and learns only the rule of its cells. The paper's edit distance has costs of 2 for an "
            "omitted or inserted letter, 3 for a replaced letter, and 1 for a letter that is omitted or inserted at "
            "the start. In row *Levenshtein*, all costs are 1. In *LCS*, the longest common subsequence, the second "
            "string is up to 3 letters shorter than the first.",
            "Selection: sizes, learning rate and steps were chosen by whether training succeeded, also on these "
            "seeds. The net for LCS has 4 classes of messages, because one of two nets with 8 classes was not proved. "
            "The net for Levenshtein has 8 classes.",
        ),
        cells=[_cell(scale, problem) for problem in _PROBLEMS],
        plan=EvaluationPlan(
            dense=(12, 12),
            dense_strings=16 if scale == "smoke" else 1_000,
            long=long,
            structured=(),
            certificate=True,
            seed=1,
        ),
        scoring=Scoring(measure="legal"),
    )
