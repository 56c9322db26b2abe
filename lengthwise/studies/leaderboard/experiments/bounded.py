"""Transformers with one or two layers that are proved right up to a length, or refuted."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs, with_certificates
from lengthwise.runs.spec import Settings

_OCCURRENCES: dict[str, tuple[str, Settings]] = {
    "Tomita 1": ("tomita", {"index": 1}),
    "no c": ("regex", {"pattern": "[ab]*", "alphabet": "abc"}),
    "only c": ("regex", {"pattern": "c*", "alphabet": "abc"}),
    "all symbols equal": ("regex", {"pattern": "a*|b*"}),
}
"""Languages that one layer can recognize: the last position looks for symbols that occur anywhere in the string."""

_ORDERS: dict[str, tuple[str, Settings]] = {
    "ab occurs": ("regex", {"pattern": "[ab]*ab[ab]*"}),
    "a is first": ("regex", {"pattern": "a[ab]*"}),
    "Even Pairs": ("even-pairs", {}),
    "Tomita 2": ("tomita", {"index": 2}),
    "Tomita 4": ("tomita", {"index": 4}),
    "Tomita 7": ("tomita", {"index": 7}),
    "D_2": ("bounded-dyck", {"depth": 2}),
}
"""Languages that depend on the order of symbols."""

_POSITIONS = ("none", "alibi", "t5")

_OTHER_POSITIONS = ("kerple-log", "kerple-power", "fire", "rotary", "xl")
"""The other position encodings for which bounds are implemented. Nets with these encodings have only task Tomita 1."""


@EXPERIMENTS.register("transformers/proved")
def proved(scale: Scale = "small") -> Experiment:
    """Train transformers with one or two layers by preset `bounded`, and certify each net."""
    one, three, five = (ScaledSpecs(scale, seeds=range(count), model="transformer") for count in (1, 3, 5))
    learned = ("Tomita 1", "ab occurs")
    rows = [
        *((1, name, five, _POSITIONS) for name in _OCCURRENCES),
        *((2, name, three, _POSITIONS) for name in learned),
        *((1, name, one, _POSITIONS) for name in _ORDERS),
        *((2, name, one, _POSITIONS) for name in _ORDERS if name not in learned),
        (1, "Tomita 1", three, _OTHER_POSITIONS),
    ]
    tasks = _OCCURRENCES | _ORDERS
    plan = EvaluationPlan(dense=(41, 200), dense_every=9, dense_strings=32, long=((500, 64),))
    return Experiment(
        title="Transformers, proved right up to a length",
        headline=(
            "Small transformers are proved right on every string up to a length: "
            "{cells[*, 1 layer, *][*][level bounded]} nets with one layer and "
            "{cells[*, 2 layers, *][*][level bounded]} with two layers.\n"
            "{cells[*][*][level refuted]} nets are refuted by a string with a wrong answer."
        ),
        about=(
            "The nets are trained with preset `bounded` on strings of at most 40 symbols, and their final weights "
            "are certified. A certificate of level *bounded* contains the length up to which the net is right on "
            "every string. The nets have width 16, one head, and one or two layers. Their positions are encoded by "
            "ALiBi, by T5 or not at all. On Tomita 1, nets with five further encodings are also trained.\n"
            "No setting differs between tasks. Nets with one layer have five seeds on Tomita 1, *no c*, *only c* and "
            "*all symbols equal*. Nets with two layers have three seeds on Tomita 1 and *ab occurs*. Nets with one "
            "of the five further encodings also have three seeds. All other rows have one seed."
        ),
        notes=(
            "Training stops if the loss does not fall for 400 steps, so nets that cannot learn a task end early. "
            "Without positions, the answer of a net with one layer depends only on the last symbol and on the number "
            "of each symbol. So this net cannot learn a language that depends on the order of the symbols before the "
            "last one.",
            "Optimizer, learning rates, noise and lengths were chosen by trials on Tomita 1, *no c*, *all symbols "
            "equal* and *ab occurs*, with seed 0.",
            "No net is proved right beyond 4,096 symbols, because the prover does not try larger lengths.",
        ),
        cells=[
            Cell(
                f"{name}, {count} layer{'s' if count > 1 else ''}, {positions}",
                "",
                specs(
                    tasks[name][0],
                    {"task": tasks[name][1], "model": {"num_layers": count, "positions": positions}},
                    preset="bounded",
                ),
            )
            for count, name, specs, encodings in rows
            for positions in encodings
        ],
        plan=with_certificates(plan, scale),
    )
