"""What there is to choose from, described in plain text that fits a terminal."""

import inspect
import json
import re
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lengthwise.constructions import CONSTRUCTIONS
from lengthwise.experiments import EXPERIMENTS
from lengthwise.models.base import MODELS, ModelConfig
from lengthwise.presets.base import PRESETS, Preset
from lengthwise.registry import NameIn, Registry, UnknownName, file_of, is_of_package, nearest
from lengthwise.report.pages.results import file_stem
from lengthwise.report.tables.numbers import percent
from lengthwise.runs.spec import flat
from lengthwise.tasks.base import TASKS, SymbolTask, Task
from lengthwise.tasks.base_rates import ShallowTask
from lengthwise.training.recipe import Recipe

FAMILIES: Mapping[str, Registry[Any]] = {
    "tasks": TASKS,
    "models": MODELS,
    "presets": PRESETS,
    "constructions": CONSTRUCTIONS,
    "experiments": EXPERIMENTS,
}

MAX_SYMBOLS = 16
"""Tasks with more symbols are described by their number."""

SHALLOW_AT = 40
"""The length at which the description of a task says what shallow baselines score, or the next one below."""

SECTIONS = ("Raises:", "Returns:")
"""Headings of docstrings whose lines are below them."""

KINDS = {
    int: "integer",
    float: "number",
    bool: "true or false",
    str: "text",
    Path: "file",
    types.NoneType: "none",
}


class Setting(NamedTuple):
    """A setting by its dotted name: which values it takes, and its default."""

    name: str
    values: str
    default: str


def family_lines(family: str, width: int | None) -> list[str]:
    """A line for each member of a family: its name and what it is, cut at `width` unless that is None."""
    members = _family(family)
    indent = max(map(len, members)) + 2
    lines = [f"{name:{indent}}{_first_line(member)}" for name, member in members.items()]
    return [line if width is None else textwrap.shorten(line, width, placeholder=" ...") for line in lines]


def _family(name: str) -> Registry[Any]:
    if name not in FAMILIES:
        raise ValueError(f"family: unknown family {name!r}{nearest(name, FAMILIES)} (known: {', '.join(FAMILIES)})")
    return FAMILIES[name]


def description(name: str, width: int) -> list[str]:
    """All that bears a name, family by family, in lines of at most `width` symbols.

    Raises:
        ValueError: nothing bears the name.
    """
    parts = [lines for family in FAMILIES if name in FAMILIES[family] for lines in _described(family, name, width)]
    if name == "train":
        parts = [["train: settings of training"], *_docstring(Recipe, width), _settings("train", Recipe, width)]
    if not parts:
        known = [member for family in FAMILIES.values() for member in family]
        raise UnknownName(f"unknown name {name!r}{nearest(name, known)}; `lengthwise list` shows all names")
    return [line for part in parts if part for line in (*part, "")][:-1]


def _described(family: str, name: str, width: int) -> list[list[str]]:
    """The paragraphs about one member."""
    member = FAMILIES[family][name]
    where = member.__module__ if is_of_package(member) else file_of(member)
    heading = [f"{name}: {_article(family)}", *_wrapped(f"{member.__qualname__} in {where}", width)]
    details: dict[str, Any] = {
        "tasks": _task_details,
        "models": _model_details,
        "presets": _preset_details,
        "constructions": _construction_details,
        "experiments": _experiment_details,
    }
    return [heading, *_docstring(member, width), *details[family](name, member, width)]


def _article(family: str) -> str:
    kind = family.removesuffix("s")
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _first_line(member: object) -> str:
    return (inspect.getdoc(member) or "").partition("\n")[0]


