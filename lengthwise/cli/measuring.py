"""Commands about a trained model: evaluate, predict, analyze."""

import io
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from lengthwise.cli.messages import named_by_file
from lengthwise.cli.options import (
    USUAL_COLUMNS,
    Columns,
    Device,
    StoredPath,
    StringSeed,
    TrainedRun,
    repeated,
    whole_number,
)
from lengthwise.cli.outputs import AsJSON, check_writable, note_unfinished, write_object
from lengthwise.cli.streams import Output, say
from lengthwise.display import counted
from lengthwise.files import check_suffix
from lengthwise.printing import write_row

if TYPE_CHECKING:
    from lengthwise.evaluation.length_curve import LengthCurve
    from lengthwise.runs.stored import StoredModel

MAX_QUOTED = 60
"""The largest length of a string that a terminal shows whole, in characters.

A terminal shows 40 characters of a longer string, and a file contains all of them."""


class _Draws(NamedTuple):
    """The options about the strings, or the chunks of a text, that `evaluate` draws, and their defaults."""

    lengths: str | None = None
    strings: int = 256
    protocol: str = "independent"
    seed: int = 1
    split: str = "test"


def evaluate(
    model: StoredPath,
    /,
    *,
    lengths: Annotated[
        str | None,
        Parameter(help="Lengths and ranges, as in 41-500,1000; by default 41-500, for a text 128,256,512,1024,2048."),
    ] = None,
    strings: Annotated[int, Parameter(converter=whole_number, help="Strings at each length.")] = 256,
    protocol: Annotated[str, Parameter(help="Protocol: independent, one-pass or structured.")] = "independent",
    seed: StringSeed = 1,
    split: Annotated[str, Parameter(help="For a language model, the part of the text: test, valid or train.")] = "test",
    labeled: Annotated[Path | None, Parameter(help="File or folder of strings with labels, as for `learn`.")] = None,
    columns: Columns = USUAL_COLUMNS,
    out: Annotated[
        tuple[Path, ...],
        repeated("Write all points as .csv or .md, a summary as .tex, or a chart as .png, .svg, .pdf"),
    ] = (),
    device: Device = "cpu",
    as_json: AsJSON = False,
) -> int:
    """Measure the accuracy of a model on new strings of given lengths, or the perplexity of a language model.

    With --labeled, strings and right answers come from a file, not from the task.

    For a language model, lengths are the lengths of chunks of the text, in tokens, and --strings is the number of
    chunks.
    """
    from lengthwise.runs.stored import load_stored
    from lengthwise.text.language import LanguageTask

    if labeled is None and (given := [name for name, value in vars(columns).items() if value]):
        raise ValueError(
            f"{given[0]}: not allowed without --labeled, got {vars(columns)[given[0]]!r}; leave out --{given[0]}"
        )
    draws = _Draws(lengths, strings, protocol, seed, split)
    given = [name for name, default in _Draws()._asdict().items() if getattr(draws, name) != default]
    if labeled is not None and given:
        raise ValueError(
            f"{given[0]}: not allowed with --labeled, whose file contains the strings; leave out one of the two"
        )
    stored = load_stored(model, device)
    is_text = isinstance(stored.task, LanguageTask) and labeled is None
    for file in out:
        _check_out(file, has_chart=not is_text)
    name, console = str(model) if stored.run is None else stored.name, Output(is_error=as_json)
    if labeled is not None:
        facts = _evaluate_labeled(stored, name, labeled, columns, out, console)
    elif is_text:
        facts = _evaluate_text(stored, draws, out, console)
    elif split != "test":
        raise ValueError(
            f"split: expected 'test', because task {stored.task.name} has no text, got {split!r}; leave out --split"
        )
    else:
        facts = _evaluate_drawn(stored, name, draws, out, console)
    console.print_lines(f"wrote {file}" for file in out)
    if as_json:
        write_object({"model": name, "task": stored.task.name, **facts})
    return 0


