"""Messages on standard error: errors that name flags instead of arguments, warnings, and unknown options."""

import inspect
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from inspect import Parameter
from itertools import takewhile
from pathlib import Path
from typing import Any

from cyclopts import (
    App,
    Argument,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from lengthwise.cli.streams import say
from lengthwise.registry import closest, innermost_frame, loaded_extensions, nearest

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

USUAL_NAMES = {"lr": "learning_rate", "epochs": "steps", "num_epochs": "steps", "iterations": "steps"}
"""The setting that other programs call by a name which is not similar."""

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
    if isinstance(error, UnknownOptionError):
        command = " ".join(error.command_chain or ())
        word = error.token.keyword or error.token.value
        return _no_option(word, command, error.root_input_tokens or (), error.argument_collection or ())
    return re.sub(r"^Invalid value for [^ ]+: (?=--)", "", str(error))  # our converters name the option themselves


def unknown_option(app: App, words: Sequence[str]) -> str:
    """Return the message about the first unknown option of a command, or an empty text if all options are known.

    The parser alone would take an unknown option for a string if the command's strings may begin with a hyphen. Words
    after `--` are never options.
    """
    chain, apps, rest = app.parse_commands(words)
    # The parser also counts `--help` as a command.
    if not chain or {*app.help_flags, *app.version_flags}.intersection((*chain, *rest)):
        return ""
    arguments = apps[-1].assemble_argument_collection(default_parameter=app.default_parameter)
    for word in takewhile(lambda word: word != "--", rest):
        if word.startswith("--"):
            try:
                arguments.match(word.partition("=")[0])
            except ValueError:
                return _no_option(word, " ".join(chain), words, arguments)
    return ""


def _no_option(word: str, command: str, words: Sequence[str], arguments: Sequence[Argument]) -> str:
    """Return the message about an unknown option, with the nearest option or setting."""
    from lengthwise.validation import truncate

    option = word.partition("=")[0]
    parts = [part for each in words for part in each.split("=", 1)]
    value = parts[parts.index(option) + 1] if option in parts[:-1] else "VALUE"
    value = "VALUE" if value.startswith("--") else value
    name, option = option.strip("-").replace("-", "_"), truncate(option)
    got, explained = f", got {option}", f"`lengthwise {command} --help`"
    expected = f"{option}: expected an option of {command}"
    if any(each.field_info.name == name and each.field_info.is_positional_only for each in arguments):
        return f"{expected}{got}; write {value} without {option} ({explained} shows where)"
    options = {each.removeprefix("--"): each for argument in arguments for each in argument.names if each[:2] == "--"}
    settings = _settings(words, takes_recipe="config" in options) if "set" in options else {}
    # A frequent mistake is to give a setting as an option of its own.
    if name in settings:
        return f"{expected}{got}; it is a setting, use --set {settings[name]}={value}"
    known = {each.replace("_", "-"): f"--set {path}={value}" for each, path in settings.items()} | options
    usual = USUAL_NAMES.get(name, OTHER_NAMES.get(name, "")).replace("_", "-")
    if close := usual if usual in known else closest(name, known):
        return f"{expected}{got}; did you mean {known[close]}?"
    takes_hyphens = any(
        each.field_info.is_positional_only and each.parameter.allow_leading_hyphen for each in arguments
    )
    strings = f", and -- goes before strings such as {option}" if takes_hyphens else ""
    return f"{expected} ({', '.join(options.values())}){got}; {explained} explains them{strings}"


def _settings(words: Sequence[str], *, takes_recipe: bool) -> dict[str, str]:
    """Return the dotted names of settings by their last part: of the task, the model and the training.

    If the words name tasks or models, only their settings count. Without `takes_recipe`, only settings of tasks count.
    """
    from pydantic import BaseModel

    from lengthwise.models.base import MODELS
    from lengthwise.tasks.base import TASKS
    from lengthwise.training.recipe import OptimizerRecipe, PaceRecipe, Recipe

    tasks = [TASKS[word] for word in words if word in TASKS] or TASKS.values()
    models = [MODELS[word] for word in words if word in MODELS] or MODELS.values()
    sections = [("task", task.model_fields) for task in tasks]
    if takes_recipe:
        sections += [("model", model.Config.model_fields) for model in models]
        parts: dict[str, type[BaseModel]] = {
            "train.pace": PaceRecipe,
            "train.optimizer": OptimizerRecipe,
            "train": Recipe,
        }
        sections += [(section, recipe.model_fields) for section, recipe in parts.items()]
    # The recipe comes last, so its own settings have precedence. The optimizer's name is not called "name".
    settings = {name: f"{section}.{name}" for section, names in sections for name in names if name != "name"}
    return {**settings, "optimizer": "train.optimizer.name"} if takes_recipe else settings


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
