"""Registries: mappings from public names to classes or functions, filled by importing a package's modules.

`lazy_names` makes the public names of a package importable without loading their modules before the first use.
"""

import importlib
import importlib.util
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

Member = TypeVar("Member")
Registered = TypeVar("Registered")


MIN_SIMILARITY = 0.75
"""The smallest similarity (`SequenceMatcher.ratio`) of a wrong name to the name that is suggested instead."""

MAX_DIFFERENCE = 40
"""The largest difference between the lengths of a wrong name and of a suggested name, in characters."""


def nearest(name: object, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known name closest to `name`, or "" if no known name is similar.

    Case is ignored. Two names are also similar in three cases: a part of the known name between hyphens begins with
    `name`, `name` begins with the known name, or both names have the same letters.

    Example:
        >>> nearest("LTSM", ["lstm", "gru"]), nearest("dyck", ["bounded-dyck"]), nearest("hyena", ["lstm"])
        ("; did you mean 'lstm'?", "; did you mean 'bounded-dyck'?", '')
    """
    close = closest(name, known)
    return f"; did you mean {close!r}?" if close else ""


def closest(name: object, known: Iterable[str]) -> str:
    """Return the known name closest to `name`, as `nearest` does, or an empty text."""
    if not isinstance(name, str):
        return ""
    names = [each for each in known if each]
    score, close = max(((_similarity(_plain(name), _plain(each)), each) for each in names), default=((0.0, 0.0), ""))
    return close if score[0] >= MIN_SIMILARITY else ""


def _plain(name: str) -> str:
    return re.sub("[_ ]", "-", name.lower())


def _similarity(name: str, known: str) -> tuple[float, float]:
    """Return the similarity of two names, and their ratio of equal characters, which breaks ties of the similarity."""
    if abs(len(name) - len(known)) > MAX_DIFFERENCE:
        return 0.0, 0.0  # Long texts are not misspelled names, and a comparison takes quadratic time.
    ratio = SequenceMatcher(None, known, name).ratio()
    begins_part = len(name) > 2 and f"-{name}" in f"-{known}"
    is_longer = name.startswith(known) and (len(known) > 2 or len(name) == len(known) + 1)
    is_swapped = len(name) > 2 and sorted(name) == sorted(known)
    return max(ratio, MIN_SIMILARITY * (begins_part or is_longer or is_swapped)), ratio


def check_known(argument: str, name: object, known: Iterable[str]) -> None:
    """Raise a ValueError for an unknown name; its message contains the argument and a similar known name (`nearest`).

    Example:
        >>> check_known("goal", "proven", ("bounded", "proved"))
        Traceback (most recent call last):
        ValueError: goal: expected one of bounded, proved, got 'proven'; did you mean 'proved'?
    """
    names = tuple(known)
    if name not in names:
        way_out = nearest(name, names) or "; choose one of these"
        raise ValueError(f"{argument}: expected one of {', '.join(names)}, got {name!r}{way_out}")


def discover(package: str) -> None:
    """Import a package and every module below it, so that each module registers its members.

    A ``*`` in the name stands for every package at this level. For example, ``lengthwise.studies.*.pages`` means the
    package `pages` of each study.
    """
    above, star, below = package.partition(".*")
    root = importlib.import_module(above)
    if star:
        for folder in pkgutil.iter_modules(root.__path__, prefix=f"{above}."):
            if folder.ispkg and importlib.util.find_spec(folder.name + below):
                discover(folder.name + below)
        return
    for module in pkgutil.walk_packages(getattr(root, "__path__", ()), prefix=f"{package}."):
        importlib.import_module(module.name)


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package, which imports a name from its home module on first use.

    So importing the package does not load torch or other modules that only some of its names need.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return get


EXTENSIONS = "LENGTHWISE_EXTENSIONS"
"""The environment variable that lists users' Python files. Every process loads these files, which register members."""

_loaded: set[Path] = set()


def extensions() -> list[str]:
    """Return the absolute paths in `LENGTHWISE_EXTENSIONS`, which are separated by `os.pathsep`."""
    return [str(Path(name).resolve()) for name in os.environ.get(EXTENSIONS, "").split(os.pathsep) if name]


def load_extensions(paths: Iterable[str] | None = None) -> None:
    """Run Python files, each once in a process; by default, these are the files in `LENGTHWISE_EXTENSIONS`.

    A file that was already imported, or that is the running program, is not run again.

    Raises:
        ValueError: a file does not exist, is not a .py file, or raises an exception.
    """
    for path in map(Path, extensions() if paths is None else paths):
        if path in _loaded:
            continue
        if path.suffix != ".py" or not path.is_file():
            raise ValueError(f"{EXTENSIONS}: expected Python files, got {path}; write the path of a .py file")
        _loaded.add(path)  # before it runs, because its own look-ups in registries load extensions again
        if any(getattr(module, "__file__", None) == str(path) for module in list(sys.modules.values())):
            continue
        # The module's name must be unique, because `inspect` and `pickle` find the module of a class by its name.
        spec = importlib.util.spec_from_file_location(re.sub(r"\W", "_", str(path)), path)
        assert spec is not None  # its name ends in .py
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            _loaded.discard(path)
            del sys.modules[spec.name]
            if isinstance(error, ExtensionError):  # raised by another file, which this file loaded
                raise
            frame = innermost_frame(error, [path])
            where = f", line {frame.lineno}" if frame else ""
            raise ExtensionError(
                f"{path}{where}: {type(error).__name__}: {error}; correct this file, or do not load it"
            ) from error


def loaded_extensions() -> list[Path]:
    """Return the loaded Python files of users, in alphabetical order."""
    return sorted(_loaded)


def innermost_frame(error: BaseException, files: Iterable[Path]) -> traceback.FrameSummary | None:
    """Return the innermost frame of an error's traceback that lies in one of `files`, or None."""
    names = set(map(str, files))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in names]
    return frames[-1] if frames else None


