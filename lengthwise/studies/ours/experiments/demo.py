"""The demo: six nets that are trained at lengths up to 40 until they are proved right at every length."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs, with_certificates
from lengthwise.runs.spec import Settings

_TASKS: dict[str, tuple[str, Settings]] = {
    "modular-arithmetic": ("modular-arithmetic", {}),
    "parity": ("parity", {}),
    "even-pairs": ("even-pairs", {}),
    "cycle-navigation": ("cycle-navigation", {}),
    "D_3": ("bounded-dyck", {"depth": 3}),
    "Tomita 3": ("tomita", {"index": 3}),
}
"""The names and settings of the tasks. The task with the longest training begins first."""


@EXPERIMENTS.register("demo")
def demo(scale: Scale = "small") -> Experiment:
    """Train nets on six tasks until they are proved, and measure them up to length 100,000; one seed."""
    specs = ScaledSpecs(scale, seeds=(0,), model="block-linear-rnn", goal="proved")
    plan = EvaluationPlan(dense_strings=64)
    return Experiment(
        title="Linear RNNs trained until they are proved, accuracy of the final answer by length",
        about="Nets are trained at lengths up to 40, with the answers to all prefixes.",
        cells=[
            Cell(row, "", specs(task, {"task": fields}, preset="likelihood")) for row, (task, fields) in _TASKS.items()
        ],
        plan=with_certificates(plan, scale),
    )
