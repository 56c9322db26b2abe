"""The first result: RegularGPT learns three tasks at lengths up to 40, is right at 100,000, and is certified."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiments.base import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, ScaledSpecs


@EXPERIMENTS.register("demo")
def demo(scale: Scale = "small") -> Experiment:
    """Three tasks, one seed, preset `fast`, final answer and weights only, nothing selected; certificates."""
    specs = ScaledSpecs(scale, seeds=(0,))
    plan = SMOKE_PLAN if scale == "smoke" else EvaluationPlan()
    return Experiment(
        title="RegularGPT, accuracy of the final answer by length",
        about="Trained at lengths up to 40, supervised by the final answer only.",
        cells=[Cell(task, "C=2", specs(task, {})) for task in ("parity", "even-pairs", "cycle-navigation")],
        plan=plan.model_copy(update={"certificate": True}),
    )
