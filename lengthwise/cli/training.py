"""Commands that train: train, resume."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lengthwise.cli.options import Longest, Root, Seed
from lengthwise.cli.streams import Output

if TYPE_CHECKING:
    from lengthwise.runs.spec import RunSpec


def train(
    task: Annotated[str, Parameter(help="Name of the task; see `lengthwise list tasks`.")],
    model: Annotated[str, Parameter(help="Name of the model; see `lengthwise list models`.")],
    /,
    *,
    preset: Annotated[
        str | None, Parameter(help="Recipe to start from; by default the model's own: fast, recurrent or plain.")
    ] = None,
    config: Annotated[Path | None, Parameter(help="TOML file with sections task, model, train.")] = None,
    set_: Annotated[
        tuple[str, ...],
        Parameter(name="--set", negative=(), help="A setting, as section.key=value; may be given many times."),
    ] = (),
    seed: Seed = 0,
    runs: Root = Path("runs"),
    longest: Longest = 100_000,
) -> int:
    """Train and measure one run; settings come from the preset, then the file, then --set.

    A run that was interrupted goes on where it stopped; a finished one is only shown, or measured again where what is
    to be measured has changed.
    """
    from lengthwise.runs.spec import make_spec, merge, parse_assignments, read_settings

    settings = merge(read_settings(config) if config else {}, parse_assignments(set_))
    return _train(make_spec(task, model, settings, preset=preset, seed=seed), runs, longest)


def resume(
    run: Annotated[Path, Parameter(help="Folder of a run.")],
    /,
    *,
    longest: Longest = 100_000,
) -> int:
    """Go on with an interrupted run; its settings are in its folder."""
    from lengthwise.runs.folder import RunFolder

    spec = RunFolder(run).read_spec()
    if run.resolve().name != spec.id:
        raise ValueError(f"{run}: expected a folder named {spec.id}, as its run.json says; rename it")
    return _train(spec, run.resolve().parent, longest)


def _train(spec: "RunSpec", root: Path, longest: int) -> int:
    """Run one run and show its result."""
    from lengthwise.cli.progress import watched
    from lengthwise.evaluation.plan import EvaluationPlan
    from lengthwise.report.pages.terminal import print_results
    from lengthwise.runs.execute import execute

    console = Output()
    with watched(console) as (listener, stop_requested):
        result = execute(spec, root, EvaluationPlan().up_to(longest), listener, stop_requested)
    print_results(console, [result], f"{spec.task.name}, {spec.model_name}, seed {spec.seed}")
    console.print_line(f"run folder: {root / spec.id}")
    return 0


COMMANDS = {"train": train, "resume": resume}
