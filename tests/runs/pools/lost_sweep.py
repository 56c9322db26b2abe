"""A sweep during which a node is lost, and what must have come of it."""

from concurrent.futures import Executor
from pathlib import Path

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.execute import execute
from lengthwise.runs.folder import RunFolder, load_run
from lengthwise.runs.pools.base import Pool
from lengthwise.runs.pools.sweep import execute_all
from lengthwise.runs.progress import Progress
from lengthwise.runs.spec import RunSpec, make_spec

PLAN = EvaluationPlan(dense_strings=2).limit_lengths(41)
SETTINGS = {"train": {"steps": 40, "batch_size": 4, "min_length": 1, "max_length": 6, "checkpoint_every": 15}}


def check_lost_node_costs_nothing(num_runs: int, pool: Pool, folder: Path, executor: Executor | None = None) -> None:
    """All runs are done, all but one begun once, and that one went on to the weights of a run that nothing happened to.

    `executor` is submitted to instead of the pool's.
    """
    specs: list[RunSpec] = [make_spec("parity", "rnn", SETTINGS, seed=seed) for seed in range(num_runs)]
    told: list[Progress] = []
    outcomes = execute_all(
        specs, folder / "runs", [PLAN] * num_runs, told.append, pool=executor or pool.executor, held=pool.held
    )
    assert all(outcome.result for outcome in outcomes), [outcome.reason for outcome in outcomes]
    assert (folder / "lost").exists()
    begun = [len(RunFolder(folder / "runs" / spec.id).read_beginnings()) for spec in specs]
    assert sorted(begun) == [1] * (num_runs - 1) + [2]
    assert {progress.run_id for progress in told if progress.phase == "done"} == {spec.id for spec in specs}
    lost = specs[begun.index(2)]
    for spec in {lost.id: lost, specs[0].id: specs[0]}.values():
        execute(spec, folder / "undisturbed", PLAN)
        ours, theirs = (load_run(folder / root / spec.id).model.state_dict() for root in ("runs", "undisturbed"))
        assert ours.keys() == theirs.keys()
        assert all(ours[name].equal(theirs[name]) for name in ours)
