"""The first result: RegularGPT learns three tasks at lengths up to 40, is right at 100,000, and is certified."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiments.base import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, ScaledSpecs
from lengthwise.runs.spec import Settings


@EXPERIMENTS.register("demo")
def demo(scale: Scale = "small") -> Experiment:
    """Three tasks, one seed, preset `fast` in 5,000 steps, final answer and weights only; certificates."""
    fewer: Settings = {"train": {"steps": 5_000}}  # of 6,000: tasks that are learned in 2,000, and minutes to wait
    specs = ScaledSpecs(scale, seeds=(0,))
    plan = SMOKE_PLAN if scale == "smoke" else EvaluationPlan()
    return Experiment(
        title="RegularGPT, accuracy of the final answer by length",
        about="Trained at lengths up to 40, supervised by the final answer only.",
        cells=[Cell(task, "C=2", specs(task, fewer)) for task in ("parity", "even-pairs", "cycle-navigation")],
        plan=plan.model_copy(update={"certificate": True}),
    )
