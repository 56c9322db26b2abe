"""The command line: parsing only. Commands import what they need when they run, so that ``--help`` is quick."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter

from lengthwise import __version__
from lengthwise.cli.memorize import memorize
from lengthwise.cli.messages import one_line_warnings
from lengthwise.cli.report import write_report_of

app = App(
    name="lengthwise",
    help="Train short, prove long: sequence models that are right far beyond their training length.",
    version=__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)


def _whole_number(kind: Any, tokens: Sequence[Any]) -> int:
    """A whole number of at least 0; cyclopts would round 1.5."""
    text = tokens[0].value
    if not text.isdecimal():
        raise ValueError(f"{tokens[0].keyword or 'argument'}: expected a whole number of at least 0, got {text}")
    return int(text)


Root = Annotated[Path, Parameter(help="Folder in which runs are kept.")]
Seed = Annotated[int, Parameter(converter=_whole_number, help="Seed of parameters, data and noise.")]
Longest = Annotated[int, Parameter(converter=_whole_number, help="Measure up to this length.")]
Workers = Annotated[int, Parameter(converter=_whole_number, help="Runs run at a time, one core each.")]


@app.command
def demo(
    *,
    out: Annotated[Path, Parameter(help="Folder for the runs and the report.")] = Path("demo"),
    workers: Workers = 3,
    scale: Annotated[str, Parameter(help="small (the real thing) or smoke (seconds).")] = "small",
) -> int:
    """Train RegularGPT on three tasks at lengths up to 40, measure it up to length 100,000, and certify it."""
    from rich.console import Console

    from lengthwise.experiments.base import EXPERIMENTS, parse_scale
    from lengthwise.report.pages.terminal import print_failures, print_results

    console = Console()
    out = out if scale != "smoke" else out / "smoke"
    experiment = EXPERIMENTS["demo"](parse_scale(scale))
    outcomes = _run_experiment(experiment, out / "runs", workers, console)
    print_results(console, [outcome.result for outcome in outcomes if outcome.result], experiment.title)
    failed = print_failures(console, outcomes)
    finished = [out / "runs" / outcome.spec.id for outcome in outcomes if outcome.result]
    if finished:
        write_report_of(finished, out / "report.html")
    return 1 if failed else 0


@app.command
def reproduce(
    name: Annotated[str, Parameter(help="Name of the experiment; see `lengthwise list`.")],
    /,
    *,
    scale: Annotated[
        str, Parameter(help="smoke (seconds), small (a laptop) or paper (where an experiment has it).")
    ] = "small",
    workers: Workers = 2,
    runs: Root = Path("runs"),
    pages: Annotated[Path, Parameter(help="Folder for the page with the results.")] = Path("docs/results"),
    recorded: Annotated[
        bool, Parameter(negative=(), help="Count runs recorded next to the page as finished, too.")
    ] = False,
    page_only: Annotated[
        bool, Parameter(negative=(), help="Run no run: write the page of those that are finished.")
    ] = False,
) -> int:
    """Run an experiment and write its page: our numbers next to the paper's.

    Finished runs are not repeated; after an interruption the same command goes on. The page is written again. All
    results are kept next to it, in records/, compressed, with those that stood there of runs that this time have none.
    """
    from datetime import UTC, datetime

    from rich.console import Console

    from lengthwise.experiments.base import EXPERIMENTS, parse_scale
    from lengthwise.files import write_by_rename
    from lengthwise.report.pages.results import file_stem, markdown_page
    from lengthwise.report.pages.terminal import print_failures, print_table
    from lengthwise.report.tables.experiment import main_table
    from lengthwise.runs.pool import finished
    from lengthwise.runs.records import read_records, restore, with_earlier, write_records

    console = Console()
    experiment = EXPERIMENTS[name](parse_scale(scale))
    stem = file_stem(name, scale)
    records = pages / "records" / f"{stem}.jsonl.gz"
    before = read_records(records) if recorded or records.exists() else []
    if recorded:
        console.print(f"{restore(before, runs)} runs taken from {records}", soft_wrap=True)
    if page_only:
        outcomes = finished(experiment.specs, runs, experiment.plan)
    else:
        outcomes = _run_experiment(experiment, runs, workers, console)
    print_table(console, experiment.title, main_table(experiment, outcomes))
    failed = print_failures(console, outcomes)
    page = pages / f"{stem}.md"
    found = [outcome.result for outcome in outcomes if outcome.result is not None]
    write_records(records, with_earlier(found, before, experiment.specs))
    write_by_rename(page, markdown_page(name, scale, experiment, outcomes, datetime.now(UTC).date()).encode())
    console.print(f"wrote {page}", soft_wrap=True)
    return 1 if failed else 0


@app.command(name="list")
def list_members() -> int:
    """List tasks, models, constructions, experiments and presets, with settings and the defaults of preset fast."""
    from rich.console import Console

    from lengthwise.report.pages.terminal import print_catalogue

    print_catalogue(Console())
    return 0


@app.command
def train(
    task: Annotated[str, Parameter(help="Name of the task; see `lengthwise list`.")],
    model: Annotated[str, Parameter(help="Name of the model.")],
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


@app.command
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


@app.command
def evaluate(
    run: Annotated[Path, Parameter(help="Folder of a trained run.")],
    /,
    *,
    lengths: Annotated[str, Parameter(help="Lengths and ranges, as in 41-500,1000.")] = "41-500",
    strings: Annotated[int, Parameter(converter=_whole_number, help="Strings at each length.")] = 256,
    protocol: Annotated[str, Parameter(help="independent, one-pass or structured.")] = "independent",
    seed: Annotated[int, Parameter(converter=_whole_number, help="Seed of the strings.")] = 1,
    csv: Annotated[Path | None, Parameter(help="File for all points.")] = None,
) -> int:
    """Measure a trained run at other lengths, on strings drawn again."""
    from rich.console import Console

    from lengthwise.evaluation.length_curve import length_curve, parse_protocol
    from lengthwise.evaluation.plan import parse_lengths
    from lengthwise.files import write_by_rename
    from lengthwise.report.pages.terminal import print_curve
    from lengthwise.report.tables.runs import curves_as_csv
    from lengthwise.runs.folder import load_run

    loaded = load_run(run)
    if csv is not None:
        csv.parent.mkdir(parents=True, exist_ok=True)
    task, supervised = loaded.spec.task, parse_lengths(lengths)
    legal = [length for length in supervised if length >= 1 and task.is_legal_length(length)]
    curve = length_curve(
        loaded.model, task, legal or supervised, num_strings=strings, seed=seed, protocol=parse_protocol(protocol)
    )
    console = Console()
    print_curve(console, curve, trained_to=loaded.spec.recipe.max_length)
    steps = f"after step {loaded.steps_done:,} of {loaded.spec.recipe.steps:,}"
    console.print(f"{loaded.spec.id}, weights {steps}, strings of seed {seed}", highlight=False, soft_wrap=True)
    if len(legal) < len(supervised):
        console.print(f"{len(supervised) - len(legal)} lengths left out: {task.name} has no strings of them")
    if csv is not None:
        write_by_rename(csv, curves_as_csv([(loaded.spec.id, loaded.spec.to_json(), curve)]).encode())
        console.print(f"wrote {csv}", soft_wrap=True)
    return 0


@app.command
def predict(
    run: Annotated[Path, Parameter(help="Folder of a trained run.")],
    texts: Annotated[
        tuple[str, ...],
        Parameter(allow_leading_hyphen=True, help="Strings over the task's symbols; - reads lines from input."),
    ],
    /,
) -> int:
    """Answer strings, a line each: the model's answer, the probability it gives, and what the task says is right."""
    from lengthwise.runs.folder import load_run
    from lengthwise.runs.predict import predict_text

    loaded = load_run(run)
    given = (line.rstrip("\r\n") for line in sys.stdin) if list(texts) == ["-"] else texts
    for number, text in enumerate(given, start=1):
        try:
            said = predict_text(loaded, text)
        except ValueError as error:
            raise ValueError(f"string {number}: {error}") from None
        quoted = text if len(text) <= 60 else f"{text[:40]}... ({len(text)} symbols)"
        sys.stdout.write(f"{quoted}\t{said.answer}\t{said.probability:.4f}\t{said.verdict}\n")
    return 0