def _check_out(out: Path, *, has_chart: bool) -> None:
    """Raise a ValueError if a file cannot be written, or if its name selects no format."""
    from lengthwise.pictures import SUFFIXES as PICTURES
    from lengthwise.report.tables.files import SUFFIXES as TABLES

    check_suffix("out", out, (*TABLES, *(PICTURES if has_chart else ())))
    check_writable(out)


def _write_curve(out: Path, name: str, settings: Mapping[str, Any], curve: "LengthCurve") -> None:
    from lengthwise.files import write_by_rename
    from lengthwise.report.tables.files import SUFFIXES, write_tables
    from lengthwise.report.tables.runs import curve_table, curves_as_csv, point_table

    title = f"{name}: accuracy of final answers, protocol {curve.protocol}"
    if out.suffix == ".csv":
        write_by_rename(out, curves_as_csv([(name, settings, curve)]).encode())
    elif out.suffix == ".tex":
        # LaTeX is for papers, whose tables have a line for each model, as in `compare` and `bench`.
        if len(curve.balanced().points) < len(curve.points):
            title += "; mean, lowest and chance over the lengths at which every class can occur"
        write_tables({title: curve_table(name, curve)}, out)
    elif out.suffix in SUFFIXES:
        write_tables({title: point_table(curve.points)}, out)
    else:
        curve.save(out)


def _curve_facts(curve: "LengthCurve") -> dict[str, Any]:
    balanced = curve.balanced()
    return {
        "protocol": curve.protocol,
        "mean": balanced.mean(),
        "lowest": balanced.min(),
        "points": [{key: value for key, value in row.items() if key != "protocol"} for row in curve.to_rows()],
    }


def _evaluate_drawn(
    stored: "StoredModel", name: str, draws: _Draws, out: tuple[Path, ...], console: Output
) -> dict[str, Any]:
    """Measure the accuracy on strings that the task draws."""
    from lengthwise.evaluation.length_curve import length_curve, parse_protocol
    from lengthwise.evaluation.plan import parse_lengths
    from lengthwise.report.pages.terminal import MAX_ROWS, measuring_display, print_curve

    task = stored.task
    requested = parse_lengths("41-500" if draws.lengths is None else draws.lengths)
    run = stored.run
    # A range such as 41-500 may contain lengths at which the task has no strings. These lengths are counted below.
    legal = [length for length in requested if length >= 1 and task.is_legal_length(length)]
    with measuring_display(Output(is_error=True)) as set_progress:
        curve = length_curve(
            stored.model,
            task,
            legal or requested,
            num_strings=draws.strings,
            seed=draws.seed,
            protocol=parse_protocol(draws.protocol),
            set_progress=set_progress,
        )
    for path in out:
        _write_curve(path, name, stored.settings, curve)
    print_curve(console, curve, trained_to=stored.trained_to)
    steps = "" if run is None else f", weights {run.steps_text}"
    console.print_line(f"{name}{steps}, strings of seed {draws.seed}")
    if num_left_out := len(requested) - len(legal):
        console.print_line(f"{counted(num_left_out, 'length')} left out: {task.name} has no strings of these lengths")
    if not out and len(curve.points) > MAX_ROWS:
        console.print_line("--out FILE.csv writes all points")
    return {**_curve_facts(curve), "seed": draws.seed, "lengths_left_out": num_left_out}


