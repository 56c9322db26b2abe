"""Attacks on transformers that made no error on random strings: how many of them err on other strings."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lengthwise.certification.attacks.attack import DEFAULT_LENGTH, DEFAULT_SECONDS, Attack, attack
from lengthwise.experiment import EXPERIMENTS, Experiment, Requirements, Scale
from lengthwise.runs.folder import load_run
from lengthwise.studies.leaderboard.experiments.positions import positions

SEEDS: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "Even Pairs": {
        "alibi": (1, 2),
        "fire": (0, 1, 2),
        "kerple-log": (0, 1),
        "kerple-power": (0, 1),
        "learned": (1, 2),
        "none": (0, 1, 2),
        "randomized": (0, 2),
        "rotary": (0,),
        "sinusoidal": (2,),
        "t5": (0, 1, 2),
        "xl": (0, 1, 2),
    },
    "Tomita 1": {
        "alibi": (0, 1),
        "fire": (0, 1, 2),
        "kerple-log": (0, 1),
        "kerple-power": (0, 1),
        "learned": (0, 1, 2),
        "none": (0, 1, 2),
        "randomized": (0, 1),
        "rotary": (0, 1),
        "sinusoidal": (2,),
        "t5": (0, 1, 2),
        "xl": (0, 1, 2),
    },
    "Tomita 2": {"kerple-power": (1,)},
    "Tomita 4": {"xl": (0, 1, 2)},
}
"""The seeds of the nets that made no error at lengths 41-500 in the records of `transformers/positions`.

The keys are the task and the position encoding.
"""

SMOKE_SECONDS = 0.3
"""The budget of an attack at scale `smoke`, in CPU seconds."""


class AttackedNet(NamedTuple):
    """The task, position encoding and seed of a net, the result of its attack, and a summary of its certificate.

    At level bounded, `bound` is the number of symbols up to which the net is right. At level refuted,
    `counterexample_length` is the number of symbols of the certificate's counterexample. `certify` also tries random
    and structured strings that are longer than the strings of the attack. `reason` says why the level is not higher.
    """

    row: str
    column: str
    seed: int
    attack: Attack
    bound: int | None
    counterexample_length: int | None
    reason: str

    @property
    def errs(self) -> bool:
        """Return whether the attack or `certify` found a string that the net answers wrongly."""
        return self.attack.is_refuted or self.counterexample_length is not None


class Attacked(NamedTuple):
    """The attacked nets, and the budget of each attack in CPU seconds."""

    nets: tuple[AttackedNet, ...]
    seconds: float


@EXPERIMENTS.register("transformers/attacked")
def attacked(scale: Scale = "small") -> Experiment:
    """Train again the transformers of `transformers/positions` that made no error at 41-500 symbols; attack them."""
    experiment = positions(scale)
    cells = []
    for cell in experiment.cells:
        seeds = SEEDS.get(cell.row, {}).get(cell.column, ())
        # At scale smoke there is only one seed. Its net replaces the nets of all seeds in `SEEDS`.
        specs = tuple(spec for spec in cell.specs if spec.seed in seeds or (seeds and scale == "smoke"))
        if specs:
            cells.append(cell._replace(specs=specs))
    if scale == "smoke":
        cells = [cells[0], cells[-1]]
    seconds = SMOKE_SECONDS if scale == "smoke" else DEFAULT_SECONDS

    def study(root: Path) -> Attacked:
        nets = []
        for cell in cells:
            for spec in cell.specs:
                run = load_run(root / spec.id)
                result = run.folder.read_result()
                assert result is not None
                assert result.certificate is not None, "the plan measures certificates"
                certificate, counterexample = result.certificate, result.certificate.counterexample
                nets.append(
                    AttackedNet(
                        cell.row,
                        cell.column,
                        spec.seed,
                        attack(run.model, spec.task, budget=seconds),
                        certificate.max_length,
                        None if counterexample is None else len(counterexample.string),
                        certificate.reason,
                    )
                )
        return Attacked(tuple(nets), seconds)

    return Experiment(
        title="Attacks on transformers without an error",
        about=(
            "The transformers of `transformers/positions` that made no error on random strings of 41 to 500 symbols "
            "are attacked with strings that random samples hardly ever contain.\n"
            f"An attack takes {seconds:g} CPU seconds for each net, and tries strings of at most {DEFAULT_LENGTH} "
            "symbols.\n"
            "The nets were trained on strings of at most 40 symbols."
        ),
        notes=(
            "The records of `transformers/positions` show which nets made no error. The weights of these nets were "
            "not recorded, so the nets are trained again from the same specifications.",
            "A net that withstands an attack is not proved to be right. The table *Nets without a wrong string* "
            "contains the reason why the certificate of such a net has no higher level.",
        ),
        cells=cells,
        # Only lengths up to 500 are measured: the page `transformers/positions` contains the results on other strings.
        plan=experiment.plan.model_copy(update={"long": (), "structured": ()}),
        study=study,
        requires=Requirements(weights=True),
    )
