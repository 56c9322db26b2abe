"""A run that takes a second, and the plan of its measurements."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.spec import RunSpec, make_spec

PLAN = EvaluationPlan(dense=(9, 12), dense_strings=8, long=((30, 4),), structured=((20, 2),))


def small_spec(seed: int = 0, task: str = "parity", **train) -> RunSpec:
    settings = {
        "model": {"d_model": 8, "num_heads": 2},
        "train": {"steps": 25, "batch_size": 4, "max_length": 8, "checkpoint_every": 10} | train,
    }
    return make_spec(task, "regular-gpt", settings, seed=seed)