def _evaluate_labeled(
    stored: "StoredModel", name: str, file: Path, columns: Columns, out: tuple[Path, ...], console: Output
) -> dict[str, Any]:
    """Measure the accuracy on labeled strings of a file."""
    from lengthwise.display import percent
    from lengthwise.evaluation.labeled import labeled_curve
    from lengthwise.report.pages.terminal import print_curve
    from lengthwise.tasks.base import SymbolTask
    from lengthwise.tasks.given.reading import has_columns, read_examples
    from lengthwise.text.language import LanguageTask

    if not isinstance(stored.task, SymbolTask) or isinstance(stored.task, LanguageTask):
        raise ValueError(
            f"labeled: expected a model that reads symbols, got a model for {stored.task.name}; leave out --labeled"
        )
    separator = columns.separator or (stored.task.separator if has_columns(file) else "")
    with named_by_file(file):
        examples = read_examples(file, separator=separator, string=columns.string, label=columns.label, min_classes=1)
        curve = labeled_curve(stored.model, stored.task, examples)
    print_curve(console, curve, trained_to=stored.trained_to)
    right, count = (sum(getattr(p, field) for p in curve.points) for field in ("num_correct", "num_strings"))
    unused = examples.counts.describe_unused_columns()
    console.print_line(
        f"{name}: {right:,} of {count:,} labels of {file} ({percent(right / count)}); {examples.counts.num_rows:,} "
        f"rows read, left out: {examples.counts.describe_omitted_rows()}{f'; {unused}' if unused else ''}"
    )
    for path in out:
        _write_curve(path, name, stored.settings, curve)
    return {**_curve_facts(curve), "num_correct": right, "num_labels": count}


def _evaluate_text(stored: "StoredModel", draws: _Draws, out: tuple[Path, ...], console: Output) -> dict[str, Any]:
    """Measure the perplexity of chunks of a text."""
    if draws.protocol != "independent":
        raise ValueError(f"protocol: not allowed for a language model, got {draws.protocol}; leave out --protocol")
    from lengthwise.evaluation.perplexity import perplexity_curve
    from lengthwise.evaluation.plan import EvaluationPlan, parse_lengths
    from lengthwise.files import write_by_rename
    from lengthwise.report.pages.terminal import measuring_display, print_table
    from lengthwise.report.tables.files import write_tables
    from lengthwise.report.tables.perplexities import curve_table, perplexity_csv
    from lengthwise.text.language import LanguageTask, parse_split

    task, split = stored.task, parse_split(draws.split)
    seed = draws.seed
    assert isinstance(task, LanguageTask)
    usual = EvaluationPlan().usable_chunk_lengths(len(task.tokens(split)))
    chunks = usual if draws.lengths is None else parse_lengths(draws.lengths)
    with measuring_display(Output(is_error=True)) as set_progress:
        curve = perplexity_curve(
            stored.model, task, chunks, num_chunks=draws.strings, split=split, seed=seed, set_progress=set_progress
        )
    trained = "" if stored.trained_to is None else f", trained at lengths up to {stored.trained_to}"
    title, table = f"Perplexity by length of the chunk{trained}", curve_table(curve)
    print_table(console, title, table)
    steps = "" if stored.run is None else f", weights {stored.run.steps_text}"
    console.print_line(f"{stored.name}{steps}, {curve.num_chunks} chunks of the {split} split, of seed {seed}")
    console.print_line(f"perplexity from the frequencies of tokens alone: {curve.baseline:,.2f}")
    for file in out:
        if file.suffix == ".csv":
            write_by_rename(file, perplexity_csv([(stored.name, stored.settings, curve)]).encode())
        else:
            write_tables({title: table}, file)
    points = [
        {
            "length": point.length,
            "perplexity": point.perplexity,
            "interval": point.interval,
            "whole": point.whole_perplexity,
        }
        for point in curve.points
    ]
    return {"split": split, "num_chunks": curve.num_chunks, "baseline": curve.baseline, "points": points, "seed": seed}


Texts = Annotated[
    tuple[str, ...],
    Parameter(
        allow_leading_hyphen=True,
        show_default=False,
        help="Strings over the task's symbols; - reads lines from standard input.",
    ),
]


