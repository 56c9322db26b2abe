"""Messages on standard error: errors that name flags instead of arguments, warnings, and unknown options."""

import inspect
import re
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import Any

from cyclopts import (
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from lengthwise.cli.streams import say
from lengthwise.registry import innermost_frame, loaded_extensions, nearest

OTHER_NAMES = {
    "assignments": "set",
    "num_strings": "strings",
    "num_chunks": "strings",
    "num_tokens": "sample",
    "num_workers": "workers",
    "max_length": "longest",
    "picture": "out",
    "page": "out",
    "level": "min_level",
    "goal": "until",
    "goal.budget": "budget",
    "command": "system",
}
"""The name on the command line of each library argument, for commands that have an option of that name."""

SETTINGS = {"task.files": "text", "task.alphabet": "alphabet"}
"""The option that some commands have for a setting of the task, by the dotted name of the setting."""


_MISSING = r'^Command "(.+)" parameter (\S+) requires an argument\.$'


def with_flag(message: str, command: Callable[..., Any], paths: Collection[str] = ()) -> str:
    """Replace the argument at the beginning of a library's message by the flag that sets this argument.

    A message can also begin with the path of a file. So `paths`, the paths that the user gave, stay as they are.

    Example:
        >>> def evaluate(*, strings): ...
        >>> with_flag("num_strings: expected 1 or more, got 0; raise it", evaluate)
        '--strings: expected 1 or more, got 0; raise it'
    """
    argument, colon, rest = message.partition(":")
    if argument in paths:  # a folder called "runs" is not the option --runs
        return message
    names = [
        option
        for parameter in inspect.signature(command).parameters.values()
        if parameter.kind is Parameter.KEYWORD_ONLY
        for option in _option_names(parameter)
    ]
    options = {option.rstrip("_") for option in names}
    name = argument if argument in options else OTHER_NAMES.get(argument, argument)
    if name in options:
        return f"--{name.replace('_', '-')}{colon}{rest}"
    for setting, option in SETTINGS.items():
        if option in options:
            message = message.replace(setting, f"--{option}")
    return message


def paths_in(value: object, *, takes_texts: bool = True) -> set[str]:
    """Return all paths among the arguments of a command, also in tuples and groups of options.

    With `takes_texts`, each text counts as a path.

    Example:
        >>> sorted(paths_in((Path("./runs"), "a.dot", 3)))
        ['a.dot', 'runs']
    """
    if isinstance(value, Path) or (takes_texts and isinstance(value, str)):
        return {str(Path(value))}
    parts = vars(value).values() if is_dataclass(value) else value if isinstance(value, tuple | list) else ()
    return {path for part in parts for path in paths_in(part, takes_texts=takes_texts)}


def line_in_extension(error: BaseException) -> str:
    """Return the file and line of a user's own code that caused an error, or an empty text if there is none."""
    frame = innermost_frame(error, loaded_extensions())
    return f"{frame.filename}, line {frame.lineno}, in {frame.name}: " if frame else ""


def _option_names(parameter: Parameter) -> list[str]:
    """Return the options of a parameter: its own name or, if it groups options, the names of these options."""
    if is_dataclass(parameter.default):
        return [field.name for field in fields(parameter.default)]
    return [parameter.name]


def refusal(error: CycloptsError) -> str:
    """Return the message for a command that cannot be parsed, with advice for extra words and misused settings."""
    # The messages of cyclopts name its own concepts, so the frequent ones are replaced.
    if isinstance(error, UnusedCliTokensError):
        command = " ".join(error.command_chain or ())
        extra = " ".join(error.unused_tokens or ())
        way_out = f"`lengthwise {command} --help` lists what it takes, and a text with blanks needs quotes"
        return f"{command}: expected no further words, got {extra}; {way_out}"
    if isinstance(error, UnknownCommandError):
        known = [name for name in error.app or () if not name.startswith("-")]
        unknown = (error.unused_tokens or [""])[0]
        return f"{unknown}: no such command{nearest(unknown, known)} (known: {', '.join(known)})"
    if isinstance(error, MissingArgumentError):
        missing = re.match(_MISSING, str(error))
        if missing is not None and missing[2] in (error.root_input_tokens or ()):
            return f"{missing[2]}: expected a value after this option, got none; give a value"
        return re.sub(_MISSING, r"\1: expected \2, got none; `lengthwise \1 --help` explains it", str(error))
    if not isinstance(error, UnknownOptionError):
        return re.sub(r"^Invalid value for [^ ]+: (?=--)", "", str(error))  # our converters name the option themselves
    words = [part for word in error.root_input_tokens or () for part in word.split("=", 1)]
    option = error.token.keyword or error.token.value.partition("=")[0]
    value = words[words.index(option) + 1] if option in words[:-1] else "VALUE"
    name = option.removeprefix("--").replace("-", "_")
    arguments = list(error.argument_collection or ())
    if any(each.field_info.name == name and each.field_info.is_positional_only for each in arguments):
        command = " ".join(error.command_chain or ())
        return f"{option}: no such option; write {value} without {option} (`lengthwise {command} --help` shows where)"
    # A frequent mistake is to give a setting as an option of its own.
    if any("--set" in each.names for each in arguments) and (section := _section_of(name)):
        return f"{option}: no such option; it is a setting, use --set {section}.{name}={value}"
    suggested = re.fullmatch(r"(.*) Did you mean --(\S+)\?", str(error))
    # The parser also suggests options that are not similar, so such suggestions are left out.
    return suggested[1] if suggested and not nearest(option.lstrip("-"), [suggested[2]]) else str(error)


def _section_of(name: str) -> str:
    """Return the section (train, model or task) that has a setting of this name, or an empty text."""
    from lengthwise.training.recipe import Recipe

    if name in Recipe.model_fields:
        return "train"
    from lengthwise.models.base import MODELS
    from lengthwise.tasks.base import TASKS

    if any(name in model.Config.model_fields for model in MODELS.values()):
        return "model"
    if any(name in task.model_fields for task in TASKS.values()):
        return "task"
    return ""


@contextmanager
def named_by_file(file: Path) -> Iterator[None]:
    """Begin errors about examples with the name of the examples' file."""
    try:
        yield
    except ValueError as error:
        about, examples = str(error), "examples: "
        renamed = f"{file}: {about.removeprefix(examples)}" if about.startswith(examples) else about
        raise ValueError(renamed) from None


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show a warning as its sentence, without file, line and code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        say(str(message), 0)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
