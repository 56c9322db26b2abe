"""What an experiment is."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.registry import Registry
from lengthwise.runs.spec import RunSpec

Scale = Literal["smoke", "small"]
"""`small`: the real thing on a laptop. `smoke`: seconds, to see that everything fits together; numbers say nothing."""


class Experiment(NamedTuple):
    """Runs to be carried out, and how each is measured."""

    title: str
    specs: Sequence[RunSpec]
    plan: EvaluationPlan


EXPERIMENTS: Registry[Callable[[Scale], Experiment]] = Registry("experiment", "lengthwise.experiments")