def predict(
    model: StoredPath,
    texts: Texts = (),
    /,
    *,
    sample: Annotated[
        int, Parameter(converter=whole_number, help="For a language model: write a text of at most this many tokens.")
    ] = 0,
    prompt: Annotated[
        str | None, Parameter(help="With --sample: the beginning of the text, which is continued but not printed.")
    ] = None,
    temperature: Annotated[
        float | None,
        Parameter(
            help="With --sample: below 1, likelier tokens are preferred; at 0, the likeliest is taken; 1 if not given."
        ),
    ] = None,
    seed: Annotated[
        int | None, Parameter(converter=whole_number, help="With --sample: seed of the tokens; 0 if not given.")
    ] = None,
    device: Device = "cpu",
    as_json: AsJSON = False,
) -> int:
    """Answer strings, one per line: the model's answer, its probability, and whether the task agrees.

    Blank lines of the input are skipped. If a string cannot be read, a message is printed, and the other strings are
    answered. A language model answers with the likeliest next token, or writes a text.
    """
    from lengthwise.randomness import generator_for
    from lengthwise.runs.predict import sample_text
    from lengthwise.runs.stored import load_stored

    for option, value in {"prompt": prompt, "temperature": temperature, "seed": seed}.items():
        if value is not None and not sample:
            raise ValueError(
                f"{option}: not allowed without --sample, got {value!r}; leave out --{option}, or add --sample 200"
            )
    if bool(texts) == bool(sample):
        raise ValueError(
            "predict: expected either strings to answer or --sample, got "
            f"{'both; leave out --sample or the strings' if sample else 'neither; give strings, or --sample 200'}"
        )
    stored = load_stored(model, device)
    if stored.run is not None:
        note_unfinished(model, stored.run)
    if sample:
        draws = generator_for(seed or 0, "sampled text")
        heat = 1.0 if temperature is None else temperature
        text = sample_text(
            stored.model, stored.task, prompt or "", num_tokens=sample, temperature=heat, generator=draws
        )
        if as_json:
            write_object({"text": text})
            return 0
        for line in text.split("\n"):
            write_row(line.split("\t"))  # tabs of source code stay tabs
        return 0
    return _predict_all(stored, texts, is_learned=(model / "learned.json").exists(), as_json=as_json)


def _predict_all(stored: "StoredModel", texts: tuple[str, ...], *, is_learned: bool, as_json: bool) -> int:
    """Print the answer to each string, or a message about a string that cannot be read; return the exit code."""
    from lengthwise.runs.predict import predict_text

    code = 0
    number = 0
    for number, text in _input_lines() if list(texts) == ["-"] else enumerate(texts, start=1):
        try:
            prediction = predict_text(stored.model, stored.task, text, is_learned=is_learned)
        except ValueError as error:
            # One bad string among thousands of lines should not prevent the answers to the others.
            code = say(f"string {number}: {error}", 2)
            continue
        if as_json:
            write_object({"string": text, **prediction._asdict()})
            continue
        is_short = len(text) <= MAX_QUOTED or not sys.stdout.isatty()
        quoted = text if is_short else f"{text[:40]}... ({len(text)} characters)"
        write_row([quoted, prediction.answer, f"{prediction.probability:.4f}", prediction.verdict])
    return (
        code
        if number
        else say("predict: expected strings, one per line, got a blank input; write at least one string", 2)
    )


def _input_lines() -> Iterable[tuple[int, str]]:
    """Return the lines of standard input that are not blank, with their numbers."""
    if sys.stdin is None:
        raise ValueError("standard input: expected an open stream, got a closed one; give strings instead of -")
    if isinstance(sys.stdin, io.TextIOWrapper):
        # Bytes that are not text become symbols outside the alphabet, so that only their own line is rejected.
        sys.stdin.reconfigure(errors="surrogateescape")
    lines = enumerate((line.rstrip("\r\n") for line in sys.stdin), start=1)
    return ((number, line) for number, line in lines if line.strip())


def analyze(
    run: TrainedRun,
    /,
    *,
    out: Annotated[Path, Parameter(help="File for the page.")] = Path("analysis.html"),
    length: Annotated[int, Parameter(converter=whole_number, help="Number of symbols in each string.")] = 500,
    seed: StringSeed = 0,
) -> int:
    """Write an HTML page about a trained RegularGPT: clusters of its states, and how far its answers look back."""
    from lengthwise.report.pages.analysis import write_analysis
    from lengthwise.runs.folder import load_run

    check_writable(out)
    Output().print_line(f"wrote {write_analysis(load_run(run), out, length=length, seed=seed)}")
    return 0


COMMANDS = {"evaluate": evaluate, "predict": predict, "analyze": analyze}
