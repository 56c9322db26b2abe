"""Files with one JSON object on each line, written while a run trains and cut back to its checkpoint on resuming."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from lengthwise.files import write_by_rename


@runtime_checkable
class Entry(Protocol):
    """A named tuple of numbers that belongs to a step; a field that may be missing has None as its default."""

    @property
    def step(self) -> int: ...
    def _asdict(self) -> dict[str, Any]: ...


class Probe(NamedTuple):
    """How the weights that would be final did after a step on a fixed set of strings, and what training had cost.

    Every second probe also tests them on `fresh` strings: the best of these over a run is what some papers report.
    """

    step: int
    accuracy: float
    cpu_seconds: float
    fresh: float | None = None


E = TypeVar("E", bound=Entry)


@dataclass(frozen=True)
class Journal(Generic[E]):
    """The entries of one kind in one file."""

    path: Path
    kind: Callable[..., E]

    def read(self) -> list[E]:
        """All entries; a last line cut short by a crash is left out, other damage is a ValueError."""
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().splitlines()
        entries = []
        for number, line in enumerate(lines, start=1):
            try:
                entries.append(self._parse(line))
            except (ValueError, TypeError):
                if number == len(lines):
                    break
                raise ValueError(f"{self.path}: damaged at line {number}; move it away to go on without it") from None
        return entries

    def keep(self, steps: int) -> None:
        """Drop the entries of steps after the checkpoint: they will be made again."""
        kept = (self.line(entry) for entry in self.read() if entry.step <= steps)
        write_by_rename(self.path, "".join(kept).encode())

    @staticmethod
    def line(entry: E) -> str:
        """An entry as it stands in the file."""
        return json.dumps(entry._asdict()) + "\n"

    def _parse(self, line: bytes) -> E:
        entry = self.kind(**json.loads(line))
        if not all(isinstance(value, int | float) or value is default for value, default in self._with_defaults(entry)):
            raise TypeError("expected numbers")
        return entry

    @staticmethod
    def _with_defaults(entry: E) -> list[tuple[Any, Any]]:
        """Each field's value, and what it is where nothing is given (for most, not even None)."""
        defaults: dict[str, Any] = getattr(entry, "_field_defaults", {})
        return [(value, defaults.get(name, ...)) for name, value in entry._asdict().items()]
