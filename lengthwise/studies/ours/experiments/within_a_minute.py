"""The time until a net is proved right at every length, if training follows what it has reached."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, ScaledSpecs
from lengthwise.studies.languages import LANGUAGES

BUDGET = 60.0
"""The CPU seconds after which no further attempt begins."""

_TASKS = {
    **{language.row: (language.task, language.fields) for language in LANGUAGES},
    "Sum(5)": ("sum", {}),
    "EvenPair(5)": ("equal-ends", {}),
}


@EXPERIMENTS.register("within-a-minute/tasks")
def tasks(scale: Scale = "small") -> Experiment:
    """Train nineteen regular tasks, five seeds, until their nets are proved finite machines."""
    specs = ScaledSpecs(
        scale,
        seeds=(0, 1, 2, 3, 4),
        model="block-linear-rnn",
        goal="proved",
        budget=BUDGET,
    )
    plan = EvaluationPlan(dense=(41, 100), dense_strings=32, long=((1_000, 64),), structured=((500, 32),))
    return Experiment(
        title="Proved within a minute",
        headline=(
            "{cells[*][*][reached]} nets are proved.\n"
            "The medians of tasks are {cells[*][*][CPU s, median]} CPU seconds, and the slowest net takes "
            "{highest[*][*][CPU s, max]}."
        ),
        about=(
            "The time runs from random weights to a certificate of level *proved*, on one core, all failed attempts "
            "and certificates included.\n"
            "Nets are `block-linear-rnn`, with five seeds and the same settings for all tasks. No attempt begins after "
            "60 CPU seconds."
        ),
        notes=(
            "An attempt trains a net of 16 states, and the next ones of 64, 64 and 128 (preset `machine`). Strings "
            "have 1 to 40 symbols with the answers to all prefixes. As soon as the running training loss is below "
            "0.002, the temperature of its columns falls, and 800 steps later it is a finite machine. An attempt is "
            "stopped if the loss has not fallen by a tenth for 400 steps, or after 2,000.",
            "The training loss decides. A net is certified only if its loss is still below 0.002 when its columns are "
            "one-hot vectors. Before that, it answers no string other than training strings.",
            "A certificate below *proved* ends the attempt, and another begins. A certificate knows the task at every "
            "length, so such a restart uses more than training strings; the column *restarts* counts them. It uses no "
            "accuracy and no string of the measurement.",
            "Selection: lengths, thresholds and sizes were chosen by trials on some of these tasks, also on these "
            "seeds. No setting differs between tasks.",
            "The budget decides only whether another attempt begins; attempts depend on their steps alone.",
        ),
        cells=[Cell(row, "", specs(task, {"task": fields})) for row, (task, fields) in _TASKS.items()],
        plan=(SMOKE_PLAN if scale == "smoke" else plan).model_copy(update={"certificate": True}),
        scored="attempts",
    )
