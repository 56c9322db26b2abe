"""Validation of raw settings, with one clear line for every problem."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError, model_validator

from lengthwise.registry import nearest

Described = TypeVar("Described", bound=BaseModel)
Kind = TypeVar("Kind")


def validated(kind: type[Described], settings: Mapping[str, Any], path: str = "") -> Described:
    """Build a description of class `kind` from `settings`.

    `path` is the location of the settings in the whole request, such as ``"model"``. All problems are raised as one
    ValueError, with a line for each problem: its path, the expected value, the given value and a fix.
    """
    try:
        return kind.model_validate(dict(settings))
    except ValidationError as error:
        raise _readable_error(kind, error, path) from None


def check_kind(argument: str, value: object, kind: Any, expected: str) -> None:
    """Raise a ValueError, which names the argument, unless the argument's value has the type `kind`.

    Example:
        >>> check_kind("separator", 1, str, "a text")
        Traceback (most recent call last):
        ValueError: separator: expected a text, got 1; give one
    """
    if not isinstance(value, kind):
        raise ValueError(f"{argument}: expected {expected}, got {truncate(' '.join(repr(value).split()))}; give one")


def narrow(value: object, kind: type[Kind]) -> Kind:
    """Return a value that is known to have the type `kind`, although its annotation is wider."""
    assert isinstance(value, kind)
    return value


def check_function(argument: str, value: object) -> None:
    """Raise a ValueError, which names the argument, unless the argument's value can be called."""
    if not callable(value):
        raise ValueError(f"{argument}: expected a function, got {truncate(repr(value))}; give one")


def check_choice(argument: str, value: object, choices: Iterable[str]) -> None:
    """Raise a ValueError, which names the argument, unless the argument's value is one of the choices.

    Example:
        >>> check_choice("form", "loup", ("loop", "scan"))
        Traceback (most recent call last):
        ValueError: form: expected 'loop' or 'scan', got 'loup'; choose one of these
    """
    known = tuple(choices)
    if not isinstance(value, str) or value not in known:
        expected = " or ".join(map(repr, known))
        raise ValueError(f"{argument}: expected {expected}, got {truncate(repr(value))}; choose one of these")


def check_one_given(argument: str, expected: str, first: object, second: object) -> None:
    """Raise a ValueError unless exactly one of two optional arguments is given.

    Example:
        >>> check_one_given("head", "head or answers", None, None)
        Traceback (most recent call last):
        ValueError: head: expected either head or answers, got neither; give one of them
    """
    if (first is None) == (second is None):
        got = "neither" if first is None else "both"
        raise ValueError(f"{argument}: expected either {expected}, got {got}; give one of them")


