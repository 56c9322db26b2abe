"""Commands that look at a trained model: evaluate, predict, analyze."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lengthwise.cli.options import Device, StoredPath, StringSeed, TrainedRun, whole_number
from lengthwise.cli.streams import Output

MAX_QUOTED = 60
"""Symbols of a longer string that are repeated next to its answer: the first 40."""


def evaluate(
    model: StoredPath,
    /,
    *,
    lengths: Annotated[str, Parameter(help="Lengths and ranges, as in 41-500,1000.")] = "41-500",
    strings: Annotated[int, Parameter(converter=whole_number, help="Strings at each length.")] = 256,
    protocol: Annotated[str, Parameter(help="independent, one-pass or structured.")] = "independent",
    seed: StringSeed = 1,
    csv: Annotated[Path | None, Parameter(help="File for all points.")] = None,
    device: Device = "cpu",
) -> int:
    """Measure a model at lengths of your choice, on strings drawn again."""
    from lengthwise.evaluation.length_curve import length_curve, parse_protocol
    from lengthwise.evaluation.plan import parse_lengths
    from lengthwise.files import write_by_rename
    from lengthwise.report.pages.terminal import MAX_ROWS, measuring_display, print_curve
    from lengthwise.report.tables.runs import curves_as_csv
    from lengthwise.runs.stored import load_stored

    stored = load_stored(model, device)
    if csv is not None:
        check_writable(csv)
    task, requested, run = stored.task, parse_lengths(lengths), stored.run
    legal = [length for length in requested if length >= 1 and task.is_legal_length(length)]
    console = Output()
    with measuring_display(console) as set_progress:
        curve = length_curve(
            stored.model,
            task,
            legal or requested,
            num_strings=strings,
            seed=seed,
            protocol=parse_protocol(protocol),
            set_progress=set_progress,
        )
    if csv is not None:
        write_by_rename(csv, curves_as_csv([(stored.name, stored.settings, curve)]).encode())
    print_curve(console, curve, trained_to=stored.trained_to)
    steps = "" if run is None else f", weights {run.steps_text}"
    console.print_line(f"{stored.name}{steps}, strings of seed {seed}")
    if len(legal) < len(requested):
        console.print_line(f"{len(requested) - len(legal)} lengths left out: {task.name} has no strings of them")
    if csv is not None:
        console.print_line(f"wrote {csv}")
    elif len(curve.points) > MAX_ROWS:
        console.print_line("--csv FILE writes all points")
    return 0


def check_writable(file: Path) -> None:
    """Raise a ValueError where a file cannot be written, before the work whose result it is to hold."""
    if file.is_dir():
        raise ValueError(f"{file}: expected a file to write, got a folder; name a file in it")
    file.parent.mkdir(parents=True, exist_ok=True)


def predict(
    model: StoredPath,
    texts: Annotated[
        tuple[str, ...],
        Parameter(allow_leading_hyphen=True, help="Strings over the task's symbols; - reads lines from input."),
    ],
    /,
    *,
    device: Device = "cpu",
) -> int:
    """Answer strings, a line each: the model's answer, the probability it gives, and what the task says is right.

    Blank lines of the input are left out.
    """
    from lengthwise.runs.predict import predict_text
    from lengthwise.runs.stored import load_stored

    stored = load_stored(model, device)
    if (run := stored.run) is not None and not run.is_trained:
        sys.stderr.write(f"lengthwise: {model}: weights {run.steps_text}; `lengthwise resume {model}` goes on\n")
    for number, text in _input_lines() if list(texts) == ["-"] else enumerate(texts, start=1):
        try:
            prediction = predict_text(stored.model, stored.task, text)
        except ValueError as error:
            raise ValueError(f"string {number}: {error}") from None
        quoted = text if len(text) <= MAX_QUOTED else f"{text[:40]}... ({len(text)} symbols)"
        sys.stdout.write(f"{quoted}\t{prediction.answer}\t{prediction.probability:.4f}\t{prediction.verdict}\n")
    return 0


def _input_lines() -> Iterable[tuple[int, str]]:
    """The lines of standard input that are not blank, with their numbers."""
    if sys.stdin is None:
        raise ValueError("standard input: expected an open stream, got a closed one; give strings instead of -")
    lines = enumerate((line.rstrip("\r\n") for line in sys.stdin), start=1)
    return ((number, line) for number, line in lines if line.strip())


def analyze(
    run: TrainedRun,
    /,
    *,
    out: Annotated[Path, Parameter(help="The page.")] = Path("analysis.html"),
    length: Annotated[int, Parameter(converter=whole_number, help="Symbols of each string.")] = 500,
    seed: StringSeed = 0,
) -> int:
    """Write one HTML page about the inside of a trained run: its states in clusters, and how far back it looks."""
    from lengthwise.report.pages.analysis import write_analysis
    from lengthwise.runs.folder import load_run

    Output().print_line(f"wrote {write_analysis(load_run(run), out, length=length, seed=seed)}")
    return 0


COMMANDS = {"evaluate": evaluate, "predict": predict, "analyze": analyze}
