"""Standard streams in all states that a shell may pass on: closed, full, ASCII only, or with a reader that hung up."""

import io
import os
import sys
from collections.abc import Iterable
from contextlib import suppress

from rich.console import Console

from lengthwise import printing

UNLIMITED = 10_000
"""The width of an output that is not a terminal: wider than any table."""


class Output(Console):
    """Standard output.

    If the program that reads standard output has ended, printing raises BrokenPipeError. A plain Console would end the
    process.

    Lines for files and other programs are not wrapped, unless the environment variable COLUMNS sets their width. With
    `is_help`, lines are always wrapped, because the frames of help fill all columns. If a command prints JSON, its
    sentences go to standard error (`is_error`).
    """

    def __init__(self, *, is_help: bool = False, is_error: bool = False) -> None:
        super().__init__(stderr=is_error)
        # A wrapped or shortened line would break the programs that read this output.
        if not (is_help or self.is_terminal or "COLUMNS" in os.environ):
            self.width = UNLIMITED

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def print_line(self, text: str) -> None:
        """Print a sentence without colors, wrapped for a terminal, and with control characters escaped."""
        printing.print_line(self, text)

    def print_lines(self, lines: Iterable[str]) -> None:
        """Print each sentence as `print_line` does."""
        for line in lines:
            self.print_line(line)


def open_streams() -> bool:
    """Prepare standard output and error, and return whether standard output is open.

    Characters that the encoding of a stream lacks are written as backslash escapes.
    """
    # Without the null device, the next file that is opened would get the number of a closed stream, and also receive
    # the output of this stream.
    closed = [descriptor for descriptor in range(3) if not _is_open(descriptor)]
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name with a character outside the encoding would end the command after its work is done.
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
        say("standard output: expected an open stream, got a closed one; redirect it, for example to /dev/null", 2)
        return False
    return True


def has_folder() -> bool:
    """Return whether the working folder exists, and write a message if not.

    Without a working folder, torch would end the process.
    """
    try:
        os.getcwd()
    except OSError:
        say("working folder: expected an existing folder, got a deleted one; change to another, for example with cd", 2)
        return False
    return True


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def say(message: str, code: int) -> int:
    """Write each line of a message to standard error, and return `code`, which is the exit code of the command."""
    with suppress(OSError):  # without a reader, the exit code still tells what happened
        # Further lines are indented. Otherwise, a line break in a name could begin a line that looks like our own
        # sentence.
        lines = message.rstrip("\n").replace("\n", "\n  ").split("\n")
        printing.write_lines((f"lengthwise: {line}" for line in lines), is_error=True)
    return code


def flush(code: int) -> int:
    """Flush standard output; return the exit code, which becomes 1 if a command's output was lost."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python's own flush fails again
        if code == 0 and not isinstance(error, BrokenPipeError):
            return say(f"standard output: {error.strerror}; free some space or redirect it", 1)
    return code