def whole_number(argument: str, value: object, low: int, high: int) -> int:
    """Return an integer of any integer type as an int; raise a ValueError for other values, True and False included."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not low <= int(value) <= high:
        got = truncate(repr(value))
        raise ValueError(
            f"{argument}: expected a whole number from {low:,} to {high:,}, got {got}; give a number in this range"
        )
    return int(value)


def check_sizes(**sizes: object) -> None:
    """Raise a ValueError that names the first argument that is not a whole number of at least 1.

    Example:
        >>> check_sizes(d_model=8, d_state=-4)
        Traceback (most recent call last):
        ValueError: d_state: expected a whole number of at least 1, got -4; give 1 or more
    """
    for argument, size in sizes.items():
        if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
            got = truncate(repr(size))
            raise ValueError(f"{argument}: expected a whole number of at least 1, got {got}; give 1 or more")


def check_divisor(argument: str, value: object, width: int, name: str = "d_model") -> None:
    """Raise a ValueError, which names the argument, unless `value` divides `width`, the value of setting `name`."""
    check_sizes(**{name: width})
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1 or width % value:
        divisors = [number for number in range(1, width + 1) if width % number == 0]
        raise ValueError(f"{argument}: expected a divisor of {name}={width}, got {value!r}; choose from {divisors}")


def with_article(noun: str) -> str:
    """Return a noun after its indefinite article.

    Example:
        >>> with_article("experiment"), with_article("list"), with_article("LSTM")
        ('an experiment', 'a list', 'an LSTM')
    """
    # The names of some letters, such as "el", begin with a vowel, and "uint" is spoken as "you-int".
    begins_with_vowel = "[AEFHILMNORSX]" if noun[:2].isupper() else "(?i:[aeio]|u(?!int|ni|se)|ndarray)"
    return f"an {noun}" if re.match(begins_with_vowel, noun) else f"a {noun}"


def type_in_words(value: object) -> str:
    """Return the name of a value's type, with its indefinite article.

    Example:
        >>> type_in_words([]), type_in_words(1)
        ('a list', 'an int')
    """
    return with_article(type(value).__name__)


def texts_of(argument: str, value: object) -> tuple[str, ...]:
    """Return several texts as a tuple, or the letters of a single text; raise a ValueError for any other value."""
    texts = tuple(value) if isinstance(value, Iterable) else (value,)
    if not isinstance(value, Iterable) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{argument}: expected several texts, got {truncate(repr(value))}; give a list of texts")
    return texts


def path_of(argument: str, value: object) -> Path:
    """Return a path from a text or a path; raise a ValueError for any other value."""
    check_kind(argument, value, (str, os.PathLike), "a path")
    if value == "":  # pathlib reads it as the current folder
        raise ValueError(f"{argument}: expected a path, got ''; give one, or '.' for the current folder")
    return Path(value)  # type: ignore[arg-type]  # checked above


class FrozenRecord(BaseModel, frozen=True, extra="forbid"):
    """A frozen record that rejects unknown fields."""


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)  # it has no public name


class _OneLineErrors(ModelMetaclass):
    """A metaclass: calls of its classes raise the readable errors of `validated` instead of pydantic's errors."""

    def __call__(cls: type[BaseModel], *arguments: Any, **settings: Any) -> Any:  # type: ignore[misc]  # noqa: N805
        if arguments:
            names = ", ".join(cls.model_fields)
            way_out = f"write name=value (known: {names})" if names else f"write {cls.__name__}(), without settings"
            raise TypeError(f"{cls.__name__}: expected settings by name, got {truncate(repr(arguments[0]))}; {way_out}")
        try:
            return type.__call__(cls, **settings)
        except ValidationError as error:
            raise _readable_error(cls, error, "") from None


class Description(FrozenRecord, metaclass=_OneLineErrors, allow_inf_nan=False):
    """A frozen description that users write. It rejects unknown fields, infinite numbers, and True or False as numbers.

    Some fields have an effect only for some values of another field. `used_with` maps such a field to the other field
    and these values. If the other field has none of these values, the first field must keep its default. So two
    descriptions never differ in a field without an effect.

    Example:
        >>> from lengthwise.training.recipe import Recipe
        >>> Recipe(steps=True)
        Traceback (most recent call last):
            ...
        ValueError: steps: expected a number, got True; write a number
    """

    used_with: ClassVar[Mapping[str, tuple[str, Sequence[object]]]] = {}

    @classmethod
    def uses(cls, name: str, settings: Mapping[str, Any]) -> bool:
        """Return whether a field exists and has an effect with these settings; missing settings have their defaults.

        Example:
            >>> from lengthwise.training.recipe import OptimizerRecipe
            >>> OptimizerRecipe.uses("matrix_learning_rate", {"name": "adamw"})
            False
        """
        if name not in cls.used_with:
            return name in cls.model_fields
        other, values = cls.used_with[name]
        return settings.get(other, cls.model_fields[other].default) in values

    @model_validator(mode="after")
    def _all_is_used(self) -> "Description":
        settings = dict(self)
        for name, (other, values) in self.used_with.items():
            default = type(self).model_fields[name].default
            if settings[name] != default and not self.uses(name, settings):
                raise ValueError(
                    f"{name}: expected its default, {default!r}, because it has no effect with "
                    f"{other}={settings[other]!r}, got {settings[name]!r}; leave {name} out or choose "
                    f"{other}={' or '.join(map(repr, values))}"
                )
        return self

    @model_validator(mode="before")
    @classmethod
    def _reject_truth_values(cls, settings: Any) -> Any:
        """Reject True and False for numbers, because pydantic reads True as 1."""
        for name, value in settings.items() if isinstance(settings, Mapping) else ():
            if isinstance(value, bool) and name in cls.model_fields:
                kinds = _types(cls.model_fields[name].annotation)
                if bool not in kinds and kinds & {int, float}:
                    raise ValueError(f"{name}: expected a number, got {value}; write a number")
        return settings