@app.command(name="compile")
def compile_machine(
    pattern: Annotated[str | None, Parameter(help="Regular expression; or give --task.")] = None,
    /,
    *,
    to: Annotated[str, Parameter(help="Construction; see `lengthwise list`.")],
    alphabet: Annotated[str | None, Parameter(help="The symbols, if not just those the expression names.")] = None,
    task: Annotated[str | None, Parameter(help="Name of a task that a finite machine solves.")] = None,
    set_: Annotated[
        tuple[str, ...], Parameter(name="--set", negative=(), help="A setting of the task, as task.key=value.")
    ] = (),
    chunk_size: Annotated[
        int | None, Parameter(converter=_whole_number, help="States merged into one (regular-gpt; 2 if not given).")
    ] = None,
    out: Annotated[Path, Parameter(help="Folder for the model.")] = Path("compiled"),
) -> int:
    """Write down weights that are right at every length, for a regular expression or for a task's machine."""
    from rich.console import Console

    from lengthwise.constructions import construct
    from lengthwise.runs.compiled import requested_machine, save_compiled

    options = {} if chunk_size is None else {"chunk_size": chunk_size}
    compiled = construct(to, requested_machine(pattern, alphabet, task, set_), **options)
    save_compiled(compiled, out)
    console = Console()
    for line in (*compiled.about, f"wrote {out}"):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    return 0


