"""Finished runs with made-up numbers, without training."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.report.pages.run import MeasuredRun
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.journal import Probe
from lengthwise.runs.result import RunResult, RunStatus
from lengthwise.runs.spec import make_spec
from lengthwise.training.loop import StepRecord

PLAN = EvaluationPlan(dense=(41, 60), dense_strings=256, long=((1_000, 256), (100_000, 32)), structured=((500, 32),))


def all_right(length: int, num_strings: int) -> int:
    return num_strings


def synthetic_run(
    task: str = "parity",
    settings: Mapping[str, Any] | None = None,
    *,
    model: str = "regular-gpt",
    seed: int = 0,
    plan: EvaluationPlan = PLAN,
    num_correct: Callable[[int, int], int] = all_right,
    is_balanced: Callable[[int], bool] = lambda length: True,
) -> MeasuredRun:
    """A run whose point of `num_strings` strings at `length` has ``num_correct(length, num_strings)`` right answers."""
    spec = make_spec(task, model, settings or {}, seed=seed)

    def point(length: int, num_strings: int, family: str = "random") -> LengthPoint:
        return LengthPoint(
            length=length,
            num_strings=num_strings,
            num_correct=num_correct(length, num_strings),
            baseline=0.5,
            balanced=is_balanced(length),
            family=family,
        )

    dense = tuple(point(length, plan.dense_strings) for length in range(plan.dense[0], plan.dense[1] + 1))
    long = tuple(point(*planned) for planned in plan.long)
    structured = tuple(point(*planned, family) for planned in plan.structured for family in ("constant", "sparse"))
    result = RunResult(
        run_id=spec.id,
        spec=spec.to_json(),
        weights="final weights, averaged over steps",
        num_parameters=25_216,
        plan=plan,
        dense=LengthCurve(protocol="one-pass", points=dense),
        long=LengthCurve(protocol="independent", points=long),
        structured=LengthCurve(protocol="structured", points=structured),
        probes=(Probe(500, 0.75, 1.5), Probe(1000, 1.0, 3.0)),
        training=RunStatus(status="trained", step=spec.recipe.steps, wall_seconds=31.5, cpu_seconds=30.25),
        evaluation_seconds=4.5,
        process_peak_memory_mb=412.0,
        versions={"lengthwise": "0.1.0", "torch": "2.13.0", "commit": "0123abc"},
    )
    steps = range(1, spec.recipe.steps + 1)
    losses = [0.7 * math.exp(-step / 200) * (1 + 0.5 * math.sin(step * (seed + 3))) for step in steps]
    metrics = [StepRecord(step, loss, 40, 1.0, 1e-3) for step, loss in zip(steps, losses, strict=True)]
    return MeasuredRun(RunFolder(Path(spec.id)), metrics, result)
