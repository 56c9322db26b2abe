"""Descriptions of all members, read from the registries, which import torch.

``python -m lengthwise.cli.members`` writes these descriptions to the index that `list` and `show` read.
"""

import inspect
import json
import re
import types
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lengthwise.cli.index import INDEX, SETTINGS, FamilyIndex, Line, Member, Paragraph, index_text
from lengthwise.constructions import CONSTRUCTIONS
from lengthwise.experiment import EXPERIMENTS
from lengthwise.files import write_by_rename
from lengthwise.models.base import MODELS
from lengthwise.presets.base import PRESETS, Preset
from lengthwise.registry import NameIn, Registry, file_of, is_of_package
from lengthwise.report.pages.results import file_stem
from lengthwise.report.tables.numbers import percent
from lengthwise.runs.spec import flat
from lengthwise.tasks.base import TASKS, SymbolTask, Task
from lengthwise.tasks.base_rates import ShallowTask
from lengthwise.training.recipe import Recipe
from lengthwise.validation import Description, with_article

FAMILIES: Mapping[str, Registry[Any]] = {
    "tasks": TASKS,
    "models": MODELS,
    "presets": PRESETS,
    "constructions": CONSTRUCTIONS,
    "experiments": EXPERIMENTS,
}

MAX_SYMBOLS = 16
"""The largest number of symbols that the description of a task lists; larger alphabets are described by their size."""

SHALLOW_AT = 40
"""The largest length at which a task's description gives the scores of shallow baselines, in symbols."""

SECTIONS = ("Raises:", "Returns:")
"""Headings of docstrings that stay on a line of their own."""

KINDS = {
    int: "integer",
    float: "number",
    bool: "true or false",
    str: "text",
    Path: "file",
    types.NoneType: "none",
}
"""The words for Python's types in descriptions of settings."""


class Setting(NamedTuple):
    """A setting: its dotted name, its possible values, and its default."""

    name: str
    values: str
    default: str


Families = Mapping[str, Mapping[str, Any]]
"""Registered classes and functions by family and name."""


def own_families() -> Families:
    """Return the package's own members, without members from files of users."""
    return {
        family: {name: member for name, member in members.items() if is_of_package(member)}
        for family, members in FAMILIES.items()
    }


def describe_members(families: Families, names: Container[str]) -> FamilyIndex:
    """Return the first sentence of every member's docstring, and full descriptions only of the members `names`.

    Full descriptions of all members would take seconds.
    """
    index = {
        family: {
            name: Member(_first_line(member), _paragraphs(family, name, member) if name in names else [])
            for name, member in members.items()
        }
        for family, members in families.items()
    }
    settings = [[Line("train: settings of training")], *_docstring(Recipe), _settings("train", Recipe)]
    return index | {SETTINGS: {"train": Member(_first_line(Recipe), settings)}}


def own_index() -> FamilyIndex:
    """Return the full descriptions of the package's own members."""
    families = own_families()
    return describe_members(families, {name for members in families.values() for name in members})


def _paragraphs(family: str, name: str, member: Any) -> list[Paragraph]:
    location = member.__module__ if is_of_package(member) else file_of(member)
    kind = with_article(family.removesuffix("s"))
    heading = [Line(f"{name}: {kind}"), Line(f"{member.__qualname__} in {location}", 0)]
    details: dict[str, Any] = {
        "tasks": _task_details,
        "models": _model_details,
        "presets": _preset_details,
        "constructions": _construction_details,
        "experiments": _experiment_details,
    }
    paragraphs = [heading, *_docstring(member), *details[family](name, member)]
    return [paragraph for paragraph in paragraphs if paragraph]


def _first_line(member: object) -> str:
    return (inspect.getdoc(member) or "").partition("\n")[0]


def _docstring(member: object) -> list[Paragraph]:
    """Return the paragraphs of a docstring, joined so that they can be wrapped again. Examples stay as they are."""
    paragraphs = []
    for text in (inspect.getdoc(member) or "").split("\n\n"):
        lines = text.splitlines()
        if any(">>>" in line for line in lines):
            paragraphs.append([Line(line) for line in lines])
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
        paragraphs.append([_hanging(block) for block in blocks])
    return paragraphs


def _hanging(text: str) -> Line:
    """Return a line that continues with the indentation of its text, like an item of a list."""
    return Line(text, len(text) - len(text.lstrip(" -")))


def _task_details(name: str, task: type[Task]) -> Iterator[Paragraph]:
    yield _settings("task", task)
    made = task()
    if isinstance(made, SymbolTask):
        yield [Line(f"symbols: {_names(made.symbols)}"), Line(f"classes: {_names(made.classes)}")]
    if isinstance(made, ShallowTask):
        yield _baseline_scores(made)
    yield _uses(task=name)


def _baseline_scores(task: ShallowTask) -> Paragraph:
    """Return the accuracies of shallow baselines at one length: at most `SHALLOW_AT`, and balanced if possible."""
    legal = [length for length in range(SHALLOW_AT, 0, -1) if task.is_legal_length(length)]
    length = next((length for length in legal if task.is_balanced_length(length)), legal[0])
    return [
        Line(f"accuracy of shallow baselines at length {length}", 0),
        *(Line(f"  {percent(rate):>8}  {what}", 12) for what, rate in task.base_rates(length).items()),
    ]


