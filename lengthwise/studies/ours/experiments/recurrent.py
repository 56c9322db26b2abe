"""Ordinary recurrent networks that are trained so that they can be proved right."""

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
    """Train Elman networks on thirteen regular tasks by preset `contracting`, and certify them."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2), model="rnn")
    plan = EvaluationPlan(dense_strings=128, long=((1_000, 256), (10_000, 256)))
    return Experiment(
        title="Elman networks, proved right at every length",
        about=(
            "Elman networks with torch's own cell are trained on regular tasks, and proved right at every length on "
            "some of them; the table of certificates shows which ones.\n"
            "The nets are trained with preset `contracting` and three seeds, and their final weights are certified. No "
            "seed, step or setting is selected for a task. A certificate of level *proved* is about the float32 net "
            "itself."
        ),
        notes=(
            "The nets have 32 units, and are trained for 4,000 steps on the answers to all prefixes of strings of at "
            "most 40 symbols. From step 1,200 on, a penalty limits how much an interval of states grows when the net "
            "reads a symbol.",
        ),
        cells=[
            Cell(row, "", specs(task, {"task": fields}, preset="contracting")) for row, (task, fields) in _TASKS.items()
        ],
        plan=with_certificates(plan, scale),
    )


@EXPERIMENTS.register("recurrent/bounded")
def bounded(scale: Scale = "small") -> Experiment:
    """Train linear RNNs on parity, with reflections as matrices, and prove them right up to a length; five seeds."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2, 3, 4), model="block-linear-rnn")
    plan = EvaluationPlan(dense_strings=128, long=((1_000, 256), (10_000, 256)))
    return Experiment(
        title="Recurrences of reflections, proved right up to a length",
        about=(
            "Linear RNNs whose matrices are reflections or the identity are trained on parity; the table of "
            "certificates shows how many are proved right up to a length.\n"
            "Reflections preserve distances, so rounding errors add up. A certificate of level *bounded* contains "
            "the length up to which rounding cannot change an answer.\n"
            "Each symbol has one 4 x 4 matrix, the identity or a reflection. The nets are trained with preset "
            "`reflecting` and five seeds, and their final weights are certified."
        ),
        notes=(
            "The nets are trained for 2,000 steps on the answers to all prefixes of strings of at most 40 symbols. "
            "If the matrices of both symbols are reflections, the planes of the two reflections are never exactly at "
            "right angles. So each `ab` in a string turns the state by a slightly wrong angle.",
        ),
        cells=[Cell("Parity", "", specs("parity", {}, preset="reflecting"))],
        plan=with_certificates(plan, scale),
    )