@app.command
def certify(
    run: Annotated[Path | None, Parameter(help="Folder of a trained run or of a compiled model.")] = None,
    /,
    *,
    out: Annotated[Path | None, Parameter(help="File for the certificate; by default in that folder.")] = None,
    check: Annotated[
        Path | None, Parameter(help="A certificate to verify; with a run, also that it is this one's.")
    ] = None,
    at_least: Annotated[str, Parameter(help="Exit with code 1 below this level.")] = "refuted",
) -> int:
    """Say what is proved of a model for every length, or verify what a certificate says.

    Levels: refuted (it answers a string wrongly), tested (no such string was found), extracted (its machine is right at
    every length, and its states stay in the machine's classes on all strings followed), proved (they cannot leave).
    """
    from lengthwise.certification.certificate import Certificate, parse_level
    from lengthwise.certification.verify import check as verify
    from lengthwise.report.tables.certificate import certificate_lines, checked_lines

    minimum = parse_level(at_least)
    if check is not None:
        certificate = Certificate.read(check)
        sentences = [*checked_lines(certificate, verify(certificate))]
        if run is not None:
            from lengthwise.runs.certified import check_is_of

            sentences.insert(1, ("verified", check_is_of(certificate, run)))
    elif run is not None:
        from lengthwise.runs.certified import certify_folder

        certificate, path = certify_folder(run, out)
        sentences = [*certificate_lines(certificate), ("wrote", str(path))]
    else:
        raise ValueError(
            "certify: expected a run to certify or, with --check, a certificate to verify; give one of them"
        )
    sys.stdout.writelines(f"{name}: {sentence}\n" for name, sentence in sentences)
    return 0 if certificate.reaches(minimum) else 1


@app.command
def report(
    runs: Annotated[tuple[Path, ...], Parameter(help="Folders of finished runs.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="The page; charts and a CSV file appear next to it.")] = Path("report.html"),
) -> int:
    """Write one self-contained HTML page about finished runs, with PNG, SVG and CSV next to it."""
    write_report_of(list(runs), out)
    return 0


@app.command
def analyze(
    run: Annotated[Path, Parameter(help="Folder of a trained run.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="The page.")] = Path("analysis.html"),
    length: Annotated[int, Parameter(converter=_whole_number, help="Symbols of each string.")] = 500,
    seed: Annotated[int, Parameter(converter=_whole_number, help="Seed of the strings.")] = 0,
) -> int:
    """Write one HTML page about the inside of a trained run: its states in clusters, and how far back it looks."""
    from rich.console import Console

    from lengthwise.report.pages.analysis import write_analysis
    from lengthwise.runs.folder import load_run

    Console().print(f"wrote {write_analysis(load_run(run), out, length=length, seed=seed)}", soft_wrap=True)
    return 0


app.command(memorize)


@one_line_warnings()
def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. Exit codes: 0 done, 1 the work failed, 2 the request was wrong."""
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except (CycloptsError, ValueError) as error:
        code = _fail(str(error), 2)
    except KeyboardInterrupt:
        code = _fail("stopped", 1)
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stderr.close()
        code = 0
    except MemoryError:
        code = _fail("out of memory; ask for fewer or shorter strings", 1)
    except (RuntimeError, OSError) as error:
        code = _fail(str(error), 1)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> int:
    sys.stderr.write("".join(f"lengthwise: {line}\n" for line in message.splitlines()))
    return code


def _run_experiment(experiment: Any, root: Path, workers: int, console: Any) -> Any:
    """Run an experiment's runs; returns what became of each."""
    from lengthwise.report.pages.terminal import progress_display
    from lengthwise.runs.execute import stop_on_interrupt
    from lengthwise.runs.pool import execute_all

    with progress_display(console) as listener, stop_on_interrupt() as stop_requested:
        return execute_all(
            experiment.specs, root, experiment.plan, listener, num_workers=workers, stop_requested=stop_requested
        )


def _train(spec: Any, root: Path, longest: int) -> int:
    """Run one run and show its result."""
    from rich.console import Console

    from lengthwise.evaluation.plan import EvaluationPlan
    from lengthwise.report.pages.terminal import print_results, progress_display
    from lengthwise.runs.execute import execute, stop_on_interrupt

    console = Console()
    with progress_display(console) as listener, stop_on_interrupt() as stop_requested:
        result = execute(spec, root, EvaluationPlan().up_to(longest), listener, stop_requested)
    print_results(console, [result], f"{spec.task.name}, {spec.model_name}, seed {spec.seed}")
    console.print(f"run folder: {root / spec.id}", soft_wrap=True)
    return 0