def _docstring(member: object, width: int) -> list[list[str]]:
    """The paragraphs of a docstring, broken again to `width`; indented lines hang, and examples stay as they are."""
    paragraphs = []
    for text in (inspect.getdoc(member) or "").split("\n\n"):
        lines = text.splitlines()
        if any(">>>" in line for line in lines):
            paragraphs.append(lines)
            continue
        blocks: list[str] = []
        before = 0
        for line in lines:
            indent = len(line) - len(line.lstrip())
            begins = line.lstrip().startswith("- ") or indent < before or (blocks and blocks[-1] in SECTIONS)
            if blocks and not begins:
                blocks[-1] += " " + line.strip()
            else:
                blocks.append(line)
            before = indent
        paragraphs.append([row for block in blocks for row in _wrapped(block, width)])
    return paragraphs


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width`, with the indentation of the first; items of a list hang."""
    indent = " " * (len(text) - len(text.lstrip(" -")))
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _task_details(name: str, task: type[Task], width: int) -> Iterator[list[str]]:
    yield _settings("task", task, width)
    made = task()
    if isinstance(made, SymbolTask):
        yield [f"symbols: {_names(made.symbols)}", f"classes: {_names(made.classes)}"]
    if isinstance(made, ShallowTask):
        yield _answers_that_solve_nothing(made, width)
    yield _uses(task=name)


def _answers_that_solve_nothing(task: ShallowTask, width: int) -> list[str]:
    """Their accuracies at a length of training strings, at which all answers occur if there is one."""
    legal = [length for length in range(SHALLOW_AT, 0, -1) if task.is_legal_length(length)]
    length = next((length for length in legal if task.is_balanced_length(length)), legal[0])
    lines = [f"  {percent(rate):>8}  {what}" for what, rate in task.base_rates(length).items()]
    return [
        *_wrapped(f"what answers that solve nothing score, at length {length}", width),
        *(row for line in lines for row in textwrap.wrap(line, width, subsequent_indent=" " * 12)),
    ]


def _names(names: Sequence[str]) -> str:
    return " ".join(names) if len(names) <= MAX_SYMBOLS else f"{len(names)}, {names[0]} to {names[-1]}"


def _model_details(name: str, model: Any, width: int) -> Iterator[list[str]]:
    if model.Config.__doc__:  # else inspect has that of its base
        yield from _docstring(model.Config, width)
    yield _settings("model", model.Config, width)
    presets = [preset for preset, recipe in PRESETS.items() if name in recipe.models]
    more = _wrapped(f"presets that set more of it: {', '.join(presets)}", width) if presets else []
    yield [f"preset: {model.default_preset}", *more]
    yield _uses(model=name)


def _preset_details(name: str, preset: type[Preset], width: int) -> Iterator[list[str]]:
    yield _wrapped(f"source: {preset.source}", width)
    changes = [("train", flat(preset.train)), *((f"model {m}", flat(s)) for m, s in preset.models.items())]
    for section, settings in changes:
        rows = [Setting(key, "", _value(value)) for key, value in settings.items()]
        yield [f"{section}: what it changes" if rows else f"{section}: the defaults", *_rows(rows, width)]
    for model, pursuit in preset.until.items():
        rows = [Setting(key, "", _value(value)) for key, value in flat(pursuit.train).items()]
        tried = "; then ".join(
            ", ".join(f"{key}={value}" for key, value in changes.items()) for changes in pursuit.models if changes
        )
        heading = f"train {model} until a level is reached: what it changes"
        yield [heading, *_rows(rows, width), *(_wrapped(f"models tried: {tried}", width) if tried else [])]
    default_of = [model for model, kind in MODELS.items() if kind.default_preset == name]
    if default_of:
        yield _wrapped(f"default of: {', '.join(default_of)}", width)


def _construction_details(name: str, construct: Any, width: int) -> Iterator[list[str]]:
    options = [
        Setting(option, KINDS.get(parameter.annotation, ""), _value(parameter.default))
        for option, parameter in inspect.signature(construct).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    yield ["options", *_rows(options, width)] if options else []


def _experiment_details(name: str, make: Any, width: int) -> Iterator[list[str]]:
    experiment = make("small")
    yield _wrapped(experiment.title, width)
    yield _wrapped(_without_links(experiment.introduction("small")), width)
    yield [line for note in experiment.notes for line in _wrapped(f"- {_without_links(note)}", width)]
    for axis, names in (("rows", [c.row for c in experiment.cells]), ("columns", [c.column for c in experiment.cells])):
        if names:  # a study without runs has no cells
            yield _wrapped(f"{axis}: {'; '.join(dict.fromkeys(names))}", width)
    yield [f"page: {_page(name)}"]


def _without_links(text: str) -> str:
    """What a page says, without where its links lead."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


@cache
def _tasks_and_models(experiment: str) -> frozenset[tuple[str, str]]:
    """Task and model of each run of an experiment; making them takes a while."""
    return frozenset((spec.task.name, spec.model_name) for spec in EXPERIMENTS[experiment]("smoke").specs)


def _uses(*, task: str | None = None, model: str | None = None) -> list[str]:
    """The experiments with runs of the task or of the model, and their pages."""
    users = [name for name in EXPERIMENTS if any(task == t or model == m for t, m in _tasks_and_models(name))]
    heading = "experiments that use it, and the pages that `lengthwise reproduce` writes"
    return [heading, *(f"  {name}: {_page(name)}" for name in users)] if users else []


def _page(experiment: str) -> str:
    return f"docs/results/{file_stem(experiment, 'small')}.md"


def _settings(section: str, kind: type[BaseModel], width: int) -> list[str]:
    rows = list(_all_settings(kind, f"{section}."))
    return ["settings", *_rows(rows, width)] if rows else ["settings: none"]


def _all_settings(kind: type[BaseModel], prefix: str) -> Iterator[Setting]:
    for name, field in kind.model_fields.items():
        kinds = get_args(field.annotation) or (field.annotation,)
        sections = [
            kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.model_fields
        ]
        if not sections or len(kinds) > 1:
            default = "required" if field.is_required() else _value(field.default)
            if issubclass(kind, ModelConfig) and name in kind.used_with:
                other, values = kind.used_with[name]
                default += f"; only with {other}={' or '.join(map(str, values))}"
            yield Setting(prefix + name, _values_of(field.annotation, field.metadata), default)
        for section in sections:
            yield from _all_settings(section, f"{prefix}{name}.")


def _rows(settings: Iterable[Setting], width: int) -> list[str]:
    """A line for each setting, and more where a line would be too long."""
    rows = list(settings)
    indent = max((len(row.name) for row in rows), default=0) + 4
    lines = []
    for row in rows:
        text = f"{row.values}; default {row.default}" if row.values else row.default
        first, *others = textwrap.wrap(text, max(20, width - indent), break_on_hyphens=False) or [""]
        lines += [f"  {row.name:{indent - 2}}{first}", *(" " * indent + line for line in others)]
    return lines


def _value(value: Any) -> str:
    """A default as it would be given."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _values_of(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """Which values a setting takes, in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner, *notes = arguments
        more = [note for given in notes for note in (given.metadata if isinstance(given, FieldInfo) else [given])]
        return _values_of(inner, (*more, *metadata))
    if origin is Literal:
        return " or ".join(map(str, arguments))
    if names := [name for note in metadata if isinstance(note, NameIn) for name in note.registry]:
        return " or ".join(names)
    if origin in (Union, types.UnionType):
        return " or ".join(_values_of(kind, () if kind is types.NoneType else metadata) for kind in arguments)
    if origin is tuple:
        return f"list of {_values_of(arguments[0])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    bounds = " and ".join(_bounds(metadata))
    return f"{KINDS.get(annotation, annotation)} {bounds}".rstrip()


def _bounds(metadata: Sequence[Any]) -> Iterator[str]:
    for note in metadata:
        for kind, sign, limit in ((Ge, ">=", "ge"), (Gt, ">", "gt"), (Le, "<=", "le"), (Lt, "<", "lt")):
            if isinstance(note, kind):
                yield f"{sign} {getattr(note, limit):,}"
