"""Ordinary recurrent networks that are trained to be provable."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs, with_certificates

_TASKS = {
    "Parity": ("parity", {}),
    "Even Pairs": ("even-pairs", {}),
    "Cycle Navigation": ("cycle-navigation", {}),
    **{f"Tomita {index}": ("tomita", {"index": index}) for index in range(1, 8)},
    **{f"D_{depth}": ("bounded-dyck", {"depth": depth}) for depth in (2, 3, 4)},
}


@EXPERIMENTS.register("recurrent/proved")
def proved(scale: Scale = "small") -> Experiment:
    """Train Elman networks by preset `contracting`, three seeds, with their certificates."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2), model="rnn")
    plan = EvaluationPlan(dense_strings=128, long=((1_000, 256), (10_000, 256)))
    return Experiment(
        title="Elman networks, proved right at every length",
        about=(
            "Elman networks with torch's own cell are proved right at every length on some of these tasks; the table "
            "of certificates shows which ones.\n"
            "Preset `contracting`, three seeds, final weights; no seed, step or setting is selected for a task. A "
            "certificate of level *proved* is about the float32 net itself."
        ),
        notes=(
            "Training: 4,000 steps on the answers to all prefixes of strings of at most 40 symbols, with 32 units. "
            "From step 1,200 on, a penalty limits how much an interval of states grows when the net reads a symbol.",
        ),
        cells=[
            Cell(row, "", specs(task, {"task": fields}, preset="contracting")) for row, (task, fields) in _TASKS.items()
        ],
        plan=with_certificates(plan, scale),
    )


@EXPERIMENTS.register("recurrent/bounded")
def bounded(scale: Scale = "small") -> Experiment:
    """Train recurrences of reflections on parity, five seeds, and prove them right up to some length."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2, 3, 4), model="block-linear-rnn")
    plan = EvaluationPlan(dense_strings=128, long=((1_000, 256), (10_000, 256)))
    return Experiment(
        title="Recurrences of reflections, proved right up to a length",
        about=(
            "Recurrences of reflections preserve distances, so rounding errors add up; a certificate of level "
            "*bounded* names the length up to which rounding cannot change an answer.\n"
            "Each symbol has one 4 x 4 matrix, the identity or a reflection. Preset `reflecting`, five seeds, final "
            "weights."
        ),
        notes=(
            "Training: 2,000 steps on the answers to all prefixes of strings of at most 40 symbols. If both symbols "
            "are reflections, each pair of symbols turns the state a little, because two planes are never quite at "
            "right angles.",
        ),
        cells=[Cell("Parity", "", specs("parity", {}, preset="reflecting"))],
        plan=with_certificates(plan, scale),
    )
