"""Standard streams as a shell may hand them over: closed, full, ASCII only, or read by a process that hung up."""

import io
import os
import sys
from contextlib import suppress

from rich.console import Console

from lengthwise import printing

UNLIMITED = 10_000
"""Columns of what is no terminal: no table is as wide."""


class Output(Console):
    """Standard output. Where its reader hung up, printing raises BrokenPipeError; a plain Console ends the process.

    Lines for files and other programs are as long as they are, unless COLUMNS says how wide they may be, or the output
    `is_help`, whose frames fill all columns.
    """

    def __init__(self, *, is_help: bool = False) -> None:
        super().__init__()
        if not (is_help or self.is_terminal or "COLUMNS" in os.environ):
            self.width = UNLIMITED

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def print_line(self, text: str) -> None:
        """Print a line: neither wrapped nor colored, with control characters escaped."""
        printing.print_line(self, text)


def open_streams() -> bool:
    """Prepare standard output and error; whether there is an output to write to.

    A closed descriptor is given to the null device: else the next file that is opened would get its number, and what is
    printed. Characters that the encoding of a stream lacks are written as backslash escapes.
    """
    closed = [descriptor for descriptor in range(3) if not _is_open(descriptor)]
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
        say("standard output: expected an open stream, got a closed one; redirect it, to /dev/null for one", 2)
        return False
    return True


def has_folder() -> bool:
    """Return whether the working folder exists, without which torch ends the process; say so if it does not."""
    try:
        os.getcwd()
    except OSError:
        say("working folder: expected one that exists, got one that was deleted; change to another, as by cd", 2)
        return False
    return True


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def say(message: str, code: int) -> int:
    """Write each line of a message to standard error, and return the exit code that goes with it."""
    with suppress(OSError):  # if nobody can hear it, the exit code still tells
        # The indentation tells a further line, which a line break in a name may begin, from a sentence of our own.
        lines = message.rstrip("\n").replace("\n", "\n  ").split("\n")
        printing.write_lines((f"lengthwise: {line}" for line in lines), is_error=True)
    return code


def flush(code: int) -> int:
    """Write out what standard output still holds; returns the exit code, 1 where a command's output was lost."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python's own flush would fail again
        if code == 0 and not isinstance(error, BrokenPipeError):
            return say(f"standard output: {error.strerror}; free some space or redirect it", 1)
    return code
