"""Files with one JSON object on each line, written while a run trains and cut back to its checkpoint on resuming."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from lengthwise.files import write_by_rename


@runtime_checkable
class Entry(Protocol):
    """A named tuple of numbers that belongs to a step."""

    @property
    def step(self) -> int: ...
    def _asdict(self) -> dict[str, Any]: ...


class Probe(NamedTuple):
    """How the weights that would be final did after a step on a fixed set of strings, and what training had cost."""

    step: int
    accuracy: float
    cpu_seconds: float


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
        if not all(isinstance(value, int | float) for value in entry._asdict().values()):
            raise TypeError("wanted numbers")
        return entry
