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
            "{cells[*][*][reached]} nets are proved. The medians of tasks are {cells[*][*][CPU s, median]} CPU "
            "seconds, and the slowest net takes {highest[*][*][CPU s, most]}."
        ),
        about=(
            "`block-linear-rnn` trained until it is proved, five seeds: CPU seconds of one core from random weights to "
            "a certificate of level *proved*, all failed attempts and certificates included. After 60 of them no "
            "attempt begins. All tasks have the same settings."
        ),
        notes=(
            "An attempt: a net of 16 states, the next ones of 64, 64 and 128 (preset `machine`), on strings of 1 to 40 "
            "symbols with the answers to all prefixes. As soon as the running training loss is below 0.002 the "
            "temperature of its columns falls, and 800 steps later it is a finite machine. If the loss has not fallen "
            "by a tenth for 400 steps, or after 2,000, it is given up.",
            "What decides: the training loss. A net is certified only if its loss is still below 0.002 when its "
            "columns are one-hot vectors. No string other than those of training is answered before.",
            "What a certificate decides: one below *proved* ends the attempt, and another begins. A certificate knows "
            "the task at every length, so such a restart uses more than training strings; the column *restarts* counts "
            "them. It looks at no accuracy and at no string of the measurement.",
            "Selection: lengths, thresholds and sizes were chosen by trials on some of these tasks, on these seeds, "
            "too; none differs between tasks.",
            "Budget: it decides only whether another attempt begins; attempts depend on their steps alone.",
        ),
        cells=[Cell(row, "", specs(task, {"task": fields})) for row, (task, fields) in _TASKS.items()],
        plan=(SMOKE_PLAN if scale == "smoke" else plan).model_copy(update={"certificate": True}),
        scored="attempts",
    )