def _types(annotation: object) -> set[object]:
    """Return the plain types inside a type; for a Literal, these are the types of its values."""
    parts = get_args(annotation)
    if get_origin(annotation) is Literal:
        return set(map(type, parts))
    return set().union(*map(_types, parts)) if parts else {annotation}


def _readable_error(kind: type[BaseModel], error: ValidationError, path: str) -> ValueError:
    problems = error.errors(include_url=False)
    unknown = [other for problem in problems for other in _hidden_unknown(kind, problem)]
    # Unknown settings come first: a check of all settings may have failed because of a misspelled one.
    return ValueError("\n".join(dict.fromkeys(_line(kind, problem, path) for problem in [*unknown, *problems])))


def _hidden_unknown(kind: type[BaseModel], problem: Any) -> Iterator[dict[str, Any]]:
    """Yield a problem for each unknown setting of a section, if an earlier check of the section hid this problem."""
    if problem["type"] == "value_error" and isinstance(problem["input"], Mapping):
        known = _fields_at(kind, [str(part) for part in problem["loc"]])
        for name in problem["input"]:
            if known and name not in known:
                yield {**problem, "type": "extra_forbidden", "loc": (*problem["loc"], name)}


def dump_named(name: str, description: BaseModel) -> dict[str, Any]:
    """Return a description as JSON, with the registered name of the described object as the first entry."""
    return {"name": name, **description.model_dump(mode="json")}


def split_named(content: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Split a result of `dump_named` into the name and the settings."""
    return str(content.get("name")), {key: value for key, value in content.items() if key != "name"}


def _line(kind: type[BaseModel], problem: Any, path: str) -> str:
    location = [quoted(str(part)) for part in problem["loc"]]
    full = ".".join([path, *location] if path else location)
    if problem["type"] == "extra_forbidden":
        known = _fields_at(kind, location[:-1])
        names = f"known: {', '.join(sorted(known))}" if known else "this section has no settings"
        return f"{full}: no such setting{nearest(str(problem['loc'][-1]), known)} ({names})"
    if problem["type"] == "missing":
        return f"{full}: expected a value, got none; give one"
    expected = problem["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if problem["type"] == "value_error":  # raised by our checks, which begin with the setting's name
        return f"{full}.{expected}" if full else expected
    if problem["type"] == "int_parsing_size":  # pydantic's sentence describes its own limits
        expected = "a smaller whole number"
    if problem["type"] in ("model_type", "model_attributes_type", "dict_type"):
        expected = f"a section of settings such as {full}.key"
    expected = expected.partition(", got ")[0].partition(", unable to ")[0]  # pydantic's words; the value follows below
    article = "a number " if expected.startswith(("greater", "less")) else ""
    return f"{full}: expected {article}{expected}, got {truncate(repr(problem['input']))}; give such a value"


def quoted(name: str) -> str:
    """Return a name as messages contain it: in quotes if it is empty, unprintable, or has blanks at an end."""
    return name if name.isprintable() and name.strip() == name != "" else truncate(repr(name))


def truncate(text: str, longest: int = 120) -> str:
    """Return a text of one line and at most `longest` letters; the end of a longer text becomes three dots."""
    if "\n" in text:  # NumPy and torch print arrays in several lines
        first, *lines = text.split("\n")
        # A regular expression for blanks around line breaks would take quadratic time for a long row of blanks.
        text = " ".join([first.rstrip(), *filter(None, map(str.strip, lines[:-1])), lines[-1].lstrip()])
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _fields_at(kind: type[BaseModel], location: list[str]) -> list[str]:
    for part in location:
        field = kind.model_fields.get(part)
        kinds = () if field is None else (field.annotation, *get_args(field.annotation))
        sections = [section for section in kinds if isinstance(section, type) and issubclass(section, BaseModel)]
        if len(sections) != 1:
            return []
        kind = sections[0]
    return list(kind.model_fields)