def _names(names: Sequence[str]) -> str:
    return " ".join(names) if len(names) <= MAX_SYMBOLS else f"{len(names)}, {names[0]} to {names[-1]}"


def _model_details(name: str, model: Any) -> Iterator[Paragraph]:
    if model.Config.__doc__:  # without one, `inspect` would return the docstring of its base class
        yield from _docstring(model.Config)
    yield _settings("model", model.Config)
    presets = [preset for preset, recipe in PRESETS.items() if name in recipe.models]
    more = [Line(f"presets with settings of this model: {', '.join(presets)}", 0)] if presets else []
    yield [Line(f"preset: {model.default_preset}"), *more]
    yield _uses(model=name)


def _preset_details(name: str, preset: type[Preset]) -> Iterator[Paragraph]:
    changes = [("train", flat(preset.train)), *((f"model {m}", flat(s)) for m, s in preset.models.items())]
    for section, settings in changes:
        rows = [Setting(key, "", _value(value)) for key, value in settings.items()]
        yield [Line(f"{section}: changes" if rows else f"{section}: the defaults"), *_rows(rows)]
    for model, goal_preset in preset.goals.items():
        rows = [Setting(key, "", _value(value)) for key, value in flat(goal_preset.train).items()]
        tried = "; then ".join(
            ", ".join(f"{key}={value}" for key, value in changes.items()) for changes in goal_preset.models if changes
        )
        heading = f"changes if {model} is trained until a level is reached"
        yield [Line(heading), *_rows(rows), *([Line(f"models tried: {tried}", 0)] if tried else [])]
    default_of = [model for model, kind in MODELS.items() if kind.default_preset == name]
    if default_of:
        yield [Line(f"default preset of: {', '.join(default_of)}", 0)]


def _construction_details(name: str, construct: Any) -> Iterator[Paragraph]:
    options = [
        Setting(option, KINDS.get(parameter.annotation, ""), _value(parameter.default))
        for option, parameter in inspect.signature(construct).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    yield [Line("options"), *_rows(options)] if options else []


def _experiment_details(name: str, make: Any) -> Iterator[Paragraph]:
    experiment = make("small")
    yield [_hanging(experiment.title)]
    yield [_hanging(_without_links(" ".join(experiment.about.splitlines())))]
    yield [_hanging(f"- {_without_links(note)}") for note in experiment.notes]
    for axis, names in (("rows", [c.row for c in experiment.cells]), ("columns", [c.column for c in experiment.cells])):
        if names:  # a study without runs has no cells
            yield [Line(f"{axis}: {'; '.join(dict.fromkeys(names))}", 0)]
    yield [Line(f"page: {_page(name)}")]


def _without_links(text: str) -> str:
    """Return a page's text without the targets of its links."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


@cache
def _tasks_and_models(experiment: str) -> frozenset[tuple[str, str]]:
    """Return task and model of each run of an experiment; making the experiment takes a while."""
    return frozenset((spec.task.name, spec.model_name) for spec in EXPERIMENTS[experiment]("smoke").specs)


def _uses(*, task: str | None = None, model: str | None = None) -> Paragraph:
    """Return the experiments with runs of the task or of the model, and their pages."""
    users = [name for name in EXPERIMENTS if any(task == t or model == m for t, m in _tasks_and_models(name))]
    heading = "experiments that use it, and the pages that `lengthwise reproduce` writes"
    return [Line(text) for text in (heading, *(f"  {name}: {_page(name)}" for name in users))] if users else []


def _page(experiment: str) -> str:
    return f"docs/results/{file_stem(experiment, 'small')}.md"


def _settings(section: str, kind: type[BaseModel]) -> Paragraph:
    rows = list(_all_settings(kind, f"{section}."))
    return [Line("settings"), *_rows(rows)] if rows else [Line("settings: none")]


def _all_settings(kind: type[BaseModel], prefix: str) -> Iterator[Setting]:
    for name, field in kind.model_fields.items():
        kinds = get_args(field.annotation) or (field.annotation,)
        sections = [
            kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.model_fields
        ]
        if not sections or len(kinds) > 1:
            default = "required" if field.is_required() else _value(field.default)
            if issubclass(kind, Description) and name in kind.used_with:
                other, values = kind.used_with[name]
                default += f"; only with {other}={' or '.join(map(str, values))}"
            yield Setting(prefix + name, _values_of(field.annotation, field.metadata), default)
        for section in sections:
            yield from _all_settings(section, f"{prefix}{name}.")


def _rows(settings: Iterable[Setting]) -> Paragraph:
    """Return a line for each setting; if a line is wrapped, it continues below the values."""
    rows = list(settings)
    indent = max((len(row.name) for row in rows), default=0) + 4
    texts = [f"{row.values}; default {row.default}" if row.values else row.default for row in rows]
    return [Line(f"  {row.name:{indent - 2}}{text}", indent) for row, text in zip(rows, texts, strict=True)]


def _value(value: Any) -> str:
    """Return a default as a user would write it."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _values_of(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """Return the possible values of a setting, in words."""
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


if __name__ == "__main__":
    write_by_rename(INDEX, index_text(own_index()).encode())
