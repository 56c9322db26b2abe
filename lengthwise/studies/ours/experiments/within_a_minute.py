"""The CPU time from random weights to a net that is proved right at every length."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs, Scoring, with_certificates
from lengthwise.runs.spec import Settings
from lengthwise.studies.groups import UNSOLVABLE_LINEAR
from lengthwise.studies.languages import LANGUAGES

BUDGET = 120.0
"""The CPU seconds after which no further attempt of a run begins."""


_UNSOLVABLE: dict[str, Settings] = {
    "A_5": {"group": "A5"},
    "A_5 x Z_2": {"generators": ((1, 2, 3, 4, 0, 6, 5), (1, 2, 0, 3, 4, 5, 6))},
    "S_5": {"group": "S5"},
    **UNSOLVABLE_LINEAR,
    "A_6": {"group": "A6"},
    "A_5, every element": {"group": "A5", "alphabet": "elements"},
    "S_5, every element": {"group": "S5", "alphabet": "elements"},
}
"""The five groups of at most 168 elements that are not solvable, and A_6 with 360 elements; each has two generators.

In the last two rows, every element of the group is a symbol, as in the protocols of state tracking.
"""

_TASKS: dict[str, tuple[str, Settings]] = {
    **{language.row: (language.task, language.fields) for language in LANGUAGES},
    "Sum(5)": ("sum", {}),
    "EvenPair(5)": ("equal-ends", {}),
    **{name: ("word-problem", fields) for name, fields in _UNSOLVABLE.items()},
}


@EXPERIMENTS.register("within-a-minute/tasks")
def tasks(scale: Scale = "small") -> Experiment:
    """Train nets on 27 regular tasks until they are proved to be finite machines that are right; five seeds."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2, 3, 4), model="block-linear-rnn", goal="proved", budget=BUDGET)
    plan = EvaluationPlan(dense=(41, 100), dense_strings=32, long=((1_000, 64),), structured=((500, 32),))
    return Experiment(
        title="Proved within a minute",
        headline=(
            "Linear RNNs are trained on regular tasks until they are proved right at every length: "
            "{cells[*][*][reached]} nets are proved.\n"
            "The median time of a task is {cells[*][*][CPU s, median]} CPU seconds, and the slowest net takes "
            "{highest[*][*][CPU s, max]} CPU seconds."
        ),
        about=(
            "The time is measured on one core, from random weights to a certificate of level *proved*. It includes "
            "failed attempts and all certificates.\n"
            "The nets are `block-linear-rnn`, with five seeds and the same settings for all tasks. No attempt begins "
            "after 120 CPU seconds."
        ),
        notes=(
            "The first attempt trains a net of 64 states, and the next attempts train nets of 128, 256 and 512 "
            "states. No net has fewer states than the task has answers (preset `likelihood`). Each Baum-Welch step "
            "reads 64 strings of 39 and 40 symbols with the answers to all prefixes. The loss is the mean of -log p "
            "of an answer, given the earlier answers. Ten steps after the running mean of the loss is below 0.0002, "
            "the columns of the matrices become one-hot vectors. An attempt is stopped after 2,000 steps, or if the "
            "loss has not fallen by a tenth for 150 steps.",
            "The training loss decides whether a net is certified. When the columns are one-hot vectors, the loss is "
            "measured again, this time without conditioning on the earlier answers. A net is certified only if this "
            "loss is below 0.0002. Before certification, the net reads only training strings.",
            "A certificate below *proved* ends the attempt, and another attempt begins. The prover knows the task at "
            "every length, so such a restart uses more information than the training strings contain. The column "
            "*restarts* counts these restarts. A restart uses no accuracy and no string of the measurement.",
            "Selection: lengths, thresholds and sizes were chosen by trials on some of these tasks, with these and "
            "other seeds. No setting differs between tasks.",
            "The limit of CPU seconds decides only whether another attempt begins. It changes nothing within an "
            "attempt.",
        ),
        cells=[
            Cell(row, "", specs(task, {"task": fields}, preset="likelihood")) for row, (task, fields) in _TASKS.items()
        ],
        plan=with_certificates(plan, scale),
        scoring=Scoring(measure="attempts"),
    )
