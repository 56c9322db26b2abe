"""Options that several commands share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from lengthwise.cli.devices import VARIABLE
from lengthwise.files import UnreadableFile, check_no_file, exists

MAX_DIGITS = 1_000
"""The largest number of digits of a number; Python converts at most 4,300."""


def _converter(minimum: int) -> Callable[[Any, Sequence[Any]], int]:
    """Return a converter for whole numbers. The default converter of cyclopts would round 1.5."""

    def convert(kind: Any, tokens: Sequence[Any]) -> int:
        name, text = _named(tokens)
        # Python itself rejects numbers of more than 4,300 digits, with a message about its limits.
        if not text.isdecimal() or len(text) > MAX_DIGITS or int(text) < minimum:
            expected = f"expected a whole number of at least {minimum}"
            raise ValueError(f"{name}: {expected}, got {text}; give such a number")
        return int(text)

    return convert


whole_number, count = _converter(0), _converter(1)


def folder(kind: Any, tokens: Sequence[Any]) -> Path:
    """Parse the path of a folder, and reject an empty path, which an unset shell variable would cause."""
    name, text = _named(tokens)
    if not text:
        raise ValueError(f"{name}: expected a folder, got an empty name; write . for the current folder")
    path = Path(text)
    try:
        exists(path)
    except UnreadableFile as error:
        raise ValueError(f"{name}: {error}") from None
    check_no_file(name, path)
    return path


def _named(tokens: Sequence[Any]) -> tuple[str, str]:
    """Return the name of an option and its text."""
    return tokens[0].keyword or "argument", tokens[0].value


def repeated(text: str, name: str | None = None) -> Parameter:
    """Return the description of an option that may be repeated. Its default, no values, is not shown."""
    return Parameter(name=name, show_default=False, help=f"{text}; may be repeated.")


Root = Annotated[Path, Parameter(converter=folder, help="Folder of the runs.")]
Seed = Annotated[
    int | None, Parameter(converter=whole_number, help="Seed of parameters, data and noise; 0 if not given.")
]
StringSeed = Annotated[int, Parameter(converter=whole_number, help="Seed of the strings.")]
Longest = Annotated[int, Parameter(converter=whole_number, help="Measure up to this length.")]
Workers = Annotated[int, Parameter(converter=count, help="Number of runs at a time, one core each.")]
Device = Annotated[
    str,
    Parameter(
        help="Device of nets: cpu, cuda, mps, or auto (CUDA if available, else MPS, else the CPU).", env_var=VARIABLE
    ),
]
TrainedRun = Annotated[Path, Parameter(help="Folder of a trained run.")]
StoredPath = Annotated[
    Path, Parameter(help="Folder of a run, or of a compiled or learned model, or a TOML file about a net.")
]


@Parameter(name="*")
@dataclass(frozen=True)
class Given:
    """Settings that override the preset's settings: a file, and single settings, which override the file."""

    config: Annotated[Path | None, Parameter(help="TOML file with sections task, model, train.")] = None
    set_: Annotated[tuple[str, ...], repeated("A setting, as section.key=value", "--set")] = ()
    text: Annotated[tuple[Path, ...], repeated("For the task text: a file that is one document")] = ()

    def read(self) -> dict[str, Any]:
        """Return the settings of the file, overridden by single settings. The option --text overrides both."""
        from lengthwise.runs.spec import merge, parse_assignments, read_settings

        settings = merge(read_settings(self.config) if self.config else {}, parse_assignments(self.set_))
        return merge(settings, {"task": {"files": self.text}}) if self.text else settings


NOTHING_GIVEN = Given()


@Parameter(name="*")
@dataclass(frozen=True)
class Processes:
    """The device of a run, and the processes that share the run."""

    device: Device = "cpu"
    parallel: Annotated[
        str | None,
        Parameter(
            help="How processes of torchrun share a run: ddp (each stores all weights) or fsdp (each stores a part)."
        ),
    ] = None


ONE_PROCESS = Processes()


@Parameter(name="*")
@dataclass(frozen=True)
class Columns:
    """The columns of a file of labeled strings, and the text between symbols."""

    separator: Annotated[
        str,
        Parameter(
            help="The text between the symbols of labeled strings. Without it, each character is a symbol, unless a "
            "given model reads words."
        ),
    ] = ""
    string: Annotated[
        str | None,
        Parameter(help="Column of labeled strings; by default, one with a standard name such as string or trace."),
    ] = None
    label: Annotated[
        str | None,
        Parameter(help="Column of the labels; by default, one with a standard name such as label or class."),
    ] = None


USUAL_COLUMNS = Columns()
