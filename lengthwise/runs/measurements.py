"""The measurements of a trained model that an evaluation plan lists."""

from collections.abc import Callable
from typing import Any

from lengthwise.evaluation.length_curve import SetProgress
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.models.base import SequenceModel
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import RunSpec
from lengthwise.tasks.base import VectorTask
from lengthwise.text.language import LanguageTask
from lengthwise.training.batches import examples_answered


def is_complete(result: RunResult, spec: RunSpec, plan: EvaluationPlan) -> bool:
    """Return whether nothing is left to do: the whole plan is measured, and no other attempt at a goal may begin."""
    goal, training = spec.goal, result.training
    # A run that ended because its budget was spent continues if it now gets a larger budget.
    may_go_on = goal is not None and training.status != "reached" and training.cpu_seconds < goal.budget
    return not may_go_on and result.plan.reset_unused(spec.task).covers(plan.reset_unused(spec.task))


def measurements(
    spec: RunSpec, plan: EvaluationPlan, model: SequenceModel, begin: Callable[[str], None], set_progress: SetProgress
) -> dict[str, Any]:
    """Measure everything in the plan except the certificate; return the measurements by their names in `RunResult`.

    `begin` is called with the name of each part before it is measured, and `set_progress` with the fraction of the part
    that is done.
    """
    task = spec.task
    if isinstance(task, VectorTask):
        begin("errors")
        return {"errors": plan.measure_errors(model, task)}
    measured: dict[str, Any] = {}
    if spec.recipe.num_examples is not None:
        begin("training set")
        measured["examples"] = examples_answered(model, task, spec.recipe, seed=spec.seed)
    if isinstance(task, LanguageTask):
        begin("perplexity")
        return {**measured, "perplexity": plan.measure_perplexity(model, task, set_progress)}
    low, high = plan.dense
    parts = plan.measure(model, task, set_progress)
    is_planned = {f"lengths {low}-{high}": True, "long lengths": plan.long, "structured strings": plan.structured}
    for name, has_lengths in is_planned.items():
        if has_lengths:
            begin(name)
        measured.update([next(parts)])
    measured["on_other_tasks"] = tuple(plan.measure_dense(model, other) for other in spec.other_tasks)
    return measured
