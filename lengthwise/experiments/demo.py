"""The first result: RegularGPT learns three tasks at lengths up to 40 and is right at 100,000."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiments.base import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, ScaledSpecs


@EXPERIMENTS.register("demo")
def demo(scale: Scale = "small") -> Experiment:
    """Three tasks, three seeds, preset `fast` cut to 6,000 steps, final answer and weights only, nothing selected."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2))
    return Experiment(
        title="RegularGPT, accuracy of the final answer by length",
        about="Trained at lengths up to 40, supervised by the final answer only.",
        cells=[
            Cell(task, "C=2", specs(task, {"train": {"steps": 6000}}))
            for task in ("parity", "even-pairs", "cycle-navigation")
        ],
        plan=SMOKE_PLAN if scale == "smoke" else EvaluationPlan(),
    )