def file_of(member: object) -> str | None:
    """Return the file that defines a class or function, or None without a file, as in a notebook."""
    file: str | None = getattr(sys.modules.get(str(member.__module__)), "__file__", None)
    return file


def is_of_package(member: object) -> bool:
    """Return whether the package itself, not a user's file, defines a class or a function."""
    return str(member.__module__).startswith("lengthwise.")


class Registry(Mapping[str, Member], Generic[Member]):
    """A read-only mapping from names to members: classes or functions. The first use imports their packages.

    Example:
        >>> from lengthwise.tasks import TASKS
        >>> TASKS["parity"].__name__
        'Parity'
    """

    _num_discovering: ClassVar[int] = 0
    """The number of registries that are importing their packages now."""

    def __init__(self, kind: str, *packages: str, base: type | None = None, names_folders: bool = False) -> None:
        """Make an empty registry.

        Args:
            kind: the word for a member in messages.
            packages: the packages that contain the members, named as for `discover`.
            base: the class that members inherit, if they are classes.
            names_folders: members give folders their names, so a name must not contain ``/``.
        """
        self.kind, self._base = kind, base
        self._pattern, self._signs = (r"\w[\w.-]*", "- _") if names_folders else (r"[\w./-]+", "- _ /")
        self._packages = packages
        self._own = re.compile("|".join(re.escape(name).replace(r"\*", r"\w+") for name in packages))
        self._members: dict[str, Member] = {}
        self._discovered = False

    def register(self, name: str) -> Callable[[Registered], Registered]:
        """Return a decorator that lists a member under `name` and sets the member's attribute `name`.

        Raises:
            ValueError: the name is already registered, or contains a character other than letters, digits, `-`, `_`,
                `/` and `.`. If folders get the members' names, a name must begin with a letter, a digit or `_`, and
                must not contain `/`. The decorator raises this error if the member is not a class of the right kind, or
                lacks methods.
        """
        if not isinstance(name, str):  # the decorator without parentheses
            raise ValueError(f"{self.kind}: expected a name, got {name!r}; add a name, as in register('mine')")
        if not re.fullmatch(self._pattern, name):
            raise ValueError(
                f"{self.kind}: expected a name of letters, digits, {self._signs} and ., got {name!r}; rename it"
            )

        def decorate(member: Registered) -> Registered:
            if not isinstance(getattr(member, "__module__", None), str):
                raise ValueError(
                    f"{self.kind} {name!r}: expected a class or a function, got {member!r:.60}; "
                    "decorate a class or a function"
                )
            if not self._own.match(member.__module__):
                self._discover()  # without this, a user's member could take a name that the package registers later
            if self._base is not None and not (isinstance(member, type) and issubclass(member, self._base)):
                raise ValueError(
                    f"{self.kind} {name!r}: expected a class that inherits {self._base.__name__}, got {member!r}; "
                    f"derive the class from {self._base.__name__}"
                )
            if missing := ", ".join(sorted(getattr(member, "__abstractmethods__", ()))):
                what = getattr(member, "__name__", name)
                raise ValueError(
                    f"{what}: expected the methods {missing}, got a class without them; define them in the class"
                )
            if name in self._members and not _same_definition(self._members[name], member):
                where = file_of(self._members[name]) or "this program"
                raise ValueError(f"{self.kind} {name!r} is registered twice, first in {where}; choose another name")
            self._members[name] = member  # type: ignore[assignment]  # a class registers as a subtype of Member
            setattr(member, "name", name)  # noqa: B010  # the members of a registry have no common static type
            return member

        return decorate

    def _discover(self) -> dict[str, Member]:
        if not self._discovered:
            self._discovered = True  # set first, because modules look up members in this registry while they load
            Registry._num_discovering += 1
            try:
                for package in self._packages:
                    discover(package)
            except BaseException:
                self._discovered = False
                raise
            finally:
                Registry._num_discovering -= 1
        if not Registry._num_discovering:  # otherwise a user's file could take a name of the package too early
            # Called at every look-up: a file that failed must fail again, or its members would seem unknown.
            load_extensions()
        return self._members

    def has_member(self, candidate: object) -> bool:
        """Return whether an object is in this registry, without an import: a member's own module is already imported.

        Example:
            >>> from lengthwise.models.base import MODELS, SequenceModel
            >>> MODELS.has_member(SequenceModel)
            False
        """
        return any(member is candidate for member in self._members.values())

    def __getitem__(self, name: str) -> Member:
        members = self._discover()
        if not isinstance(name, str):
            raise UnknownName(f"{self.kind}: expected a name, got {type(name).__name__}; known: {', '.join(members)}")
        if name not in members:
            if name.endswith(".py"):
                raise UnknownName(
                    f"unknown {self.kind} {name!r}; to use the {self.kind} that this file registers, add the file to "
                    f"the environment variable {EXTENSIONS}, and write the registered name"
                )
            known = f" (known: {', '.join(sorted(members))})"
            raise UnknownName(f"unknown {self.kind} {name!r}{nearest(name, members) or known}")
        return members[name]

    def __contains__(self, name: object) -> bool:
        return name in self._discover()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._discover()))

    def __len__(self) -> int:
        return len(self._discover())


class NameIn(NamedTuple):
    """A mark of a setting whose values are the names in a registry, as in ``Annotated[str, NameIn(TASKS)]``."""

    registry: Registry[Any]


def _same_definition(old: object, new: object) -> bool:
    """Return whether two members have equal names in equal modules, as when a notebook cell runs twice."""
    names = [(getattr(member, "__module__", None), getattr(member, "__qualname__", None)) for member in (old, new)]
    return names[0] == names[1]


class UnknownName(KeyError, ValueError):
    """A name that is not registered; the message contains the most similar name, if there is one."""

    def __str__(self) -> str:
        return str(self.args[0])


@contextmanager
def names_of_files() -> Iterator[None]:
    """Add a hint to an `UnknownName` inside the context: a file may name members that only its author registered."""
    try:
        yield
    except UnknownName as error:
        raise UnknownName(f"{error}; if you registered this name, add its Python file to {EXTENSIONS}") from None


class ExtensionError(ValueError):
    """An error inside a user's file."""
