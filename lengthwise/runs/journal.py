"""Files with one JSON object per line, which grow while a run trains and are cut back when the run resumes."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from io import BufferedWriter
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from lengthwise.files import UnreadableFile, naming, open_file, read_file, write_by_rename


@runtime_checkable
class Entry(Protocol):
    """A named tuple of numbers about a training step. A field that may be missing has the default None."""

    @property
    def step(self) -> int: ...
    def _asdict(self) -> dict[str, Any]: ...


class Probe(NamedTuple):
    """The net's accuracy on fixed strings, as if training ended at this step, and the CPU seconds spent so far.

    Every second probe also measures `fresh`, the accuracy on new strings. Some papers report the highest value of
    `fresh` in a run.
    """

    step: int
    accuracy: float
    cpu_seconds: float
    fresh: float | None = None


E = TypeVar("E", bound=Entry)

TRAIN_AGAIN = "move the run's folder away to train the run again"


@dataclass(frozen=True)
class Journal(Generic[E]):
    """A file of entries in order of their steps; all entries have the same `kind`, such as `Probe`."""

    path: Path
    kind: Callable[..., E]

    def read(self) -> list[E]:
        """Return all entries, except a last line that a crash cut short; other damage raises a ValueError."""
        try:
            lines = read_file(self.path).splitlines()
        except FileNotFoundError:
            return []
        except UnreadableFile as error:
            raise ValueError(f"{error}; {TRAIN_AGAIN}") from None
        entries = []
        for number, line in enumerate(lines, start=1):
            try:
                entries.append(self.parse(line))
            except (ValueError, TypeError, RecursionError):
                # A process that dies while it writes leaves part of a line, which can only be the last line.
                if number == len(lines):
                    break
                raise ValueError(f"{self.path}: damaged at line {number}; {TRAIN_AGAIN}") from None
        return entries

    def read_after(self, offset: int) -> tuple[list[E], int]:
        """Return the entries of whole lines from byte `offset` on, and the offset of the next line.

        A journal can be read in this way while it is written. A missing journal has no entries; damage raises a
        ValueError.
        """
        try:
            with open_file(self.path) as file:
                length = file.seek(0, os.SEEK_END)
                file.seek(offset)
                whole, newline, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return [], offset
        # The training process has resumed from a checkpoint and dropped entries that were read already.
        if offset > length:
            raise ValueError(
                f"{self.path}: expected {offset} bytes or more, got {length}; the file was cut back meanwhile, so "
                "track the run again"
            )
        try:
            entries = [self.parse(line) for line in whole.splitlines()]
        except (ValueError, TypeError, RecursionError):
            raise ValueError(f"{self.path}: damaged after byte {offset}; {TRAIN_AGAIN}") from None
        return entries, offset + len(whole) + len(newline)

    def check(self, steps: int, every: int = 1) -> None:
        """Check that there is an entry for each multiple of `every` up to `steps`: by default, for each step.

        Raises:
            ValueError: entries are missing, because the file was cut back or belongs to another run.
        """
        actual = [entry.step for entry in self.read() if entry.step <= steps]
        expected = [*range(every, steps + 1, every)]
        if actual != expected:
            got = len(actual) if len(actual) != len(expected) else "entries of other steps"
            raise ValueError(
                f"{self.path}: expected {len(expected)} entries up to step {steps}, in order, got {got}; {TRAIN_AGAIN}"
            )

    def digest(self, steps: int) -> str:
        """Return a hash of the entries up to `steps`, which identifies the run that wrote them."""
        return _hash(self._lines(steps)).hexdigest()

    def keep(self, steps: int) -> None:
        """Drop the entries of steps after the checkpoint, because these steps will be repeated."""
        write_by_rename(self.path, self._lines(steps))

    @contextmanager
    def appending(self) -> Iterator["JournalWriter[E]"]:
        """Open the journal's file, and yield a writer that appends entries to this file."""
        with naming(self.path):
            # Appending leaves the lines of earlier processes in place, whatever happens in this process.
            file = self.path.open("ab")
        try:
            yield JournalWriter(self.path, file, _hash(self.path.read_bytes()))
        finally:
            with naming(self.path):  # closing tries again to write the last lines, and can fail again
                file.close()

    def _lines(self, steps: int) -> bytes:
        return "".join(self.line(entry) for entry in self.read() if entry.step <= steps).encode()

    @staticmethod
    def line(entry: E) -> str:
        """Return an entry as a line of the journal's file."""
        return json.dumps(entry._asdict()) + "\n"

    def parse(self, line: bytes) -> E:
        """Return the entry in a line of the journal; a line of another form raises a ValueError or TypeError."""
        entry = self.kind(**json.loads(line))
        if not all(isinstance(value, int | float) or value is default for value, default in self._with_defaults(entry)):
            raise TypeError("expected numbers")
        return entry

    @staticmethod
    def _with_defaults(entry: E) -> list[tuple[Any, Any]]:
        """Return the pairs of value and default of an entry's fields; the default of a required field is `...`."""
        defaults: dict[str, Any] = getattr(entry, "_field_defaults", {})
        return [(value, defaults.get(name, ...)) for name, value in entry._asdict().items()]


@dataclass(frozen=True)
class JournalWriter(Generic[E]):
    """A writer that appends entries to a journal, and updates the hash of the journal's contents."""

    path: Path
    file: BufferedWriter
    hash: blake2b

    def write(self, entry: E) -> None:
        """Add an entry; it is on disk after the next `sync`."""
        # The hash is updated with each line, so the file need not be read again at each checkpoint.
        line = Journal.line(entry).encode()
        with naming(self.path):
            self.file.write(line)
        self.hash.update(line)

    def sync(self) -> str:
        """Write all entries to the disk, so that they survive a power cut; return their `Journal.digest`."""
        with naming(self.path):
            self.file.flush()
            # A flush alone leaves the lines in the system's memory, where a power cut loses them.
            os.fsync(self.file.fileno())
        return self.hash.hexdigest()


def _hash(content: bytes) -> blake2b:
    return blake2b(content, digest_size=8)
