"""The first result: RegularGPT learns three tasks at lengths up to 40 and is right at 100,000."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiments.base import EXPERIMENTS, Experiment, Scale
from lengthwise.runs.spec import make_spec

TASKS = ("parity", "even-pairs", "cycle-navigation")
SEEDS = (0, 1, 2)


@EXPERIMENTS.register("demo")
def demo(scale: Scale = "small") -> Experiment:
    """Three tasks, three seeds, preset `fast`, the final answer only, final weights, nothing selected."""
    if scale == "smoke":
        settings = {"train": {"steps": 20, "batch_size": 16, "max_length": 8}, "model": {"d_model": 16}}
        plan = EvaluationPlan(dense=(9, 20), dense_strings=16, long=((64, 16), (128, 8)), structured=((20, 4),))
        seeds: tuple[int, ...] = (0,)
    else:
        settings, plan, seeds = {}, EvaluationPlan(), SEEDS
    specs = [make_spec(task, "regular-gpt", settings, seed=seed) for task in TASKS for seed in seeds]
    return Experiment("RegularGPT, accuracy of the final answer by length", specs, plan)
