"""Definitions 3.4 to 3.6 of Xu and Sato (2024) on trained nets: three moduli of continuity, before and after training.

This study has no recorded runs, because the nets are small, and the study needs their weights.
"""

from collections.abc import Mapping
from typing import NamedTuple, get_args

from lengthwise.analysis.continuity import Kind, continuity_modulus, on_embeddings
from lengthwise.devices import one_thread
from lengthwise.evaluation.length_curve import length_curve
from lengthwise.experiment import EXPERIMENTS, Experiment, Scale, check_is_not_paper
from lengthwise.models.base import SequenceModel, eval_mode
from lengthwise.randomness import generator_for
from lengthwise.runs.spec import RunSpec, Settings, make_spec
from lengthwise.training.loop import train

KINDS: tuple[Kind, ...] = get_args(Kind)

NETS: Mapping[str, Settings] = {"plain loop": {"variant": "code"}, "timestep": {"variant": "timestep"}}


class Size(NamedTuple):
    """The numbers of training steps, of symbols in a string and of loops, and the settings of the search.

    The search has distances, a number of starts for each distance, and a number of gradient steps for each start.
    """

    steps: int
    length: int
    num_loops: int
    distances: tuple[float, ...]
    num_starts: int
    num_steps: int


SIZES: Mapping[str, Size] = {
    "small": Size(4_000, 8, 4, (0.125, 0.25, 0.5, 1.0, 2.0), 24, 30),
    "smoke": Size(2, 4, 2, (0.5, 1.0), 2, 2),
}


class Moduli(NamedTuple):
    """The accuracy of a net before or after training, and its moduli of continuity.

    `values` contains the largest change of the logits that a search found, by modulus and by distance between inputs.
    """

    net: str
    is_trained: bool
    accuracy: float
    values: Mapping[Kind, Mapping[float, float]]


class Study(NamedTuple):
    """The size of the study, and the moduli of continuity of each net before and after training."""

    size: Size
    moduli: list[Moduli]


@EXPERIMENTS.register("looped/moduli")
def moduli(scale: Scale = "small") -> Experiment:
    """Estimate three moduli of continuity of looped transformers, before and after training on parity."""
    check_is_not_paper(scale, "the paper estimates no moduli")
    size = SIZES[scale]
    return Experiment(
        title="Xu and Sato (2024), Definitions 3.4 to 3.6: moduli of trained nets",
        about=(
            "A modulus of continuity is the largest change of the logits if the embeddings of the symbols change by a "
            "given distance. The page measures three moduli of looped transformers, before and after training on "
            "parity.\n"
            "*Sequence* is the change at all positions if any embeddings change. *Contextual* is the change at a "
            "position if only embeddings at other positions change. *Token* is the change at a position if only the "
            "embedding at this position changes."
        ),
        study=lambda root: study(size),
    )


@one_thread()
def study(size: Size) -> Study:
    """Train each net, and search for the largest changes of its logits before and after training."""
    nets = []
    for net, variant in NETS.items():
        spec = _spec(size, variant)
        model = spec.make_model()
        for is_trained in (False, True):
            if is_trained:
                train(model, spec.task, spec.recipe, seed=0)
            (point,) = length_curve(model, spec.task, [size.length], num_strings=1_000).points
            nets.append(Moduli(net, is_trained, point.accuracy, _searched(model, size)))
    return Study(size, nets)


def _spec(size: Size, variant: Settings) -> RunSpec:
    settings: Settings = {
        "model": {**variant, "d_model": 32, "num_heads": 2, "num_loops": size.num_loops},
        "train": {"steps": size.steps, "batch_size": 64, "max_length": size.length, "supervision": "prefix"},
    }
    return make_spec("parity", "looped-transformer", settings, preset="plain")


def _searched(model: SequenceModel, size: Size) -> dict[Kind, dict[float, float]]:
    """Return the largest change of logits, in the 2-norm, for each kind of modulus and each distance."""
    with eval_mode(model):
        function, domain = on_embeddings(model)
        return {
            kind: {
                point.distance: point.value
                for point in continuity_modulus(
                    function,
                    kind,
                    size.distances,
                    domain(size.length),
                    generator_for(0, "moduli", kind),
                    num_starts=size.num_starts,
                    num_steps=size.num_steps,
                )
            }
            for kind in KINDS
        }
