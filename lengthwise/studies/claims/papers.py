"""The claims of a paper as data: the file `claims.toml` in the folder of its study, which has the paper's name."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from lengthwise.registry import nearest
from lengthwise.runs.spec import read_settings
from lengthwise.studies.claims.claim import (
    CLAIMS,
    Claim,
    Contrast,
    Effect,
    Entry,
    Evidence,
    Number,
    Paper,
    Parameters,
    Phrase,
    Rows,
    Stated,
    TableNumber,
    Unrun,
    Verdict,
)
from lengthwise.validation import truncate


def read_paper(path: Path) -> Paper:
    """Read the claims of a paper from a TOML file. `docs/extending.md` lists its keys.

    A table of `[[claims]]` contains one claim, or several claims that share keys. In the second case, `columns` lists
    the keys that differ, and each of `rows` contains the values of these keys for one claim. The text of `claim` may
    name other keys in braces, as in ``claim = "{row}, {column}."``.

    Raises:
        ValueError: the file is not TOML, a key is unknown, missing or has another type, or a claim appears twice.
    """
    head = _checked(_Head, read_settings(path), str(path))
    claims: dict[tuple[str, str], Claim] = {}
    for number, table in enumerate(head.claims, 1):
        for keys in _expanded(table, f"{path}: table {number} of claims"):
            where = f"{path}: claim {keys['claim']!r}" if "claim" in keys else f"{path}: table {number} of claims"
            claim = _claim(keys, where)
            if claims.setdefault((claim.section, claim.claim), claim) is not claim:
                raise ValueError(
                    f"{where}: expected different claims, got this claim twice in section {claim.section!r}; remove one"
                )
    smaller, takes = MappingProxyType(head.smaller), MappingProxyType(head.takes)
    return Paper(head.title, tuple(claims.values()), smaller, takes, head.note)


class _Head(NamedTuple):
    """The keys of the file `claims.toml`."""

    title: str
    claims: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)]
    smaller: dict[str, str] = {}  # noqa: RUF012  # pydantic copies defaults
    takes: dict[str, str] = {}  # noqa: RUF012
    note: str = ""


class _Lines(NamedTuple):
    """The keys with which one table describes several claims."""

    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    rows: Annotated[tuple[tuple[Any, ...], ...], Field(min_length=1)]


class _Named(NamedTuple):
    """The keys that every claim has, besides the keys of its evidence."""

    section: str
    claim: str
    evidence: str
    published: str = ""


class _StatedKeys(NamedTuple):
    """The keys of evidence of kind `stated` (`Stated`), whose cells and phrases are looked up on its own page.

    A number is given by its column and the first cells of its line, and a phrase by a pattern.
    """

    verdict: Verdict
    page: str
    test: str = ""
    command: str = ""
    numbers: tuple[Annotated[tuple[str, ...], Field(min_length=2)], ...] = ()
    heading: str = ""
    phrases: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str, str], ...] = ()
    why: str = ""

    def evidence(self) -> Stated:
        """Return the evidence as a `Stated`; its numbers in tables and sentences are looked up on the page `page`."""
        numbers: tuple[Number, ...] = (
            *(TableNumber(self.page, column, tuple(line), self.heading) for column, *line in self.numbers),
            *(Phrase(self.page, pattern) for pattern in self.phrases),
            *(Parameters(*names) for names in self.parameters),
        )
        return Stated(self.verdict, self.page, self.test, self.command, numbers, self.why)


_KINDS: Mapping[str, Any] = MappingProxyType(
    {"entry": Entry, "effect": Effect, "contrast": Contrast, "rows": Rows, "stated": _StatedKeys, "unrun": Unrun}
)
"""The class with the keys of each kind of evidence."""

_Keys = TypeVar("_Keys")


def _expanded(table: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """Yield the keys and values of each claim in a table of `[[claims]]`."""
    shared = {key: value for key, value in table.items() if key not in _Lines._fields}
    if len(shared) == len(table):
        yield shared
        return
    columns, rows = _checked(_Lines, {key: value for key, value in table.items() if key not in shared}, where)
    if len({*columns, *shared}) < len(columns) + len(shared):
        twice = next(key for key in columns if [*columns, *shared].count(key) > 1)
        raise ValueError(
            f"{where}: `columns`: expected each key once in `columns` and the rest of the table, got {twice!r} twice; "
            "remove one of the two"
        )
    for row in rows:
        if len(row) > len(columns):
            raise ValueError(
                f"{where}: `rows`: expected at most {len(columns)} values in each row, one for each of `columns`, got "
                f"{row}; add a column or remove a value"
            )
        keys = shared | dict(zip(columns, row, strict=False))
        for key, value in keys.items():
            if isinstance(keys.get("claim"), str) and isinstance(value, str):
                keys["claim"] = keys["claim"].replace(f"{{{key}}}", value)
        yield keys


def _claim(keys: Mapping[str, Any], where: str) -> Claim:
    named = _checked(_Named, {key: value for key, value in keys.items() if key in _Named._fields}, where)
    if named.evidence not in _KINDS:
        known = f"{nearest(named.evidence, _KINDS)} (known: {', '.join(_KINDS)})"
        raise ValueError(f"{where}: `evidence`: unknown kind {named.evidence!r}{known}")
    rest = {key: value for key, value in keys.items() if key not in _Named._fields}
    checked = _checked(_KINDS[named.evidence], rest, where)
    evidence: Evidence = checked.evidence() if isinstance(checked, _StatedKeys) else checked
    return Claim(named.section, named.claim, evidence, named.published)


def _checked(kind: type[_Keys], keys: Mapping[str, Any], where: str) -> _Keys:
    """Build an object of class `kind` from keys. A problem raises a ValueError whose message begins with `where`."""
    try:
        return TypeAdapter(kind).validate_python({key: _frozen(value) for key, value in keys.items()}, strict=True)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
    name, known = ".".join(map(str, problem["loc"])), kind._fields  # type: ignore[attr-defined]  # of a named tuple
    if problem["type"] == "extra_forbidden":
        raise ValueError(f"{where}: unknown key {name!r}{nearest(name, known)} (known: {', '.join(known)})")
    if problem["type"] == "missing":
        raise ValueError(f"{where}: `{name}`: expected a value, got none; give one")
    expected = problem["msg"].split(" after validation")[0].removeprefix("Input should be ")
    expected = expected.removeprefix("Tuple should have ").replace("a valid boolean", "true or false")
    expected = expected.replace("valid tuple", "list").replace("valid string", "string")
    raise ValueError(
        f"{where}: `{name}`: expected {expected}, got {truncate(repr(problem['input']))}; correct this value"
    )


def _frozen(value: Any) -> Any:
    """Return a value of TOML with tuples instead of lists, because claims cannot change."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _maker(path: Path) -> Callable[[], Paper]:
    def paper() -> Paper:
        return read_paper(path)

    return paper


for _path in sorted(Path(__file__).parents[1].glob("*/claims.toml")):
    CLAIMS.register(_path.parent.name)(_maker(_path))
